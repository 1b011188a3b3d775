//! What a bot does, seen from its chats.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod building;
mod conversations;
mod flows;
mod languages;
mod messages;
mod stopping;
mod surviving;
