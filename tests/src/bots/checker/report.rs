use std::collections::BTreeMap;
use std::fmt;

use super::Violation;
use crate::bots::story::Story;
use crate::driver::Verdict;

/// What a run came to.
#[derive(Debug, Default)]
pub struct Report {
    /// Rules that were broken.
    pub violations: Vec<Violation>,
    /// Processes that ran.
    pub processes: usize,
    /// Turns that were granted.
    pub turns: usize,
    /// Turns whose work was cut.
    pub cut_turns: usize,
    /// Messages of users.
    pub messages: usize,
    /// Replies that arrived.
    pub replies: usize,
    /// Conversations that came to their last word with the right answers.
    pub conversations: usize,
    /// Conversations that were handed over, by outcome.
    pub handovers: BTreeMap<String, usize>,
    /// The faults, by kind.
    pub faults: BTreeMap<String, usize>,
    /// Messages that were given to more than one replica.
    pub redelivered: usize,
    /// Messages that more than one replica handled.
    pub doubled: usize,
    /// Accepted messages that died with their replica.
    pub died_with: usize,
    /// Accepted messages whose turn was cut or did not come.
    pub cut: usize,
    /// Accepted messages that a replica left when it stopped.
    pub left: usize,
    /// Replies that arrived after a later turn had been granted, and had left before.
    pub late: usize,
    /// Questions that were asked once more because the turn that asked them was cut.
    pub asked_once_more: usize,
    /// Questions that were asked again after an error or in a conversation that began again.
    pub asked_again: usize,
    /// Last words with wrong answers after something had failed.
    pub crossed: usize,
    /// Users who waited in vain because what they had said was lost or cut.
    pub cut_off: usize,
    /// Users who waited in vain while something failed.
    pub silences: usize,
    /// Exclusive connections that were still open when another replica connected.
    pub connected_beside: usize,
}

impl Report {
    pub(super) fn of(story: &Story) -> Self {
        let processes = story.lives.values().filter(|life| life.started.is_some()).count();
        let mut report = Self { processes, ..Self::default() };
        for fault in &story.faults {
            *report.faults.entry(fault.kind.clone()).or_default() += 1;
        }
        for chat in story.chats.values() {
            report.turns += chat.turns.len();
            report.cut_turns += chat.turns.values().filter(|turn| !turn.is_clean()).count();
            report.messages += chat.messages.len();
            report.replies += chat.replies.len();
            let given = chat.messages.values();
            report.redelivered += given.filter(|it| it.delivered.len() > 1).count();
            for (_, _, _, outcome) in &chat.handovers {
                *report.handovers.entry(outcome.clone()).or_default() += 1;
            }
        }
        report
    }

    /// How many faults there were.
    #[must_use]
    pub fn fault_count(&self) -> usize {
        self.faults.values().sum()
    }
}

impl Verdict for Report {
    fn is_clean(&self) -> bool {
        self.violations.is_empty()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = |counts: &BTreeMap<String, usize>| {
            let counts = counts.iter().map(|(what, count)| format!("{count} {what}"));
            counts.collect::<Vec<_>>().join(", ")
        };
        writeln!(f, "{} processes, {} faults", self.processes, self.fault_count())?;
        writeln!(f, "  {}", all(&self.faults))?;
        writeln!(
            f,
            "{} messages, {} turns ({} cut), {} replies ({} late), {} conversations to their end",
            self.messages, self.turns, self.cut_turns, self.replies, self.late, self.conversations
        )?;
        writeln!(f, "handed over: {}", all(&self.handovers))?;
        writeln!(
            f,
            "{} messages given again, {} handled by two; {} died with their replica, {} were cut, {} left at a stop",
            self.redelivered, self.doubled, self.died_with, self.cut, self.left
        )?;
        writeln!(
            f,
            "{} asked once more after a cut, {} asked again after an error or from the start, {} crossed answers, {} connected beside",
            self.asked_once_more, self.asked_again, self.crossed, self.connected_beside
        )?;
        writeln!(
            f,
            "{} users waited in vain for what was lost or cut, {} while something failed",
            self.cut_off, self.silences
        )?;
        writeln!(f, "{} violations", self.violations.len())?;
        for violation in self.violations.iter().take(20) {
            writeln!(f, "  {violation}")?;
        }
        Ok(())
    }
}
