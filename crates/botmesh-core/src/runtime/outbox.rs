use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::router::BoxFuture;
use crate::error::BotError;
use crate::id::{ChatKey, MessageId, Position, StableHash};
use crate::provider::Receipt;

/// The sends of one record in their order: what became of each, so that another attempt does not
/// send it again.
pub(crate) struct Outbox {
    sends: tokio::sync::Mutex<Sends>,
    lost: u32,
}

/// The state of an outbox. Held over one send, so that the sends of a record keep their order.
pub(super) struct Sends {
    /// The index of the next send of this attempt.
    next: usize,
    notes: Notes,
    /// Whether the store has the notes.
    is_noted: bool,
    /// Whether an attempt before may have sent more than was noted.
    is_open: bool,
}

/// What the store has of a record's sends.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Notes {
    #[serde(default)]
    sends: Vec<Note>,
    /// The attempt at whose orderly end these notes were written; they are complete for it.
    #[serde(default)]
    complete: u32,
    /// How many attempts ended because the turn was lost, through no fault of the record.
    #[serde(default, skip_serializing_if = "is_zero")]
    lost: u32,
}

/// What became of one send.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Note {
    /// The platform took it.
    Sent(Option<MessageId>),
    /// The platform did not take it.
    Failed,
    /// It was begun, and nobody knows what became of it.
    Begun,
}

/// What to do about the next send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    /// It was sent by an earlier attempt.
    Sent(Receipt),
    /// An earlier attempt may have sent it.
    Uncertain,
    /// It was never sent.
    New,
}

/// What a bot does about a send of which nobody knows whether the platform took it, where the
/// platform does not recognise a send that comes again.
#[derive(Clone, Default)]
#[non_exhaustive]
pub enum Uncertain {
    /// Sends it again: the user sees it once or twice.
    #[default]
    Resend,
    /// Does not send it again: the user sees it once or not at all. Costs a note in the store
    /// before each send.
    Skip,
    /// Asks a function whether the platform has it, as by a look at the chat's history. Costs a
    /// note in the store before each send.
    Reconcile(ReconcileFunction),
}

/// The function of a user that finds out whether a send has arrived.
#[derive(Clone)]
pub struct ReconcileFunction(Arc<ReconcileFn>);

type ReconcileFn = dyn Fn(UncertainSend) -> BoxFuture<Result<bool, BotError>> + Send + Sync;

/// A send of which nobody knows whether the platform took it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct UncertainSend {
    /// The chat.
    pub chat: ChatKey,
    /// The words of the message, as they were to be shown.
    pub text: String,
    /// The same for each attempt to send it.
    pub idempotency_key: String,
}

/// What was done about an uncertain send.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum UncertainOutcome {
    /// It was sent again: it may be there twice.
    Resent,
    /// It was not sent again: it may be missing.
    Skipped,
    /// It was found to have arrived.
    Arrived,
    /// It was found not to have arrived, and was sent.
    Missing,
}

impl Uncertain {
    /// Asks `function` whether the platform has the message: true when it has.
    pub fn reconcile<F, R>(function: F) -> Self
    where
        F: Fn(UncertainSend) -> R + Send + Sync + 'static,
        R: Future<Output = Result<bool, BotError>> + Send + 'static,
    {
        Self::Reconcile(ReconcileFunction(Arc::new(move |send| Box::pin(function(send)))))
    }

    /// Whether each send is noted before it is begun: else a send that was never begun would be
    /// taken for an uncertain one, and be left out.
    pub(super) const fn notes_first(&self) -> bool {
        !matches!(self, Self::Resend)
    }
}

impl ReconcileFunction {
    pub(super) fn has_arrived(&self, send: UncertainSend) -> BoxFuture<Result<bool, BotError>> {
        (self.0)(send)
    }
}

impl Outbox {
    /// The outbox of the attempt with this number, after what an earlier attempt noted.
    /// `was_open` tells that one before, which was not counted, may have sent something.
    pub(super) fn new(noted: Option<&str>, attempt: u32, was_open: bool) -> Self {
        // What this code did not write tells nothing.
        let notes: Notes =
            noted.and_then(|noted| serde_json::from_str(noted).ok()).unwrap_or_default();
        let is_open = was_open || attempt != notes.complete.saturating_add(1);
        let lost = notes.lost;
        let sends = Sends { next: 0, notes, is_noted: true, is_open };
        Self { sends: tokio::sync::Mutex::new(sends), lost }
    }

    /// How many attempts before this one ended because the turn was lost.
    pub(super) const fn lost(&self) -> u32 {
        self.lost
    }

    /// What to note when the turn was lost: what was sent last is not known.
    pub(super) async fn cut_off(&self) -> String {
        let mut sends = self.sends.lock().await;
        sends.notes.lost = sends.notes.lost.saturating_add(1);
        sends.notes.text()
    }

    /// The next send has to wait until the one before has come to its end.
    pub(super) async fn next(&self) -> tokio::sync::MutexGuard<'_, Sends> {
        let mut sends = self.sends.lock().await;
        sends.next += 1;
        sends
    }

    /// What to note when the attempt with this number has failed: nothing more is under way.
    pub(super) async fn complete(&self, attempt: u32) -> String {
        let mut sends = self.sends.lock().await;
        sends.notes.complete = attempt;
        sends.notes.text()
    }
}

impl Sends {
    /// The index of the present send.
    pub(super) const fn index(&self) -> usize {
        self.next.saturating_sub(1)
    }

    /// What to do about the present send.
    pub(super) fn step(&self, policy: &Uncertain) -> Step {
        match self.notes.sends.get(self.index()) {
            Some(Note::Sent(message)) => Step::Sent(Receipt { message: message.clone() }),
            Some(Note::Begun) => Step::Uncertain,
            Some(Note::Failed) => Step::New,
            // Of those behind the notes an attempt can have begun the first one alone: it would
            // have noted that one before the next.
            None if self.is_open
                && !policy.notes_first()
                && self.index() == self.notes.sends.len() =>
            {
                Step::Uncertain
            }
            None => Step::New,
        }
    }

    /// What must be noted before the present send is begun, if anything must.
    pub(super) fn unnoted(&mut self, policy: &Uncertain) -> Option<String> {
        if policy.notes_first() {
            self.note(Note::Begun);
        }
        (!self.is_noted).then(|| self.notes.text())
    }

    /// The store has what [`unnoted`](Self::unnoted) said.
    pub(super) const fn noted(&mut self) {
        self.is_noted = true;
    }

    /// The present send has come to its end, and is not to be sent again.
    pub(super) fn sent(&mut self, receipt: &Receipt) {
        self.note(Note::Sent(receipt.message.clone()));
    }

    /// The present send has failed, and `is_unknown` tells whether it may have arrived all the
    /// same.
    pub(super) fn failed(&mut self, is_unknown: bool) {
        self.note(if is_unknown { Note::Begun } else { Note::Failed });
    }

    fn note(&mut self, note: Note) {
        let index = self.index();
        match self.notes.sends.get_mut(index) {
            Some(known) if *known == note => return,
            Some(known) => *known = note,
            None => {
                self.notes.sends.push(note);
                // What comes behind the first one that was not noted was never begun.
                self.is_open = false;
            }
        }
        self.is_noted = false;
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
const fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl Notes {
    fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// The same for each attempt of one record, and different for all others of the bot.
pub(super) fn record_key(chat: &ChatKey, position: Position) -> String {
    format!("{:016x}-{:x}", StableHash::of(chat.as_str()), position.get())
}

/// The same for each attempt of one send, and different for all other sends of the bot.
pub(super) fn idempotency_key(chat: &ChatKey, position: Position, index: usize) -> String {
    format!("{}-{index}", record_key(chat, position))
}

impl fmt::Debug for Uncertain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Resend => "Resend",
            Self::Skip => "Skip",
            Self::Reconcile(_) => "Reconcile(..)",
        })
    }
}

impl fmt::Debug for ReconcileFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ReconcileFunction")
    }
}

#[cfg(test)]
mod tests;
