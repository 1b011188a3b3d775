//! Durable messages of one moment, which share statements.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod support;

use std::sync::Arc;
use std::time::Duration;

use botmesh_core::coordination::{AcquireTurn, Begins, ChatTurn, Coordinator as _};
use botmesh_core::id::{Fence, MessageId, Position, Revision};
use botmesh_core::store::{
    Admission, Begun, CheckpointChange, CheckpointStore as _, Commit, Committed, InboxStore,
    NewRecord, Store as _, StoreError,
};
use botmesh_postgres_store::{PostgresCoordinator, PostgresStore, PostgresStoreBuilder};
use botmesh_test_support::replica;
use sqlx::{AssertSqlSafe, Executor as _};
use support::{body, chat};
use tokio::task::JoinSet;

/// So many chats have a message at the same moment.
const CHATS: usize = 200;

fn inbox(store: &PostgresStore) -> &dyn InboxStore {
    store.inbox().unwrap()
}

/// Does the same for many chats at the same moment; what came of it, in their order.
async fn for_all<T: Send + 'static, F: Future<Output = T> + Send + 'static>(
    chats: usize,
    step: impl Fn(usize) -> F,
) -> Vec<T> {
    let mut steps = JoinSet::new();
    for number in 0..chats {
        let step = step(number);
        steps.spawn(async move { (number, step.await) });
    }
    let mut done = steps.join_all().await;
    done.sort_by_key(|(number, _)| *number);
    done.into_iter().map(|(_, what)| what).collect()
}

async fn admit(store: &PostgresStore, number: usize, id: &str) -> Result<Admission, StoreError> {
    let (key, id) = (chat(&number.to_string()), MessageId::new(id).unwrap());
    let (text, lease) = (format!("{number} ü\0"), Duration::from_secs(60));
    let record = NewRecord { chat: &key, message: Some(&id), body: Some(&text), lease, most: 1 };
    inbox(store).admit(record).await
}

/// Admits one message of each chat.
async fn admit_all(store: &Arc<PostgresStore>, id: &'static str) -> Vec<Admission> {
    for_all(CHATS, |number| {
        let store = Arc::clone(store);
        async move { admit(&store, number, id).await.unwrap() }
    })
    .await
}

fn positions(admissions: Vec<Admission>) -> Vec<Position> {
    let position = |admission| match admission {
        Admission::New { position, is_behind: false } => position,
        other => panic!("{other:?}"),
    };
    admissions.into_iter().map(position).collect()
}

/// Begins the first record of each chat.
async fn begin_all(store: &Arc<PostgresStore>, fence: Fence) -> Vec<Begun> {
    for_all(CHATS, |number| {
        let store = Arc::clone(store);
        async move {
            let (key, lease) = (chat(&number.to_string()), Duration::from_secs(60));
            inbox(&store).begin(&key, fence, lease).await.unwrap()
        }
    })
    .await
}

/// Ends one record of each chat with a change that its number decides.
async fn end_all(
    store: &Arc<PostgresStore>,
    positions: &[Position],
    change: impl Fn(usize) -> Option<CheckpointChange<'static>>,
) -> Vec<Committed> {
    for_all(CHATS, |number| {
        let (store, position) = (Arc::clone(store), positions[number]);
        let change = change(number);
        async move {
            let key = chat(&number.to_string());
            // None of this position, if there is no change.
            let position = Position::new(position.get() + u64::from(change.is_none()));
            let checkpoint = change.unwrap_or(CheckpointChange::Nothing);
            let commit = Commit { chat: &key, position, fence: Fence::new(7), checkpoint };
            inbox(&store).commit(commit).await.unwrap()
        }
    })
    .await
}

async fn each_has_its_own_answer(open: PostgresStoreBuilder) {
    let store = Arc::new(open.prefix(support::prefix()).await.unwrap());
    let first = positions(admit_all(&store, "1").await);
    assert_eq!(admit_all(&store, "1").await, vec![Admission::Known; CHATS]);
    assert_eq!(admit_all(&store, "2").await, vec![Admission::Full { waiting: 1 }; CHATS]);

    let begun = begin_all(&store, Fence::new(3)).await;
    for (number, (begun, position)) in begun.into_iter().zip(&first).enumerate() {
        let Begun::Record(record) = begun else { panic!("{begun:?} for {number}") };
        let found = (record.position, record.attempts, record.body, record.has_more);
        assert_eq!(found, (*position, 1, format!("{number} ü\0"), false));
    }
    let refused = Begun::Refused(Fence::new(3));
    assert_eq!(begin_all(&store, Fence::new(2)).await, vec![refused; CHATS]);

    let set = |expected| CheckpointChange::Set { write: body("one"), expected };
    let made = end_all(&store, &first, |number| match number % 3 {
        0 => Some(set(None)),
        1 => Some(CheckpointChange::Nothing),
        _ => None,
    })
    .await;
    let mut revisions = Vec::new();
    for (number, made) in made.into_iter().enumerate() {
        match (number % 3, made) {
            (0, Committed::Applied(Some(revision))) => revisions.push(revision),
            (1, Committed::Applied(None)) | (2, Committed::Refused) => {
                revisions.push(Revision::new(1));
            }
            (_, other) => panic!("{other:?} for {number}"),
        }
    }
    // Of those that are refused the first message is still pending.
    let second = admit_all(&store, "2").await.into_iter().zip(first);
    let second = second.map(|(admission, first)| match admission {
        Admission::New { position, .. } => position,
        Admission::Full { waiting: 1 } => first,
        other => panic!("{other:?}"),
    });
    let second = Vec::from_iter(second);
    let ended = end_all(&store, &second, |number| {
        let expected = revisions[number];
        Some(match number % 2 {
            0 => CheckpointChange::Set { write: body("two"), expected: Some(expected) },
            _ => CheckpointChange::Clear { expected },
        })
    })
    .await;
    for (number, ended) in ended.into_iter().enumerate() {
        let stored = store.load_checkpoint(&chat(&number.to_string())).await.unwrap();
        let stored = stored.map(|stored| stored.body);
        match (number % 3, number % 2, ended) {
            (0, 0, Committed::Applied(Some(_))) => assert_eq!(stored.as_deref(), Some("two")),
            (0, _, Committed::Applied(None)) => assert_eq!(stored, None),
            (1 | 2, _, Committed::Refused) => assert_eq!(stored, None),
            (_, _, other) => panic!("{other:?} for {number}"),
        }
    }
    for (number, begun) in begin_all(&store, Fence::new(8)).await.into_iter().enumerate() {
        assert_eq!(begun == Begun::Nothing, number % 3 == 0, "{begun:?} for {number}");
    }
}

/// G1, G3, G9: of many messages that are admitted and ended at the same moment each has its own
/// answer: what is new, known or one too many, what is begun, and whether its checkpoint was made, replaced,
/// cleared or refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_of_one_moment_each_have_their_own_answer() {
    let Some(open) = support::direct() else { return support::skip() };
    each_has_its_own_answer(open).await;
}

/// G1, G3, G9: so it is through a pooler, where statements are not prepared.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_of_one_moment_each_have_their_own_answer_through_a_pooler() {
    let Some(open) = support::pooled() else { return support::skip() };
    each_has_its_own_answer(open).await;
}

/// G1, G9: a message that the server refuses fails alone; those that came at the same moment are
/// admitted, each once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_that_is_refused_fails_alone() {
    let (Some(url), Some(open)) = (support::url(), support::direct()) else {
        return support::skip();
    };
    let prefix = support::prefix();
    let store = Arc::new(open.prefix(&prefix).await.unwrap());
    let refuse = "CREATE FUNCTION {p}refuse() RETURNS TRIGGER LANGUAGE plpgsql AS
            $$ BEGIN RAISE EXCEPTION 'not this one'; END $$;
        CREATE TRIGGER refuse BEFORE INSERT ON {p}inbox FOR EACH ROW
            WHEN (NEW.chat = 'test:77') EXECUTE FUNCTION {p}refuse()";
    let refuse = refuse.replace("{p}", &prefix);
    support::plain(&url).await.execute(sqlx::raw_sql(AssertSqlSafe(refuse))).await.unwrap();
    let admitted = for_all(CHATS, |number| {
        let store = Arc::clone(&store);
        async move { admit(&store, number, "1").await }
    })
    .await;
    for (number, admitted) in admitted.into_iter().enumerate() {
        match admitted {
            Ok(Admission::New { .. }) => assert_ne!(number, 77),
            Err(StoreError::Backend { .. }) => assert_eq!(number, 77),
            other => panic!("{other:?} for {number}"),
        }
    }
}

/// A replica whose turns take the inbox of its store along.
async fn journaled(open: PostgresStoreBuilder) -> (PostgresStore, Arc<PostgresCoordinator>) {
    let store = open.await.unwrap();
    let builder = store.coordinator().replica_id(replica::id());
    let coordinator = builder.settings(replica::settings(replica::LEASE)).build().unwrap();
    replica::start(&coordinator).await;
    (store, Arc::new(coordinator))
}

/// Takes one message of each chat in; its turn, its position, and whether it was begun with it.
async fn arrive_all(
    coordinator: &Arc<PostgresCoordinator>,
    id: &'static str,
) -> Vec<(ChatTurn, Position, bool)> {
    for_all(CHATS, |number| {
        let coordinator = Arc::clone(coordinator);
        async move {
            let (key, id) = (chat(&number.to_string()), MessageId::new(id).unwrap());
            let (text, lease) = (format!("{number} ü\0"), Duration::from_secs(60));
            let record =
                NewRecord { chat: &key, message: Some(&id), body: Some(&text), lease, most: 1 };
            let ingested = coordinator.journaled().unwrap().ingest(record).await.unwrap();
            let Admission::New { position, is_behind: false } = ingested.admission else {
                panic!("{ingested:?}");
            };
            let ticket = ingested.place.unwrap().unwrap();
            let turn = coordinator.acquire_turn(ticket, AcquireTurn::new()).await.unwrap();
            assert_eq!(turn.key(), &key, "the turn of somebody else");
            let is_begun = ingested.begins == Begins::Under(turn.fence());
            (turn, position, is_begun)
        }
    })
    .await
}

async fn turns_of_one_moment(open: PostgresStoreBuilder) {
    let open = open.prefix(support::prefix());
    let (store, coordinator) = journaled(open.clone()).await;
    let (_, other) = journaled(open).await;
    let key = chat("77");
    let ticket = other.reserve(&key).await.unwrap();
    let held = other.acquire_turn(ticket, AcquireTurn::new()).await.unwrap();
    let waits = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        held.release().await.unwrap();
    };
    let (arrived, ()) = tokio::join!(arrive_all(&coordinator, "1"), waits);
    let arrived = Arc::new(arrived);
    let committed = for_all(CHATS, |number| {
        let (coordinator, arrived) = (Arc::clone(&coordinator), Arc::clone(&arrived));
        async move {
            let (turn, position, is_begun) = &arrived[number];
            assert_eq!(*is_begun, number != 77, "whether {number} was begun with its arrival");
            let checkpoint = CheckpointChange::Set { write: body("text"), expected: None };
            let key = turn.key();
            let commit = Commit { chat: key, position: *position, fence: turn.fence(), checkpoint };
            coordinator.journaled().unwrap().commit(&turn.guard(), commit).await.unwrap()
        }
    })
    .await;
    for (number, committed) in committed.into_iter().enumerate() {
        assert!(matches!(committed, Committed::Applied(Some(_))), "{committed:?} for {number}");
        let stored = store.load_checkpoint(&chat(&number.to_string())).await.unwrap().unwrap();
        assert_eq!(stored.fence, arrived[number].0.fence());
    }
    // Every turn has ended with its message.
    let again = arrive_all(&coordinator, "2").await;
    assert!(again.iter().all(|(.., is_begun)| *is_begun));
    drop(again);
    for replica in [coordinator, other] {
        replica.stop().await.unwrap();
    }
}

/// C3, G9: of many messages that arrive at the same moment each gets its own turn and is begun under
/// it, and each ends together with its turn; the one whose chat is another replica's waits alone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_of_one_moment_each_get_their_own_turn() {
    let Some(open) = support::direct() else { return support::skip() };
    turns_of_one_moment(open).await;
}

/// C3, G9: so it is through a pooler.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_of_one_moment_each_get_their_own_turn_through_a_pooler() {
    let Some(open) = support::pooled() else { return support::skip() };
    turns_of_one_moment(open).await;
}
