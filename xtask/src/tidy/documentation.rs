//! Every published crate says what it is for, to the reader of its docs and of its page.

use anyhow::Result;

use super::{Finding, read};
use crate::workspace::{Package, Workspace};

pub(crate) fn check(workspace: &Workspace, package: &Package) -> Result<Vec<Finding>> {
    if !package.published {
        return Ok(Vec::new());
    }
    let directory = workspace.relative(package);
    let mut findings = Vec::new();
    if !package.directory.join("README.md").is_file() {
        findings.push(Finding::file(
            &format!("{directory}/README.md"),
            "is missing: say what the crate is for",
        ));
    }
    if package.library {
        let file = format!("{directory}/src/lib.rs");
        if !has_crate_docs(&read(workspace, &file)?.unwrap_or_default()) {
            findings.push(Finding::file(
                &file,
                "has no crate docs: begin it with //! lines or include the README",
            ));
        }
    }
    Ok(findings)
}

fn has_crate_docs(content: &str) -> bool {
    let mut lines = content.lines().map(str::trim);
    lines.any(|line| {
        line.strip_prefix("//!").is_some_and(|text| !text.trim().is_empty())
            || line.starts_with("#![doc = include_str!")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crate_docs_are_told_from_other_comments() {
        assert!(has_crate_docs("//! Stores.\n"));
        assert!(has_crate_docs(
            "#![forbid(unsafe_code)]\n#![doc = include_str!(\"../README.md\")]\n"
        ));
        assert!(!has_crate_docs("// Stores.\n/// A store.\npub struct Store;\n"));
        assert!(!has_crate_docs("//!\n"));
    }
}
