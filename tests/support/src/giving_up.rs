//! Callers that give up while their server stands still.

use std::time::Duration;

use botmesh_core::store::{Collection, Store};

use crate::proxy::Proxy;

const CHATS: Collection = Collection::Chats;
/// How long a caller waits.
const PATIENCE: Duration = Duration::from_millis(20);
/// More than there are connections.
const CALLERS: usize = 8;

/// Callers give up one after the other while nothing flows; then somebody asks who waits. The
/// answer: how many connections were opened.
///
/// # Panics
/// When the store does not work afterwards.
pub async fn give_up_one_after_the_other(store: &impl Store, proxy: &Proxy) -> usize {
    proxy.freeze(true);
    for _ in 0..CALLERS {
        let asking = store.load_document(CHATS, "a");
        assert!(tokio::time::timeout(PATIENCE, asking).await.is_err(), "nothing flows");
    }
    proxy.freeze(false);
    assert_eq!(store.load_document(CHATS, "a").await.unwrap(), None);
    proxy.connections()
}
