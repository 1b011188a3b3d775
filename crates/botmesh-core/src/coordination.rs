//! Who may act on a chat, and who connects an exclusive transport.
//!
//! A [`ChatTurn`] is the right to process one chat, in one process as in many. Everything that a
//! turn's work does to the outside (sends, checkpoint writes, timers) first passes its
//! [`TurnGuard`]. With several replicas a [`Coordinator`] grants turns and [`Leadership`]s through
//! a shared backend; without one nothing here contacts anything.

pub mod client;
mod clock;
mod coordinator;
mod error;
mod event;
mod hold;
mod journaled;
mod key;
mod leadership;
mod release;
mod session;
mod settings;
pub mod stored;
mod ticket;
pub mod transition;
mod turn;

pub use clock::{LeaseClock, LeaseMoment};
pub use coordinator::Coordinator;
pub use error::{CoordinationError, LeadershipLost, LeaseLost, LossReason};
pub use event::{CoordinatorEvent, HandoverOutcome};
pub use hold::{Grant, PreviousHolder};
pub use journaled::{Begins, IngestError, Ingested, JournaledTurns};
pub use key::CoordinationKey;
pub use leadership::Leadership;
pub use release::{Release, Releaser, Releases};
pub use session::SessionLease;
pub use settings::{CoordinatorSettings, CoordinatorSettingsBuilder, SettingsError};
pub use ticket::{AcquireTurn, Ticket};
pub use turn::{ChatTurn, TurnGuard};
