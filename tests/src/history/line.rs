use std::fmt::Write as _;

use anyhow::{Context as _, Result, bail};

use super::{Entry, Event};

/// An entry as a line, with its end. Names of incarnations come last and may have spaces.
#[must_use]
pub fn write(entry: &Entry) -> String {
    let mut line = format!("{} ", entry.at);
    // Writing to a string never fails.
    let _ = match &entry.event {
        Event::Started { replica, lease } => writeln!(line, "started {lease} {replica}"),
        Event::Reserve { call, key } => writeln!(line, "reserve {call} {key}"),
        Event::Reserved { call, sequence, incarnation } => {
            writeln!(line, "reserved {call} {sequence} {incarnation}")
        }
        Event::Failed { call, reason } => writeln!(line, "failed {call} {reason}"),
        Event::Wait { call } => writeln!(line, "wait {call}"),
        Event::Granted { call, fence, held, previous } => {
            let (before, incarnation) = match previous {
                Some((fence, incarnation)) => (*fence, incarnation.as_str()),
                None => (0, "-"),
            };
            writeln!(line, "granted {call} {fence} {held} {before} {incarnation}")
        }
        Event::Effect { call, remaining } => writeln!(line, "effect {call} {remaining}"),
        Event::Lost { call } => writeln!(line, "lost {call}"),
        Event::Release { call, checked } => writeln!(line, "release {call} {checked}"),
        Event::Released { call } => writeln!(line, "released {call}"),
        Event::GaveUp { call, alive, timed_out } => {
            writeln!(line, "gave-up {call} {alive} {timed_out}")
        }
        Event::Stalled { length } => writeln!(line, "stalled {length}"),
        Event::Finished => writeln!(line, "finished"),
        Event::Killed { history } => writeln!(line, "killed {history}"),
        Event::Fault { number, kind, forgets } => {
            writeln!(line, "fault {number} {forgets} {kind}")
        }
        Event::Healed { number } => writeln!(line, "healed {number}"),
    };
    line
}

/// Reads a history. A last line without its end was cut by a kill and does not count.
///
/// # Errors
/// When a line is none of a history.
pub fn read(text: &str) -> Result<Vec<Entry>> {
    let complete = text.rfind('\n').map_or("", |end| &text[..end]);
    let lines = complete.lines().enumerate();
    lines
        .map(|(index, line)| read_line(line).with_context(|| format!("line {}: {line}", index + 1)))
        .collect()
}

fn read_line(line: &str) -> Result<Entry> {
    let mut words = Words(line);
    let at = words.number()?;
    let event = match words.word()? {
        "started" => Event::Started { lease: words.number()?, replica: words.rest() },
        "reserve" => Event::Reserve { call: words.number()?, key: words.rest() },
        "reserved" => {
            let (call, sequence) = (words.number()?, words.number()?);
            Event::Reserved { call, sequence, incarnation: words.rest() }
        }
        "failed" => Event::Failed { call: words.number()?, reason: words.rest() },
        "wait" => Event::Wait { call: words.number()? },
        "granted" => {
            let (call, fence) = (words.number()?, words.number()?);
            let (held, before) = (words.truth()?, words.number()?);
            let previous = (before > 0).then(|| (before, words.rest()));
            Event::Granted { call, fence, held, previous }
        }
        "effect" => Event::Effect { call: words.number()?, remaining: words.number()? },
        "lost" => Event::Lost { call: words.number()? },
        "release" => Event::Release { call: words.number()?, checked: words.number()? },
        "released" => Event::Released { call: words.number()? },
        "gave-up" => {
            let (call, alive, timed_out) = (words.number()?, words.truth()?, words.truth()?);
            Event::GaveUp { call, alive, timed_out }
        }
        "stalled" => Event::Stalled { length: words.number()? },
        "finished" => Event::Finished,
        "killed" => Event::Killed { history: words.number()? },
        "fault" => {
            let (number, forgets) = (words.number()?, words.truth()?);
            Event::Fault { number, forgets, kind: words.rest() }
        }
        "healed" => Event::Healed { number: words.number()? },
        other => bail!("{other} is no event"),
    };
    Ok(Entry { at, event })
}

struct Words<'a>(&'a str);

impl<'a> Words<'a> {
    fn word(&mut self) -> Result<&'a str> {
        let (word, rest) = self.0.split_once(' ').unwrap_or((self.0, ""));
        self.0 = rest;
        if word.is_empty() {
            bail!("a word is missing");
        }
        Ok(word)
    }

    fn number(&mut self) -> Result<u64> {
        let word = self.word()?;
        word.parse().with_context(|| format!("{word} is no number"))
    }

    fn truth(&mut self) -> Result<bool> {
        let word = self.word()?;
        word.parse().with_context(|| format!("{word} is neither true nor false"))
    }

    fn rest(&mut self) -> String {
        std::mem::take(&mut self.0).to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_is_read_as_it_was_written() {
        let (call, fence, number) = (7, 1 << 60, 3);
        let name = || "a replica#1f".to_owned();
        let events = [
            Event::Started { replica: name(), lease: 1000 },
            Event::Reserve { call, key: "k1".into() },
            Event::Reserved { call, sequence: 9, incarnation: name() },
            Event::Failed { call, reason: "full".into() },
            Event::Wait { call },
            Event::Granted { call, fence, held: true, previous: Some((12, name())) },
            Event::Granted { call, fence, held: false, previous: None },
            Event::Effect { call, remaining: 5 },
            Event::Lost { call },
            Event::Release { call, checked: 4 },
            Event::Released { call },
            Event::GaveUp { call, alive: true, timed_out: false },
            Event::Stalled { length: 6 },
            Event::Finished,
            Event::Killed { history: 2 },
            Event::Fault { number, kind: "restart with data".into(), forgets: true },
            Event::Healed { number },
        ];
        let entries = (1..).zip(events).map(|(at, event)| Entry { at, event }).collect::<Vec<_>>();
        let text: String = entries.iter().map(write).collect();
        assert_eq!(read(&text).unwrap(), entries);
    }

    #[test]
    fn a_line_that_was_cut_does_not_count_and_a_strange_one_is_an_error() {
        assert_eq!(read("1 wait 2\n3 granted 2 5").unwrap().len(), 1);
        assert_eq!(read("").unwrap(), []);
        for line in ["1 slept 2\n", "wait 2\n", "1 wait\n", "1 granted 2 3 maybe 4 -\n"] {
            assert!(read(line).is_err(), "{line}");
        }
    }
}
