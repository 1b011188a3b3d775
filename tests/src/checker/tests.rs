use super::*;
use crate::history::{Entry, Event};
use crate::timeline::assemble;

const MS: Nanos = 1_000_000;
const SECOND: Duration = Duration::from_secs(1);

/// The histories of two workers and of the driver, written in milliseconds.
#[derive(Default)]
struct Story {
    driver: Vec<Entry>,
    workers: [Vec<Entry>; 2],
}

impl Story {
    fn new() -> Self {
        let mut story = Self::default();
        for who in 0..2 {
            story.says(who, 0, Event::Started { replica: format!("w{who}"), lease: 1000 });
        }
        story
    }

    fn says(&mut self, who: usize, at: u64, event: Event) {
        self.workers[who].push(Entry { at: at * MS, event });
    }

    fn driver(&mut self, at: u64, event: Event) {
        self.driver.push(Entry { at: at * MS, event });
    }

    fn reserve(&mut self, who: usize, call: u64, sent: u64, reserved: u64) {
        self.says(who, sent, Event::Reserve { call, key: "k".into() });
        let incarnation = format!("w{who}#1");
        self.says(who, reserved, Event::Reserved { call, sequence: call, incarnation });
        self.says(who, reserved, Event::Wait { call });
    }

    fn grant(&mut self, who: usize, call: u64, at: u64, fence: u64, before: Option<(u64, usize)>) {
        let previous = before.map(|(fence, who)| (fence, format!("w{who}#1")));
        self.says(who, at, Event::Granted { call, fence, held: true, previous });
    }

    fn effect(&mut self, who: usize, call: u64, at: u64) {
        self.says(who, at, Event::Effect { call, remaining: 700 * MS });
    }

    fn release(&mut self, who: usize, call: u64, at: u64) {
        self.says(who, at, Event::Release { call, checked: at * MS });
        self.says(who, at + 1, Event::Released { call });
    }

    fn rules(mut self) -> Vec<Rule> {
        let killed = |who: usize, driver: &[Entry]| {
            driver.iter().any(|entry| entry.event == Event::Killed { history: who as u64 })
        };
        for who in 0..2 {
            if !killed(who, &self.driver) {
                self.says(who, 60_000, Event::Finished);
            }
        }
        let timeline = assemble(&self.driver, &self.workers).unwrap();
        let report = check(&timeline, &Bounds::new(SECOND));
        report.violations.into_iter().map(|violation| violation.rule).collect()
    }
}

/// Two turns, one after the other, the second reserved while the first was held.
fn two_turns() -> Story {
    let mut story = Story::new();
    story.reserve(0, 1, 10, 12);
    story.grant(0, 1, 13, 100, None);
    story.reserve(1, 1, 15, 17);
    story.effect(0, 1, 30);
    story
}

#[test]
fn two_turns_in_order_are_fine() {
    let mut story = two_turns();
    story.release(0, 1, 40);
    story.grant(1, 1, 41, 101, Some((100, 0)));
    story.release(1, 1, 50);
    assert_eq!(story.rules(), []);
}

#[test]
fn an_act_after_the_next_grant_is_an_overlap_and_an_act_of_the_dead() {
    let mut story = two_turns();
    story.grant(1, 1, 41, 101, Some((100, 0)));
    story.effect(0, 1, 42);
    story.release(1, 1, 50);
    story.release(0, 1, 60);
    assert_eq!(story.rules(), [Rule::Overlap, Rule::ActedWhenDead]);
}

#[test]
fn fences_that_repeat_or_fall_are_found() {
    for fence in [100, 99] {
        let mut story = two_turns();
        story.release(0, 1, 40);
        story.grant(1, 1, 41, fence, Some((100, 0)));
        story.release(1, 1, 50);
        let found = story.rules();
        assert!(found.contains(&Rule::FenceNotRaised), "{found:?}");
    }
}

#[test]
fn a_ticket_that_is_granted_twice_is_found() {
    let mut story = two_turns();
    story.release(0, 1, 40);
    story.grant(0, 1, 45, 101, Some((100, 0)));
    story.release(0, 1, 46);
    story.grant(1, 1, 47, 102, Some((101, 0)));
    story.release(1, 1, 50);
    assert!(story.rules().contains(&Rule::GrantedTwice));
}

#[test]
fn who_asks_after_another_was_acknowledged_is_granted_after_it() {
    for (asked, rules) in [(18, vec![Rule::OutOfOrder]), (16, vec![])] {
        let mut story = two_turns();
        story.reserve(0, 2, asked, 20);
        story.release(0, 1, 40);
        story.grant(0, 2, 41, 101, Some((100, 0)));
        story.release(0, 2, 42);
        story.grant(1, 1, 43, 102, Some((101, 0)));
        story.release(1, 1, 50);
        assert_eq!(story.rules(), rules);
    }
}

#[test]
fn a_waiting_ticket_is_not_passed_by_while_its_session_lives() {
    for (alive, forgets, rules) in
        [(true, false, vec![Rule::Overtaken]), (false, false, vec![]), (true, true, vec![])]
    {
        let mut story = two_turns();
        story.reserve(0, 2, 20, 22);
        story.driver(23, Event::Fault { number: 1, kind: "wipe".into(), forgets });
        story.driver(24, Event::Healed { number: 1 });
        story.release(0, 1, 40);
        story.grant(0, 2, 41, 101, Some((100, 0)));
        story.says(1, 60, Event::GaveUp { call: 1, alive, timed_out: false });
        story.release(0, 2, 70);
        assert_eq!(story.rules(), rules);
    }
}

#[test]
fn the_holder_before_is_told_truly() {
    let after = |previous| {
        let mut story = two_turns();
        story.release(0, 1, 40);
        story.grant(1, 1, 41, 105, previous);
        story.release(1, 1, 50);
        story.rules()
    };
    assert_eq!(after(Some((100, 0))), []);
    // Somebody in between may have died before noting it.
    assert_eq!(after(Some((103, 1))), []);
    for wrong in [None, Some((100, 1)), Some((99, 0)), Some((105, 0))] {
        assert_eq!(after(wrong), [Rule::WrongPrevious], "{wrong:?}");
    }
}

#[test]
fn a_killed_holder_keeps_its_key_until_its_lease_ends() {
    for (taken, rules) in [(400, vec![Rule::TakenTooEarly]), (1000, vec![])] {
        let mut story = two_turns();
        story.driver(32, Event::Killed { history: 0 });
        story.grant(1, 1, taken, 101, Some((100, 0)));
        story.release(1, 1, taken + 1);
        assert_eq!(story.rules(), rules);
    }
}

#[test]
fn a_waiter_behind_the_dead_gets_on_after_a_lease() {
    for (taken, stalled, rules) in
        [(1500, 0, vec![]), (1900, 0, vec![Rule::Stuck]), (1900, 600, vec![])]
    {
        let mut story = two_turns();
        story.driver(32, Event::Killed { history: 0 });
        story.driver(900, Event::Stalled { length: stalled * MS });
        story.grant(1, 1, taken, 101, Some((100, 0)));
        story.release(1, 1, taken + 1);
        assert_eq!(story.rules(), rules, "{taken} {stalled}");
    }
}

#[test]
fn a_fault_excuses_a_wait_but_not_for_ever() {
    for (taken, rules) in [(4_000, vec![]), (15_000, vec![Rule::Stuck])] {
        let mut story = two_turns();
        story.release(0, 1, 40);
        story.driver(50, Event::Fault { number: 1, kind: "cut".into(), forgets: false });
        story.driver(taken - 500, Event::Healed { number: 1 });
        story.grant(1, 1, taken, 101, Some((100, 0)));
        story.release(1, 1, taken + 1);
        assert_eq!(story.rules(), rules);
    }
}

#[test]
fn a_wait_that_never_ends_is_found() {
    let mut story = two_turns();
    story.release(0, 1, 40);
    assert!(story.rules().contains(&Rule::NeverEnded));
}
