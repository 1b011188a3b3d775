//! Finds what a bot must not do in the story of a run.
//!
//! It accuses only when no order of the true moments and no documented window would allow what was
//! seen. What is promised without durability stands in the guide of replicas: a message that waits
//! in a replica that dies is lost, one that is delivered to two replicas may be handled by both,
//! and a crash between a question and its mark asks once more.

mod conversations;
mod exclusive;
mod liveness;
mod messages;
mod report;
#[cfg(test)]
mod tests;
mod turns;

use std::fmt;
use std::time::Duration;

use super::story::{ChatStory, Fault, Story};
use crate::history::{Nanos, nanos};

pub use report::Report;

/// What must not happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Rule {
    /// A fence was granted twice.
    GrantedTwice,
    /// A reply was sent without a turn.
    WithoutTurn,
    /// A reply was sent under a turn after a later one had been granted.
    StaleReply,
    /// An accepted message was never handled, though its replica lived.
    Lost,
    /// A replica handled a message twice.
    HandledTwice,
    /// A replica handled the messages of a chat in another order than it accepted them.
    OutOfOrder,
    /// A message was handled before one that another replica had accepted well before.
    Overtaken,
    /// A question was asked again, or a last word said again, where nothing failed.
    SaidTwice,
    /// The answers in a last word are not those to its questions.
    Crossed,
    /// A conversation was gone without an outcome.
    Vanished,
    /// A conversation went on in another version of its flow.
    ResumedChanged,
    /// What is stored of a user went back.
    Forgotten,
    /// A user waited in vain, though nothing failed.
    Silent,
    /// A chat is without answers when all is healed.
    Dead,
    /// A replica did not stop.
    NeverStopped,
    /// A replica acted over the exclusive connection after another one was connected.
    TwoConnected,
}

/// One rule that was broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Which.
    pub rule: Rule,
    /// Where: a chat, or a process.
    pub place: String,
    /// When it was seen.
    pub at: Nanos,
    /// What was seen.
    pub detail: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} in {} at {}: {}", self.rule, self.place, self.at, self.detail)
    }
}

/// How much later than it happened a process may note something that it hears of.
const SLACK: Nanos = 500_000_000;
/// What a server that writes its log each second may have forgotten.
const LAG: Nanos = 3_000_000_000;
/// For how long a fault may show when it is over: leases end, connections are made again, and a
/// server that was started again grants nothing for a lease.
const AFTERMATH: Duration = Duration::from_millis(2_500);

/// One chat under examination.
struct Case<'a> {
    story: &'a Story,
    key: &'a str,
    chat: &'a ChatStory,
    found: &'a mut Report,
}

/// Examines a run.
#[must_use]
pub fn check(story: &Story) -> Report {
    let mut report = Report::of(story);
    for (key, chat) in &story.chats {
        let mut case = Case { story, key, chat, found: &mut report };
        case.check_turns();
        case.check_messages();
        case.check_conversations();
        case.check_liveness();
    }
    liveness::check_stops(story, &mut report);
    exclusive::check(story, &mut report);
    report.violations.sort_by_key(|violation| violation.at);
    report
}

impl Case<'_> {
    fn accuse(&mut self, rule: Rule, at: Nanos, detail: String) {
        self.found.violations.push(Violation { rule, place: self.key.to_owned(), at, detail });
    }

    /// Whether work for the chat was cut, failed or handed over between two moments, so that what
    /// was said and what was kept may differ.
    fn is_disturbed(&self, from: Nanos, to: Nanos) -> bool {
        let cut = self
            .chat
            .turns
            .values()
            .any(|turn| !turn.is_clean() && turn.granted >= from && turn.granted <= to);
        cut || self.has_failed(from, to) || self.was_handed_over(from, to) || self.forgot(from, to)
    }

    fn has_failed(&self, from: Nanos, to: Nanos) -> bool {
        self.chat.failures.iter().any(|(at, ..)| *at >= from && *at <= to.saturating_add(SLACK))
    }

    /// Whether a conversation of the chat could not go on.
    fn was_handed_over(&self, from: Nanos, to: Nanos) -> bool {
        self.chat.handovers.iter().any(|(at, _, _, outcome)| {
            outcome != "resumed" && *at >= from && *at <= to.saturating_add(SLACK)
        })
    }

    /// Whether the server may have forgotten something of that time.
    fn forgot(&self, from: Nanos, to: Nanos) -> bool {
        let faults = self.story.faults.iter().filter(|fault| fault.forgets);
        faults.into_iter().any(|it| it.begin.saturating_sub(LAG) <= to && it.end >= from)
    }

    /// Whether a message was handled twice, or one that its user had repeated.
    fn is_doubled(&self, from: Nanos, to: Nanos) -> bool {
        let messages = &self.chat.messages;
        let is_repeated = |text: &str| messages.values().any(|it| it.again && it.text == text);
        messages.values().any(|message| {
            message.handled.iter().any(|(at, ..)| *at >= from && *at <= to)
                && (message.handled.len() > 1 || is_repeated(&message.text))
        })
    }
}

impl Fault {
    /// Whether it may show between two moments at this process.
    fn shows(&self, life: u64, from: Nanos, to: Nanos) -> bool {
        self.life.is_none_or(|victim| victim == life)
            && self.begin <= to
            && self.end.saturating_add(nanos(AFTERMATH)) >= from
    }
}
