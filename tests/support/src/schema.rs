//! Databases of another release.

use std::time::Duration;

use botmesh_core::id::Fence;
use botmesh_core::store::{Begun, Store, StoreError};

use crate::replica::chat;

const REPLICAS: usize = 6;
const MINUTE: Duration = Duration::from_secs(60);

/// Many replicas open a store whose database has no inbox, and each finds one.
///
/// # Panics
/// When one does not.
pub async fn gets_an_inbox<S, F>(open: impl Fn() -> F)
where
    S: Store,
    F: Future<Output = Result<S, StoreError>> + Send + 'static,
{
    let starting: Vec<_> = (0..REPLICAS).map(|_| tokio::spawn(open())).collect();
    for store in starting {
        let store = store.await.unwrap().unwrap();
        let found = store.inbox().unwrap().begin(&chat("a"), Fence::new(1), MINUTE).await;
        assert_eq!(found.unwrap(), Begun::Nothing);
    }
}
