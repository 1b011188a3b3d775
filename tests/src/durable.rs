//! Bots that keep what they accept until it is answered, as real processes that are killed.

pub mod answers;
pub mod chaos;
pub mod examination;
mod harm;
pub mod replica;
pub mod store;
