//! Real processes over a real server, for a minute.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::time::Duration;

use botmesh_test_support::absent;
use botmesh_tests::chaos::{Chaos, Outcome};
use botmesh_tests::checker::Rule;
use botmesh_tests::driver;
use botmesh_tests::nemesis::Kind;
use botmesh_tests::servers::Layout;
use botmesh_tests::worker::Habit;

fn run(seed: u64, seconds: u64, change: impl FnOnce(&mut Chaos)) -> Option<Outcome> {
    let program = Path::new(env!("CARGO_BIN_EXE_worker")).to_owned();
    let mut chaos = Chaos::new(program, seed, Duration::from_secs(seconds));
    change(&mut chaos);
    if !chaos.layout.is_installed() {
        absent::skip(&format!("the server of {} is absent", chaos.layout.backend()));
        return None;
    }
    Some(driver::wait(chaos.run()).unwrap())
}

/// C3, C4, C6, C7, C8, C9, C10, C14: processes that are killed, frozen and cut off, over a server
/// that is frozen, restarted and wiped, break no promise.
#[test]
fn a_minute_of_faults_breaks_no_promise() {
    let Some(Outcome { report, directory }) = run(1, 60, |_| {}) else { return };
    println!("{report}");
    assert!(report.violations.is_empty(), "the histories are in {}\n{report}", directory.display());
    // Less than this would prove nothing.
    assert!(report.turns > 1_000 && report.fault_count() >= 10, "{report}");
    assert!(report.faults.contains_key(Kind::KillWorker.name()), "{report}");
}

/// C12: nor do they on a cluster and under Sentinel, where masters die and others take their place.
#[test]
fn faults_of_many_servers_break_no_promise() {
    for layout in [Layout::Cluster, Layout::Sentinel] {
        let Some(Outcome { report, directory }) = run(2, 25, |chaos| chaos.layout = layout) else {
            return;
        };
        println!("{report}");
        let place = directory.display();
        assert!(report.violations.is_empty(), "{layout:?}: the histories are in {place}\n{report}");
        assert!(report.turns > 500 && report.fault_count() >= 3, "{layout:?}: {report}");
    }
}

/// C16: nor do they over PostgreSQL, which is stopped and killed.
#[test]
fn a_minute_of_faults_breaks_no_promise_on_postgres() {
    let postgres = |chaos: &mut Chaos| chaos.layout = Layout::Postgres;
    let Some(Outcome { report, directory }) = run(1, 60, postgres) else { return };
    println!("{report}");
    assert!(report.violations.is_empty(), "the histories are in {}\n{report}", directory.display());
    assert!(report.turns > 500 && report.fault_count() >= 10, "{report}");
}

/// C16: nor do they over MariaDB, which is stopped, killed and made to forget.
#[test]
fn faults_break_no_promise_on_mysql() {
    let mysql = |chaos: &mut Chaos| chaos.layout = Layout::Mysql;
    let Some(Outcome { report, directory }) = run(1, 35, mysql) else { return };
    println!("{report}");
    assert!(report.violations.is_empty(), "the histories are in {}\n{report}", directory.display());
    assert!(report.turns > 300 && report.fault_count() >= 6, "{report}");
}

/// C6: a worker that goes on after its guard refused is seen to do so by the checker, so that its
/// silence means something.
#[test]
fn workers_that_ignore_their_guards_are_caught() {
    let ignorant = |chaos: &mut Chaos| {
        (chaos.replicas, chaos.habit) = (3, Habit::IgnoresGuard);
    };
    let mut found = Vec::new();
    for seed in 1..=3 {
        let Some(Outcome { report, directory }) = run(seed, 15, ignorant) else { return };
        if directory.exists() {
            std::fs::remove_dir_all(directory).unwrap();
        }
        found.extend(report.violations.iter().map(|violation| violation.rule));
        if found.iter().any(|rule| matches!(rule, Rule::Overlap | Rule::ActedWhenDead)) {
            return;
        }
    }
    panic!("nobody was caught, only {found:?}");
}
