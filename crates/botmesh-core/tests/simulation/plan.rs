//! What happens in one run, decided by its seed before it begins.

use std::time::Duration;

use botmesh_core::bot::BrokenRule;
use botmesh_core::testing::Dice;

/// One rule of the design that a run breaks on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mutant {
    /// The store accepts every write.
    StoreIgnoresFences,
    Runtime(BrokenRule),
}

#[derive(Debug, Clone, Copy)]
pub enum Fault {
    Crash,
    /// Crashes in the middle of its next call of the store or the platform.
    CrashInCall {
        after: bool,
    },
    Stop,
    Freeze(Duration),
    LoseRequests(u32),
    LoseReplies(u32),
    Delay(Duration, Duration),
    DropPushes(Duration),
    SlowSends(Duration, Duration),
    Interrupt(Duration),
    Refuse(u32),
    /// The hub begins anew, with or without what it knew.
    RestartHub {
        wiped: bool,
    },
    JumpHubClock(Duration),
}

#[derive(Debug, Clone, Copy)]
pub struct Planned {
    pub at: Duration,
    pub replica: usize,
    pub fault: Fault,
}

#[derive(Debug, Clone)]
pub struct Plan {
    pub seed: u64,
    pub replicas: usize,
    pub users: usize,
    pub length: Duration,
    pub exclusive: bool,
    pub faults: Vec<Planned>,
    /// Of a thousand calls of the store, how many fail, lose their answer, or take long.
    pub store_fails: u64,
    pub store_loses: u64,
    pub store_slow: u64,
    /// Of a thousand sends, how many are refused or lose their receipt.
    pub send_fails: u64,
    /// Of a thousand steps, how many take longer than `settle`.
    pub slow_steps: u64,
    pub mutant: Option<Mutant>,
}

impl Plan {
    pub fn new(seed: u64) -> Self {
        let mut dice = Dice::new(seed, 1);
        let replicas = 2 + dice.pick(2);
        let length = Duration::from_secs(120 + dice.below(300));
        // Some runs are stormy.
        let most = if dice.happens(200) { 25 } else { 7 };
        let mut faults: Vec<Planned> = (0..dice.below(most))
            .map(|_| {
                let at = dice.millis(0, u64::try_from(length.as_millis()).expect("minutes"));
                Planned { at, replica: dice.pick(replicas), fault: fault(&mut dice) }
            })
            .collect();
        faults.sort_by_key(|planned| planned.at);
        let mut rate = |most: u64| if dice.happens(500) { dice.below(most) } else { 0 };
        Self {
            seed,
            replicas,
            length,
            faults,
            store_fails: rate(40),
            store_loses: rate(40),
            store_slow: rate(40),
            send_fails: rate(40),
            slow_steps: rate(150),
            users: 2 + dice.pick(4),
            exclusive: dice.happens(150),
            mutant: None,
        }
    }

    pub fn with(mut self, mutant: Mutant) -> Self {
        self.mutant = Some(mutant);
        self
    }
}

fn fault(dice: &mut Dice) -> Fault {
    match dice.below(15) {
        0 | 1 => Fault::Crash,
        2 | 3 => Fault::CrashInCall { after: dice.happens(500) },
        4 | 5 => Fault::Stop,
        6 => Fault::Freeze(dice.millis(500, 30_000)),
        7 => Fault::LoseRequests(1 + dice.pick(6) as u32),
        8 => Fault::LoseReplies(1 + dice.pick(6) as u32),
        9 => Fault::Delay(dice.millis(10, 6_000), dice.millis(1_000, 20_000)),
        10 => match dice.below(2) {
            0 => Fault::DropPushes(dice.millis(1_000, 60_000)),
            _ => Fault::Interrupt(dice.millis(1_000, 40_000)),
        },
        11 => Fault::Refuse(1 + dice.pick(6) as u32),
        12 => Fault::RestartHub { wiped: dice.happens(500) },
        13 => Fault::JumpHubClock(dice.millis(100, 100_000)),
        _ => Fault::SlowSends(dice.millis(100, 12_000), dice.millis(1_000, 60_000)),
    }
}
