//! Whole bots as real processes over a real server, for a minute, and without faults.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::time::Duration;

use botmesh_test_support::absent;
use botmesh_tests::bots::checker::Rule;
use botmesh_tests::bots::replica::Mutant;
use botmesh_tests::bots::{Bots, Outcome};
use botmesh_tests::driver;
use botmesh_tests::servers;

fn bots(seed: u64, seconds: u64) -> Option<Bots> {
    if !servers::is_installed() {
        absent::skip("redis-server is absent");
        return None;
    }
    let program = Path::new(env!("CARGO_BIN_EXE_replica")).to_owned();
    Some(Bots::new(program, seed, Duration::from_secs(seconds)))
}

/// C6, D2, D5, D6, E1, F1, F2, F4, F6, F9: replicas of a bot that are killed, frozen, cut off,
/// restarted in order and replaced by another version break no promise.
#[test]
fn a_minute_of_faults_and_deployments_breaks_no_promise() {
    let Some(bots) = bots(1, 40) else { return };
    let Outcome { report, directory } = driver::wait(bots.run()).unwrap();
    println!("{report}");
    assert!(report.violations.is_empty(), "the notes are in {}\n{report}", directory.display());
    // Less than this would prove nothing.
    assert!(report.turns > 1_000 && report.conversations > 100, "{report}");
    assert!(report.fault_count() >= 12 && report.faults.contains_key("deployment"), "{report}");
    for outcome in ["resumed", "Notified", "Restarted", "Handled", "Dropped"] {
        assert!(report.handovers.contains_key(outcome), "{outcome} never happened\n{report}");
    }
}

/// D6: a persistent flow of three questions whose messages go to two replicas in turns, for more
/// than fifty steps: no question is repeated, and no answer is stale.
#[test]
fn a_persistent_flow_alternates_between_two_processes() {
    let Some(mut bots) = bots(1, 0) else { return };
    bots.replicas = 2;
    // One message is odd, four belong to a conversation: each step is now here, now there.
    let Outcome { report, directory } = driver::wait(bots.alternate("three", 17)).unwrap();
    assert!(report.violations.is_empty(), "the notes are in {}\n{report}", directory.display());
    assert_eq!((report.messages, report.replies, report.conversations), (68, 68, 17), "{report}");
    assert_eq!(report.handovers.get("resumed"), Some(&51), "{report}");
    assert_eq!((report.asked_again, report.asked_once_more, report.redelivered), (0, 0, 0));
}

fn expose(mutant: Mutant, rules: &[Rule]) {
    let mut found = Vec::new();
    for seed in 1..=3 {
        let Some(mut bots) = bots(seed, 5) else { return };
        (bots.replicas, bots.broken) = (3, Some(mutant));
        let Outcome { report, directory } = driver::wait(bots.run()).unwrap();
        if directory.exists() {
            std::fs::remove_dir_all(directory).unwrap();
        }
        found.extend(report.violations.iter().map(|violation| violation.rule));
        if found.iter().any(|rule| rules.contains(rule)) {
            return;
        }
    }
    panic!("{mutant:?} was not found as one of {rules:?}, only {found:?}");
}

/// D5: replicas that keep what they remember of a chat, whoever had it meanwhile, are found.
#[test]
fn replicas_that_keep_stale_copies_are_found() {
    expose(Mutant::KeepsStaleCopies, &[Rule::SaidTwice, Rule::Crossed, Rule::Vanished]);
}

/// D5: replicas whose timers act without a turn are found.
#[test]
fn replicas_whose_timers_need_no_turn_are_found() {
    expose(Mutant::WakesWithoutTurn, &[Rule::WithoutTurn, Rule::StaleReply]);
}
