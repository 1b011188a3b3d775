//! What a bot does, seen from its chats.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod building;
mod conversations;
mod durability;
mod flows;
mod forwarding;
mod handover;
#[cfg(feature = "scheduler")]
mod job_sends;
#[cfg(feature = "scheduler")]
mod jobs;
mod languages;
mod leading;
mod messages;
mod places;
mod plain_store;
mod replicas;
mod stopping;
mod surviving;
mod turns;
mod waking;
