//! A bot that finds in its store what it did not write.

use std::time::Duration;

use botmesh_core::id::Fence;
use botmesh_core::store::{CheckpointStore as _, CheckpointWrite};
use botmesh_core::testing::TestProvider;
use botmesh_core::{Bot, ChatKey, MemoryStore};

/// Longer than anything that is tried again takes to come to its end.
const A_WHILE: Duration = Duration::from_secs(30);

/// Starts a bot on a store in which `put` left something, and lets the user of the chat write a while
/// later, who must not be left without an answer. To one message there may be none, as when what was
/// left asks for an hour of rest.
pub(super) fn goes_on(define: impl Fn(Bot) -> Bot, put: impl AsyncFnOnce(&MemoryStore, &ChatKey)) {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let (platform, store) = (TestProvider::new(), MemoryStore::new());
        let chat = platform.chat("ana");
        put(&store, &chat).await;
        let bot = define(Bot::new(platform.clone()).store(store)).start().await.unwrap();
        tokio::time::sleep(A_WHILE).await;
        let entries = || platform.transcript_of(&chat).into_iter();
        let answers = || entries().filter(|entry| entry.what.sent().is_some()).count();
        let before = answers();
        for _ in 0..3 {
            platform.says(&chat, "ping").await.unwrap();
            tokio::time::sleep(A_WHILE).await;
        }
        assert!(answers() > before, "the chat has come to a halt");
        bot.stop().await;
    });
}

/// Puts a checkpoint into the store.
pub(super) async fn checkpoint(store: &MemoryStore, key: &ChatKey, body: &str) {
    let write = CheckpointWrite { body, wake_in: None, expires_in: None };
    store.set_checkpoint(key, write, Fence::new(1)).await.unwrap();
}
