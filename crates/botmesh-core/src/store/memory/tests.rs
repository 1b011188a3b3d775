use std::time::Duration;

use super::*;
use crate::id::MessageId;
use crate::store::{
    Admission, CheckpointChange, Commit, Committed, FENCE_MEMORY, NewRecord, Retention,
};

fn key(number: usize) -> ChatKey {
    ChatKey::decode(&format!("test:{number}")).unwrap()
}

fn lasting(body: &str, expires_in: Option<Duration>) -> CheckpointWrite<'_> {
    CheckpointWrite { body, wake_in: Some(Duration::from_secs(5)), expires_in }
}

/// The number of checkpoint entries and of locks that take room.
fn kept(store: &MemoryStore) -> (usize, usize) {
    let checkpoints = store.data.checkpoints.iter().map(|shard| shard.lock().len()).sum();
    (checkpoints, store.data.locks.iter().map(|shard| shard.lock().len()).sum())
}

#[tokio::test(start_paused = true)]
async fn what_has_ended_leaves_no_memory_behind_after_later_writes() {
    let store = MemoryStore::new();
    let fence = Fence::new(7);
    for number in 0..2_000 {
        let minute = Some(Duration::from_secs(60));
        store.set_checkpoint(&key(number), lasting("{}", minute), fence).await.unwrap();
        store.adopt_checkpoint(&key(number + 10_000), fence).await.unwrap();
        let _ = store.acquire_lock_fenced(&format!("lock {number}"), Duration::from_secs(60)).await;
    }
    assert_eq!(kept(&store), (4_000, 2_000));
    tokio::time::advance(FENCE_MEMORY + Duration::from_secs(61)).await;
    for number in 0..4_000 {
        store.clear_checkpoint(&key(number + 50_000)).await.unwrap();
        let lock = store.acquire_lock_fenced(&format!("other {number}"), Duration::ZERO).await;
        assert!(lock.unwrap().is_some());
    }
    let (checkpoints, locks) = kept(&store);
    assert_eq!(checkpoints, 0);
    assert!(locks <= 32, "{locks} locks of no time at all are still kept");
}

/// G6: what is done leaves no memory behind when it is forgotten, and nothing at all where there is
/// no id to be known again.
#[tokio::test(start_paused = true)]
async fn ended_records_leave_no_memory_behind() {
    let store = MemoryStore::new();
    let lease = Duration::from_secs(15);
    for number in 0..2_000 {
        let (chat, id) = (key(number), MessageId::new(format!("{number}")).unwrap());
        for message in [None, Some(&id)] {
            let new = NewRecord { chat: &chat, message, body: Some("{}"), lease, most: 9 };
            let admission = store.admit(new).await.unwrap();
            let Admission::New { position, .. } = admission else { panic!("{admission:?}") };
            let checkpoint = CheckpointChange::Nothing;
            let commit = Commit { chat: &chat, position, fence: Fence::new(1), checkpoint };
            assert_eq!(store.commit(commit).await.unwrap(), Committed::Applied(None));
        }
    }
    let kept = || -> usize { store.data.inbox.iter().map(|shard| shard.lock().len()).sum() };
    assert_eq!(kept(), 2_000);
    tokio::time::advance(Duration::from_secs(61)).await;
    let retention = Retention { done: Duration::from_secs(60), dead: Duration::MAX };
    assert_eq!(store.forget(retention, 5_000).await.unwrap(), 2_000);
    assert_eq!(kept(), 0);
}

#[tokio::test(start_paused = true)]
async fn an_expired_row_is_remembered_by_its_fence_although_it_was_swept() {
    let store = MemoryStore::new();
    let minute = Some(Duration::from_secs(60));
    store.set_checkpoint(&key(1), lasting("{}", minute), Fence::new(9)).await.unwrap();
    tokio::time::advance(Duration::from_secs(61)).await;
    for number in 100..400 {
        store.clear_checkpoint(&key(number)).await.unwrap();
    }
    let late = store.set_checkpoint_if(&key(1), lasting("late", None), None, Fence::new(8)).await;
    assert_eq!(late.unwrap(), Swap::Refused);
}

#[tokio::test]
async fn clones_share_the_data_and_new_stores_do_not() {
    let store = MemoryStore::new();
    store.set_checkpoint(&key(1), lasting("{}", None), Fence::new(1)).await.unwrap();
    assert!(store.clone().load_checkpoint(&key(1)).await.unwrap().is_some());
    assert!(MemoryStore::new().load_checkpoint(&key(1)).await.unwrap().is_none());
}

#[test]
fn debug_output_shows_nothing_that_is_stored() {
    assert_eq!(format!("{:?}", MemoryStore::new()), "MemoryStore { .. }");
}
