//! What is known of started servers, on disk from the first moment, so that they are found again after a crash.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use super::container::Container;
use super::daemon::Daemon;

/// Servers, the directory they live in and what tests must know of them.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct State {
    #[serde(skip)]
    file: PathBuf,
    pub(super) directory: PathBuf,
    pub(super) environment: BTreeMap<String, String>,
    daemons: Vec<Daemon>,
    containers: Vec<Container>,
}

impl State {
    /// An empty state with a fresh directory, kept in a file.
    pub(super) fn create(file: &Path) -> Result<Self> {
        let directory = tempfile::Builder::new()
            .prefix("botmesh-services-")
            .tempdir()
            .context("no temporary directory could be made")?
            .keep();
        let state = Self {
            file: file.to_owned(),
            directory,
            environment: BTreeMap::new(),
            daemons: Vec::new(),
            containers: Vec::new(),
        };
        state.write()?;
        Ok(state)
    }

    /// The state that an earlier run left in a file, if it did.
    pub(super) fn read(file: &Path) -> Result<Option<Self>> {
        let text = match std::fs::read_to_string(file) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => {
                return Err(error).with_context(|| format!("{} could not be read", file.display()));
            }
        };
        let mut state: Self = serde_json::from_str(&text).with_context(|| {
            format!(
                "{} is damaged: remove it, and stop by hand the servers it names",
                file.display()
            )
        })?;
        file.clone_into(&mut state.file);
        Ok(Some(state))
    }

    pub(super) fn add_daemon(&mut self, daemon: Daemon) -> Result<()> {
        self.daemons.push(daemon);
        self.write()
    }

    pub(super) fn add_container(&mut self, container: Container) -> Result<()> {
        self.containers.push(container);
        self.write()
    }

    pub(super) fn export(&mut self, name: &str, value: String) -> Result<()> {
        self.environment.insert(name.to_owned(), value);
        self.write()
    }

    /// Whether every server still runs.
    pub(super) fn is_alive(&self) -> bool {
        let some = !self.daemons.is_empty() || !self.containers.is_empty();
        some && self.daemons.iter().all(Daemon::is_alive)
            && self.containers.iter().all(Container::is_alive)
    }

    /// Stops every server that still runs and removes their directory and the file. May be repeated.
    pub(super) fn tear_down(&mut self) -> Result<()> {
        for daemon in &self.daemons {
            daemon.ask_to_stop();
        }
        self.daemons.drain(..).try_for_each(Daemon::stop)?;
        self.containers.drain(..).try_for_each(Container::remove)?;
        remove(std::fs::remove_dir_all(&self.directory), &self.directory)?;
        remove(std::fs::remove_file(&self.file), &self.file)
    }

    /// One line for each server.
    pub(super) fn lines(&self) -> Vec<String> {
        let word = |alive| if alive { "runs" } else { "is gone" };
        let daemons = self.daemons.iter().map(|daemon| {
            format!("{} (process {}) {}", daemon.name, daemon.id, word(daemon.is_alive()))
        });
        let containers = self.containers.iter().map(|container| {
            format!(
                "{} (container {}) {}",
                container.name,
                container.id,
                word(container.is_alive())
            )
        });
        daemons.chain(containers).collect()
    }

    fn write(&self) -> Result<()> {
        let text = serde_json::to_string_pretty(self)?;
        std::fs::write(&self.file, text)
            .with_context(|| format!("{} could not be written", self.file.display()))
    }
}

fn remove(outcome: std::io::Result<()>, path: &Path) -> Result<()> {
    match outcome {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("{} could not be removed", path.display()))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_found_again_and_torn_down_twice_without_a_complaint() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("services.json");
        let mut state = State::create(&file).unwrap();
        state.export("BOTMESH_TEST", "1".into()).unwrap();
        let mut found = State::read(&file).unwrap().unwrap();
        assert_eq!(found.environment["BOTMESH_TEST"], "1");
        assert!(found.directory.is_dir());
        assert!(!found.is_alive());
        found.tear_down().unwrap();
        assert!(!found.directory.exists());
        assert!(State::read(&file).unwrap().is_none());
        state.tear_down().unwrap();
    }

    #[test]
    fn a_damaged_file_is_an_error_that_names_it() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("services.json");
        std::fs::write(&file, "{").unwrap();
        let error = State::read(&file).unwrap_err().to_string();
        assert!(error.contains("services.json"), "{error}");
    }
}
