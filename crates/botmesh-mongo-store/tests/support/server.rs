use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use mongodb::bson::doc;
use mongodb::{Client, options::ClientOptions};

/// A server of the test's own, of the stand-in's kind. It is killed when this is dropped.
pub(crate) struct PrivateServer {
    pub(crate) port: u16,
    arguments: Vec<String>,
    directory: tempfile::TempDir,
    process: Option<Child>,
}

impl PrivateServer {
    /// Starts a server with these further arguments; none when it is not installed.
    pub(crate) async fn start(arguments: &[&str]) -> Option<Self> {
        let mut server = Self::prepare(arguments)?;
        server.start_again().await;
        Some(server)
    }

    /// The same without starting it.
    pub(crate) fn prepare(arguments: &[&str]) -> Option<Self> {
        std::env::var_os("BOTMESH_TEST_MONGO_PROGRAM")?;
        Some(Self {
            port: TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port(),
            arguments: arguments.iter().map(|argument| (*argument).to_owned()).collect(),
            directory: tempfile::tempdir().unwrap(),
            process: None,
        })
    }

    /// The same server with these further arguments, for its next start.
    pub(crate) fn with(mut self, arguments: &[&str]) -> Self {
        self.arguments.extend(arguments.iter().map(|argument| (*argument).to_owned()));
        self
    }

    pub(crate) fn url(&self) -> String {
        format!("mongodb://127.0.0.1:{}", self.port)
    }

    /// Starts it on the same port and data, and waits until it answers.
    pub(crate) async fn start_again(&mut self) {
        self.start_silently();
        self.wait(&self.url()).await;
    }

    /// Waits until it answers at this URL.
    pub(crate) async fn wait(&self, url: &str) {
        let deadline = Instant::now() + Duration::from_secs(90);
        loop {
            let mut options = ClientOptions::parse(url).await.unwrap();
            options.server_selection_timeout = Some(Duration::from_secs(5));
            let client = Client::with_options(options).unwrap();
            let answer = client.database("admin").run_command(doc! { "hello": 1 }).await;
            match answer {
                Ok(_) => return,
                Err(error) => {
                    let log = std::fs::read_to_string(self.directory.path().join("log"));
                    assert!(Instant::now() < deadline, "it did not start: {error} {log:?}");
                }
            }
        }
    }

    /// Starts it without waiting.
    pub(crate) fn start_silently(&mut self) {
        let program = std::env::var_os("BOTMESH_TEST_MONGO_PROGRAM").unwrap();
        let log = std::fs::File::create(self.directory.path().join("log")).unwrap();
        let mut command = Command::new(program);
        command.args(["--host", "127.0.0.1", "--port", &self.port.to_string()]);
        command.arg("--storage-path").arg(self.directory.path().join("data"));
        command.args(&self.arguments).stdin(Stdio::null());
        command.stdout(log.try_clone().unwrap()).stderr(log);
        self.process = Some(command.spawn().unwrap());
    }

    /// Kills it with `kill -9`.
    pub(crate) fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, name: &str) {
        if let Some(process) = &self.process {
            let mut kill = Command::new("kill");
            kill.args([name, &process.id().to_string()]).status().unwrap();
        }
    }

    pub(crate) async fn client(&self) -> Client {
        super::client(&self.url()).await
    }

    pub(crate) fn directory(&self) -> &std::path::Path {
        self.directory.path()
    }
}

impl Drop for PrivateServer {
    fn drop(&mut self) {
        self.signal("-CONT");
        self.kill();
    }
}
