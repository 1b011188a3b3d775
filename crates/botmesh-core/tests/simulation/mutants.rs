//! The simulation notices when a rule is broken.

use botmesh_core::bot::BrokenRule;

use crate::plan::{Mutant, Plan};
use crate::world::run;

/// How many seeds a mutant may live through.
const SEEDS: u64 = 60;

fn is_caught(mutant: Mutant) {
    for seed in 0..SEEDS {
        let outcome = run(Plan::new(seed).with(mutant));
        if let Some(violation) = outcome.violations.first() {
            println!("{mutant:?} is caught by seed {seed}: {violation}");
            return;
        }
    }
    panic!("{mutant:?} survived {SEEDS} seeds");
}

#[test]
fn a_store_that_ignores_fences_is_caught() {
    is_caught(Mutant::StoreIgnoresFences);
}

#[test]
fn a_checkpoint_written_after_the_release_is_caught() {
    is_caught(Mutant::Runtime(BrokenRule::WritesAfterRelease));
}

#[test]
fn a_stale_copy_that_is_kept_is_caught() {
    is_caught(Mutant::Runtime(BrokenRule::KeepsStaleCopies));
}

#[test]
fn a_timer_without_a_turn_is_caught() {
    is_caught(Mutant::Runtime(BrokenRule::WakesWithoutTurn));
}

#[test]
fn a_send_without_a_look_at_the_turn_is_caught() {
    is_caught(Mutant::Runtime(BrokenRule::SendsWithoutTurn));
}

#[test]
fn a_settle_that_stops_nothing_is_caught() {
    is_caught(Mutant::Runtime(BrokenRule::SettlesNothing));
}
