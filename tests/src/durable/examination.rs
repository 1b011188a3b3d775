//! What the notes of a run prove about durability.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use super::answers::Differences;
use crate::bots::notes::{Entry, Event, Life};
use crate::driver::Verdict;
use crate::history::{Nanos, nanos};

/// For how many leases of a turn after its end a fault may show: one, those of a record, and the time
/// to look for records that wait.
const AFTERMATH: u32 = 10;

/// What was found.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// What was broken, in words.
    pub violations: Vec<String>,
    /// How many messages were accepted.
    pub accepted: usize,
    /// How many of them were offered to more than one replica.
    pub offered_again: usize,
    /// How many replies the users saw.
    pub replies: usize,
    /// How many of them for the second time, each excused by a fault of its own.
    pub repeated: usize,
    /// How many sends came again and were recognised by a platform that does so.
    pub recognised: Option<usize>,
    /// How many messages were given up.
    pub dead: usize,
    /// How often each fault happened.
    pub faults: BTreeMap<String, usize>,
}

impl Report {
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
        writeln!(
            f,
            "{} messages accepted, {} of them offered again, {} dead letters",
            self.accepted, self.offered_again, self.dead
        )?;
        writeln!(
            f,
            "{} replies, {} of them repeated, {} more recognised by the platform",
            self.replies,
            self.repeated,
            self.recognised.unwrap_or_default()
        )?;
        for (kind, count) in &self.faults {
            writeln!(f, "{count:>6} {kind}")?;
        }
        writeln!(f, "{} violations", self.violations.len())?;
        for violation in &self.violations {
            writeln!(f, "  {violation}")?;
        }
        Ok(())
    }
}

#[derive(Debug, Default)]
struct Chat {
    said: Vec<(u64, String)>,
    heard: Vec<Reply>,
}

#[derive(Debug)]
struct Reply {
    at: Nanos,
    life: Life,
    text: String,
}

#[derive(Debug)]
struct Fault {
    number: u64,
    begin: Nanos,
    /// Until when it may show.
    until: Nanos,
    life: Option<Life>,
}

/// Examines the notes of the platform. `dead` are the dead letters, by chat and words; `recognised`
/// is how many sends came again at a platform that recognises them, `lease` that of a turn.
#[must_use]
pub fn examine(
    notes: &[Entry],
    dead: &[(String, String)],
    recognised: Option<usize>,
    lease: Duration,
) -> Report {
    let mut report = Report { recognised, dead: dead.len(), ..Report::default() };
    let mut chats: BTreeMap<String, Chat> = BTreeMap::new();
    let (mut faults, mut offers) = (Vec::<Fault>::new(), BTreeMap::<u64, usize>::new());
    let mut accepted = BTreeMap::<u64, Nanos>::new();
    for Entry { at, event } in notes {
        match event {
            Event::Said { chat, message, text, .. } => {
                chats.entry(chat.clone()).or_default().said.push((*message, text.clone()));
            }
            Event::Delivered { message, .. } => *offers.entry(*message).or_default() += 1,
            Event::Accepted { message, .. } => {
                accepted.entry(*message).or_insert(*at);
            }
            Event::Replied { chat, text, life, .. } => {
                let reply = Reply { at: *at, life: *life, text: text.clone() };
                chats.entry(chat.clone()).or_default().heard.push(reply);
            }
            Event::Fault { number, kind, life, .. } => {
                *report.faults.entry(kind.clone()).or_default() += 1;
                let (number, life) = (*number, *life);
                faults.push(Fault { number, begin: *at, until: Nanos::MAX, life });
            }
            Event::Healed { number } => {
                if let Some(fault) = faults.iter_mut().find(|fault| fault.number == *number) {
                    fault.until = at.saturating_add(nanos(lease * AFTERMATH));
                }
            }
            _ => {}
        }
    }
    report.accepted = accepted.len();
    report.offered_again = offers.values().filter(|offers| **offers > 1).count();
    for (name, chat) in &chats {
        report.replies += chat.heard.len();
        let buried: Vec<_> =
            dead.iter().filter(|(of, _)| of == name).map(|(_, words)| words.as_str()).collect();
        chat.examine(name, &buried, &accepted, &faults, &mut report);
    }
    report
}

impl Chat {
    fn examine(
        &self,
        name: &str,
        dead: &[&str],
        accepted: &BTreeMap<u64, Nanos>,
        faults: &[Fault],
        report: &mut Report,
    ) {
        let said: Vec<_> = self.said.iter().map(|(_, text)| text.clone()).collect();
        let heard: Vec<_> = self.heard.iter().map(|reply| reply.text.clone()).collect();
        let found = Differences::find(&said, &heard);
        for lost in &found.lost {
            let number = self.said.iter().find(|(_, text)| text == lost).map(|(number, _)| number);
            let is_accepted = number.is_some_and(|number| accepted.contains_key(number));
            if is_accepted && !dead.contains(&lost.as_str()) {
                report.violations.push(format!("{name}: {lost:?} was accepted and is lost"));
            } else if !is_accepted {
                report.violations.push(format!("{name}: {lost:?} was never accepted"));
            }
        }
        for words in &found.out_of_order {
            report.violations.push(format!("{name}: {words:?} came too late"));
        }
        for words in &found.strange {
            report.violations.push(format!("{name}: nobody asked for {words:?}"));
        }
        self.examine_repeats(name, faults, report);
    }

    /// Each reply that was seen again is excused by a fault of whoever had sent it before, and each
    /// fault excuses one reply of the chat; none where the platform recognises what comes again.
    fn examine_repeats(&self, name: &str, faults: &[Fault], report: &mut Report) {
        let mut used = Vec::new();
        for (place, reply) in self.heard.iter().enumerate() {
            let before = self.heard[..place].iter().rev().find(|it| it.text == reply.text);
            let Some(before) = before else { continue };
            report.repeated += 1;
            let excuse = faults.iter().find(|fault| {
                report.recognised.is_none()
                    && !used.contains(&fault.number)
                    && fault.life.is_none_or(|victim| victim == before.life)
                    && fault.begin <= reply.at
                    && fault.until >= before.at
            });
            match excuse {
                Some(fault) => used.push(fault.number),
                None => report.violations.push(format!(
                    "{name}: {:?} was sent by {} and again by {} without a fault",
                    reply.text, before.life, reply.life
                )),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::durable::answers::to;
    use crate::durable::replica::LEASE;

    fn entry(at: Nanos, event: Event) -> Entry {
        Entry { at, event }
    }

    fn said(at: Nanos, message: u64, text: &str) -> [Entry; 2] {
        let (chat, text) = ("shared:a".to_owned(), text.to_owned());
        let said = Event::Said { chat, message, text, again: false };
        [entry(at, said), entry(at + 1, Event::Accepted { message, life: 1 })]
    }

    fn replied(at: Nanos, words: &str, life: Life) -> Entry {
        let (chat, text) = ("shared:a".to_owned(), to(words));
        let (fence, checked, allowed) = (None, 0, false);
        entry(at, Event::Replied { chat, text, life, fence, checked, allowed })
    }

    fn fault(at: Nanos, life: Life) -> Entry {
        let kind = "kill -9".to_owned();
        entry(at, Event::Fault { number: 1, kind, forgets: false, life: Some(life) })
    }

    fn broken(notes: &[Entry], dead: &[(String, String)]) -> usize {
        examine(notes, dead, None, LEASE).violations.len()
    }

    #[test]
    fn what_was_accepted_is_answered_or_a_dead_letter() {
        let notes = [said(1, 1, "a").as_slice(), &said(3, 2, "b"), &[replied(5, "b", 1)]].concat();
        assert_eq!(broken(&notes, &[]), 1);
        assert_eq!(broken(&notes, &[("shared:a".to_owned(), "a".to_owned())]), 0);
        let late = [notes.as_slice(), &[replied(6, "a", 1)]].concat();
        assert_eq!(broken(&late, &[]), 1, "the order was not examined");
    }

    #[test]
    fn a_fault_excuses_one_repeated_reply_of_its_victim() {
        let begin = [said(1, 1, "a").as_slice(), &[replied(3, "a", 1)]].concat();
        let with = |more: &[Entry]| broken(&[begin.as_slice(), more].concat(), &[]);
        assert_eq!(with(&[replied(5, "a", 2)]), 1);
        assert_eq!(with(&[fault(4, 1), replied(5, "a", 2)]), 0);
        assert_eq!(with(&[fault(4, 2), replied(5, "a", 2)]), 1);
        assert_eq!(with(&[fault(4, 1), replied(5, "a", 2), replied(6, "a", 2)]), 1);
        let notes = [begin.as_slice(), &[fault(4, 1), replied(5, "a", 2)]].concat();
        assert_eq!(examine(&notes, &[], Some(0), LEASE).violations.len(), 1, "keys were of no use");
    }
}
