//! The form of `docs/guarantees.md`.
//!
//! A promise is a list item, `- **B2** Sentence`, whose sentence may go on in indented lines. Under it, indented,
//! stand `- for: memory, SQLite` when only a part of it is kept, and one `- test: …` line for each test.
//! After the heading `## Not built yet` the same items list what is missing.

use std::collections::BTreeMap;

use super::{DOCUMENT, Promise};

/// The heading that begins the second list.
const PENDING: &str = "## Not built yet";

/// What the document says.
#[derive(Debug, Default)]
pub(super) struct Document {
    pub(super) kept: BTreeMap<Promise, Kept>,
    /// What is not built, with the missing parts; none named means all.
    pub(super) pending: BTreeMap<Promise, Vec<String>>,
    pub(super) faults: Vec<String>,
}

/// A promise that is kept, at least for a part.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Kept {
    pub(super) scope: Vec<String>,
    pub(super) tests: Vec<String>,
}

/// One item with the lines under it.
#[derive(Debug)]
struct Item {
    line: usize,
    promise: Promise,
    sentence: String,
    pending: bool,
    scope: Vec<String>,
    tests: Vec<String>,
}

impl Document {
    pub(super) fn parse(text: &str) -> Self {
        let mut document = Self::default();
        let mut item: Option<Item> = None;
        let mut pending = false;
        let mut in_code = false;
        for (index, line) in text.lines().enumerate() {
            if line.starts_with("```") {
                in_code = !in_code;
            }
            if in_code {
                continue;
            }
            if line.starts_with('#') || line.starts_with("- ") {
                document.finish(item.take());
            }
            if line.starts_with("## ") {
                pending = line.trim_end() == PENDING;
            } else if let Some(rest) = line.strip_prefix("- **") {
                item = document.begin(index + 1, rest, pending);
            } else if let (Some(item), true) = (&mut item, line.starts_with("  ")) {
                document.faults.extend(item.read(line.trim(), index + 1));
            }
        }
        document.finish(item);
        document
    }

    fn begin(&mut self, line: usize, rest: &str, pending: bool) -> Option<Item> {
        let (number, sentence) = rest.split_once("**").unwrap_or((rest, ""));
        let promise = Promise::read(number).filter(|promise| promise.exists());
        if promise.is_none() {
            self.faults.push(format!("{DOCUMENT}:{line}: `{number}` is no promise"));
        }
        Some(Item {
            line,
            promise: promise?,
            sentence: sentence.trim().to_owned(),
            pending,
            scope: Vec::new(),
            tests: Vec::new(),
        })
    }

    fn finish(&mut self, item: Option<Item>) {
        let Some(Item { line, promise, sentence, pending, scope, tests }) = item else { return };
        if sentence.is_empty() {
            self.faults.push(format!(
                "{DOCUMENT}:{line}: {promise} has no sentence that a user could read"
            ));
        }
        if pending && !tests.is_empty() {
            self.faults.push(format!(
                "{DOCUMENT}:{line}: {promise} is listed as not built, but names tests"
            ));
        }
        let twice = if pending {
            self.pending.insert(promise, scope).is_some()
        } else {
            self.kept.insert(promise, Kept { scope, tests }).is_some()
        };
        if twice {
            self.faults.push(format!("{DOCUMENT}:{line}: {promise} stands in the same list twice"));
        }
    }
}

impl Item {
    /// Reads a line under the item; answers what is wrong with it.
    fn read(&mut self, line: &str, number: usize) -> Option<String> {
        let Some(entry) = line.strip_prefix("- ") else {
            self.sentence.push_str(line);
            return None;
        };
        if let Some(parts) = entry.strip_prefix("for:") {
            self.scope = scope(parts);
            return None;
        }
        let test = entry.strip_prefix("test:").map(|test| test.trim().trim_matches('`').trim());
        match test {
            Some(test) if !test.is_empty() => {
                self.tests.push(test.to_owned());
                None
            }
            _ => Some(format!("{DOCUMENT}:{number}: `{entry}` is neither `for: …` nor `test: …`")),
        }
    }
}

/// The parts of a list such as `memory, SQLite`, sorted.
pub(super) fn scope(text: &str) -> Vec<String> {
    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    let mut parts: Vec<String> = parts.map(str::to_owned).collect();
    parts.sort();
    parts
}
