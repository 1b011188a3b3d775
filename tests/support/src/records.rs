//! The life of records of an inbox, in few words, and what harm must not do to it.

use std::time::Duration;

use botmesh_core::ChatKey;
use botmesh_core::id::{Fence, MessageId, Position};
use botmesh_core::store::{
    Admission, Begun, CheckpointChange, CheckpointWrite, Commit, Committed, InboxRecord,
    InboxStore, NewRecord, Store,
};

use crate::replica::chat;

const MINUTE: Duration = Duration::from_secs(60);
/// The fence of all that is done here.
pub const FENCE: Fence = Fence::new(7);

/// Admits a message.
///
/// # Panics
/// When the store fails, here and below.
pub async fn admit(store: &dyn InboxStore, chat: &ChatKey, id: Option<&str>) -> Admission {
    let id = id.map(|id| MessageId::new(id).unwrap());
    let body = Some("the body");
    let new = NewRecord { chat, message: id.as_ref(), body, lease: MINUTE, most: 100 };
    store.admit(new).await.unwrap()
}

/// Admits a new message, and answers its position.
///
/// # Panics
/// When it is not new.
pub async fn admit_new(store: &dyn InboxStore, chat: &ChatKey, id: Option<&str>) -> Position {
    match admit(store, chat, id).await {
        Admission::New { position, .. } => position,
        other => panic!("{id:?}: {other:?}"),
    }
}

/// Begins the first pending record of a chat.
///
/// # Panics
/// When there is none.
pub async fn begin(store: &dyn InboxStore, chat: &ChatKey) -> InboxRecord {
    match store.begin(chat, FENCE, MINUTE).await.unwrap() {
        Begun::Record(record) => record,
        other => panic!("{other:?}"),
    }
}

/// The end of a record.
#[must_use]
pub const fn commit<'a>(
    chat: &'a ChatKey,
    position: Position,
    checkpoint: CheckpointChange<'a>,
) -> Commit<'a> {
    Commit { chat, position, fence: FENCE, checkpoint }
}

/// A first checkpoint.
#[must_use]
pub const fn set(body: &str) -> CheckpointChange<'_> {
    let write = CheckpointWrite { body, wake_in: None, expires_in: None };
    CheckpointChange::Set { write, expected: None }
}

/// Calls whose next answer `lose` loses each have one effect, which is told: they are repeated and
/// recognised.
///
/// # Panics
/// When something is done twice, or somebody is told that another was first.
pub async fn have_one_effect_when_answers_are_lost(store: &dyn Store, lose: impl AsyncFn()) {
    let inbox = store.inbox().expect("the store has an inbox");
    let key = chat("a");
    let mut positions = Vec::new();
    for (id, behind) in [(Some("1"), false), (None, true), (Some("3"), true)] {
        lose().await;
        match admit(inbox, &key, id).await {
            Admission::New { position, is_behind } => {
                assert_eq!(is_behind, behind, "{id:?}");
                positions.push(position);
            }
            other => panic!("{id:?}: {other:?}"),
        }
    }
    lose().await;
    let record = begin(inbox, &key).await;
    assert_eq!((record.position, record.attempts), (positions[0], 1));
    lose().await;
    let ended = inbox.commit(commit(&key, positions[0], set("one"))).await.unwrap();
    let row = store.load_checkpoint(&key).await.unwrap().unwrap();
    assert_eq!(ended, Committed::Applied(Some(row.revision)));
    lose().await;
    let clear = CheckpointChange::Clear { expected: row.revision };
    let ended = inbox.commit(commit(&key, positions[1], clear)).await.unwrap();
    assert_eq!(ended, Committed::Applied(None));
    let record = begin(inbox, &key).await;
    assert_eq!((record.position, record.has_more), (positions[2], false), "admitted twice");
    lose().await;
    assert!(inbox.bury(&key, positions[2], FENCE, "e").await.unwrap());
    lose().await;
    assert!(inbox.revive(&key, positions[2]).await.unwrap());
    lose().await;
    let end = commit(&key, positions[2], CheckpointChange::Nothing);
    assert_eq!(inbox.commit(end).await.unwrap(), Committed::Applied(None));
    assert_eq!(inbox.commit(end).await.unwrap(), Committed::Refused, "ended twice");
}

/// Many records end while `kill` kills the server; `open_again` starts it and opens the store anew. Of
/// each record both its end and its checkpoint are there, or neither; and all that was told is.
///
/// # Panics
/// When it is not so.
pub async fn are_whole_or_absent_when_the_server_is_killed<S: Store + Clone, V>(
    server: &mut V,
    store: S,
    records: usize,
    kill: impl AsyncFnOnce(&mut V),
    open_again: impl AsyncFnOnce(&mut V) -> S,
) {
    let chats: Vec<ChatKey> = (0..records).map(|number| chat(&number.to_string())).collect();
    let inbox = store.inbox().expect("the store has an inbox");
    let mut positions = Vec::new();
    for key in &chats {
        positions.push(admit_new(inbox, key, Some("1")).await);
    }
    let commits = chats.iter().cloned().zip(positions).map(|(key, position)| {
        let store = store.clone();
        tokio::spawn(async move {
            store.inbox().unwrap().commit(commit(&key, position, set("done"))).await
        })
    });
    let commits: Vec<_> = commits.collect();
    while store.load_checkpoint(&chats[records / 10]).await.is_ok_and(|row| row.is_none()) {}
    kill(server).await;
    let mut told = Vec::new();
    for commit in commits {
        told.push(commit.await.unwrap());
    }
    let store = open_again(server).await;
    let inbox = store.inbox().unwrap();
    for (key, told) in chats.iter().zip(told) {
        let is_set = store.load_checkpoint(key).await.unwrap().is_some();
        let begun = inbox.begin(key, FENCE, MINUTE).await.unwrap();
        assert_eq!(begun == Begun::Nothing, is_set, "{key}: half a commit, told {told:?}");
        if let Ok(told) = told {
            assert!(matches!(told, Committed::Applied(Some(_))) && is_set, "{key}: {told:?}");
        }
        assert_eq!(admit(inbox, key, Some("1")).await, Admission::Known, "{key}");
    }
}
