//! The driver of a chaos run with durability; `cargo xtask chaos --durable` builds and starts it.

use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, bail};
use botmesh_tests::durable::chaos::DurableChaos;
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
    let DurableChaos { seed, replicas, people, time, layout, recognises, .. } = chaos;
    let platform = if recognises { "that recognises sends" } else { "that takes every send" };
    println!(
        "seed {seed}, {layout:?}, {replicas} replicas, {people} users on a platform {platform}, {} s",
        time.as_secs()
    );
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(1).enable_all().build()?;
    let outcome = runtime.block_on(async {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        // Dropped, the run takes its server and its replicas with it.
        tokio::select! {
            outcome = chaos.run() => outcome,
            _ = terminate.recv() => bail!("it was told to end"),
            _ = interrupt.recv() => bail!("it was interrupted"),
        }
    })?;
    print!("{}", outcome.report);
    let clean = outcome.report.violations.is_empty();
    if !clean {
        println!("the notes are in {}", outcome.directory.display());
    }
    Ok(clean)
}

fn read(mut arguments: impl Iterator<Item = String>) -> Result<DurableChaos> {
    let program = std::env::current_exe()?.with_file_name("durable");
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?;
    let mut chaos = DurableChaos::new(program, now.as_secs(), Duration::from_secs(600));
    while let Some(flag) = arguments.next() {
        if flag == "--keys" {
            chaos.recognises = true;
            continue;
        }
        let value = arguments.next().with_context(|| format!("{flag} needs a value"))?;
        let number = || value.parse::<u64>().with_context(|| format!("{value} is no number"));
        match flag.as_str() {
            "--backend" if value == "redis" => chaos.layout = Layout::Single,
            "--backend" if value == "postgres" => chaos.layout = Layout::Postgres,
            "--backend" => bail!("there is no backend {value} here: choose redis or postgres"),
            "--minutes" => chaos.time = Duration::from_secs(number()? * 60),
            "--seconds" => chaos.time = Duration::from_secs(number()?),
            "--seed" => chaos.seed = number()?,
            "--replicas" => chaos.replicas = usize::try_from(number()?)?,
            "--people" => chaos.people = usize::try_from(number()?)?,
            other => bail!("{other} is not known: see `cargo xtask help`"),
        }
    }
    if !(2..=8).contains(&chaos.replicas) {
        bail!("{} replicas: choose 2 to 8", chaos.replicas);
    }
    Ok(chaos)
}
