//! Where the bots of a test run, and how they are started.

use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use botmesh_telegram::testing::FakeTelegram;
use botmesh_test_support::absent;
use botmesh_tests::durable::replica::{Connection, LEASE, Orders};
use botmesh_tests::durable::store::{Server, Store};
use botmesh_tests::process::Process;

/// How long anything may take that has no bound of its own.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A place of its own on the server that the variable names; none where there is none.
pub(crate) fn postgres() -> Option<Store> {
    shared(Server::Postgres, "BOTMESH_TEST_POSTGRES_URL")
}

/// A place of its own on a server of this kind, which the variable names.
pub(crate) fn shared(server: Server, variable: &str) -> Option<Store> {
    let url = absent::server(variable)?;
    Some(Store::Shared { server, url, prefix: format!("{}_", prefix()) })
}

fn prefix() -> String {
    format!("d{}", &uuid::Uuid::new_v4().simple().to_string()[..10])
}

/// A seed, which is printed: another one each time unless `BOTMESH_SEED` says which.
pub(crate) fn seed() -> u64 {
    let given = std::env::var("BOTMESH_SEED").ok().and_then(|seed| seed.parse().ok());
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().subsec_nanos();
    let seed = given.unwrap_or_else(|| now.into());
    println!("seed {seed}: BOTMESH_SEED={seed} kills at the same moment");
    seed
}

/// The bots of one test.
pub(crate) struct Setting {
    pub(crate) platform: FakeTelegram,
    pub(crate) store: Store,
    pub(crate) handling: Duration,
    pub(crate) is_durable: bool,
    pub(crate) dies_at: Option<usize>,
}

impl Setting {
    pub(crate) async fn new(store: Store, handling: Duration) -> Self {
        let platform = FakeTelegram::start().await.unwrap();
        Self { platform, store, handling, is_durable: true, dies_at: None }
    }

    /// Starts a replica that asks for updates.
    pub(crate) fn poller(&self, replica: &str) -> Process {
        let connection = Connection::Polling { platform: self.platform.address() };
        self.start(replica, connection)
    }

    pub(crate) fn start(&self, replica: &str, connection: Connection) -> Process {
        let orders = Orders {
            replica: replica.to_owned(),
            connection,
            store: self.store.clone(),
            lease: LEASE,
            handling: self.handling,
            is_durable: self.is_durable,
            dies_at: self.dies_at,
        };
        let program = Path::new(env!("CARGO_BIN_EXE_durable"));
        Process::start(program, &orders.write().unwrap()).unwrap()
    }
}

/// Waits until something holds.
pub(crate) async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let waited = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    assert!(tokio::time::timeout(PATIENCE, waited).await.is_ok(), "{what}: it never came to that");
}
