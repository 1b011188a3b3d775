//! `cargo xtask simulate`: whole bots with faults in virtual time, many seeds of them, optimised.

use std::process::Command;

use anyhow::Result;

use crate::process;
use crate::workspace::{Workspace, cargo};

/// So many seeds every change must pass.
pub(crate) const SEEDS: u64 = 2_000;

/// Runs the seeds from `first` on. A failure prints the seed that repeats it.
pub(crate) fn run(workspace: &Workspace, seeds: u64, first: u64) -> Result<()> {
    let mut command = Command::new(cargo());
    command
        .args(["test", "--profile", "model", "-p", "botmesh-core", "--features", "testing"])
        .args(["--test", "simulation", "--", "--nocapture", "whatever_fails"])
        .current_dir(&workspace.root)
        .env("BOTMESH_SEEDS", seeds.to_string())
        .env("BOTMESH_FIRST_SEED", first.to_string());
    process::run(&mut command)
}
