//! The suite of coordinators on the server; each replica has a proxy of its own before it.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod support;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use botmesh_core::conformance::coordinator::{CoordinatorFixture, Replica};
use botmesh_core::coordination::{
    AcquireTurn, Begins, Coordinator, CoordinatorSettings, IngestError, Ingested,
};
use botmesh_core::store::{Admission, CheckpointChange, Commit, Committed, NewRecord, Store};
use botmesh_core::{MessageId, ReplicaId};
use botmesh_mysql_store::{MysqlCoordinator, MysqlStore};
use botmesh_test_support::proxy::Proxy;
use botmesh_test_support::replica;
use botmesh_test_support::turnstile::{Pass, pass};
use botmesh_test_support::wire::Wire;
use sqlx::{AssertSqlSafe, Executor as _};
use support::server::PrivateServer;

#[derive(Debug)]
struct Fixture {
    _pass: Pass,
}

impl Fixture {
    fn new() -> Self {
        Self { _pass: pass(8) }
    }
}

#[derive(Debug)]
struct MysqlReplica {
    coordinator: MysqlCoordinator,
    store: MysqlStore,
    proxy: Proxy,
}

#[async_trait]
impl CoordinatorFixture for Fixture {
    async fn open(
        &self,
        prefix: &str,
        replica: ReplicaId,
        settings: CoordinatorSettings,
    ) -> Option<Arc<dyn Replica>> {
        let url = support::url()?;
        let (_, address) = url.rsplit_once(':')?;
        let port = address.split('/').next()?.parse().unwrap();
        let proxy = Proxy::start(Wire::Mysql, port).await;
        let store = MysqlStore::connect(proxy.url()).max_connections(4);
        let store = store.prefix(prefix).await.unwrap();
        let builder = store.coordinator().replica_id(replica).settings(settings);
        Some(Arc::new(MysqlReplica { coordinator: builder.build().unwrap(), store, proxy }))
    }
}

#[async_trait]
impl Replica for MysqlReplica {
    fn coordinator(&self) -> &dyn Coordinator {
        &self.coordinator
    }

    fn store(&self) -> Option<Arc<dyn Store>> {
        Some(Arc::new(self.store.clone()))
    }

    async fn crash(&self) {
        self.coordinator.abandon();
    }

    async fn freeze(&self) -> bool {
        self.proxy.freeze(true);
        true
    }

    async fn thaw(&self) {
        self.proxy.freeze(false);
    }

    async fn lose_pushes(&self) -> bool {
        // There are none.
        true
    }
}

/// G9: a durable message costs one round trip before it is processed and one after it, where nobody
/// else has its chat; one that is known costs one.
#[tokio::test(flavor = "multi_thread")]
async fn a_durable_message_costs_two_round_trips() {
    let Some(url) = support::url() else { return support::skip() };
    let (_, address) = url.rsplit_once(':').unwrap();
    let proxy =
        Proxy::start(Wire::Mysql, address.split('/').next().unwrap().parse().unwrap()).await;
    let store = MysqlStore::connect(proxy.url()).max_connections(1);
    let store = store.prefix(support::prefix()).await.unwrap();
    let settings = replica::settings(Duration::from_secs(4));
    let coordinator = store.coordinator().settings(settings).build().unwrap();
    replica::start(&coordinator).await;
    let turns = coordinator.journaled().unwrap();
    let (key, body, lease) = (replica::chat("k"), Some("hi"), Duration::from_secs(60));
    // Nothing is granted at once before a lease has passed.
    replica::take(&coordinator, "k").await.release().await.unwrap();
    let (mut held, mut expected, mut fewest) = (Vec::new(), None, usize::MAX);
    for number in 0..12 {
        let id = MessageId::new(number.to_string()).unwrap();
        let record = NewRecord { chat: &key, message: Some(&id), body, lease, most: 9 };
        let before = proxy.round_trips();
        let Ingested { admission, place, begins } = turns.ingest(record).await.unwrap();
        let Admission::New { position, .. } = admission else { panic!("{admission:?}") };
        let ticket = place.unwrap().unwrap();
        let turn = coordinator.acquire_turn(ticket, AcquireTurn::new()).await.unwrap();
        assert_eq!(begins, Begins::Under(turn.fence()));
        let checkpoint = CheckpointChange::Set { write: support::body("at"), expected };
        let commit = Commit { chat: &key, position, fence: turn.fence(), checkpoint };
        let committed = turns.commit(&turn.guard(), commit).await.unwrap();
        let Committed::Applied(Some(revision)) = committed else { panic!("{committed:?}") };
        let Ingested { admission, .. } = turns.ingest(record).await.unwrap();
        assert_eq!(admission, Admission::Known);
        fewest = fewest.min(proxy.round_trips() - before);
        expected = Some(revision);
        // It would be released once more.
        held.push(turn);
    }
    // Heartbeats come in between now and then.
    assert_eq!(fewest, 3, "round trips");
}

/// B4, G9: a message that is larger than what the server takes at once is not sent together with its
/// turn, and the next one is.
#[tokio::test(flavor = "multi_thread")]
async fn a_message_larger_than_the_server_takes_is_not_sent() {
    let Some(server) = PrivateServer::start(&["--max-allowed-packet=2M"]).await else {
        return support::skip();
    };
    let store = MysqlStore::connect(server.url()).await.unwrap();
    let coordinator = store.coordinator().settings(replica::settings(replica::LEASE));
    let coordinator = coordinator.build().unwrap();
    replica::start(&coordinator).await;
    let turns = coordinator.journaled().unwrap();
    let (chat, large, lease) = (replica::chat("k"), "x".repeat(3 << 19), Duration::from_secs(60));
    let record = NewRecord { chat: &chat, message: None, body: Some(&large), lease, most: 9 };
    let refused = turns.ingest(record).await.unwrap_err();
    assert!(matches!(refused, IngestError::Refused(_)), "{refused:?}");
    let record = NewRecord { body: Some("small"), ..record };
    let Ingested { admission, .. } = turns.ingest(record).await.unwrap();
    assert!(matches!(admission, Admission::New { is_behind: false, .. }), "{admission:?}");
}

/// G3, G9: an end that others hinder, so that the server undoes it, is made again together with its
/// turn.
#[tokio::test(flavor = "multi_thread")]
async fn an_end_that_others_hinder_is_made_again() {
    let Some(url) = support::url() else { return support::skip() };
    let (prefix, second) = (support::prefix(), Duration::from_secs(1));
    let store =
        MysqlStore::connect(&url).response_timeout(second * 2).prefix(&prefix).await.unwrap();
    let coordinator = store.coordinator().settings(replica::settings(second * 4)).build().unwrap();
    replica::start(&coordinator).await;
    let (turns, chat, lease) = (coordinator.journaled().unwrap(), replica::chat("k"), second * 60);
    replica::take(&coordinator, "k").await.release().await.unwrap();
    let record = NewRecord { chat: &chat, message: None, body: Some("hi"), lease, most: 9 };
    let Ingested { admission, place, .. } = turns.ingest(record).await.unwrap();
    let Admission::New { position, .. } = admission else { panic!("{admission:?}") };
    let turn = coordinator.acquire_turn(place.unwrap().unwrap(), AcquireTurn::new()).await.unwrap();
    let mut other = support::plain(&url).await;
    let lock = format!("START TRANSACTION; SELECT position FROM {prefix}inbox FOR UPDATE");
    other.execute(sqlx::raw_sql(AssertSqlSafe(lock))).await.unwrap();
    let checkpoint = CheckpointChange::Nothing;
    let commit = Commit { chat: &chat, position, fence: turn.fence(), checkpoint };
    let guard = turn.guard();
    let ending = turns.commit(&guard, commit);
    // The server lets nobody wait for a lock for longer than a second.
    let unlocking = async {
        tokio::time::sleep(second * 3 / 2).await;
        other.execute("ROLLBACK").await.unwrap();
    };
    assert_eq!(tokio::join!(ending, unlocking).0.unwrap(), Committed::Applied(None));
}

mod behind_a_proxy {
    botmesh_core::coordinator_conformance!(super::Fixture::new());
}
