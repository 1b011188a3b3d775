use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use sqlx::{Connection as _, PgConnection};

/// Makes the data and starts the server.
const SCRIPT: &str = include_str!("../../../../tests/support/postgres.sh");

/// A server of the test's own. It is killed when this is dropped.
pub(crate) struct PrivateServer {
    pub(crate) port: u16,
    arguments: Vec<String>,
    directory: tempfile::TempDir,
    process: Option<Child>,
}

impl PrivateServer {
    /// Starts a server with these settings, such as `fsync=off`; none when it is not installed.
    pub(crate) async fn start(settings: &[&str]) -> Option<Self> {
        Self::start_with(settings, &[]).await
    }

    /// Starts a server that finds these files in the directory above its data.
    pub(crate) async fn start_with(settings: &[&str], files: &[(&str, &str)]) -> Option<Self> {
        let found = "command -v initdb || ls -d /usr/lib/postgresql/*/bin/initdb";
        let found = Command::new("sh").args(["-c", found]).output().unwrap();
        if !found.status.success() {
            return None;
        }
        let mut server = Self {
            port: TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port(),
            arguments: settings.iter().flat_map(|one| ["-c", one]).map(str::to_owned).collect(),
            directory: tempfile::tempdir().unwrap(),
            process: None,
        };
        for (name, content) in files {
            std::fs::write(server.directory.path().join(name), content).unwrap();
        }
        server.start_again().await;
        Some(server)
    }

    pub(crate) fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres", self.port)
    }

    /// Starts it on the same port and data, and waits until it answers.
    pub(crate) async fn start_again(&mut self) {
        self.start_silently();
        let deadline = Instant::now() + Duration::from_secs(60);
        while PgConnection::connect(&self.url()).await.is_err() {
            let log = std::fs::read_to_string(self.directory.path().join("log"));
            assert!(Instant::now() < deadline, "the server did not start: {log:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
            // It does not start while a process of the one before that was killed has memory in
            // common with it.
            if let Some(process) = &mut self.process
                && matches!(process.try_wait(), Ok(Some(_)))
            {
                self.start_silently();
            }
        }
    }

    /// Starts it without waiting.
    pub(crate) fn start_silently(&mut self) {
        let mut command = Command::new("sh");
        command.args(["-c", SCRIPT, "sh"]).arg(self.directory.path()).arg(self.port.to_string());
        command.args(&self.arguments).stdin(Stdio::null());
        self.process = Some(command.spawn().unwrap());
    }

    /// Kills it with `kill -9`, and waits until all its processes have ended.
    pub(crate) fn kill(&mut self) {
        if let Some(process) = &self.process {
            // So that it starts no process for a client that comes just now.
            let hold = Command::new("kill").args(["-STOP", &process.id().to_string()]).status();
            assert!(hold.unwrap().success());
            self.signal("-KILL");
        }
        if let Some(mut process) = self.process.take() {
            let _ = process.wait();
        }
    }

    /// Stops it as an administrator does.
    pub(crate) fn stop(&mut self) {
        if let Some(mut process) = self.process.take() {
            // SIGINT: connections are ended, and everything is written.
            let stop = Command::new("kill").args(["-INT", &process.id().to_string()]).status();
            assert!(stop.unwrap().success());
            process.wait().unwrap();
        }
    }

    pub(crate) async fn connection(&self) -> PgConnection {
        super::plain(&self.url()).await
    }

    /// Sends all its processes a signal, those of the connections too.
    pub(crate) fn signal(&self, name: &str) {
        let first = self.process.as_ref().map_or(0, Child::id);
        let children = std::fs::read_to_string(format!("/proc/{first}/task/{first}/children"));
        let children = children.unwrap_or_default();
        // One that has ended meanwhile is no failure.
        let mut kill = Command::new("kill");
        kill.arg(name).arg(first.to_string()).args(children.split_whitespace());
        kill.stderr(Stdio::null()).status().unwrap();
    }

    /// The directory that it keeps its data in.
    pub(crate) fn data(&self) -> std::path::PathBuf {
        self.directory.path().join("data")
    }
}

impl Drop for PrivateServer {
    fn drop(&mut self) {
        self.kill();
    }
}
