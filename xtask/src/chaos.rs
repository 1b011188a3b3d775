//! `cargo xtask chaos`: worker processes, a private server and faults, for minutes.

use std::process::Command;

use anyhow::Result;

use crate::process;
use crate::workspace::{Workspace, cargo};

const PACKAGE: &str = "botmesh-tests";

/// Builds the workers with their driver, which reads the arguments and prints what came of it.
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<()> {
    let mut build = Command::new(cargo());
    build.args(["build", "--release", "-p", PACKAGE, "--bins"]);
    process::run(build.current_dir(&workspace.root))?;
    process::run(Command::new(workspace.target.join("release/chaos")).args(arguments))
}
