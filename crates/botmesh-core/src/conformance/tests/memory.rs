use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;

use crate::conformance::StoreFixture;
use crate::store::{MemoryStore, Store};

#[derive(Debug, Default)]
struct MemoryFixture(Mutex<HashMap<String, MemoryStore>>);

#[async_trait]
impl StoreFixture for MemoryFixture {
    async fn open(&self, prefix: &str) -> Option<Arc<dyn Store>> {
        Some(Arc::new(self.0.lock().entry(prefix.to_owned()).or_default().clone().as_shared()))
    }

    async fn pass(&self, time: Duration) {
        tokio::time::pause();
        tokio::time::advance(time).await;
        tokio::time::resume();
    }
}

crate::store_conformance!(MemoryFixture::default());
