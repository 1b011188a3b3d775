//! Where the servers of the tests are, and private ones for what would disturb others.
#![allow(dead_code, reason = "each test file uses a part of it")]

pub(crate) mod replica;

use std::net::TcpListener;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use botmesh_redis_store::{RedisStore, RedisStoreBuilder};

/// A store on the single server.
pub(crate) fn single() -> Option<RedisStoreBuilder> {
    Some(RedisStore::connect(std::env::var("BOTMESH_TEST_REDIS_URL").ok()?))
}

/// The port of the single server.
pub(crate) fn single_port() -> Option<u16> {
    let url = std::env::var("BOTMESH_TEST_REDIS_URL").ok()?;
    url.rsplit_once(':')?.1.trim_end_matches('/').parse().ok()
}

/// A store on the master that the sentinels know.
pub(crate) fn sentinel() -> Option<RedisStoreBuilder> {
    let sentinels = std::env::var("BOTMESH_TEST_REDIS_SENTINEL").ok()?;
    let master = std::env::var("BOTMESH_TEST_REDIS_SENTINEL_MASTER").ok()?;
    Some(RedisStore::sentinel(sentinels.split(','), master))
}

/// A store on the cluster.
pub(crate) fn cluster() -> Option<RedisStoreBuilder> {
    let nodes = std::env::var("BOTMESH_TEST_REDIS_CLUSTER").ok()?;
    Some(RedisStore::cluster(nodes.split(',')))
}

/// Tells that a test cannot run, and fails it where the backend must be there.
pub(crate) fn skip() {
    botmesh_test_support::absent::skip("the backend is absent");
}

/// A server of the test's own. It is killed when this is dropped.
pub(crate) struct PrivateServer {
    program: PathBuf,
    pub(crate) port: u16,
    /// Read before the arguments.
    file: Option<String>,
    arguments: Vec<String>,
    directory: tempfile::TempDir,
    process: Option<Child>,
}

impl PrivateServer {
    /// Starts a server; none when the program is not installed.
    pub(crate) fn start(arguments: &[&str]) -> Option<Self> {
        let mut server = Self::described(arguments)?;
        server.start_again();
        Some(server)
    }

    /// Starts a sentinel that watches a master alone.
    pub(crate) fn start_sentinel(master: u16, name: &str) -> Option<Self> {
        let mut server = Self::described(&["--sentinel"])?;
        let file = server.directory.path().join("sentinel.conf");
        let text = format!(
            "sentinel monitor {name} 127.0.0.1 {master} 1\n\
             sentinel down-after-milliseconds {name} 500\n\
             sentinel failover-timeout {name} 5000\n"
        );
        std::fs::write(&file, text).unwrap();
        server.file = Some(file.display().to_string());
        server.start_again();
        Some(server)
    }

    /// Starts a cluster of one node, which has all slots.
    pub(crate) async fn start_cluster(arguments: &[&str]) -> Option<Self> {
        let bus = free_port().to_string();
        let own = ["--cluster-enabled", "yes", "--cluster-port", &bus];
        let server = Self::start(&[&own, arguments].concat())?;
        let mut behind = server.connection().await;
        let mut slots = redis::cmd("CLUSTER");
        slots.arg(&["ADDSLOTSRANGE", "0", "16383"]).exec_async(&mut behind).await.unwrap();
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            let mut state = redis::cmd("CLUSTER");
            let state: String = state.arg("INFO").query_async(&mut behind).await.unwrap();
            if state.contains("cluster_state:ok") {
                return Some(server);
            }
            assert!(Instant::now() < deadline, "the cluster is not complete: {state}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    fn described(arguments: &[&str]) -> Option<Self> {
        let program = ["redis-server", "redis-check-rdb"].iter().find_map(|name| find(name))?;
        Some(Self {
            program,
            port: free_port(),
            file: None,
            arguments: arguments.iter().map(|word| (*word).to_owned()).collect(),
            directory: tempfile::tempdir().unwrap(),
            process: None,
        })
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    pub(crate) fn id(&self) -> u32 {
        self.process.as_ref().map_or(0, Child::id)
    }

    /// Starts it on the same port and directory, and waits until the port is open.
    pub(crate) fn start_again(&mut self) {
        let port = self.port.to_string();
        let mut command = Command::new(&self.program);
        // The checker of Debian's `redis-tools` is the server under another name.
        command.arg0("redis-server");
        command.args(&self.file).args(["--port", &port, "--bind", "127.0.0.1"]);
        if self.file.is_none() {
            command.args(["--save", ""]);
        }
        command.args(&self.arguments).arg("--dir").arg(self.directory.path());
        let started = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        self.process = Some(started.unwrap());
        let deadline = Instant::now() + Duration::from_secs(20);
        while std::net::TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            assert!(Instant::now() < deadline, "the server did not start");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Kills it with `kill -9`.
    pub(crate) fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }

    /// A plain connection, for what a test does behind the store's back.
    pub(crate) async fn connection(&self) -> redis::aio::MultiplexedConnection {
        plain(&self.url()).await
    }
}

impl Drop for PrivateServer {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A port that nobody listens on.
pub(crate) fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file())
}

/// A plain connection to a server. The server may still be loading, so it waits until it answers.
pub(crate) async fn plain(url: &str) -> redis::aio::MultiplexedConnection {
    let client = redis::Client::open(url).unwrap();
    // Longer than the longest `WAIT`: by default an answer must come within half a second.
    let patient =
        redis::AsyncConnectionConfig::new().set_response_timeout(Some(Duration::from_secs(10)));
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let connection = client.get_multiplexed_async_connection_with_config(&patient).await;
        if let Ok(mut connection) = connection
            && redis::cmd("PING").exec_async(&mut connection).await.is_ok()
        {
            return connection;
        }
        assert!(Instant::now() < deadline, "the server does not answer");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
