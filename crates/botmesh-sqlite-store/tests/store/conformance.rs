use std::sync::Arc;

use async_trait::async_trait;
use botmesh_core::conformance::StoreFixture;
use botmesh_core::store::Store;
use botmesh_sqlite_store::SqliteStore;
use tempfile::TempDir;

/// All prefixes share one file.
#[derive(Debug)]
struct FileFixture(TempDir);

impl FileFixture {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }
}

#[async_trait]
impl StoreFixture for FileFixture {
    async fn open(&self, prefix: &str) -> Option<Arc<dyn Store>> {
        let builder = SqliteStore::builder(self.0.path().join("bot.db")).prefix(prefix).unwrap();
        Some(Arc::new(builder.open().await.unwrap()))
    }
}

mod in_a_file {
    botmesh_core::store_conformance!(super::FileFixture::new());
}

/// A store in memory has one handle only, so it is shared out.
#[derive(Debug, Default)]
struct InMemoryFixture(tokio::sync::Mutex<std::collections::HashMap<String, Arc<dyn Store>>>);

#[async_trait]
impl StoreFixture for InMemoryFixture {
    async fn open(&self, prefix: &str) -> Option<Arc<dyn Store>> {
        let mut stores = self.0.lock().await;
        if let Some(store) = stores.get(prefix) {
            return Some(Arc::clone(store));
        }
        let builder = SqliteStore::in_memory().prefix(prefix).unwrap();
        let store: Arc<dyn Store> = Arc::new(builder.open().await.unwrap());
        stores.insert(prefix.to_owned(), Arc::clone(&store));
        Some(store)
    }
}

mod in_memory {
    botmesh_core::store_conformance!(super::InMemoryFixture::default());
}
