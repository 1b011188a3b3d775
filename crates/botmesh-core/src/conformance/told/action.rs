use std::time::Duration;

use super::{LEASES, REPLICAS};

/// One step of a sequence. Numbers choose among what is there at that time.
#[derive(Debug, Clone, Copy)]
pub(super) enum Action {
    Register { who: usize, lease: usize },
    Heartbeat { who: usize, bumps: bool, age: Duration },
    RenewAll,
    Stop { who: usize },
    Ask { who: usize, key: usize, attempts: bool, stale: bool },
    Repeat { ticket: usize },
    Poll { ticket: usize },
    Release { ticket: usize },
    Touch { ticket: usize },
    Pass { time: Duration },
    SetBack { time: Duration },
    Restart,
    Wipe,
    Disturb,
}

const AGES: [u64; 6] = [0, 299, 300, 449, 450, 5000];
const SHORT: [u64; 6] = [1, 5, 20, 40, 60, 100];
const LONG: [u64; 7] = [200, 301, 450, 601, 900, 1300, 3000];
/// Longer than a free key is remembered, and than one that is held.
const VERY_LONG: [u64; 2] = [1_300_000, 90_000_000];

fn choose(times: &[u64], choice: u8) -> Duration {
    Duration::from_millis(times[usize::from(choice) % times.len()])
}

impl Action {
    /// The first registrations, and the time until grace is over and nobody is a newcomer: without
    /// these most sequences would be all refusals.
    pub(super) fn begin() -> impl Iterator<Item = Self> {
        let registers = (0..REPLICAS).map(|who| Self::Register { who, lease: who % LEASES.len() });
        let quarter = Self::Pass { time: Duration::from_millis(250) };
        registers.chain([quarter, Self::RenewAll].into_iter().cycle().take(8))
    }

    /// The action that four bytes stand for. Those that lead far are rare.
    pub(super) fn read(bytes: &[u8]) -> Self {
        let [kind, one, two, three] = [0, 1, 2, 3].map(|at| bytes.get(at).copied().unwrap_or(0));
        let who = usize::from(one) % REPLICAS;
        let ticket = usize::from(one) % 8;
        match kind {
            0..=1 => Self::Register { who, lease: usize::from(two) % LEASES.len() },
            2..=40 => Self::RenewAll,
            41..=48 => Self::Heartbeat { who, bumps: two < 51, age: choose(&AGES, three) },
            49..=50 => Self::Stop { who },
            51..=128 => Self::Ask {
                who,
                key: usize::from(two) % 2,
                attempts: two >= 205,
                stale: three < 26,
            },
            129..=132 => Self::Repeat { ticket },
            133..=162 => Self::Poll { ticket },
            163..=221 => Self::Release { ticket },
            222..=223 => Self::Touch { ticket },
            224..=243 => Self::Pass { time: choose(&SHORT, one) },
            244..=247 => Self::Pass { time: choose(&LONG, one) },
            248..=249 => Self::SetBack { time: choose(&LONG, one) },
            250 => Self::Pass { time: choose(&VERY_LONG, one) },
            251 => Self::Restart,
            252..=253 => Self::Wipe,
            254..=255 => Self::Disturb,
        }
    }
}
