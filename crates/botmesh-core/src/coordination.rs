//! Who may act on a chat, and who connects an exclusive transport.
//!
//! A [`ChatTurn`] is the right to process one chat, in one process as in many. Everything that a
//! turn's work does to the outside (sends, checkpoint writes, timers) first passes its
//! [`TurnGuard`].

mod error;
mod turn;

pub use error::{LeaseLost, LossReason};
pub use turn::{ChatTurn, TurnGuard};
