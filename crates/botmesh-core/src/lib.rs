#![doc = include_str!("../README.md")]

pub mod bot;
#[cfg(any(test, feature = "testing"))]
pub mod conformance;
pub mod conversation;
pub mod coordination;
pub mod error;
pub mod flow;
pub mod id;
pub mod matcher;
pub mod message;
pub mod prelude;
pub mod provider;
pub mod question;
pub mod runtime;
#[cfg(feature = "scheduler")]
pub mod schedule;
pub mod store;
#[cfg(feature = "terminal")]
pub mod terminal;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod text;
pub mod time;
mod watched;

pub use bot::{Bot, BuildError, RunningBot, enter};
pub use error::BotError;
pub use flow::{Doing, Flow, flow, flow_from, form};
pub use id::{
    ChatKey, ConversationName, Fence, IdError, IncarnationId, LeaderName, MessageId, Position,
    ProviderId, ReplicaId, Revision, UserKey,
};
pub use matcher::{Matched, Matcher, button, command, event, pattern, predicate};
pub use message::{Button, Content, Message, Outgoing, Reply};
pub use question::{Answer, Invalid, Question, question};
pub use runtime::{Context, Event, Next};
pub use store::MemoryStore;
pub use text::{Language, Text, Texts, t};
