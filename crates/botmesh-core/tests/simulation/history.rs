//! What happened in a run, and the rules that it must keep at every moment.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::time::Duration;

use botmesh_core::coordination::TurnGuard;
use botmesh_core::id::Revision;
use botmesh_core::{ChatKey, Fence};
use parking_lot::Mutex;
use tokio::time::Instant;

/// Shorter than by default, so that one run sees many of them.
pub const SETTLE: Duration = Duration::from_secs(20);
/// A message may wait for its turn for as long, so what failed before may still show.
const ORDERED: Duration = Duration::from_secs(60);
/// A turn may have a step that was due and one that answers; around them the store is asked, which
/// `settle` does not bound and which takes up to 25 seconds here.
const LONGEST_TURN: Duration = Duration::from_secs(80);

#[derive(Debug)]
pub struct History(Mutex<Inner>);

#[derive(Debug)]
struct Inner {
    begun: Instant,
    lines: Vec<String>,
    violations: Vec<String>,
    turns: HashMap<(usize, ChatKey), (TurnGuard, Instant)>,
    last_fence: HashMap<ChatKey, Fence>,
    rows: HashMap<ChatKey, Row>,
    /// Until when something that was injected may show in any chat, or in one.
    disturbed: Option<Instant>,
    disturbed_chats: HashMap<ChatKey, Instant>,
    /// The latest message of each chat that was handled.
    latest: HashMap<ChatKey, u64>,
    /// The last message of each chat that each life of a replica began to handle.
    handled: HashMap<(usize, u32, ChatKey), u64>,
    asked: HashMap<(ChatKey, String), Instant>,
    connected: Vec<usize>,
    counts: HashMap<&'static str, u64>,
}

/// What the store has of a chat, as far as its answers tell.
#[derive(Debug, Default)]
struct Row {
    fence: Option<Fence>,
    revision: Option<Revision>,
    expires: Option<Instant>,
}

impl History {
    pub fn new() -> Self {
        Self(Mutex::new(Inner {
            begun: Instant::now(),
            lines: Vec::new(),
            violations: Vec::new(),
            turns: HashMap::new(),
            last_fence: HashMap::new(),
            rows: HashMap::new(),
            disturbed: None,
            disturbed_chats: HashMap::new(),
            latest: HashMap::new(),
            handled: HashMap::new(),
            asked: HashMap::new(),
            connected: Vec::new(),
            counts: HashMap::new(),
        }))
    }

    pub fn note(&self, line: impl AsRef<str>) {
        self.0.lock().note(line.as_ref());
    }

    pub fn count(&self, what: &'static str) {
        *self.0.lock().counts.entry(what).or_default() += 1;
    }

    pub fn violation(&self, what: impl AsRef<str>) {
        self.0.lock().violation(what.as_ref());
    }

    pub fn end(self: std::sync::Arc<Self>) -> Outcome {
        let inner = self.0.lock();
        Outcome {
            lines: inner.lines.clone(),
            violations: inner.violations.clone(),
            counts: inner.counts.clone(),
        }
    }

    /// Something was injected that may show for `time` from now.
    pub fn disturb(&self, chat: Option<&ChatKey>, time: Duration) {
        let mut inner = self.0.lock();
        let until = Instant::now() + time;
        let last = match chat {
            None => &mut inner.disturbed,
            Some(chat) => {
                let last = inner.disturbed_chats.entry(chat.clone()).or_insert(until);
                *last = until.max(*last);
                return;
            }
        };
        *last = Some(last.map_or(until, |last| last.max(until)));
    }

    pub fn is_disturbed_since(&self, chat: &ChatKey, since: Instant) -> bool {
        self.0.lock().is_disturbed_since(chat, since)
    }

    /// C2, C3, S1, S4: fences of successive grants increase strictly, and no turn begins before
    /// the one before has ended.
    pub fn granted(&self, replica: usize, guard: TurnGuard) {
        let mut inner = self.0.lock();
        let (chat, fence) = (guard.key().clone(), guard.fence());
        inner.note(&format!("{replica} has the turn of {chat} by {fence}"));
        if inner.last_fence.insert(chat.clone(), fence).is_some_and(|last| last >= fence) {
            inner.violation(&format!("the grant of {chat} by {fence} does not increase its fence"));
        }
        let live = |of: &ChatKey, guard: &TurnGuard| *of == chat && guard.check().is_ok();
        if inner.turns.iter().any(|((_, of), (guard, _))| live(of, guard)) {
            inner.violation(&format!("{replica} gets the turn of {chat} before another has ended"));
        }
        inner.turns.insert((replica, chat), (guard, Instant::now()));
    }

    /// A replica has died: its turns cannot act any more.
    pub fn died(&self, replica: usize) {
        self.0.lock().turns.retain(|(of, _), _| *of != replica);
    }

    /// D1, D3, D5: whatever acts on a chat does so under its turn, which no other replica has, and
    /// for no longer than `settle` allows.
    pub fn acts(&self, replica: usize, chat: &ChatKey, what: &str, fence: Option<Fence>) {
        let mut inner = self.0.lock();
        inner.note(&format!("{replica} {chat} {what}"));
        let live =
            inner.turns.iter().filter(|((_, of), (guard, _))| of == chat && guard.check().is_ok());
        let live: Vec<_> =
            live.map(|((of, _), (guard, since))| (*of, guard.fence(), since.elapsed())).collect();
        let own = live.iter().find(|(of, ..)| *of == replica);
        match own {
            None => inner.violation(&format!("{replica} acts on {chat} without its turn: {what}")),
            Some((_, by, age)) => {
                if fence.is_some_and(|fence| fence != *by) {
                    inner.violation(&format!("{replica} writes {chat} with another fence: {what}"));
                }
                if *age > LONGEST_TURN {
                    inner.violation(&format!(
                        "{replica} has the turn of {chat} for {age:?}: {what}"
                    ));
                }
            }
        }
        if live.iter().any(|(of, ..)| *of != replica) {
            inner
                .violation(&format!("{replica} acts on {chat} while another has its turn: {what}"));
        }
    }

    /// A2, C3, S13: the messages that one replica takes of a chat are handled in their order,
    /// and where nothing failed also those at different replicas.
    pub fn handles(&self, replica: usize, life: u32, chat: &ChatKey, number: u64) {
        self.acts(replica, chat, &format!("handles message {number}"), None);
        let mut inner = self.0.lock();
        let now = Instant::now();
        let latest = inner.latest.entry(chat.clone()).or_insert(number);
        let before = *latest;
        *latest = number.max(before);
        if before > number && !inner.is_disturbed_since(chat, now - ORDERED) {
            inner.violation(&format!("message {number} of {chat} is handled after {before}"));
        }
        let last = inner.handled.insert((replica, life, chat.clone()), number);
        if last.is_some_and(|last| last >= number) {
            inner
                .violation(&format!("{replica} handles message {number} of {chat} after {last:?}"));
        }
    }

    /// D2: a question is not asked again where nothing failed.
    pub fn asked(&self, chat: &ChatKey, question: &str) {
        let mut inner = self.0.lock();
        let now = Instant::now();
        let last = inner.asked.insert((chat.clone(), question.to_owned()), now);
        let Some(last) = last else { return };
        let since = last.checked_sub(Duration::from_secs(60)).unwrap_or(last);
        if !inner.is_disturbed_since(chat, since) {
            inner.violation(&format!("{chat} was asked {question:?} again"));
        }
    }

    /// Another conversation begins.
    pub fn begins(&self, chat: &ChatKey) {
        self.0.lock().asked.retain(|(of, _), _| of != chat);
    }

    /// S2, S3: no lower fence is accepted after a higher one, and revisions form a chain.
    pub fn written(
        &self,
        chat: &ChatKey,
        fence: Fence,
        expected: Option<Revision>,
        now: Option<Revision>,
        expires_in: Option<Duration>,
    ) {
        let mut inner = self.0.lock();
        // Revisions are others each time.
        let what = if now.is_some() { "written" } else { "cleared" };
        inner.note(&format!("store {chat} is {what} by {fence}"));
        let row = inner.rows.entry(chat.clone()).or_default();
        let mut wrong = None;
        if row.fence.is_some_and(|seen| seen > fence) {
            wrong =
                Some(format!("the store took a write of {chat} by {fence} after {:?}", row.fence));
        }
        let gone = row.expires.is_some_and(|expires| expires <= Instant::now());
        let before = row.revision.filter(|_| !gone);
        if before != expected {
            wrong = Some(format!("a write of {chat} replaced {before:?}, not {expected:?}"));
        }
        row.fence = row.fence.max(Some(fence));
        row.revision = now;
        row.expires = expires_in.map(|time| Instant::now() + time);
        if let Some(wrong) = wrong {
            inner.violation(&wrong);
        }
    }

    /// D7, S9: a write is refused only to whoever was overtaken, which a fault must have caused.
    pub fn refused(&self, chat: &ChatKey, fence: Fence) {
        self.count("refused writes");
        let mut inner = self.0.lock();
        inner.note(&format!("store {chat} refuses a write by {fence}"));
        let now = Instant::now();
        let row = inner.rows.get(chat).and_then(|row| row.expires);
        let has_expired = row.is_some_and(|expires| expires <= now);
        if !has_expired && !inner.is_disturbed_since(chat, now - ORDERED) {
            inner.violation(&format!("a write of {chat} by {fence} is refused without a fault"));
        }
    }

    pub fn adopted(&self, chat: &ChatKey, fence: Fence) {
        let mut inner = self.0.lock();
        let row = inner.rows.entry(chat.clone()).or_default();
        row.fence = row.fence.max(Some(fence));
    }

    /// E1, S10: an exclusive platform is connected once at most.
    pub fn connects(&self, replica: usize, exclusive: bool) {
        let mut inner = self.0.lock();
        inner.note(&format!("{replica} connects"));
        if exclusive && !inner.connected.is_empty() {
            let others = inner.connected.clone();
            inner.violation(&format!("{replica} connects while {others:?} are connected"));
        }
        inner.connected.push(replica);
    }

    pub fn disconnects(&self, replica: usize) {
        let mut inner = self.0.lock();
        inner.note(&format!("{replica} disconnects"));
        inner.connected.retain(|of| *of != replica);
    }
}

impl Inner {
    fn note(&mut self, line: &str) {
        let at = self.begun.elapsed();
        self.lines.push(format!("{:>9.3} {line}", at.as_secs_f64()));
    }

    fn violation(&mut self, what: &str) {
        self.note(&format!("VIOLATION: {what}"));
        self.violations.push(what.to_owned());
    }

    fn is_disturbed_since(&self, chat: &ChatKey, since: Instant) -> bool {
        let shows = |until: Option<&Instant>| until.is_some_and(|until| *until >= since);
        shows(self.disturbed.as_ref()) || shows(self.disturbed_chats.get(chat))
    }
}

/// What one run came to.
#[derive(Debug)]
pub struct Outcome {
    pub lines: Vec<String>,
    pub violations: Vec<String>,
    pub counts: HashMap<&'static str, u64>,
}

impl Outcome {
    /// The violations, and what happened before the first of them.
    pub fn report(&self, seed: u64) -> String {
        let mut text = format!("BOTMESH_SEED={seed} repeats this run\n");
        for violation in self.violations.iter().take(5) {
            let _ = writeln!(text, "violated: {violation}");
        }
        let first = self.lines.iter().position(|line| line.contains("VIOLATION"));
        let end = first.map_or(self.lines.len(), |first| (first + 5).min(self.lines.len()));
        for line in &self.lines[end.saturating_sub(70)..end] {
            let _ = writeln!(text, "  {line}");
        }
        text
    }
}
