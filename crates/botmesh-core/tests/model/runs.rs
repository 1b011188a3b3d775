//! The configurations that are explored, and the mistakes that must be found.

use std::collections::BTreeMap;

use botmesh_core::coordination::transition::Mutation;
use stateright::{Checker, HasDiscoveries, Model};

use crate::world::{Budget, ClientMistake, Coordination};

/// How many states are explored, all configurations together.
fn states() -> usize {
    match std::env::var("BOTMESH_MODEL_STATES").map(|states| states.parse()) {
        Ok(Ok(states)) => states,
        Ok(Err(error)) => panic!("BOTMESH_MODEL_STATES: {error}"),
        Err(_) if cfg!(debug_assertions) => 60_000,
        Err(_) => 4_000_000,
    }
}

fn calm() -> Budget {
    Budget::default()
}

fn death() -> Coordination {
    Coordination::new("death", &[&[0], &[0], &[0]], 7, Budget { crashes: 1, ..calm() })
}

fn losses() -> Coordination {
    let budget = Budget { losses: 2, cancels: 1, ..calm() };
    Coordination::new("lost answers and wake-ups", &[&[0, 0], &[0]], 5, budget)
}

fn delays() -> Coordination {
    let budget = Budget { delays: 2, cancels: 1, ..calm() };
    Coordination::new("late requests", &[&[0, 0], &[0]], 5, budget)
}

fn late_heartbeats() -> Coordination {
    let budget = Budget { delays: 1, ..calm() };
    // So long a lease that a confirmation can be late and in time.
    Coordination::new("late heartbeats", &[&[0], &[0]], 6, budget).with_lease(5).contended()
}

fn wipe() -> Coordination {
    Coordination::new("wipe", &[&[0], &[0]], 8, Budget { wipes: 1, losses: 1, ..calm() })
}

fn configurations() -> Vec<Coordination> {
    vec![
        death(),
        losses(),
        delays(),
        late_heartbeats(),
        Coordination::new(
            "three tickets each",
            &[&[0, 0, 0], &[0, 0, 0]],
            4,
            Budget { losses: 1, ..calm() },
        ),
        Coordination::new(
            "two keys",
            &[&[0, 1], &[1, 0]],
            5,
            Budget { crashes: 1, losses: 1, ..calm() },
        ),
        wipe(),
        // Who waits may be dead from the beginning on.
        Coordination { name: "death in line", ..death().contended() },
        jump(),
        Coordination::new("clock of three", &[&[0], &[0], &[0]], 6, Budget { jumps: 1, ..calm() }),
    ]
}

fn jump() -> Coordination {
    let budget = Budget { jumps: 1, crashes: 1, ..calm() };
    Coordination::new("clock", &[&[0], &[0]], 7, budget).contended()
}

struct Explored {
    states: usize,
    complete: bool,
    found: BTreeMap<&'static str, String>,
}

fn explore(model: &Coordination, states: usize) -> Explored {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(2);
    let checker = model.clone().checker().threads(threads).target_state_count(states);
    let checker = checker.finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
    let found = checker.discoveries().into_iter().map(|(name, path)| {
        let last = path.last_state();
        let last = last.violation.or(model.heal(last).err()).unwrap_or(name);
        (name, format!("{last}: {:#?}", path.into_actions()))
    });
    let found = found.collect();
    Explored { states: checker.unique_state_count(), complete: checker.is_done(), found }
}

const RULES: [&str; 3] =
    ["no step breaks a rule", "a key has one holder that may act", "a live waiter is granted"];

/// C3: whatever replicas, network, clock and backend do, a key has one holder, its fences grow
/// (C9), and its queue is granted in order (C4) to whoever lives.
#[test]
fn no_reachable_state_breaks_a_promise() {
    let configurations = configurations();
    let share = states() / configurations.len();
    let mut total = 0;
    let mut seen = Vec::new();
    for model in &configurations {
        let started = std::time::Instant::now();
        let explored = explore(model, share);
        total += explored.states;
        println!(
            "{}: {} states in {:.1?}{}",
            model.name,
            explored.states,
            started.elapsed(),
            if explored.complete { "" } else { ", bounded" }
        );
        for rule in RULES {
            let broken = explored.found.get(rule);
            assert!(broken.is_none(), "{}: {rule}: {}", model.name, broken.unwrap());
        }
        seen.extend(explored.found.into_keys());
    }
    println!("{total} states in all");
    if cfg!(debug_assertions) {
        // So few states that none is deep enough for a lease to run out.
        return;
    }
    assert!(seen.contains(&"a dead holder is replaced"), "no run replaced a dead holder");
    assert!(seen.contains(&"a dead ticket is skipped"), "no run skipped a dead ticket");
}

/// Explores a model with a mistake until something is found, and says what.
fn finds(
    mutation: Option<Mutation>,
    mistake: Option<ClientMistake>,
    mut model: Coordination,
) -> String {
    (model.mutation, model.mistake) = (mutation, mistake);
    let explored = explore(&model, 2_500_000);
    let mut found = RULES.iter().filter_map(|rule| explored.found.get(rule));
    found
        .next()
        .cloned()
        .unwrap_or_else(|| format!("nothing in {} states of {:?}", explored.states, model.name))
}

/// Which symptom of a mistake is met first is a matter of chance.
fn is_any(wanted: &[&str], found: &str) -> bool {
    wanted.iter().any(|wanted| found.starts_with(wanted))
}

/// C3, C4, C9: each rule is needed: without it the model finds a history that breaks a promise.
#[test]
fn every_broken_rule_of_the_function_is_found() {
    let broken: [(Mutation, &[&str], Coordination); 12] = [
        (Mutation::LastInFirstOut, &["a ticket was granted out of order"], death()),
        (
            Mutation::ReleaseForAnybody,
            &["a key was taken from the living", "a ticket waits twice"],
            losses(),
        ),
        (Mutation::GrantToTheDead, &["a ticket of the dead was granted"], death()),
        (Mutation::StopAtTheDead, &["a free key has waiting tickets"], death()),
        (
            Mutation::FenceNotRaised,
            &["a fence did not grow", "the previous fence is not lower"],
            losses(),
        ),
        (Mutation::ReviveTheExpired, &["an expired session was revived"], late_heartbeats()),
        (Mutation::TakeFromTheLiving, &["a key was taken from the living"], losses()),
        (Mutation::RepeatQueuesAgain, &["a ticket waits twice"], losses()),
        // The place of a ticket that was given up is taken by its late reservation, for nobody.
        (
            Mutation::AcceptStale,
            &["a live waiter is not granted", "a ticket was granted twice"],
            delays(),
        ),
        (Mutation::NoGrace, &["a key has one holder"], wipe()),
        (Mutation::TrustTheClock, &["a key has one holder"], jump()),
        (Mutation::BuryUnconfirmed, &["a key has one holder"], jump()),
    ];
    for (mutation, wanted, model) in broken {
        let found = finds(Some(mutation), None, model);
        assert!(is_any(wanted, &found), "{mutation:?}: {found}");
    }
}

/// C6, C14: so are the rules of the client.
#[test]
fn every_mistake_of_a_client_is_found() {
    let mistakes: [(ClientMistake, &[&str], Coordination); 3] = [
        (ClientMistake::DeadlineFromReply, &["a key has one holder"], late_heartbeats()),
        (ClientMistake::NeverPolls, &["a live waiter is not granted"], losses()),
        (
            ClientMistake::RepeatsUnfenced,
            &["a live waiter is not granted", "a ticket was granted twice"],
            delays(),
        ),
    ];
    for (mistake, wanted, model) in mistakes {
        if cfg!(debug_assertions) && mistake == ClientMistake::DeadlineFromReply {
            // So deep that it takes minutes without optimisation.
            continue;
        }
        let found = finds(None, Some(mistake), model);
        assert!(is_any(wanted, &found), "{mistake:?}: {found}");
    }
}
