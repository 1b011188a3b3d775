//! Where servers run: as processes of this machine, or in a container where an engine answers.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use super::container::{self, Container};
use super::daemon::Daemon;
use super::install::{self, Program};
use super::state::State;
use crate::process;

/// Where servers run.
#[derive(Debug)]
pub(super) enum Host {
    Machine,
    /// A container engine, by the name of its program.
    Engine(&'static str),
}

/// Servers that belong together and see each other at 127.0.0.1. In containers they share one, so that the
/// addresses which they tell each other are also right for a client outside.
#[derive(Debug)]
pub(super) struct Set {
    pub(super) name: &'static str,
    pub(super) image: &'static str,
    pub(super) servers: Vec<Server>,
}

/// One server of a set.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) program: Program,
    pub(super) port: u16,
    pub(super) arguments: Vec<String>,
    /// Files that it finds in its working directory.
    pub(super) files: Vec<(&'static str, String)>,
}

/// A set that was started, to run its tools against.
#[derive(Debug)]
pub(super) struct Started {
    /// The engine and the id of its container; none when the servers run on this machine.
    container: Option<(&'static str, String)>,
    directory: PathBuf,
}

impl Host {
    /// Prepares a place for servers: a container engine, if one answers and has or gets the image, otherwise this
    /// machine, with the programs.
    pub(super) fn prepare(image: &str, programs: &[Program], install: bool) -> Result<Self> {
        match Self::engine(image)? {
            Some(engine) => Ok(engine),
            None => Self::machine(programs, install),
        }
    }

    /// A container engine, if one answers and has or gets the image.
    pub(super) fn engine(image: &str) -> Result<Option<Self>> {
        let answers = |engine: &&str| process::succeeds(Command::new(engine).arg("info"));
        let Some(engine) = ["docker", "podman"].into_iter().find(answers) else { return Ok(None) };
        if container::has_image(engine, image) {
            println!("{image} runs in containers of {engine}");
            return Ok(Some(Self::Engine(engine)));
        }
        process::check_interrupted()?;
        println!("notice: {engine} cannot get {image}; its programs run on this machine instead");
        Ok(None)
    }

    /// This machine, with the programs.
    pub(super) fn machine(programs: &[Program], install: bool) -> Result<Self> {
        install::ensure(programs, install)?;
        Ok(Self::Machine)
    }

    /// The address that a server must listen on to be reached at 127.0.0.1.
    pub(super) fn bind(&self) -> &'static str {
        match self {
            Self::Machine => "127.0.0.1",
            Self::Engine(_) => "0.0.0.0",
        }
    }

    /// Starts a set; the servers may not answer yet.
    pub(super) fn start(&self, set: &Set, state: &mut State) -> Result<Started> {
        let directory = state.directory.join(set.name);
        match self {
            Self::Machine => {
                for server in &set.servers {
                    state.add_daemon(start_daemon(set.name, server, &directory)?)?;
                }
                Ok(Started { container: None, directory })
            }
            Self::Engine(engine) => {
                let container = Container::start(engine, set)?;
                let id = container.id.clone();
                state.add_container(container)?;
                Ok(Started { container: Some((engine, id)), directory })
            }
        }
    }
}

impl Started {
    /// Runs a tool where the servers run.
    pub(super) fn output(&self, program: &Program, arguments: &[&str]) -> Result<String> {
        let mut command = match &self.container {
            None => program.command()?,
            Some((engine, id)) => {
                let mut command = Command::new(engine);
                command.args(["exec", id, program.name]);
                command
            }
        };
        process::output(command.args(arguments))
    }

    /// The last lines that the servers wrote, for an error message.
    pub(super) fn log(&self) -> Result<String> {
        if let Some((engine, id)) = &self.container {
            return process::output(Command::new(engine).args(["logs", "--tail", "30", id]));
        }
        let mut log = String::new();
        for entry in std::fs::read_dir(&self.directory)? {
            let file = entry?.path().join("log");
            let text = std::fs::read_to_string(&file)?;
            let lines: Vec<&str> = text.lines().collect();
            let last = lines[lines.len().saturating_sub(5)..].join("\n");
            writeln!(log, "{}:\n{last}", file.display())?;
        }
        Ok(log)
    }
}

fn start_daemon(set: &str, server: &Server, directory: &Path) -> Result<Daemon> {
    let own = directory.join(server.port.to_string());
    std::fs::create_dir_all(&own)
        .with_context(|| format!("{} could not be created", own.display()))?;
    for (name, content) in &server.files {
        std::fs::write(own.join(name), content)
            .with_context(|| format!("{name} could not be written"))?;
    }
    let mut command = server.program.command()?;
    command.args(&server.arguments).current_dir(&own);
    let daemon =
        Daemon::start(&format!("{set} on port {}", server.port), &mut command, &own.join("log"))?;
    if !daemon.is_alive() {
        bail!("{} ended at once", daemon.name);
    }
    Ok(daemon)
}
