//! `cargo xtask ci`: every check that a change must pass, the cheap ones first.

use std::collections::BTreeMap;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use crate::process;
use crate::services::{self, Servers};
use crate::tool::{DENY, NEXTEST};
use crate::workspace::{Workspace, cargo};
use crate::{guarantees, simulate, tidy};

/// All commands that compile use these, so that the workspace is built once.
const WHOLE: &[&str] = &["--workspace", "--all-features"];

/// Explores the model of coordination in full.
const MODEL: &[&str] = &[
    "test",
    "--profile",
    "model",
    "-p",
    "botmesh-core",
    "--features",
    "testing",
    "--test",
    "model",
    "--",
    "--nocapture",
];

/// Runs every check and stops at the first that fails. Whatever happens, the servers are stopped.
pub(crate) fn run(workspace: &Workspace, install: bool) -> Result<()> {
    let _lock = workspace.lock("ci")?;
    let mut steps = Steps::default();
    let outcome = check(workspace, install, &mut steps);
    steps.print_summary();
    outcome
}

fn check(workspace: &Workspace, install: bool, steps: &mut Steps) -> Result<()> {
    let cargo = |arguments: &[&str]| {
        let mut command = Command::new(cargo());
        command.args(arguments).current_dir(&workspace.root);
        command
    };
    let whole = |arguments: &[&str]| {
        let mut command = cargo(arguments);
        command.args(WHOLE);
        command
    };
    steps.run("format", || process::run(&mut cargo(&["fmt", "--all", "--", "--check"])))?;
    steps.run("tidy", || tidy::run(workspace))?;
    steps.run("guarantees", || guarantees::run(workspace))?;
    steps.run("tools", install_tools)?;
    steps.run("licences, bans and sources", || {
        process::run(&mut cargo(&[
            "deny",
            "--all-features",
            "check",
            "bans",
            "licenses",
            "sources",
        ]))
    })?;
    steps.run("clippy", || {
        process::run(whole(&["clippy", "--all-targets"]).args(["--", "-D", "warnings"]))
    })?;
    // As whoever depends on one crate alone builds it.
    steps.run("features", || {
        let published = workspace.packages.iter().filter(|package| package.published);
        for package in published {
            for features in [&["--no-default-features"][..], &[]] {
                let mut command = cargo(&["clippy", "-p", &package.name]);
                process::run(command.args(features).args(["--", "-D", "warnings"]))?;
            }
        }
        Ok(())
    })?;
    // Some tests talk to the examples as processes.
    steps.run("examples", || process::run(&mut whole(&["build", "--examples"])))?;
    let servers = services::needed(workspace);
    let mut running = None;
    if !servers.is_empty() {
        running = Some(steps.run("servers", || {
            Servers::start(&servers, &workspace.state_directory()?.join("ci.json"), install)
        })?);
    }
    steps.run("tests", || {
        let environment = running.as_ref().map(Servers::environment).unwrap_or_default();
        process::run(tests(&mut whole(&test_command()), &environment))
    })?;
    steps.run("doc tests", || {
        let environment = running.as_ref().map(Servers::environment).unwrap_or_default();
        process::run(tests(&mut whole(&["test", "--doc"]), &environment))
    })?;
    if let Some(servers) = running {
        steps.run("servers stopped", || servers.stop())?;
    }
    // The tests above explore a part of the model and run some seeds. Optimised, these two take
    // a minute and in full; with the tests they would take many.
    steps.run("model check", || process::run(&mut cargo(MODEL)))?;
    steps.run("simulation", || simulate::run(workspace, simulate::SEEDS, 0))?;
    steps.run("docs", || {
        process::run(whole(&["doc", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings"))
    })
}

fn install_tools() -> Result<()> {
    if let Err(error) = NEXTEST.ensure() {
        process::check_interrupted()?;
        println!(
            "notice: {error:#}\nnotice: the tests run by `cargo test`, which cannot end a hung test"
        );
    }
    DENY.ensure()
}

fn test_command() -> Vec<&'static str> {
    if NEXTEST.is_installed() {
        vec!["nextest", "run", "--profile", "ci", "--no-tests", "pass"]
    } else {
        vec!["test", "--lib", "--bins", "--tests", "--examples", "--no-fail-fast"]
    }
}

/// Gives tests the servers, and makes a missing one a failure instead of a skip.
fn tests<'a>(command: &'a mut Command, environment: &BTreeMap<String, String>) -> &'a mut Command {
    command.envs(environment).env("BOTMESH_REQUIRE_BACKENDS", "1")
}

/// The steps so far, with how long each took.
#[derive(Debug, Default)]
struct Steps {
    done: Vec<(&'static str, Duration, bool)>,
}

impl Steps {
    fn run<T>(&mut self, name: &'static str, step: impl FnOnce() -> Result<T>) -> Result<T> {
        process::check_interrupted()?;
        println!("\n=== {name}");
        let begun = Instant::now();
        let outcome = step();
        let took = begun.elapsed();
        let word = if outcome.is_ok() { "done" } else { "FAILED" };
        println!("=== {name} {word} in {:.1} s", took.as_secs_f64());
        self.done.push((name, took, outcome.is_ok()));
        outcome.with_context(|| format!("the step `{name}` failed"))
    }

    fn print_summary(&self) {
        println!("\n=== summary");
        for (name, took, passed) in &self.done {
            println!(
                "{:<28}{:>8.1} s  {}",
                name,
                took.as_secs_f64(),
                if *passed { "ok" } else { "FAILED" }
            );
        }
        let whole: Duration = self.done.iter().map(|(_, took, _)| *took).sum();
        println!("{:<28}{:>8.1} s", "all", whole.as_secs_f64());
    }
}
