//! A story without fault is innocent, and each way of misbehaving is found.

use super::*;
use crate::bots::notes::{Decision, Entry, Event, Life};
use crate::bots::story::assemble;

const MILLISECOND: Nanos = 1_000_000;

/// Notes that are written by hand.
struct Notes {
    now: Nanos,
    message: u64,
    fence: u64,
    platform: Vec<Entry>,
    lives: Vec<(Life, Vec<Entry>)>,
}

const CHAT: &str = "shared:u1";

impl Notes {
    fn new() -> Self {
        let started =
            |decision| vec![Entry { at: 1, event: Event::Started { version: 1, decision } }];
        let lives = vec![(1, started(Decision::Notify)), (2, started(Decision::Restart))];
        Self { now: 20_000 * MILLISECOND, message: 0, fence: 0, platform: Vec::new(), lives }
    }

    fn passes(&mut self, milliseconds: u64) -> Nanos {
        self.now += milliseconds * MILLISECOND;
        self.now
    }

    fn platform(&mut self, event: Event) {
        let at = self.passes(1);
        self.platform.push(Entry { at, event });
    }

    fn replica(&mut self, life: Life, event: Event) {
        let at = self.passes(1);
        self.lives[usize::try_from(life).unwrap() - 1].1.push(Entry { at, event });
    }

    fn says(&mut self, text: &str) -> u64 {
        self.message += 1;
        let (message, text) = (self.message, text.to_owned());
        self.passes(20);
        self.platform(Event::Said { chat: CHAT.into(), message, text, again: false });
        message
    }

    fn accepts(&mut self, life: Life, message: u64) {
        self.platform(Event::Delivered { message, life });
        self.platform(Event::Accepted { message, life });
    }

    fn is_granted(&mut self, life: Life) -> u64 {
        self.fence += 10;
        let fence = self.fence;
        self.replica(life, Event::Granted { chat: CHAT.into(), fence });
        fence
    }

    fn handles(&mut self, life: Life, message: u64, fence: u64) {
        self.replica(life, Event::Handled { chat: CHAT.into(), message, fence });
    }

    fn replies(&mut self, life: Life, fence: u64, text: &str) {
        let (checked, text) = (self.passes(1), text.to_owned());
        let (chat, fence) = (CHAT.into(), Some(fence));
        self.platform(Event::Replied { chat, text, life, fence, checked, allowed: true });
    }

    fn is_over(&mut self, life: Life, fence: u64, clean: bool) {
        self.replica(life, Event::Over { chat: CHAT.into(), fence, clean });
    }

    /// A message and what is said to it, in a turn of its own.
    fn turn(&mut self, life: Life, text: &str, replies: &[&str]) -> u64 {
        let message = self.says(text);
        self.accepts(life, message);
        let fence = self.is_granted(life);
        self.handles(life, message, fence);
        for reply in replies {
            self.replies(life, fence, reply);
        }
        self.is_over(life, fence, true);
        fence
    }

    fn report(self) -> Report {
        check(&assemble(&self.platform, self.lives))
    }

    fn rules(self) -> Vec<Rule> {
        self.report().violations.into_iter().map(|violation| violation.rule).collect()
    }
}

fn signup(notes: &mut Notes) {
    notes.turn(1, "three", &["Q three 1"]);
    notes.turn(2, "a-three-1-1", &["Q three 2"]);
    notes.turn(1, "a-three-2-2", &["Q three 3"]);
}

#[test]
fn what_should_happen_is_innocent() {
    let mut notes = Notes::new();
    for _ in 0..2 {
        signup(&mut notes);
        notes.turn(2, "a-three-3-3", &["S three a-three-1-1 a-three-2-2 a-three-3-3"]);
        notes.turn(2, "burst-1", &["new burst-1"]);
    }
    notes.turn(1, "count", &["count 1"]);
    notes.turn(2, "count", &["count 2"]);
    let report = notes.report();
    assert!(report.violations.is_empty(), "{report}");
    assert_eq!((report.turns, report.conversations), (12, 2));
}

#[test]
fn a_fence_that_is_granted_twice_is_found() {
    let mut notes = Notes::new();
    notes.turn(1, "count", &["count 1"]);
    notes.fence -= 10;
    notes.turn(2, "burst-1", &["new burst-1"]);
    assert!(notes.rules().contains(&Rule::GrantedTwice));
}

#[test]
fn a_reply_without_a_turn_is_found() {
    let mut notes = Notes::new();
    let (chat, text, checked) = (CHAT.to_owned(), "S late".to_owned(), notes.passes(1));
    let (life, fence, allowed) = (1, None, false);
    notes.platform(Event::Replied { chat, text, life, fence, checked, allowed });
    assert_eq!(notes.rules(), [Rule::WithoutTurn]);
}

#[test]
fn a_stale_reply_is_found_and_a_late_one_is_counted() {
    let stale = |left_before: bool| {
        let mut notes = Notes::new();
        let fence = notes.turn(1, "burst-1", &["new burst-1"]);
        let checked = notes.passes(1);
        notes.turn(2, "burst-2", &["new burst-2"]);
        let checked = if left_before { checked } else { notes.passes(1) };
        let (chat, text, life) = (CHAT.to_owned(), "new burst-1".to_owned(), 1);
        let (fence, allowed) = (Some(fence), true);
        notes.platform(Event::Replied { chat, text, life, fence, checked, allowed });
        notes.report()
    };
    assert_eq!(stale(false).violations[0].rule, Rule::StaleReply);
    assert!(stale(true).violations.is_empty());
    assert_eq!(stale(true).late, 1);
}

#[test]
fn a_lost_message_is_found_unless_its_replica_died() {
    let lost = |killed: bool| {
        let mut notes = Notes::new();
        let message = notes.says("count");
        notes.accepts(1, message);
        if killed {
            notes.platform(Event::Killed { life: 1 });
        }
        notes.rules()
    };
    assert_eq!(lost(false), [Rule::Lost]);
    assert_eq!(lost(true), []);
}

#[test]
fn a_message_that_is_handled_twice_is_found() {
    let mut notes = Notes::new();
    notes.turn(1, "burst-1", &["new burst-1"]);
    let fence = notes.is_granted(1);
    notes.handles(1, 1, fence);
    notes.is_over(1, fence, true);
    assert_eq!(notes.rules(), [Rule::HandledTwice]);
}

#[test]
fn messages_in_the_wrong_order_are_found() {
    let order = |lives: [Life; 2], pause: u64| {
        let mut notes = Notes::new();
        let first = notes.says("burst-1");
        notes.accepts(lives[0], first);
        notes.passes(pause);
        let second = notes.says("burst-2");
        notes.accepts(lives[1], second);
        for (life, message) in [(lives[1], second), (lives[0], first)] {
            let fence = notes.is_granted(life);
            notes.handles(life, message, fence);
            notes.is_over(life, fence, true);
        }
        notes.rules()
    };
    assert!(order([1, 1], 0).contains(&Rule::OutOfOrder));
    assert_eq!(order([1, 2], 500), [Rule::Overtaken]);
    assert_eq!(order([1, 2], 0), []);
}

#[test]
fn a_question_that_is_asked_twice_is_found_unless_its_turn_was_cut() {
    let twice = |clean: bool| {
        let mut notes = Notes::new();
        signup(&mut notes);
        let message = notes.says("a-three-3-3");
        notes.accepts(2, message);
        let last = notes.fence;
        if !clean {
            let over = notes.lives[0].1.last_mut().unwrap();
            over.event = Event::Over { chat: CHAT.into(), fence: last, clean };
        }
        let fence = notes.is_granted(2);
        notes.handles(2, message, fence);
        notes.replies(2, fence, "Q three 3");
        notes.is_over(2, fence, true);
        notes.report()
    };
    assert_eq!(twice(true).violations[0].rule, Rule::SaidTwice);
    assert!(twice(false).violations.is_empty());
    assert_eq!(twice(false).asked_once_more, 1);
}

#[test]
fn a_last_word_that_is_said_twice_is_found() {
    let mut notes = Notes::new();
    notes.turn(1, "late", &["Q late 1"]);
    for life in [1, 2] {
        let fence = notes.is_granted(life);
        notes.replies(life, fence, "S late");
        notes.is_over(life, fence, true);
    }
    assert_eq!(notes.rules(), [Rule::SaidTwice]);
}

#[test]
fn crossed_answers_are_found_unless_a_message_came_twice() {
    let crossed = |twice: bool| {
        let mut notes = Notes::new();
        signup(&mut notes);
        if twice {
            let fence = notes.is_granted(1);
            notes.handles(1, 2, fence);
            notes.is_over(1, fence, true);
        }
        notes.turn(2, "a-three-3-3", &["S three a-three-1-1 a-three-1-1 a-three-3-3"]);
        notes.rules()
    };
    assert_eq!(crossed(false), [Rule::Crossed]);
    assert_eq!(crossed(true), []);
}

#[test]
fn a_conversation_that_is_gone_is_found_unless_its_outcome_was_told() {
    let gone = |told: bool| {
        let mut notes = Notes::new();
        signup(&mut notes);
        if told {
            let (chat, name, outcome) = (CHAT.into(), "three".into(), "Dropped".into());
            notes.replica(2, Event::Handover { chat, name, outcome });
        }
        notes.turn(2, "a-three-3-3", &["new a-three-3-3"]);
        notes.rules()
    };
    assert_eq!(gone(false), [Rule::Vanished]);
    assert_eq!(gone(true), []);
}

#[test]
fn a_run_that_goes_on_in_another_version_is_found() {
    let mut notes = Notes::new();
    notes.turn(1, "changing", &["Q changing.v1 1"]);
    notes.turn(2, "a-changing.v1-1-1", &["Q changing.v2 2"]);
    assert_eq!(notes.rules(), [Rule::ResumedChanged]);
    let mut notes = Notes::new();
    notes.turn(1, "changing", &["Q changing.v1 1"]);
    notes.turn(1, "a-changing.v1-1-1", &["Q changing.v1 2"]);
    let last = "S changing.v1 a-changing.v1-1-1 a-changing.v1-2-2 from another version";
    notes.turn(2, "a-changing.v1-2-2", &[last]);
    assert_eq!(notes.rules(), [Rule::ResumedChanged]);
}

#[test]
fn stored_data_that_went_back_is_found() {
    let mut notes = Notes::new();
    notes.turn(1, "count", &["count 2"]);
    notes.turn(2, "count", &["count 2"]);
    assert_eq!(notes.rules(), [Rule::Forgotten]);
}

#[test]
fn silence_is_found_unless_something_failed() {
    let silence = |faulty: bool| {
        let mut notes = Notes::new();
        let since = notes.now;
        notes.turn(1, "order", &[]);
        notes.platform(Event::Fault { number: 1, kind: "x".into(), forgets: false, life: None });
        if !faulty {
            notes.platform.pop();
        }
        notes.passes(6_000);
        notes.platform(Event::Silence { chat: CHAT.into(), since });
        notes.platform(Event::Dead { chat: CHAT.into() });
        notes.rules()
    };
    assert_eq!(silence(false), [Rule::Silent, Rule::Dead]);
    assert_eq!(silence(true), [Rule::Dead]);
}

#[test]
fn a_process_that_does_not_stop_is_found() {
    let mut notes = Notes::new();
    notes.platform(Event::NeverStopped { life: 1 });
    assert_eq!(notes.rules(), [Rule::NeverStopped]);
}

#[test]
fn two_exclusive_connections_at_work_are_found() {
    let both = |acts: bool| {
        let mut notes = Notes::new();
        notes.platform(Event::Connected { life: 1 });
        notes.platform(Event::Connected { life: 2 });
        let (chat, message) = ("exclusive:u1".to_owned(), 7);
        let text = "burst-1".to_owned();
        notes.platform(Event::Said { chat, message, text, again: false });
        let life = if acts { 1 } else { 2 };
        notes.accepts(life, message);
        notes.platform(Event::Killed { life });
        notes.rules()
    };
    assert_eq!(both(true), [Rule::TwoConnected]);
    assert_eq!(both(false), []);
}
