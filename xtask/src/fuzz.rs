//! `cargo xtask fuzz`: one fuzz target under libFuzzer, with the stable compiler.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::process;
use crate::workspace::{Workspace, cargo};

const PACKAGE: &str = "botmesh-fuzz";

/// How long a target is fuzzed when nothing else is asked for, in seconds.
pub(crate) const SECONDS: u64 = 60;

/// The longest input, in bytes: long enough for structure to nest, short enough to be many.
const MAX_LENGTH: usize = 16 << 10;

/// The instrumentation that libFuzzer reads. It is made by a pass of LLVM, which the stable compiler runs as well; only the
/// sanitizers need another one.
const FLAGS: &[&str] = &[
    "--cfg=fuzzing",
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Cdebug-assertions=yes",
    "-Ccodegen-units=1",
];

/// What is to be done with a target.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// Look for inputs that fail, for so many seconds.
    Search(u64),
    /// Run this input.
    Input(String),
}

/// Fuzzes a target; without one, lists them.
pub(crate) fn run(workspace: &Workspace, target: Option<(String, What)>) -> Result<()> {
    let Some((target, what)) = target else {
        let mut list = Command::new(cargo());
        list.args(["run", "--quiet", "-p", PACKAGE]).current_dir(&workspace.root);
        return process::run(&mut list);
    };
    let program = build(workspace)?;
    let home = workspace.target.join("fuzz");
    let corpus = home.join("corpus").join(&target);
    let failures = home.join("failures");
    for directory in [&corpus, &failures] {
        std::fs::create_dir_all(directory)
            .with_context(|| format!("{} could not be created", directory.display()))?;
    }
    let mut fuzzer = Command::new(program);
    fuzzer.current_dir(&home).env("BOTMESH_FUZZ_TARGET", &target);
    match what {
        What::Input(file) => fuzzer.arg(workspace.root.join(file)),
        What::Search(seconds) => fuzzer
            .env("BOTMESH_FUZZ_CORPUS", &corpus)
            .arg(&corpus)
            .arg(format!("-max_total_time={seconds}"))
            .arg(format!("-max_len={MAX_LENGTH}"))
            .arg(format!("-artifact_prefix={}/{target}-", failures.display()))
            .args(["-timeout=10", "-rss_limit_mb=4096", "-print_final_stats=1"]),
    };
    process::run(&mut fuzzer)
}

/// Builds the fuzzer, below a directory of its own, so that nothing else is built anew, and for the host by its name: then
/// the programs that run while it is built are not instrumented.
fn build(workspace: &Workspace) -> Result<PathBuf> {
    let version = process::output(Command::new("rustc").arg("-vV"))?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    let host = host.context("rustc does not say for which machine it compiles")?;
    let directory = workspace.target.join("fuzz/build");
    let mut build = Command::new(cargo());
    build
        .args(["build", "--profile", "model", "-p", PACKAGE, "--target", host, "--target-dir"])
        .arg(&directory)
        .current_dir(&workspace.root)
        .env("CARGO_ENCODED_RUSTFLAGS", FLAGS.join("\u{1f}"));
    process::run(&mut build)?;
    Ok(directory.join(host).join("model").join(PACKAGE))
}
