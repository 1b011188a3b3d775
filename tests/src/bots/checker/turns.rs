//! Replies and the turns under which they were sent.

use super::{Case, Rule};

/// How near to a moment at which its process did not run a check of the guard may differ from the
/// bot's own, a few instructions before it.
const STANDSTILL: u64 = 200_000_000;

impl Case<'_> {
    pub(super) fn check_turns(&mut self) {
        for fence in &self.chat.granted_twice {
            let granted = self.chat.turns.get(fence).map_or(0, |turn| turn.granted);
            self.accuse(Rule::GrantedTwice, granted, format!("the fence {fence}"));
        }
        for reply in &self.chat.replies {
            let Some(fence) = reply.fence.filter(|_| reply.allowed) else {
                if !self.stood_still(reply.life, reply.checked) {
                    let detail = format!("{} says {:?}", reply.life, reply.text);
                    self.accuse(Rule::WithoutTurn, reply.checked, detail);
                }
                continue;
            };
            let Some((later, turn)) = self.chat.turns.range(fence + 1..).next() else { continue };
            if turn.granted < reply.checked {
                let detail = format!(
                    "{} says {:?} under {fence}, after {later} was granted to {}",
                    reply.life, reply.text, turn.life
                );
                self.accuse(Rule::StaleReply, reply.checked, detail);
            } else if turn.granted < reply.at {
                self.found.late += 1;
            }
        }
    }

    fn stood_still(&self, life: u64, at: u64) -> bool {
        let near = |from: u64, to: u64| from <= at + STANDSTILL && to + STANDSTILL >= at;
        let stalled = self.story.lives.get(&life);
        stalled.is_some_and(|it| it.stalls.iter().any(|(from, to)| near(*from, *to)))
    }
}
