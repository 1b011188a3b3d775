//! An example as a process.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use botmesh_telegram::testing::FakeTelegram;
use botmesh_test_support::absent;
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, Command};

pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The compiled example: cargo puts it beside the directory of this test program.
pub(crate) fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let path = test.parent().and_then(Path::parent).unwrap().join("examples").join(name);
    assert!(path.is_file(), "{} is not built: run `cargo build --examples`", path.display());
    path
}

/// A running example, which ends with it.
pub(crate) struct Replica {
    process: Child,
}

impl Replica {
    /// Starts the example on this platform, with these settings.
    pub(crate) fn start(name: &str, platform: &FakeTelegram, settings: &[(&str, &str)]) -> Self {
        let process = Command::new(example(name))
            .env("TELEGRAM_TOKEN", FakeTelegram::TOKEN)
            .env("TELEGRAM_API", platform.address())
            .env_remove("REDIS_URL")
            .envs(settings.iter().copied())
            .current_dir(std::env::temp_dir())
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        Self { process }
    }

    /// Ends the process as `kill -9` does; it gets no chance to write anything.
    pub(crate) async fn dies(mut self) {
        self.process.kill().await.unwrap();
    }

    /// Asks the process to stop, and waits until it has.
    pub(crate) async fn stops(mut self) {
        self.signal(Signal::TERM);
        let ended = tokio::time::timeout(PATIENCE, self.process.wait()).await;
        assert!(ended.expect("the process goes on").unwrap().success());
    }

    /// Lets the process stand still, or go on.
    pub(crate) fn freezes(&self, still: bool) {
        self.signal(if still { Signal::STOP } else { Signal::CONT });
    }

    fn signal(&self, signal: Signal) {
        let id = self.process.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        kill_process(id.expect("the process has ended"), signal).unwrap();
    }
}

/// The settings for replicas under a prefix of their own; none where there is no Redis.
pub(crate) fn redis(test: &str) -> Option<[(&'static str, String); 2]> {
    let url = absent::server("BOTMESH_TEST_REDIS_URL")?;
    let prefix = format!("{test}-{}", uuid::Uuid::new_v4().simple());
    Some([("REDIS_URL", url), ("BOTMESH_PREFIX", prefix)])
}

/// An address of this machine that was free a moment ago.
pub(crate) fn free_address() -> String {
    let probe = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    probe.local_addr().unwrap().to_string()
}
