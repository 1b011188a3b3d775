//! `cargo xtask chaos`: worker processes, or replicas of a whole bot with `--bots`, or of one that
//! keeps what it accepts with `--durable`, a private server and faults, for minutes.

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
    let (kinds, rest): (Vec<_>, Vec<_>) =
        arguments.iter().partition(|it| matches!(it.as_str(), "--bots" | "--durable"));
    let driver = match kinds.first().map(|kind| kind.as_str()) {
        None => "release/chaos",
        Some("--bots") => "release/bots",
        Some(_) => "release/durable_chaos",
    };
    // The program of the stand-in for MongoDB is known to those who started the services.
    let environment = services::running(workspace)?;
    process::run(Command::new(workspace.target.join(driver)).args(rest).envs(environment))
}
