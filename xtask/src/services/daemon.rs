//! A server process that outlives the program that started it.

use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde::{Deserialize, Serialize};

use crate::process;

/// How long a server may take to stop before it is killed.
const GRACE: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(20);

/// A process, known by its id and by when it began: an id alone may belong to another process by now.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Daemon {
    pub(super) name: String,
    pub(super) id: u32,
    began: String,
    /// The process while its starter lives, which has to reap it.
    #[serde(skip)]
    child: Option<Child>,
}

impl Daemon {
    /// Starts a command in the background, with its output in a file.
    pub(super) fn start(name: &str, command: &mut Command, log: &Path) -> Result<Self> {
        let output =
            File::create(log).with_context(|| format!("{} could not be created", log.display()))?;
        command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
        leave_the_terminal(command);
        let child = command.spawn().with_context(|| format!("{name} could not be started"))?;
        let id = child.id();
        match began(id) {
            Some(began) => Ok(Self { name: name.to_owned(), id, began, child: Some(child) }),
            None => bail!(
                "{name} ended at once: {}",
                std::fs::read_to_string(log).unwrap_or_default().trim()
            ),
        }
    }

    pub(super) fn is_alive(&self) -> bool {
        began(self.id).is_some_and(|began| began == self.began)
    }

    /// Asks the process to stop, without waiting.
    pub(super) fn ask_to_stop(&self) {
        if self.is_alive() {
            process::signal(self.id, "TERM");
        }
    }

    /// Waits until the process is gone, and kills it when it takes too long.
    pub(super) fn stop(self) -> Result<()> {
        self.stop_within(GRACE)
    }

    fn stop_within(mut self, grace: Duration) -> Result<()> {
        if !self.is_gone_within(grace) {
            process::signal(self.id, "KILL");
            if !self.is_gone_within(GRACE) {
                bail!("{} (process {}) could not be killed", self.name, self.id);
            }
        }
        if let Some(child) = &mut self.child {
            child.wait().with_context(|| format!("{} could not be reaped", self.name))?;
        }
        Ok(())
    }

    fn is_gone_within(&self, time: Duration) -> bool {
        let deadline = Instant::now() + time;
        while self.is_alive() {
            if Instant::now() >= deadline {
                return false;
            }
            std::thread::sleep(POLL);
        }
        true
    }
}

/// Ctrl-C in the terminal goes to the foreground group: servers must not be in it.
#[cfg(unix)]
fn leave_the_terminal(command: &mut Command) {
    use std::os::unix::process::CommandExt as _;
    command.process_group(0);
}

#[cfg(not(unix))]
fn leave_the_terminal(_: &mut Command) {}

/// When a process began, in whatever form the system tells it; none when it is gone or only waits to be reaped.
fn began(id: u32) -> Option<String> {
    if Path::new("/proc/self/stat").exists() {
        let status = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
        return began_from_stat(&status);
    }
    let mut ps = Command::new("ps");
    let shown = ps.args(["-o", "stat=,lstart=", "-p", &id.to_string()]).output().ok()?;
    let shown = String::from_utf8_lossy(&shown.stdout).trim().to_owned();
    let (state, began) = shown.split_once(' ')?;
    (!state.starts_with('Z')).then(|| began.trim().to_owned())
}

/// Reads `/proc/ID/stat`: the name in parentheses may contain anything, the state and the start time follow it.
fn began_from_stat(status: &str) -> Option<String> {
    let (_, rest) = status.rsplit_once(')')?;
    let mut fields = rest.split_whitespace();
    let state = fields.next()?;
    // The start time is field 22 of the line, and the state is field 3.
    let began = fields.nth(22 - 3 - 1)?;
    (!matches!(state, "Z" | "X")).then(|| began.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_time_is_read_behind_any_name() {
        let rest = "S 1 2 2 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 98765 1000 1";
        assert_eq!(began_from_stat(&format!("7 (redis) {rest}")).unwrap(), "98765");
        assert_eq!(began_from_stat(&format!("7 (a) b (c d) {rest}")).unwrap(), "98765");
        assert_eq!(began_from_stat(&format!("7 (redis) {}", rest.replacen('S', "Z", 1))), None);
        assert_eq!(began_from_stat("7 (redis) S 1"), None);
    }

    #[test]
    fn a_daemon_runs_until_it_is_stopped_and_only_the_one_that_was_started_counts() {
        let home = tempfile::tempdir().unwrap();
        let mut command = Command::new("sh");
        // The shell ignores the polite signal, so that stopping has to kill it.
        command.args(["-c", "trap '' TERM; while :; do sleep 1; done"]);
        let daemon = Daemon::start("sleeper", &mut command, &home.path().join("log")).unwrap();
        assert!(daemon.is_alive());
        let stranger = Daemon {
            name: "stranger".into(),
            id: daemon.id,
            began: "another time".into(),
            child: None,
        };
        assert!(!stranger.is_alive());
        stranger.stop().unwrap();
        assert!(daemon.is_alive());
        let id = daemon.id;
        daemon.ask_to_stop();
        daemon.stop_within(Duration::from_millis(200)).unwrap();
        assert_eq!(began(id), None);
    }
}
