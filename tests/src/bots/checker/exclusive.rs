//! The connection that one replica at a time may have.

use super::super::EXCLUSIVE;
use super::super::story::{Connection, Story};
use super::{Report, Rule, Violation};
use crate::history::Nanos;

/// How long a process that was frozen may act before it has noticed.
const WAKING: Nanos = 300_000_000;

pub(super) fn check(story: &Story, report: &mut Report) {
    for connection in &story.connections {
        let mut later = story.connections.iter().filter(|it| it.begin > connection.begin);
        let Some(next) = later.find(|it| it.begin < connection.end) else { continue };
        report.connected_beside += 1;
        let mut acts = acts(story, connection, next.begin);
        if let Some((at, what)) = acts.find(|(at, _)| !was_frozen(story, connection, *at)) {
            let detail = format!("{what}, though {} is connected since {}", next.life, next.begin);
            let place = format!("process {}", connection.life);
            report.violations.push(Violation { rule: Rule::TwoConnected, place, at, detail });
        }
    }
}

/// What a process did over the connection after a moment.
fn acts<'a>(
    story: &'a Story,
    connection: &'a Connection,
    since: Nanos,
) -> impl Iterator<Item = (Nanos, String)> + 'a {
    let ours = |(key, _): &(&String, _)| key.starts_with(EXCLUSIVE);
    let during = move |at: Nanos| at > since && at < connection.end;
    story.chats.iter().filter(ours).flat_map(move |(_, chat)| {
        let accepted = chat.messages.iter().flat_map(move |(number, message)| {
            let by = message.accepted.iter().filter(move |(_, life)| *life == connection.life);
            by.map(move |(at, _)| (*at, format!("it accepted message {number}")))
        });
        let replies = chat.replies.iter().filter(move |it| it.life == connection.life);
        let replied = replies.map(|it| (it.checked, format!("it said {:?}", it.text)));
        accepted.chain(replied).filter(move |(at, _)| during(*at))
    })
}

/// Whether a process had just not run, so that it could not know.
fn was_frozen(story: &Story, connection: &Connection, at: Nanos) -> bool {
    let freezes = story.faults.iter().filter(|it| it.life == Some(connection.life));
    let froze = freezes.map(|it| (it.begin, it.end));
    let stalls = story.lives.get(&connection.life).into_iter().flat_map(|it| it.stalls.clone());
    froze.chain(stalls).any(|(begin, end)| begin <= at && end.saturating_add(WAKING) >= at)
}
