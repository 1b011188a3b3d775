//! The SQLite store against its contract, its files and its enemies.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod cancel;
mod conformance;
mod disk;
mod inbox;
mod kill;
mod locked;
mod schema;
mod sweep;

use botmesh_core::ChatKey;
use botmesh_core::store::CheckpointWrite;

fn chat(name: &str) -> ChatKey {
    ChatKey::decode(&format!("test:{name}")).unwrap()
}

fn body(body: &str) -> CheckpointWrite<'_> {
    CheckpointWrite { body, wake_in: None, expires_in: None }
}
