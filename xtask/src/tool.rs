//! The cargo subcommands that the checks use.

use std::process::Command;

use anyhow::{Context as _, Result};

use crate::process;
use crate::workspace::cargo;

/// A program that cargo runs as a subcommand.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tool {
    pub(crate) subcommand: &'static str,
    package: &'static str,
    /// The version that is installed when there is none.
    version: &'static str,
}

pub(crate) const NEXTEST: Tool =
    Tool { subcommand: "nextest", package: "cargo-nextest", version: "0.9.143" };

pub(crate) const DENY: Tool = Tool { subcommand: "deny", package: "cargo-deny", version: "0.20.2" };

impl Tool {
    pub(crate) fn is_installed(self) -> bool {
        process::succeeds(Command::new(cargo()).args([self.subcommand, "--version"]))
    }

    /// Installs the tool where cargo keeps its own when there is none, whatever its version.
    pub(crate) fn ensure(self) -> Result<()> {
        if self.is_installed() {
            return Ok(());
        }
        println!("{} is missing: installing {}", self.package, self.version);
        let mut install = Command::new(cargo());
        install.args(["install", "--locked", self.package, "--version", self.version]);
        process::run(&mut install).with_context(|| {
            format!(
                "`{}` is needed; install it by hand with `cargo install --locked {}`",
                self.package, self.package
            )
        })
    }
}
