//! Compares a coordination backend with the transition function: the same operations must have
//! the same answers.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;

use super::CaseError;
use super::case::ensure;
use crate::coordination::client::Backend;
use crate::coordination::transition::{
    At, Ledger, Limits, Operation, Reply, ServerTime, TicketId, step,
};
use crate::coordination::{CoordinationKey, Grant, PreviousHolder};
use crate::id::{Fence, IncarnationId, LeaderName};

/// So long that nothing expires while the operations run.
const LEASE: Duration = Duration::from_secs(600);
const KEYS: u8 = 2;
const REPLICAS: u8 = 3;

/// The bounds that the compared backend must use: nothing expires, and there is no grace at the
/// beginning.
#[must_use]
pub fn limits() -> Limits {
    let day = Duration::from_secs(24 * 3600);
    Limits { max_queue: 4, held: day, idle: day, grace: Duration::ZERO }
}

/// Executes the operations that `choices` stand for on `backend`, whose space is new, and on the
/// function, and compares the answers. Any bytes make sense: a property test draws them, and a
/// seed is expanded by [`choices`].
///
/// Fences are compared by identity and order, as each side has a clock of its own; times are not
/// compared.
///
/// # Errors
/// [`CaseError`] when an answer differs, with the operations that led to it.
pub async fn agrees(backend: &dyn Backend, choices: &[u8]) -> Result<(), CaseError> {
    let space = &uuid::Uuid::new_v4().simple().to_string()[..12];
    let limits = limits();
    let mut function = Function { ledger: Ledger::founded("run"), now: 1, limits };
    let mut script = Script::new(space)?;
    let mut fences = Fences::default();
    let mut history = Vec::new();
    for choice in choices.chunks_exact(3) {
        let operation = script.operation(choice[0], choice[1], choice[2])?;
        let wanted = function.execute(&operation);
        let found = match backend.send(&operation).await {
            Ok(reply) => reply,
            Err(error) => return Err(CaseError::Violation(format!("{operation:?}: {error:?}"))),
        };
        history.push(operation.clone());
        let same = fences.same(&operation, &wanted, &found);
        ensure!(same, "{found:?} instead of {wanted:?} after {history:#?}");
        script.note(&operation, &wanted);
    }
    Ok(())
}

/// Bytes for [`agrees`] that follow from `seed` alone.
#[must_use]
pub fn choices(seed: u64, operations: usize) -> Vec<u8> {
    let mut state = seed;
    let mut next = || {
        // SplitMix64.
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)).to_le_bytes()[0]
    };
    (0..operations * 3).map(|_| next()).collect()
}

struct Function {
    ledger: Ledger,
    now: u64,
    limits: Limits,
}

impl Function {
    fn execute(&mut self, operation: &Operation) -> Reply {
        self.now += 1_000;
        let at = At::new(ServerTime::from_micros(self.now), "run", &self.limits);
        step(&mut self.ledger, operation, &at).reply
    }
}

/// Turns bytes into operations of a few replicas on a few keys.
struct Script {
    space: String,
    lives: [u32; REPLICAS as usize],
    epochs: [u32; REPLICAS as usize],
    /// Each was renewed later than this, so no heartbeat is told to be younger than it is.
    begun: Instant,
    sequence: u64,
    /// The tickets that may be of interest, the latest last.
    tickets: Vec<(CoordinationKey, TicketId)>,
    keys: Vec<CoordinationKey>,
}

impl Script {
    fn new(space: &str) -> Result<Self, CaseError> {
        let keys = (0..KEYS).map(|key| {
            let name = LeaderName::new(format!("{space}{{{key}}}"));
            name.map(CoordinationKey::from).map_err(|error| CaseError::Violation(error.to_string()))
        });
        Ok(Self {
            space: space.to_owned(),
            lives: [0; REPLICAS as usize],
            epochs: [0; REPLICAS as usize],
            begun: Instant::now(),
            sequence: 0,
            tickets: Vec::new(),
            keys: keys.collect::<Result<_, _>>()?,
        })
    }

    fn incarnation(&self, replica: u8) -> Result<IncarnationId, CaseError> {
        let life = self.lives[usize::from(replica)];
        IncarnationId::new(format!("{}{replica}#{life}", self.space))
            .map_err(|error| CaseError::Violation(error.to_string()))
    }

    fn operation(&mut self, kind: u8, who: u8, what: u8) -> Result<Operation, CaseError> {
        let replica = who % REPLICAS;
        let incarnation = self.incarnation(replica)?;
        let epoch = self.epochs[usize::from(replica)];
        let known = self.tickets.len();
        if matches!(kind % 16, 7..=15) && known > 0 {
            let back = usize::from(what) % known.min(6);
            let (key, ticket) = self.tickets[known - 1 - back].clone();
            return Ok(match kind % 16 {
                7 | 8 => Operation::Poll { key, ticket },
                9..=13 => Operation::Release { key, ticket },
                14 => Operation::Touch { key, ticket },
                // A repeated reservation, perhaps of an earlier epoch or of a closed session.
                _ => Operation::Reserve { key, ticket, epoch },
            });
        }
        let key = self.keys[usize::from(what % KEYS)].clone();
        self.sequence += 1;
        let ticket = TicketId { incarnation: incarnation.clone(), sequence: self.sequence };
        Ok(match kind % 16 {
            0 => Operation::Register { incarnation, lease: LEASE },
            1 => {
                self.epochs[usize::from(replica)] += u32::from(what.is_multiple_of(3));
                let epoch = self.epochs[usize::from(replica)];
                Operation::Heartbeat { incarnation, epoch, age: self.begun.elapsed() }
            }
            2 if what.is_multiple_of(4) => Operation::Stop { incarnation },
            2 | 3 => Operation::Attempt { key, ticket, epoch },
            _ => Operation::Reserve { key, ticket, epoch },
        })
    }

    fn note(&mut self, operation: &Operation, reply: &Reply) {
        match (operation, reply) {
            (
                Operation::Reserve { key, ticket, .. } | Operation::Attempt { key, ticket, .. },
                _,
            ) => {
                self.tickets.push((key.clone(), ticket.clone()));
            }
            (Operation::Stop { incarnation }, _) => {
                for replica in 0..REPLICAS {
                    if self.incarnation(replica).is_ok_and(|own| own == *incarnation) {
                        self.lives[usize::from(replica)] += 1;
                        self.epochs[usize::from(replica)] = 0;
                    }
                }
            }
            _ => {}
        }
    }
}

/// Which fence of the backend stands for which one of the function.
#[derive(Default)]
struct Fences {
    pairs: HashMap<(CoordinationKey, Fence), Fence>,
    highest: HashMap<CoordinationKey, Fence>,
}

impl Fences {
    fn same(&mut self, operation: &Operation, wanted: &Reply, found: &Reply) -> bool {
        let grants = |wanted: &Grant, found: &Grant| {
            let key = operation.key();
            key.is_some_and(|key| self.same_grant(key, wanted, found))
        };
        match (wanted, found) {
            (Reply::Granted(wanted), Reply::Granted(found)) => {
                let mut grants = grants;
                grants(wanted, found)
            }
            (
                Reply::Released { next: Some((sequence, wanted)) },
                Reply::Released { next: Some((other, found)) },
            ) => {
                let mut grants = grants;
                sequence == other && grants(wanted, found)
            }
            (Reply::Queued { ahead, .. }, Reply::Queued { ahead: other, .. }) => ahead == other,
            (Reply::Busy { .. }, Reply::Busy { .. }) => true,
            _ => wanted == found,
        }
    }

    fn same_grant(&mut self, key: &CoordinationKey, wanted: &Grant, found: &Grant) -> bool {
        let previous = |previous: &Option<PreviousHolder>| {
            previous.as_ref().map(|previous| previous.incarnation.clone())
        };
        if previous(&wanted.previous) != previous(&found.previous) {
            return false;
        }
        if let (Some(wanted), Some(found)) = (&wanted.previous, &found.previous) {
            // The fence of a grant that was told only by a wake-up is met here first.
            let pair = self.pairs.entry((key.clone(), wanted.fence)).or_insert(found.fence);
            if *pair != found.fence {
                return false;
            }
        }
        let highest = self.highest.entry(key.clone()).or_insert(Fence::new(0));
        match self.pairs.get(&(key.clone(), wanted.fence)) {
            Some(pair) => *pair == found.fence,
            None => {
                let grew = found.fence > *highest;
                *highest = found.fence;
                self.pairs.insert((key.clone(), wanted.fence), found.fence);
                grew
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::coordination::transition::Mutation;
    use crate::testing::{MemoryBackend, MemoryCoordinationHub};

    fn run(hub: &MemoryCoordinationHub, choices: &[u8]) -> Result<(), CaseError> {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(agrees(&MemoryBackend::new(hub, limits()), choices))
    }

    proptest! {
        /// C13: the hub answers as the function does, whatever is asked.
        #[test]
        fn the_hub_agrees_with_the_function(choices in prop::collection::vec(any::<u8>(), 0..900)) {
            let outcome = run(&MemoryCoordinationHub::new(), &choices);
            prop_assert!(outcome.is_ok(), "{}", outcome.unwrap_err());
        }
    }

    #[test]
    fn a_hub_with_a_broken_rule_does_not_agree() {
        for mutation in [
            Mutation::LastInFirstOut,
            Mutation::ReleaseForAnybody,
            Mutation::StopAtTheDead,
            Mutation::GrantToTheDead,
            Mutation::FenceNotRaised,
            Mutation::TakeFromTheLiving,
            Mutation::RepeatQueuesAgain,
            Mutation::AcceptStale,
        ] {
            let disagrees = (0..50).any(|seed| {
                let hub = MemoryCoordinationHub::new();
                hub.break_rule(mutation);
                run(&hub, &choices(seed, 300)).is_err()
            });
            assert!(disagrees, "{mutation:?} is not noticed");
        }
    }
}
