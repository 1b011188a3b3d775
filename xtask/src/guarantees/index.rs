//! The tests of the workspace, found in its sources, with the promises that they say they prove.

use std::collections::BTreeSet;

use anyhow::Result;

use super::Promise;
use crate::source;
use crate::tidy;
use crate::workspace::Workspace;

/// A function that proves something: a test, or a case of a conformance suite.
#[derive(Debug)]
struct Test {
    file: String,
    line: usize,
    /// Crate, modules and name.
    path: Vec<String>,
    promises: BTreeSet<Promise>,
    /// The suite that runs it, under the path of the module that invokes the suite.
    suite: Option<&'static str>,
}

/// A module that runs a conformance suite.
#[derive(Debug)]
struct Run {
    path: Vec<String>,
    suite: String,
}

/// The folders of the conformance suites; what lies outside of them is about stores.
const SUITES: &[&str] = &["coordinator", "provider"];

/// All tests of the workspace.
#[derive(Debug, Default)]
pub(super) struct Index {
    tests: Vec<Test>,
    runs: Vec<Run>,
}

impl Index {
    /// Reads the sources of every member.
    pub(super) fn of(workspace: &Workspace) -> Result<Self> {
        let mut index = Self::default();
        let files = workspace.files()?;
        for file in files.iter().filter(|file| file.ends_with(".rs")) {
            let within = |package| {
                let directory = workspace.relative(package);
                Some((directory.len(), file.strip_prefix(&format!("{directory}/"))?, &package.name))
            };
            // The innermost member holds the file.
            let Some((_, inner, name)) = workspace.packages.iter().filter_map(within).max() else {
                continue;
            };
            if let Some(text) = tidy::read(workspace, file)? {
                index.add(name, file, inner, &text);
            }
        }
        Ok(index)
    }

    /// Reads one file: `inner` is its path within the crate `name`.
    pub(super) fn add(&mut self, name: &str, file: &str, inner: &str, text: &str) {
        let base = module_path(name, inner);
        let suite = suite_of(&base);
        let code = source::code(text);
        let attributes = source::attributes(&code);
        let modules = inline_modules(&code);
        let lines: Vec<&str> = text.lines().collect();
        for at in source::words(&code, "fn") {
            let function = source::word_at(&code, at + 3);
            let own: Vec<&str> = attributes_before(&code, at, &attributes);
            let is_test = own.iter().any(|attribute| source::is_test_function(attribute));
            if function.is_empty() || !(is_test || suite.is_some()) {
                continue;
            }
            let line = source::line(&code, at);
            let around = modules.iter().filter(|(from, to, _)| *from < at && at < *to);
            let mut path = base.clone();
            path.extend(around.map(|(_, _, module)| module.clone()));
            path.push(function.to_owned());
            let promises = promises_above(&lines, line - 1);
            self.tests.push(Test {
                file: file.to_owned(),
                line,
                path,
                promises,
                suite: suite.filter(|_| !is_test),
            });
        }
        self.runs.extend(runs(&code, &base, &modules));
    }

    /// Whether a test exists under a name that the document gives and says that it proves the promise.
    pub(super) fn proves(&self, reference: &str, promise: Promise) -> Result<(), String> {
        let found: Vec<&Test> =
            self.tests.iter().filter(|test| self.is_named(test, reference)).collect();
        if found.is_empty() {
            return Err(format!("there is no test `{reference}`{}", self.suggestion(reference)));
        }
        if found.iter().any(|test| test.promises.contains(&promise)) {
            return Ok(());
        }
        let test = found[0];
        Err(format!(
            "{}:{}: `{reference}` does not say that it proves {promise}: add `/// {promise}: …` above it",
            test.file, test.line
        ))
    }

    /// Promises that a test says it proves and that do not exist.
    pub(super) fn unknown_promises(&self) -> Vec<String> {
        let claims = self
            .tests
            .iter()
            .flat_map(|test| test.promises.iter().map(move |promise| (test, promise)));
        claims
            .filter(|(_, promise)| !promise.exists())
            .map(|(test, promise)| {
                format!("{}:{}: there is no promise {promise}", test.file, test.line)
            })
            .collect()
    }

    /// The first test that says it proves a promise.
    pub(super) fn first_claim(&self, promise: Promise) -> Option<String> {
        let test = self.tests.iter().find(|test| test.promises.contains(&promise))?;
        Some(test.path.join("::"))
    }

    fn is_named(&self, test: &Test, reference: &str) -> bool {
        if let Some((file, name)) = reference.split_once(' ') {
            return test.file == file && test.path.last().is_some_and(|last| last == name.trim());
        }
        let path: Vec<String> =
            reference.replace('-', "_").split("::").map(str::to_owned).collect();
        if test.path == path {
            return true;
        }
        // A case of a suite, under the path of a module that runs the suite.
        let runs_it = |suite: &str| {
            let mut runs = self.runs.iter().filter(|run| run.suite == suite);
            runs.any(|run| path.len() > run.path.len() && path.starts_with(&run.path))
        };
        test.path.last() == path.last() && test.suite.is_some_and(runs_it)
    }

    fn suggestion(&self, reference: &str) -> String {
        let name = reference.rsplit([':', ' ']).next().unwrap_or(reference);
        let similar =
            self.tests.iter().find(|test| test.path.last().is_some_and(|last| last == name));
        similar
            .map_or_else(String::new, |test| format!("; `{}` has that name", test.path.join("::")))
    }
}

/// The path of a file's module: the crate, then what its place says.
fn module_path(name: &str, inner: &str) -> Vec<String> {
    let mut path = vec![name.replace('-', "_")];
    let inner = inner.trim_end_matches(".rs").trim_end_matches("/mod");
    let inner = inner.strip_prefix("src/").or(inner.strip_prefix("tests/")).unwrap_or(inner);
    let modules = inner.split('/').filter(|module| !matches!(*module, "lib" | "main"));
    path.extend(modules.map(str::to_owned));
    path
}

/// The modules written inside a file: where their braces open and close, and their names.
fn inline_modules(code: &str) -> Vec<(usize, usize, String)> {
    let declared = source::words(code, "mod").filter_map(|at| {
        let name = source::word_at(code, at + 4);
        let open = at + 4 + name.len();
        let gap = code[open..].len() - code[open..].trim_start().len();
        if name.is_empty() || !code[open + gap..].starts_with('{') {
            return None;
        }
        Some((open + gap, source::closing(code, open + gap)?, name.to_owned()))
    });
    declared.collect()
}

/// The attributes of the function whose `fn` stands at an offset.
fn attributes_before<'a>(
    code: &str,
    at: usize,
    attributes: &'a [(usize, usize, String)],
) -> Vec<&'a str> {
    let mut before = at;
    let mut found = Vec::new();
    for (from, end, attribute) in attributes.iter().rev() {
        if *end > before {
            continue;
        }
        // Between an attribute and the next, or the function, stand only spaces and the words before `fn`.
        if code[*end..before].contains(['{', '}', ';']) {
            break;
        }
        found.push(attribute.as_str());
        before = *from;
    }
    found
}

/// The promises in the doc comment above a line, whose index is given.
fn promises_above(lines: &[&str], index: usize) -> BTreeSet<Promise> {
    let mut promises = BTreeSet::new();
    for line in lines[..index].iter().rev().map(|line| line.trim()) {
        if let Some(text) = line.strip_prefix("///") {
            promises.extend(claims(text));
        } else if !(line.starts_with("#[") || line.starts_with("//") || line.ends_with(")]")) {
            break;
        }
    }
    promises
}

/// The promises before the colon of a line such as `B2, D7: exactly one wins`.
fn claims(text: &str) -> Vec<Promise> {
    let Some((before, _)) = text.split_once(':') else { return Vec::new() };
    let numbers = before.split([',', ' ']).filter(|word| !word.is_empty() && *word != "and");
    numbers.map(Promise::read).collect::<Option<Vec<_>>>().unwrap_or_default()
}

/// The suite that the functions of a module are cases of.
fn suite_of(path: &[String]) -> Option<&'static str> {
    let inner = path.strip_prefix(&["botmesh_core".to_owned(), "conformance".to_owned()])?;
    let named = SUITES.iter().find(|suite| inner.first().is_some_and(|module| module == *suite));
    Some(named.copied().unwrap_or("store"))
}

/// The modules of a file that run a conformance suite, by a macro such as `store_conformance!`.
fn runs(code: &str, base: &[String], modules: &[(usize, usize, String)]) -> Vec<Run> {
    let calls = code.match_indices("_conformance!").map(|(at, _)| at);
    calls
        .map(|at| {
            let mut path = base.to_vec();
            let around = modules.iter().filter(|(from, to, _)| *from < at && at < *to);
            path.extend(around.map(|(_, _, module)| module.clone()));
            let start = code[..at]
                .bytes()
                .rposition(|byte| !source::is_word(byte))
                .map_or(0, |before| before + 1);
            Run { path, suite: code[start..at].to_owned() }
        })
        .collect()
}
