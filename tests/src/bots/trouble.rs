//! What befalls the replicas of a run, chosen by a seed.

use std::time::Duration;

use crate::nemesis::{Kind, Nemesis, Plan};
use crate::servers::Layout;
use botmesh_core::testing::Dice;

/// Something that befalls a replica, or all of them.
#[derive(Debug, Clone, Copy)]
pub(super) enum Trouble {
    /// A fault as any worker has it.
    Fault(Plan),
    /// `kill -9` as soon as a reply has left, whose receipt does not come any more.
    KillInSend { victim: usize, time: Duration },
    /// `SIGTERM`, and a start when the process has ended.
    Restart { victim: usize },
}

/// Chooses the troubles of a run.
#[derive(Debug)]
pub(super) struct Troubles {
    dice: Dice,
    nemesis: Nemesis,
    replicas: u64,
    lease: Duration,
}

impl Trouble {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Fault(plan) => plan.kind.name(),
            Self::KillInSend { .. } => "kill -9 while sending",
            Self::Restart { .. } => "restart in order",
        }
    }
}

impl Troubles {
    pub(super) fn new(seed: u64, replicas: usize, lease: Duration) -> Self {
        let nemesis = Nemesis::new(seed, replicas, lease, Layout::Single, false);
        Self { dice: Dice::new(seed, 78), nemesis, replicas: replicas as u64, lease }
    }

    /// The next one, and the pause after it.
    pub(super) fn choose(&mut self) -> (Trouble, Duration) {
        let victim = usize::try_from(self.dice.below(self.replicas)).unwrap_or(0);
        let time = self.dice.between(Duration::ZERO, self.lease);
        let pause = self.dice.between(self.lease / 10, self.lease);
        match self.dice.below(10) {
            0 => (Trouble::Restart { victim }, pause),
            1..=3 => (Trouble::KillInSend { victim, time }, pause),
            _ => loop {
                let plan = self.nemesis.choose();
                // What a store has forgotten, no bot can know.
                if plan.kind != Kind::Wipe {
                    return (Trouble::Fault(plan), plan.pause);
                }
            },
        }
    }

    /// How much everything takes longer.
    pub(super) fn latency(&mut self) -> Duration {
        self.nemesis.latency()
    }
}
