use std::time::Duration;

use super::*;
use crate::store::FENCE_MEMORY;

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
