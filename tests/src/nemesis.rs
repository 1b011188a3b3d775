//! What goes wrong in a run, chosen by a seed.

use std::time::Duration;

use crate::servers::Layout;
use botmesh_core::testing::Dice;

/// One kind of fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// `kill -9` of a worker, which starts again with the same replica id.
    KillWorker,
    /// `SIGSTOP` and `SIGCONT` of a worker.
    FreezeWorker,
    /// The connections of a worker break.
    Reset,
    /// Everything of a worker takes longer.
    Latency,
    /// Nothing of a worker reaches the server.
    CutUp,
    /// Nothing of the server reaches a worker.
    CutDown,
    /// Neither does.
    CutOff,
    /// The server forgets its scripts.
    FlushScripts,
    /// The server breaks the connections that get wake-ups.
    KillPushes,
    /// `SIGSTOP` and `SIGCONT` of the server.
    FreezeServer,
    /// The server ends and starts again with what it had written.
    Restart,
    /// The server is killed and starts again with nothing.
    Wipe,
    /// The clock of the server is set forward.
    ClockForward,
    /// The clock of the server is set back.
    ClockBack,
    /// A master is killed, and a replica takes over.
    FailOver,
    /// A replica is told to take over.
    SwitchOver,
}

impl Kind {
    /// How a history and a report call it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::KillWorker => "kill -9 of a worker",
            Self::FreezeWorker => "freeze of a worker",
            Self::Reset => "connections reset",
            Self::Latency => "latency",
            Self::CutUp => "one-way cut to the server",
            Self::CutDown => "one-way cut from the server",
            Self::CutOff => "cut both ways",
            Self::FlushScripts => "scripts flushed",
            Self::KillPushes => "push connections killed",
            Self::FreezeServer => "freeze of the server",
            Self::Restart => "server restarted with data",
            Self::Wipe => "server restarted without data",
            Self::FailOver => "fail-over after a kill of the master",
            Self::SwitchOver => "switch-over to a replica",
            Self::ClockForward => "clock of the server set forward",
            Self::ClockBack => "clock of the server set back",
        }
    }

    /// Whether the backend may forget what it had answered.
    #[must_use]
    pub const fn forgets(self) -> bool {
        matches!(self, Self::Restart | Self::Wipe | Self::FailOver | Self::SwitchOver)
    }
}

/// A fault with its choices.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// What.
    pub kind: Kind,
    /// To which of the workers, if it is one of theirs.
    pub victim: usize,
    /// For how long.
    pub time: Duration,
    /// The pause after it.
    pub pause: Duration,
}

/// Chooses the faults of a run.
#[derive(Debug)]
pub struct Nemesis {
    dice: Dice,
    kinds: Vec<(Kind, u64)>,
    replicas: u64,
    lease: Duration,
}

impl Nemesis {
    /// The faults of `seed` for servers of this layout, with a clock that can be set or without.
    #[must_use]
    pub fn new(seed: u64, replicas: usize, lease: Duration, layout: Layout, clock: bool) -> Self {
        let everywhere = [
            (Kind::KillWorker, 24),
            (Kind::FreezeWorker, 16),
            (Kind::FlushScripts, 6),
            (Kind::KillPushes, 10),
            (Kind::FreezeServer, 5),
        ];
        let single = [
            (Kind::Reset, 8),
            (Kind::Latency, 8),
            (Kind::CutUp, 6),
            (Kind::CutDown, 6),
            (Kind::CutOff, 5),
            (Kind::Restart, 5),
            (Kind::Wipe, 3),
        ];
        let many = [(Kind::FailOver, 10), (Kind::SwitchOver, 10)];
        let clocks = [(Kind::ClockForward, 6), (Kind::ClockBack, 6)];
        let more: &[_] = if layout.is_single() { &single } else { &many };
        let clocks: &[_] = if clock { &clocks } else { &[] };
        let mut kinds: Vec<_> = everywhere.iter().chain(more).chain(clocks).copied().collect();
        // What these have none of.
        let absent: &[Kind] = match layout {
            Layout::Postgres | Layout::Mongo => &[Kind::FlushScripts],
            Layout::Mysql => &[Kind::FlushScripts, Kind::KillPushes],
            _ => &[],
        };
        kinds.retain(|(kind, _)| !absent.contains(kind));
        Self { dice: Dice::new(seed, 77), kinds, replicas: replicas as u64, lease }
    }

    /// The next fault.
    pub fn choose(&mut self) -> Plan {
        let whole = self.kinds.iter().map(|(_, weight)| weight).sum();
        let mut chosen = self.dice.below(whole);
        let mut kind = Kind::KillWorker;
        for (candidate, weight) in &self.kinds {
            if chosen < *weight {
                kind = *candidate;
                break;
            }
            chosen -= weight;
        }
        let victim = usize::try_from(self.dice.below(self.replicas)).unwrap_or(0);
        let (least, most) = match kind {
            Kind::FreezeWorker | Kind::CutUp | Kind::CutDown | Kind::CutOff => {
                (self.lease * 3 / 10, self.lease * 2)
            }
            // What a jump goes by, for these.
            Kind::ClockForward | Kind::ClockBack => (self.lease / 20, self.lease * 3),
            Kind::FreezeServer => (self.lease / 5, self.lease * 3 / 2),
            Kind::KillWorker | Kind::Restart | Kind::Wipe => (Duration::ZERO, self.lease),
            _ => (self.lease / 5, self.lease),
        };
        let time = self.dice.between(least, most);
        let pause = self.dice.between(self.lease / 10, self.lease * 12 / 10);
        Plan { kind, victim, time, pause }
    }

    /// How much everything takes longer.
    pub fn latency(&mut self) -> Duration {
        self.dice.between(Duration::from_millis(1), Duration::from_millis(150))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_faults_and_all_kinds_of_them() {
        let faults = |seed, layout, clock| {
            let mut nemesis = Nemesis::new(seed, 5, Duration::from_secs(1), layout, clock);
            (0..600).map(|_| nemesis.choose().kind).collect::<Vec<_>>()
        };
        let single = |seed| faults(seed, Layout::Single, false);
        assert_eq!(single(3), single(3));
        assert_ne!(single(3), single(4));
        let kinds = |layout, clock| {
            let kinds: std::collections::HashSet<_> =
                faults(3, layout, clock).into_iter().collect();
            kinds.len()
        };
        assert_eq!((kinds(Layout::Single, false), kinds(Layout::Single, true)), (12, 14));
        assert_eq!((kinds(Layout::Sentinel, false), kinds(Layout::Cluster, false)), (7, 7));
        assert_eq!((kinds(Layout::Postgres, false), kinds(Layout::Mysql, false)), (11, 10));
        assert_eq!(kinds(Layout::Mongo, false), 11);
    }
}
