use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use sqlx::{Connection as _, Executor as _, MySqlConnection};

/// Makes the data and starts the server.
const SCRIPT: &str = include_str!("../../../../tests/support/mariadb.sh");

/// A server of the test's own. It is killed when this is dropped.
pub(crate) struct PrivateServer {
    pub(crate) port: u16,
    arguments: Vec<String>,
    directory: tempfile::TempDir,
    process: Option<Child>,
}

impl PrivateServer {
    /// Starts a server with these arguments; none when it is not installed.
    pub(crate) async fn start(arguments: &[&str]) -> Option<Self> {
        Self::start_with(arguments, &[]).await
    }

    /// Starts a server that finds these files in the directory above its data.
    pub(crate) async fn start_with(arguments: &[&str], files: &[(&str, &str)]) -> Option<Self> {
        let found = "PATH=$PATH:/usr/sbin; command -v mariadbd && command -v mariadb-install-db";
        if !Command::new("sh").args(["-c", found]).output().unwrap().status.success() {
            return None;
        }
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().to_str().unwrap();
        let mut server = Self {
            port: TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port(),
            arguments: arguments.iter().map(|one| one.replace("{directory}", place)).collect(),
            directory,
            process: None,
        };
        for (name, content) in files {
            std::fs::write(server.directory.path().join(name), content).unwrap();
        }
        server.start_again().await;
        let user =
            "CREATE DATABASE bots; CREATE USER bot@'%'; GRANT ALL PRIVILEGES ON *.* TO bot@'%'";
        server.connection().await.execute(sqlx::raw_sql(user)).await.unwrap();
        Some(server)
    }

    /// The URL of a database, for a user who may do everything.
    pub(crate) fn url(&self) -> String {
        format!("mysql://bot@127.0.0.1:{}/bots", self.port)
    }

    fn url_of_the_system(&self) -> String {
        format!("mysql://root@127.0.0.1:{}/mysql", self.port)
    }

    /// Starts it on the same port and data, and waits until it answers.
    pub(crate) async fn start_again(&mut self) {
        self.start_silently();
        let deadline = Instant::now() + Duration::from_secs(60);
        while MySqlConnection::connect(&self.url_of_the_system()).await.is_err() {
            let log = std::fs::read_to_string(self.directory.path().join("log"));
            assert!(Instant::now() < deadline, "the server did not start: {log:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Starts it without waiting.
    pub(crate) fn start_silently(&mut self) {
        let mut command = Command::new("sh");
        command.args(["-c", SCRIPT, "sh"]).arg(self.directory.path()).arg(self.port.to_string());
        command.args(&self.arguments).stdin(Stdio::null());
        self.process = Some(command.spawn().unwrap());
    }

    /// Kills it with `kill -9`, and waits until it has ended.
    pub(crate) fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }

    /// Stops it as an administrator does.
    pub(crate) fn stop(&mut self) {
        if let Some(mut process) = self.process.take() {
            let stop = Command::new("kill").args(["-TERM", &process.id().to_string()]).status();
            assert!(stop.unwrap().success());
            process.wait().unwrap();
        }
    }

    /// A connection of an administrator.
    pub(crate) async fn connection(&self) -> MySqlConnection {
        super::plain(&self.url_of_the_system()).await
    }

    /// Makes its process stand still, and waits until all its threads do.
    pub(crate) fn freeze(&self) {
        let process = self.signal("-STOP");
        let stands = |thread: std::io::Result<std::fs::DirEntry>| {
            let state = std::fs::read_to_string(thread.unwrap().path().join("stat"));
            // The state follows the name, which is in parentheses.
            state.map_or(true, |state| state.rsplit(')').next().unwrap().starts_with(" T"))
        };
        let deadline = Instant::now() + Duration::from_secs(10);
        while !std::fs::read_dir(format!("/proc/{process}/task")).unwrap().all(stands) {
            assert!(Instant::now() < deadline, "the server does not stand still");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Lets it go on.
    pub(crate) fn thaw(&self) {
        self.signal("-CONT");
    }

    fn signal(&self, name: &str) -> u32 {
        let process = self.process.as_ref().map_or(0, Child::id);
        let sent = Command::new("kill").args([name, &process.to_string()]).status();
        assert!(sent.unwrap().success());
        process
    }
}

impl Drop for PrivateServer {
    fn drop(&mut self) {
        self.kill();
    }
}
