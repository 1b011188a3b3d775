//! Private servers for the tests: on free ports, in a temporary directory, gone afterwards.
//!
//! A server that already runs on this machine is never touched: each process started here is known by its id and
//! the time it began, and only such a process is ever signalled.

mod container;
mod daemon;
mod host;
mod install;
mod mongo;
mod mysql;
mod port;
mod postgres;
mod redis;
mod state;
mod virtual_environment;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context as _, Result, bail};

use crate::flags::Action;
use crate::workspace::Workspace;
use host::Host;
use state::State;

/// A kind of server that tests need. Each is one file of this folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Service {
    Redis,
    Postgres,
    /// A stand-in where no container engine answers.
    Mongo,
    Mysql,
}

impl Service {
    const ALL: &[Self] = &[Self::Redis, Self::Postgres, Self::Mongo, Self::Mysql];

    /// The crates whose tests talk to the server.
    fn users(self) -> &'static [&'static str] {
        match self {
            Self::Redis => &["botmesh-redis-store"],
            Self::Postgres => &["botmesh-postgres-store"],
            Self::Mongo => &["botmesh-mongo-store"],
            Self::Mysql => &["botmesh-mysql-store"],
        }
    }

    /// Starts the server and adds what tests must know to the state.
    fn start(self, install: bool, state: &mut State) -> Result<()> {
        match self {
            Self::Redis => {
                redis::start(&Host::prepare(redis::IMAGE, redis::PROGRAMS, install)?, state)
            }
            Self::Postgres => {
                let host = Host::prepare(postgres::IMAGE, postgres::PROGRAMS, install)?;
                postgres::start(&host, install, state)
            }
            Self::Mongo => mongo::start(state),
            Self::Mysql => {
                mysql::start(&Host::prepare(mysql::IMAGE, mysql::PROGRAMS, install)?, state)
            }
        }
    }
}

/// The services that crates of this workspace use.
pub(crate) fn needed(workspace: &Workspace) -> Vec<Service> {
    let is_used = |service: &&Service| {
        workspace.packages.iter().any(|package| service.users().contains(&package.name.as_str()))
    };
    Service::ALL.iter().filter(is_used).copied().collect()
}

/// The environment of the servers that `services up` left running; empty when there are none.
pub(crate) fn running(workspace: &Workspace) -> Result<BTreeMap<String, String>> {
    let state = State::read(&state_file(workspace)?)?;
    Ok(state.filter(State::is_alive).map(|state| state.environment).unwrap_or_default())
}

/// `cargo xtask services`.
pub(crate) fn run(workspace: &Workspace, action: Action, install: bool) -> Result<()> {
    let _lock = workspace.lock("services")?;
    match action {
        Action::Up => up(workspace, install),
        Action::Down => down(workspace),
        Action::Status => status(workspace),
    }
}

fn up(workspace: &Workspace, install: bool) -> Result<()> {
    let file = state_file(workspace)?;
    if State::read(&file)?.is_some_and(|state| state.is_alive()) {
        bail!("servers run already; `cargo xtask services down` stops them");
    }
    let servers = Servers::start(Service::ALL, &file, install)?;
    let lines =
        servers.environment().into_iter().map(|(name, value)| format!("export {name}='{value}'\n"));
    let exports: String = lines.collect();
    let environment = environment_file(workspace)?;
    std::fs::write(&environment, &exports)
        .with_context(|| format!("{} could not be written", environment.display()))?;
    servers.keep();
    print!("{exports}");
    println!(
        "# these lines are in {}; `cargo xtask services down` stops the servers",
        environment.display()
    );
    Ok(())
}

fn down(workspace: &Workspace) -> Result<()> {
    match State::read(&state_file(workspace)?)? {
        None => println!("no servers run"),
        Some(mut state) => {
            state.tear_down()?;
            println!("the servers are stopped");
        }
    }
    match std::fs::remove_file(environment_file(workspace)?) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).context("the environment file could not be removed")
        }
        _ => Ok(()),
    }
}

fn status(workspace: &Workspace) -> Result<()> {
    match State::read(&state_file(workspace)?)? {
        None => println!("no servers run"),
        Some(state) => {
            for line in state.lines() {
                println!("{line}");
            }
        }
    }
    Ok(())
}

/// Servers that stop when this is dropped.
#[derive(Debug)]
pub(crate) struct Servers {
    /// None once they are to stay.
    state: Option<State>,
}

impl Servers {
    /// Starts services and keeps what is known of them in a file. What an earlier run left in it is stopped first.
    pub(crate) fn start(services: &[Service], file: &Path, install: bool) -> Result<Self> {
        if let Some(mut left_over) = State::read(file)? {
            left_over.tear_down()?;
        }
        let mut servers = Self { state: Some(State::create(file)?) };
        for service in services {
            let begun = Instant::now();
            if let Some(state) = &mut servers.state {
                service.start(install, state)?;
            }
            println!("{service:?} is up after {:.1} s", begun.elapsed().as_secs_f64());
        }
        Ok(servers)
    }

    /// What tests must know to find the servers.
    pub(crate) fn environment(&self) -> BTreeMap<String, String> {
        self.state.as_ref().map(|state| state.environment.clone()).unwrap_or_default()
    }

    /// Stops the servers now, and tells when one cannot be stopped.
    pub(crate) fn stop(mut self) -> Result<()> {
        self.state.take().map_or(Ok(()), |mut state| state.tear_down())
    }

    /// Leaves the servers running: the file knows them.
    fn keep(mut self) {
        self.state = None;
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        if let Some(Err(error)) = self.state.as_mut().map(State::tear_down) {
            eprintln!("warning: {error:#}");
        }
    }
}

fn state_file(workspace: &Workspace) -> Result<PathBuf> {
    Ok(workspace.state_directory()?.join("services.json"))
}

fn environment_file(workspace: &Workspace) -> Result<PathBuf> {
    Ok(workspace.state_directory()?.join("services.env"))
}
