//! What was said in a chat, turn by turn, against what its conversations may say.

use std::collections::HashMap;

use super::super::definition::{TOPICS, answers};
use super::super::notes::Decision;
use super::super::story::Turn;
use super::{Case, Rule};
use crate::history::Nanos;

/// For how long a stray reply may mislead a user.
const CONFUSION: Nanos = 2_000_000_000;

/// What is known of a chat up to a turn.
#[derive(Default)]
struct Known {
    /// Under which fence and when each question of the present conversation was asked last, and
    /// each last word said.
    said: HashMap<String, (u64, Nanos)>,
    /// When the present conversation began.
    begun: Nanos,
    /// The highest number that a user was told.
    count: u64,
}

impl Case<'_> {
    pub(super) fn check_conversations(&mut self) {
        let mut known = Known::default();
        let chat = self.chat;
        for (fence, turn) in &chat.turns {
            let message = turn.handled.first().and_then(|number| chat.messages.get(number));
            let heard = message.map_or("", |message| message.text.as_str());
            if TOPICS.contains(&heard) && !turn.is_clean() {
                // It may have begun, whatever was said.
                known.said.retain(|said, _| !is_of(said, heard));
            }
            for place in &turn.replies {
                let text = chat.replies[*place].text.as_str();
                let words: Vec<&str> = text.split(' ').collect();
                match words[..] {
                    ["Q", flow, number] => {
                        if number == "1" && heard == base(flow) {
                            known.said.retain(|said, _| !is_of(said, heard));
                            known.begun = turn.granted;
                        }
                        self.said(&mut known, *fence, turn, text);
                        self.asked(&known, turn, flow, number);
                    }
                    ["S", flow, ref given @ ..] => {
                        self.said(&mut known, *fence, turn, &format!("S {flow}"));
                        self.ended(&known, turn, flow, given, text);
                    }
                    ["new", answer] if answer.starts_with("a-") => {
                        self.answered_nobody(*fence, turn, answer);
                    }
                    ["count", number] => {
                        let number = number.parse().unwrap_or(0);
                        if number <= known.count && !self.forgot(turn.granted, turn.granted) {
                            let detail = format!("{number} after {}", known.count);
                            self.accuse(Rule::Forgotten, turn.granted, detail);
                        }
                        known.count = number;
                    }
                    _ => {}
                }
            }
        }
    }

    fn said(&mut self, known: &mut Known, fence: u64, turn: &Turn, what: &str) {
        let before = known.said.insert(what.to_owned(), (fence, turn.granted));
        let Some((earlier, since)) = before else { return };
        let was_cut = self.chat.turns.get(&earlier).is_some_and(|turn| !turn.is_clean());
        let (from, to) = (since, turn.granted.max(turn.over.map_or(0, |(at, _)| at)));
        if earlier != fence && was_cut {
            self.found.asked_once_more += 1;
        } else if self.has_failed(from, to)
            || self.was_handed_over(from, to)
            || self.forgot(from, to)
        {
            self.found.asked_again += 1;
        } else {
            let detail = format!("{what:?} under {earlier} and under {fence}");
            self.accuse(Rule::SaidTwice, turn.granted, detail);
        }
    }

    /// A later question follows one of the same version.
    fn asked(&mut self, known: &Known, turn: &Turn, flow: &str, number: &str) {
        let (Some((name, _)), Ok(number)) = (flow.split_once('.'), number.parse::<u32>()) else {
            return;
        };
        let before = |said: &&String| is_of(said, name) && said.starts_with("Q ");
        let versions: Vec<_> = known.said.keys().filter(before).collect();
        let own = versions.iter().any(|said| {
            said.split(' ').nth(1) == Some(flow) && said.ends_with(&format!(" {}", number - 1))
        });
        if number > 1 && !own && versions.len() > 1 {
            let detail = format!("question {number} of {flow} after {versions:?}");
            self.accuse(Rule::ResumedChanged, turn.granted, detail);
        }
    }

    fn ended(&mut self, known: &Known, turn: &Turn, flow: &str, given: &[&str], text: &str) {
        if text.ends_with("from another version") {
            self.accuse(Rule::ResumedChanged, turn.granted, text.to_owned());
            return;
        }
        let right = |(place, answer): (usize, &&str)| {
            answer.starts_with(&format!("a-{flow}-{}-", place + 1))
        };
        if given.len() == answers(flow) && given.iter().enumerate().all(right) {
            self.found.conversations += 1;
            return;
        }
        let from = known.begun.saturating_sub(CONFUSION);
        let to = turn.over.map_or(turn.granted, |(at, _)| at);
        let silent = self.chat.silences.iter().any(|(_, at)| *at >= from && *at <= to);
        let strays = given.iter().any(|answer| self.was_said_before(answer, known.begun));
        if silent || strays || self.is_disturbed(from, to) || self.is_doubled(from, to) {
            self.found.crossed += 1;
        } else {
            self.accuse(Rule::Crossed, turn.granted, text.to_owned());
        }
    }

    /// Whether a message was handled late: it had been said before the conversation began.
    fn was_said_before(&self, text: &str, begun: Nanos) -> bool {
        let mut messages = self.chat.messages.values();
        messages.any(|message| message.text == text && message.at < begun && text.contains('-'))
    }

    /// An answer was taken for a new message: its conversation was not there.
    fn answered_nobody(&mut self, fence: u64, turn: &Turn, answer: &str) {
        let Some((flow, number)) = parts(answer) else { return };
        let question = format!("Q {flow} {number}");
        let chat = self.chat;
        let says = |turn: &Turn, wanted: &str| {
            turn.replies.iter().any(|place| chat.replies[*place].text.starts_with(wanted))
        };
        let asked = chat.turns.range(..fence).rev().find(|(_, turn)| says(turn, &question));
        let Some((asked_by, asking)) = asked else { return };
        let mut between = chat.turns.range(asked_by + 1..fence).map(|(_, turn)| turn);
        let went_on = between.any(|turn| !turn.handled.is_empty() || says(turn, "S "));
        let to = turn.over.map_or(turn.granted, |(at, _)| at);
        // A question that was asked by another message than the one before it or the one that
        // begins it was asked once more, and that message has answered it.
        let expected = |text: &str| match (parts(text), number.parse::<u32>()) {
            (None, Ok(1)) => text == base(flow),
            (Some((of, before)), Ok(number)) => {
                of == flow && before.parse::<u32>() == Ok(number.wrapping_sub(1))
            }
            _ => false,
        };
        let mut woken_by = asking.handled.iter().filter_map(|it| chat.messages.get(it));
        let answers_itself = woken_by.any(|message| !expected(&message.text));
        let dropped = |turn: &Turn| {
            let decision = self.story.lives.get(&turn.life).and_then(|life| life.decision);
            decision == Some(Decision::Drop)
        };
        // A function lives in memory, and its stub is written when it has asked.
        let in_memory = flow == "order" && (!asking.is_clean() || dropped(asking));
        if went_on
            || self.is_doubled(asking.granted, to)
            || answers_itself
            || says(turn, "S ")
            || in_memory
            || self.has_failed(asking.granted, to)
            || self.was_handed_over(asking.granted, to)
            || self.forgot(asking.granted, to)
        {
            return;
        }
        let detail = format!("{answer} answers {question:?}, which was asked under {asked_by}");
        self.accuse(Rule::Vanished, turn.granted, detail);
    }
}

/// The name of a flow without its version.
fn base(flow: &str) -> &str {
    flow.split('.').next().unwrap_or(flow)
}

fn is_of(said: &str, name: &str) -> bool {
    said.split(' ').nth(1).is_some_and(|flow| base(flow) == name)
}

/// The flow and the number of the question that an answer is for.
fn parts(answer: &str) -> Option<(&str, &str)> {
    let mut words = answer.strip_prefix("a-")?.split('-');
    Some((words.next()?, words.next()?))
}
