//! What neither the compiler nor clippy checks: layers, sizes, manifests, documentation and text.

mod documentation;
mod manifest;
mod size;
mod text;

use std::fmt;

use anyhow::{Context as _, Result, bail};

use crate::layers;
use crate::workspace::Workspace;

/// A breach of a rule, where it is and what to do about it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    path: String,
    line: usize,
    message: String,
}

impl Finding {
    pub(crate) fn new(path: &str, line: usize, message: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, message: message.into() }
    }

    /// A breach by a file as a whole.
    pub(crate) fn file(path: &str, message: impl Into<String>) -> Self {
        Self::new(path, 1, message)
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}: {}", self.path, self.line, self.message)
    }
}

/// Runs every check and fails when one finds something.
pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    let files = workspace.files()?;
    let mut findings = layers::check_crates(workspace);
    for package in &workspace.packages {
        findings.extend(manifest::check(workspace, package)?);
        findings.extend(documentation::check(workspace, package)?);
    }
    findings.extend(check_core_layers(workspace, &files)?);
    for file in &files {
        if let Some(content) = read(workspace, file)? {
            findings.extend(size::check(file, &content));
            findings.extend(text::check(file, &content));
        }
    }
    report(&findings, files.len())
}

fn report(findings: &[Finding], files: usize) -> Result<()> {
    for finding in findings {
        eprintln!("{finding}");
    }
    match findings.len() {
        0 => {
            println!("tidy: {files} files, nothing to say");
            Ok(())
        }
        1 => bail!("tidy found 1 breach"),
        many => bail!("tidy found {many} breaches"),
    }
}

fn check_core_layers(workspace: &Workspace, files: &[String]) -> Result<Vec<Finding>> {
    let Some(core) = workspace.packages.iter().find(|package| package.name == "botmesh-core")
    else {
        return Ok(Vec::new());
    };
    let sources = format!("{}/src/", workspace.relative(core));
    let root = read(workspace, &format!("{sources}lib.rs"))?.unwrap_or_default();
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| file.ends_with(".rs")) {
        let Some(module) = file.strip_prefix(&sources) else { continue };
        let content = read(workspace, file)?.unwrap_or_default();
        let breaches = layers::check_module(module, &content, &root);
        findings
            .extend(breaches.into_iter().map(|(line, message)| Finding::new(file, line, message)));
    }
    Ok(findings)
}

/// The text of a file, or none when it is binary.
pub(crate) fn read(workspace: &Workspace, file: &str) -> Result<Option<String>> {
    let bytes = std::fs::read(workspace.root.join(file))
        .with_context(|| format!("{file} could not be read"))?;
    Ok(String::from_utf8(bytes).ok())
}
