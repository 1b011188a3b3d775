//! Whoever speaks is answered, and whoever is told to stop stops.

use super::super::story::Story;
use super::{AFTERMATH, Case, Report, Rule, Violation};
use crate::history::{Nanos, nanos};

/// How long without a fault is long enough for an answer.
const QUIET: Nanos = 3_000_000_000;

impl Case<'_> {
    pub(super) fn check_liveness(&mut self) {
        for (since, until) in &self.chat.silences {
            if self.was_cut_off(*since, *until) {
                self.found.cut_off += 1;
            } else if self.is_disturbed(*since, *until)
                || longest_quiet(self.story, *since, *until) < QUIET
            {
                self.found.silences += 1;
            } else {
                let since = format!("no answer since {since}");
                self.accuse(Rule::Silent, *until, since);
            }
        }
        if self.chat.dead {
            self.accuse(Rule::Dead, self.story.end, "no answer at the end".to_owned());
        }
    }

    /// Whether the message that waited was lost with its replica, or its turn was cut.
    fn was_cut_off(&self, since: Nanos, until: Nanos) -> bool {
        let chat = self.chat;
        let mut said = chat.messages.values().filter(|it| it.at >= since && it.at <= until);
        said.any(|message| {
            let cut = |fence: &u64| chat.turns.get(fence).is_some_and(|turn| !turn.is_clean());
            message.handled.iter().any(|(_, _, fence)| cut(fence))
                || message.handled.is_empty() && !message.accepted.is_empty()
        })
    }
}

/// The longest time between two moments in which nothing fails or has failed shortly before.
fn longest_quiet(story: &Story, from: Nanos, to: Nanos) -> Nanos {
    let mut faults: Vec<_> = story.faults.iter().map(|it| (it.begin, it.end)).collect();
    faults.sort_unstable();
    let (mut longest, mut quiet_since) = (0, from);
    for (begin, end) in faults {
        if begin > quiet_since {
            longest = longest.max(begin.min(to).saturating_sub(quiet_since));
        }
        quiet_since = quiet_since.max(end.saturating_add(nanos(AFTERMATH)));
    }
    longest.max(to.saturating_sub(quiet_since))
}

/// A process that is told to stop stops.
pub(super) fn check_stops(story: &Story, report: &mut Report) {
    for (life, own) in story.lives.iter().filter(|(_, own)| own.never_stopped) {
        let (place, detail) = (format!("process {life}"), "it was told to stop".to_owned());
        let at = own.started.unwrap_or_default();
        report.violations.push(Violation { rule: Rule::NeverStopped, place, at, detail });
    }
}
