//! The driver of a chaos run; `cargo xtask chaos` builds and starts it.

use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, bail};
use botmesh_tests::chaos::Chaos;
use botmesh_tests::servers::Layout;
use tokio::signal::unix::{SignalKind, signal};

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<bool> {
    let chaos = read(std::env::args().skip(1))?;
    let Chaos { seed, replicas, time, layout, .. } = chaos;
    let run = format!("seed {seed}, {layout:?}, {replicas} replicas, {} s", time.as_secs());
    println!("{run}");
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(1).enable_all().build()?;
    let outcome = runtime.block_on(async {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        // Dropped, the run takes its servers and workers with it.
        tokio::select! {
            outcome = chaos.run() => outcome,
            _ = terminate.recv() => bail!("it was told to end"),
            _ = interrupt.recv() => bail!("it was interrupted"),
        }
    })?;
    print!("{run}\n{}", outcome.report);
    let clean = outcome.report.violations.is_empty();
    if !clean {
        println!("the histories are in {}", outcome.directory.display());
    }
    Ok(clean)
}

fn read(mut arguments: impl Iterator<Item = String>) -> Result<Chaos> {
    let program = std::env::current_exe()?.with_file_name("worker");
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?;
    let mut chaos = Chaos::new(program, now.as_secs(), Duration::from_secs(600));
    let mut layouts = Vec::new();
    while let Some(flag) = arguments.next() {
        let layout = match flag.as_str() {
            "--sentinel" => Some(Layout::Sentinel),
            "--cluster" => Some(Layout::Cluster),
            _ => None,
        };
        if let Some(layout) = layout {
            layouts.push(layout);
            continue;
        }
        let value = arguments.next().with_context(|| format!("{flag} needs a value"))?;
        let number = || value.parse::<u64>().with_context(|| format!("{value} is no number"));
        match flag.as_str() {
            "--backend" if value == "redis" => {}
            "--backend" if value == "postgres" => layouts.push(Layout::Postgres),
            "--backend" if value == "mysql" => layouts.push(Layout::Mysql),
            "--backend" if value == "mongo" => layouts.push(Layout::Mongo),
            "--backend" => {
                bail!("there is no backend {value}: choose redis, postgres, mysql or mongo")
            }
            "--minutes" => chaos.time = Duration::from_secs(number()? * 60),
            "--seconds" => chaos.time = Duration::from_secs(number()?),
            "--seed" => chaos.seed = number()?,
            "--replicas" => chaos.replicas = usize::try_from(number()?)?,
            other => bail!("{other} is not known: see `cargo xtask help`"),
        }
    }
    match layouts.as_slice() {
        [] => {}
        [layout] => chaos.layout = *layout,
        _ => bail!("choose one of --sentinel, --cluster and a --backend"),
    }
    if !(3..=8).contains(&chaos.replicas) {
        bail!("{} replicas: choose 3 to 8", chaos.replicas);
    }
    Ok(chaos)
}
