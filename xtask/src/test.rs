//! `cargo xtask test`: the tests of the moment, fast.

use std::process::Command;

use anyhow::Result;

use crate::process;
use crate::services;
use crate::tool::NEXTEST;
use crate::workspace::{Workspace, cargo};

/// Runs the tests that the arguments select. Where `services up` has started servers the tests get them; the tests
/// of a backend that is absent say that they are skipped.
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<()> {
    let mut command = Command::new(cargo());
    if NEXTEST.is_installed() {
        command.args(["nextest", "run", "--no-tests", "pass"]);
    } else {
        command.arg("test");
    }
    command.arg("--all-features");
    if !selects_packages(arguments) {
        command.arg("--workspace");
    }
    command.args(arguments).current_dir(&workspace.root).envs(services::running(workspace)?);
    process::run(&mut command)
}

fn selects_packages(arguments: &[String]) -> bool {
    arguments.iter().any(|argument| {
        argument.starts_with("-p") || argument == "--package" || argument.starts_with("--package=")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_named_package_replaces_the_whole_workspace() {
        let selects = |line: &str| {
            let arguments: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            selects_packages(&arguments)
        };
        assert!(selects("-p botmesh-core fifo"));
        assert!(selects("-pbotmesh-core"));
        assert!(selects("--package botmesh-core"));
        assert!(selects("--package=botmesh-core"));
        assert!(!selects("fifo"));
        assert!(!selects(""));
    }
}
