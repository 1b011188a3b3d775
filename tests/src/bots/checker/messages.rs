//! Messages from their acceptance to their handling.

use std::collections::BTreeMap;

use super::super::notes::Life;
use super::super::story::Message;
use super::{Case, Rule};
use crate::history::Nanos;

/// Messages that reach two replicas within so much time may change places: it is more than a round
/// trip to the server takes.
const ROUND_TRIP: Nanos = 150_000_000;

impl Case<'_> {
    pub(super) fn check_messages(&mut self) {
        let mut orders: BTreeMap<Life, Vec<(Nanos, u64, Nanos)>> = BTreeMap::new();
        for (number, message) in &self.chat.messages {
            for (life, accepted) in first_accepted(message) {
                let mut handled = message.handled.iter().filter(|(_, by, _)| *by == life);
                match (handled.next(), handled.next()) {
                    (None, _) => self.miss(*number, life, accepted),
                    (Some((at, ..)), None) => {
                        orders.entry(life).or_default().push((accepted, *number, *at));
                    }
                    (Some(_), Some((at, ..))) => {
                        let detail = format!("message {number} by {life}");
                        self.accuse(Rule::HandledTwice, *at, detail);
                    }
                }
            }
            self.found.doubled += usize::from(message.handled.len() > 1);
        }
        for (life, mut order) in orders {
            order.sort_unstable();
            for pair in order.windows(2) {
                if let [(_, first, before), (_, second, after)] = pair
                    && after < before
                {
                    let detail = format!("{life} handled {second} before {first}");
                    self.accuse(Rule::OutOfOrder, *after, detail);
                }
            }
        }
        self.check_order_across_replicas();
    }

    /// An accepted message was not handled.
    fn miss(&mut self, number: u64, life: Life, accepted: Nanos) {
        let Some(own) = self.story.lives.get(&life) else { return };
        let cut = self
            .chat
            .turns
            .values()
            .any(|turn| turn.life == life && !turn.is_clean() && turn.end() >= accepted);
        let failed = self.chat.failures.iter().any(|(at, by, _)| *by == life && *at >= accepted);
        if own.killed.is_some() {
            self.found.died_with += 1;
        } else if cut || failed || own.never_stopped {
            self.found.cut += 1;
        } else if own.stopped.is_some_and(|(_, unhandled)| unhandled > 0) {
            self.found.left += 1;
        } else {
            let detail = format!("message {number}, accepted by {life}");
            self.accuse(Rule::Lost, accepted, detail);
        }
    }

    fn check_order_across_replicas(&mut self) {
        // When each was accepted first and handled first, and when it was delivered first.
        let mut known: Vec<(Nanos, Nanos, Nanos, Life, u64)> = Vec::new();
        for (number, message) in &self.chat.messages {
            let delivered = message.delivered.first();
            let (Some((delivered, _)), Some((accepted, life)), Some((handled, ..))) =
                (delivered, message.accepted.first(), message.handled.first())
            else {
                continue;
            };
            // Who was given twice has two places.
            if message.delivered.len() == 1 {
                known.push((*delivered, *accepted, *handled, *life, *number));
            }
        }
        known.sort_unstable();
        let mut found = Vec::new();
        for (index, first) in known.iter().enumerate() {
            let (_, accepted, handled, life, number) = *first;
            for (delivered, _, overtaking, _, other) in &known[index + 1..] {
                if *delivered > handled {
                    break;
                }
                let late = *delivered >= accepted.saturating_add(ROUND_TRIP);
                if late && *overtaking < handled && !self.is_hindered(life, accepted, handled) {
                    found.push((*overtaking, format!("message {other} overtook {number}")));
                }
            }
        }
        for (at, detail) in found {
            self.accuse(Rule::Overtaken, at, detail);
        }
    }

    /// Whether a replica may have lost its place in that time.
    fn is_hindered(&self, life: Life, from: Nanos, to: Nanos) -> bool {
        let stalled = |stalls: &[(Nanos, Nanos)]| {
            stalls.iter().any(|(begin, end)| *begin <= to && *end >= from)
        };
        self.story.faults.iter().any(|fault| fault.shows(life, from, to))
            || self.story.lives.get(&life).is_some_and(|it| stalled(&it.stalls))
            || self.is_disturbed(from, to)
    }
}

/// Who has accepted a message, each with the first moment.
fn first_accepted(message: &Message) -> BTreeMap<Life, Nanos> {
    let mut first = BTreeMap::new();
    for (at, life) in &message.accepted {
        first.entry(*life).or_insert(*at);
    }
    first
}
