//! What most bots use: `use botmesh_core::prelude::*;`.

pub use crate::bot::{Bot, RunningBot, enter};
pub use crate::error::BotError;
pub use crate::flow::{Flow, flow, flow_from, form};
pub use crate::matcher::{button, command, event, pattern, predicate};
pub use crate::message::{Button, Content, Message, Reply};
pub use crate::question::{Answer, Invalid, question};
pub use crate::runtime::{Context, Event, Next};
#[cfg(feature = "terminal")]
pub use crate::terminal::Terminal;
pub use crate::text::{Language, Texts, t};
