//! `cargo xtask chaos`: worker processes, or with `--bots` replicas of a whole bot, a private server
//! and faults, for minutes.

use std::process::Command;

use anyhow::Result;

use crate::process;
use crate::services;
use crate::workspace::{Workspace, cargo};

const PACKAGE: &str = "botmesh-tests";

/// Builds the workers with their driver, which reads the arguments and prints what came of it.
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<()> {
    let mut build = Command::new(cargo());
    build.args(["build", "--release", "-p", PACKAGE, "--bins"]);
    process::run(build.current_dir(&workspace.root))?;
    let (bots, rest): (Vec<_>, Vec<_>) = arguments.iter().partition(|it| *it == "--bots");
    let driver = if bots.is_empty() { "release/chaos" } else { "release/bots" };
    // The program of the stand-in for MongoDB is known to those who started the services.
    let environment = services::running(workspace)?;
    process::run(Command::new(workspace.target.join(driver)).args(rest).envs(environment))
}
