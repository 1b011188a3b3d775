//! What a worker does, chosen by a seed.

use std::time::Duration;

use botmesh_core::testing::Dice;

/// The kinds of work of one process and how much of it.
#[derive(Debug, Clone)]
pub struct Workload {
    /// Chooses everything else.
    pub seed: u64,
    /// How many tasks work at the same time.
    pub tasks: u64,
    /// The mean pause of a task between two jobs.
    pub pace: Duration,
    /// How many keys there are besides the hot ones.
    pub keys: u64,
    /// How many keys everybody wants.
    pub hot: u64,
    /// The longest hold, some leases long.
    pub hold: Duration,
    /// The longest wait.
    pub wait: Duration,
}

/// How a turn ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    Release,
    Drop,
}

/// One piece of work.
#[derive(Debug)]
pub(super) enum Job {
    Turn {
        key: String,
        hold: Duration,
        ending: Ending,
    },
    /// The second is reserved before the first is held.
    TwoTurns {
        key: String,
        hold: Duration,
    },
    /// The ticket is dropped.
    Unused {
        key: String,
    },
    /// The wait is cancelled.
    Impatient {
        key: String,
        patience: Duration,
    },
    /// Without patience it is one attempt.
    Lead {
        name: &'static str,
        hold: Duration,
        patience: Option<Duration>,
        ending: Ending,
    },
}

const NAMES: [&str; 3] = ["janitor", "poller", "scheduler"];
const MILLISECOND: Duration = Duration::from_millis(1);

impl Workload {
    pub(super) fn next(&self, dice: &mut Dice) -> Job {
        let ending = if dice.below(4) == 0 { Ending::Drop } else { Ending::Release };
        if dice.below(1000) < 8 {
            // Held so long, and wanted by others, that a fault often meets one that holds and some
            // that wait.
            let key = format!("m{}", dice.below(self.hot * 2));
            let hold = dice.between(MILLISECOND * 20, self.hold / 2);
            return Job::Turn { key, hold, ending };
        }
        let hot = dice.below(100) < 25;
        let key = match hot {
            true => format!("h{}", dice.below(self.hot)),
            false => format!("k{}", dice.below(self.keys)),
        };
        // Hot keys are held shortly, or nobody would get far.
        let hold = match dice.below(if hot { 2000 } else { 200 }) {
            0 => dice.between(self.hold / 10, self.hold),
            1..=9 => dice.between(MILLISECOND, MILLISECOND * 30),
            10..=100 => dice.between(Duration::ZERO, MILLISECOND * 3),
            _ => Duration::ZERO,
        };
        match dice.below(1000) {
            0..=29 => Job::TwoTurns { key, hold: hold.min(MILLISECOND * 30) },
            30..=59 => Job::Unused { key },
            60..=99 => {
                Job::Impatient { key, patience: dice.between(Duration::ZERO, MILLISECOND * 40) }
            }
            100..=104 => {
                let name = NAMES[usize::try_from(dice.below(3)).unwrap_or(0)];
                let hold = dice.between(Duration::ZERO, self.hold / 2);
                let campaigns = dice.below(2) == 0;
                let patience = dice.between(MILLISECOND, self.hold);
                Job::Lead { name, hold, patience: campaigns.then_some(patience), ending }
            }
            _ => Job::Turn { key, hold, ending },
        }
    }
}
