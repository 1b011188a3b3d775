//! How many updates a bot on Telegram answers, from the JSON of the update to the reply that is handed
//! to the transport, beside other frameworks that are given the same.

pub mod contender;
pub mod meter;
mod ours;
mod peers;
mod teloxide_peer;
pub mod updates;

pub use peers::Peers;
