//! Every promise of `docs/guarantees.md` against the tests that prove it.
//!
//! The document says of itself how it is written. This check adds three things: that no promise is forgotten, that
//! each named test exists and says which promise it proves, and that the list of what is not built yet only
//! shrinks, by comparing it with `guarantees/pending.txt`.

mod document;
mod index;

use std::collections::BTreeMap;
use std::fmt;

use anyhow::{Context as _, Result, bail};

use crate::workspace::Workspace;
use document::Document;
use index::Index;

#[cfg(test)]
mod tests;

const DOCUMENT: &str = "docs/guarantees.md";
const BASELINE: &str = "xtask/src/guarantees/pending.txt";

/// The sections with the number of promises in each.
const SECTIONS: &[(char, u8)] =
    &[('A', 15), ('B', 7), ('C', 16), ('D', 9), ('E', 5), ('F', 13), ('G', 11), ('H', 3), ('I', 7)];

/// The number of a promise, such as B2.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Promise {
    section: char,
    number: u8,
}

impl Promise {
    /// Every promise, in order.
    fn all() -> impl Iterator<Item = Self> {
        SECTIONS.iter().flat_map(|(section, count)| {
            (1..=*count).map(|number| Self { section: *section, number })
        })
    }

    /// Reads a text that looks like a promise: a capital letter of a section and a number.
    fn read(text: &str) -> Option<Self> {
        let mut characters = text.chars();
        let section = characters.next()?;
        let number = characters.as_str();
        let known = SECTIONS.iter().any(|(letter, _)| *letter == section);
        let plain = number.chars().all(|digit| digit.is_ascii_digit()) && !number.starts_with('0');
        if known && plain { Some(Self { section, number: number.parse().ok()? }) } else { None }
    }

    fn exists(self) -> bool {
        Self::all().any(|promise| promise == self)
    }
}

impl fmt::Display for Promise {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}{}", self.section, self.number)
    }
}

/// Checks the document against the baseline and the sources.
pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    let read = |file: &str| {
        std::fs::read_to_string(workspace.root.join(file))
            .with_context(|| format!("{file} could not be read"))
    };
    let index = Index::of(workspace)?;
    let document = Document::parse(&read(DOCUMENT)?);
    let baseline = read(BASELINE)?;
    let findings = check(&document, &baseline, &index);
    for finding in &findings {
        eprintln!("{finding}");
    }
    if !findings.is_empty() {
        bail!("{DOCUMENT} does not tell the truth in {} places", findings.len());
    }
    for note in notes(&document, &index) {
        println!("note: {note}");
    }
    let pending = document.pending.len();
    let partly =
        document.pending.keys().filter(|promise| document.kept.contains_key(promise)).count();
    let all = Promise::all().count();
    println!(
        "guarantees: {} of {all} kept, {partly} in part, {} not built yet",
        all - pending,
        pending - partly
    );
    Ok(())
}

fn check(document: &Document, baseline: &str, index: &Index) -> Vec<String> {
    let mut findings = document.faults.clone();
    for promise in Promise::all() {
        findings.extend(check_promise(promise, document));
    }
    for (promise, kept) in &document.kept {
        for test in &kept.tests {
            if let Err(reason) = index.proves(test, *promise) {
                findings.push(format!("{DOCUMENT}: {promise}: {reason}"));
            }
        }
    }
    findings.extend(check_baseline(document, baseline));
    findings.extend(index.unknown_promises());
    findings
}

fn check_promise(promise: Promise, document: &Document) -> Option<String> {
    let kept = document.kept.get(&promise);
    let pending = document.pending.get(&promise);
    let fault = match (kept, pending) {
        (None, None) => {
            "is missing: give its sentence and tests, or list it under \"Not built yet\""
        }
        (Some(kept), _) if kept.tests.is_empty() => {
            "names no test: add a `- test:` line or list it as not built yet"
        }
        (Some(kept), None) if !kept.scope.is_empty() => {
            "is kept in part: list the rest under \"Not built yet\", or take its `- for:` line away"
        }
        (Some(kept), Some(pending)) if kept.scope.is_empty() || pending.is_empty() => {
            "stands in both lists: say with a `- for:` line in each what is kept and what is not"
        }
        (Some(kept), Some(pending)) if kept.scope.iter().any(|part| pending.contains(part)) => {
            "says of the same part that it is kept and that it is not"
        }
        _ => return None,
    };
    Some(format!("{DOCUMENT}: {promise} {fault}"))
}

fn check_baseline(document: &Document, baseline: &str) -> Vec<String> {
    let mut recorded = BTreeMap::new();
    let mut findings = Vec::new();
    for line in baseline.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (number, scope) = line.split_once(" for ").unwrap_or((line, ""));
        match Promise::read(number.trim()) {
            Some(promise) => {
                recorded.insert(promise, document::scope(scope));
            }
            None => findings.push(format!("{BASELINE}: `{line}` is no promise")),
        }
    }
    for (promise, parts) in &document.pending {
        match recorded.get(promise) {
            None => findings.push(format!(
                "{DOCUMENT}: {promise} is listed as not built yet, but was built before: that list may only shrink"
            )),
            Some(before) if before != parts && !is_part_of(parts, before) => findings.push(format!(
                "{DOCUMENT}: more of {promise} is listed as not built than before: that list may only shrink"
            )),
            Some(before) if before != parts => findings.push(format!(
                "{BASELINE}: less of {promise} is missing now: write `{promise} for {}`",
                parts.join(", ")
            )),
            Some(_) => {}
        }
    }
    let done = recorded.keys().filter(|promise| !document.pending.contains_key(promise));
    findings.extend(
        done.map(|promise| format!("{BASELINE}: {promise} is kept now: take its line out")),
    );
    findings
}

/// Whether less is missing than before; an empty list stands for the whole promise.
fn is_part_of(parts: &[String], before: &[String]) -> bool {
    !parts.is_empty() && (before.is_empty() || parts.iter().all(|part| before.contains(part)))
}

/// Promises that a test claims to prove while the document lists them as not built.
fn notes(document: &Document, index: &Index) -> Vec<String> {
    let open = document.pending.keys().filter(|promise| !document.kept.contains_key(promise));
    open.filter_map(|promise| {
        let test = index.first_claim(*promise)?;
        Some(format!("{test} proves {promise}, which {DOCUMENT} still lists as not built"))
    })
    .collect()
}
