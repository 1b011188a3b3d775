//! How the programs of this crate run: the drivers of runs, and what they start.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, bail};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};

/// What a run found.
pub trait Verdict: fmt::Display {
    /// Whether no promise was broken.
    fn is_clean(&self) -> bool;
}

/// What came of a run.
#[derive(Debug)]
pub struct Outcome<R> {
    /// What was found.
    pub report: R,
    /// What was written down; kept when a promise was broken.
    pub directory: PathBuf,
}

impl<R: Verdict> Outcome<R> {
    /// The outcome of a run that wrote into this directory.
    #[must_use]
    pub fn of(report: R, directory: TempDir) -> Self {
        let directory = match report.is_clean() {
            true => directory.path().to_owned(),
            false => directory.keep(),
        };
        Self { report, directory }
    }
}

/// The arguments of a driver.
#[derive(Debug)]
pub struct Flags(std::vec::IntoIter<String>);

impl Flags {
    /// Those of this process.
    #[must_use]
    pub fn of_this_process() -> Self {
        Self(std::env::args().skip(1).collect::<Vec<_>>().into_iter())
    }

    /// What stands behind a flag.
    ///
    /// # Errors
    /// When nothing does.
    pub fn value(&mut self, flag: &str) -> Result<String> {
        self.0.next().with_context(|| format!("{flag} needs a value"))
    }

    /// The number that stands behind a flag.
    ///
    /// # Errors
    /// When none does.
    pub fn number(&mut self, flag: &str) -> Result<u64> {
        let value = self.value(flag)?;
        value.parse().with_context(|| format!("{value} is no number"))
    }

    /// Reads a flag that all runs have.
    ///
    /// # Errors
    /// When it is none of them, or has no number.
    pub fn common(
        &mut self,
        flag: &str,
        time: &mut Duration,
        seed: &mut u64,
        replicas: &mut usize,
    ) -> Result<()> {
        match flag {
            "--minutes" => *time = Duration::from_secs(self.number(flag)? * 60),
            "--seconds" => *time = Duration::from_secs(self.number(flag)?),
            "--seed" => *seed = self.number(flag)?,
            "--replicas" => *replicas = usize::try_from(self.number(flag)?)?,
            other => bail!("{other} is not known: see `cargo xtask help`"),
        }
        Ok(())
    }
}

impl Iterator for Flags {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        self.0.next()
    }
}

/// How long a run is if nobody says it.
pub const USUAL: Duration = Duration::from_secs(600);

/// Where the program `name` is that was built with this one.
///
/// # Errors
/// When nobody knows where this one is.
pub fn program(name: &str) -> Result<PathBuf> {
    Ok(std::env::current_exe()?.with_file_name(name))
}

/// Another seed each second.
///
/// # Errors
/// When the clock is from before 1970.
pub fn fresh_seed() -> Result<u64> {
    Ok(SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs())
}

/// Runs it to its end, or until somebody ends this process; then it is dropped, and takes its
/// servers and processes with it. Answers whether no promise was broken.
///
/// # Errors
/// Those of the run, and that it was ended.
pub fn drive<R: Verdict>(run: impl Future<Output = Result<Outcome<R>>>) -> Result<bool> {
    let Outcome { report, directory } = runtime()?.block_on(async {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        tokio::select! {
            outcome = run => outcome,
            _ = terminate.recv() => bail!("it was told to end"),
            _ = interrupt.recv() => bail!("it was interrupted"),
        }
    })?;
    Ok(tell(&report, Some(&directory)))
}

/// Prints what was found, and where it was written down if that is kept.
pub fn tell(report: &impl Verdict, directory: Option<&Path>) -> bool {
    print!("{report}");
    if let (false, Some(directory)) = (report.is_clean(), directory) {
        println!("what was written down is in {}", directory.display());
    }
    report.is_clean()
}

/// Ends a driver.
#[must_use]
pub fn conclude(clean: Result<bool>) -> ExitCode {
    match clean {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Does what a driver has ordered: `read` makes it of the arguments.
///
/// # Errors
/// When these are not what a driver gives, and those of the work.
pub fn obey<F>(read: impl FnOnce(&[String]) -> Result<F>) -> Result<()>
where
    F: Future<Output = Result<()>>,
{
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let runtime = runtime()?;
    let obeyed = read(&arguments).and_then(|orders| runtime.block_on(orders));
    // Standard input, which tells whether the driver lives, may be read for ever.
    runtime.shutdown_background();
    obeyed
}

/// Runs a run within a test.
///
/// # Errors
/// Those of the run.
pub fn wait<T>(run: impl Future<Output = Result<T>>) -> Result<T> {
    runtime()?.block_on(run)
}

fn runtime() -> Result<Runtime> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    Ok(builder.worker_threads(1).enable_all().build()?)
}
