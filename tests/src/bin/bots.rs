//! The driver of a run of whole bots; `cargo xtask chaos --bots` builds and starts it.

use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, bail};
use botmesh_tests::bots::{Bots, examine};
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
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, directory] = &arguments[..]
        && flag == "--examine"
    {
        let report = examine(Path::new(directory))?;
        print!("{report}");
        return Ok(report.violations.is_empty());
    }
    let bots = read(arguments.into_iter())?;
    println!(
        "seed {}, {} replicas of a bot, faults for {} s",
        bots.seed,
        bots.replicas,
        bots.time.as_secs()
    );
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(1).enable_all().build()?;
    let outcome = runtime.block_on(async {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        // Dropped, the run takes its server and its replicas with it.
        tokio::select! {
            outcome = bots.run() => outcome,
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

fn read(mut arguments: impl Iterator<Item = String>) -> Result<Bots> {
    let program = std::env::current_exe()?.with_file_name("replica");
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?;
    let mut bots = Bots::new(program, now.as_secs(), Duration::from_secs(600));
    while let Some(flag) = arguments.next() {
        let value = arguments.next().with_context(|| format!("{flag} needs a value"))?;
        let number = value.parse::<u64>().with_context(|| format!("{value} is no number"))?;
        match flag.as_str() {
            "--minutes" => bots.time = Duration::from_secs(number * 60),
            "--seconds" => bots.time = Duration::from_secs(number),
            "--seed" => bots.seed = number,
            "--replicas" => bots.replicas = usize::try_from(number)?,
            "--people" => bots.people = usize::try_from(number)?,
            other => bail!("{other} is not known: see `cargo xtask help`"),
        }
    }
    if !(2..=8).contains(&bots.replicas) {
        bail!("{} replicas: choose 2 to 8", bots.replicas);
    }
    Ok(bots)
}
