//! What befalls the replicas and their server, chosen by a seed.

use std::time::Duration;

use anyhow::Result;
use botmesh_core::testing::Dice;
use tokio::time::Instant;

use super::chaos::Run;
use crate::bots::notes::Event;
use crate::proxy::Direction;

#[derive(Debug, Clone, Copy)]
enum Harm {
    /// `kill -9`.
    Kill,
    /// `kill -9` as soon as a reply has left, whose receipt does not come any more.
    KillInSend,
    /// `SIGSTOP`, and on again.
    Freeze,
    /// `SIGTERM`, and a start when the process has ended.
    Restart,
    /// Nothing comes from the server or goes there.
    CutOff,
    /// All connections to the server end.
    Reset,
    /// `kill -9` of the server, which keeps what it has answered.
    KillServer,
}

impl Harm {
    const fn name(self) -> &'static str {
        match self {
            Self::Kill => "kill -9",
            Self::KillInSend => "kill -9 while sending",
            Self::Freeze => "freeze",
            Self::Restart => "restart in order",
            Self::CutOff => "cut off",
            Self::Reset => "reset",
            Self::KillServer => "kill -9 of the server",
        }
    }

    /// The last three are for a server.
    fn choose(dice: &mut Dice, has_server: bool) -> Self {
        match dice.below(if has_server { 12 } else { 9 }) {
            0..=2 => Self::Kill,
            3..=5 => Self::KillInSend,
            6 | 7 => Self::Freeze,
            8 => Self::Restart,
            9 => Self::CutOff,
            10 => Self::Reset,
            _ => Self::KillServer,
        }
    }
}

impl Run {
    pub(super) async fn rage(&mut self) -> Result<()> {
        let mut dice = Dice::new(self.chaos.seed, 79);
        let (lease, end) = (self.chaos.lease, Instant::now() + self.chaos.time);
        while Instant::now() < end {
            let harm = Harm::choose(&mut dice, self.servers.is_some());
            let victim = dice.pick(self.fleet.size());
            let time = dice.between(Duration::ZERO, lease * 2);
            self.suffer(harm, victim, time).await?;
            tokio::time::sleep(dice.between(lease / 4, lease * 2)).await;
        }
        Ok(())
    }

    async fn suffer(&mut self, harm: Harm, victim: usize, time: Duration) -> Result<()> {
        let of = (!matches!(harm, Harm::KillServer)).then_some(victim);
        let fleet = &mut self.fleet;
        let number = fleet.begin_fault(harm.name(), false, of);
        match harm {
            Harm::Kill => fleet.kill(victim, time).await?,
            Harm::KillInSend => fleet.kill_in_send(victim, time).await?,
            Harm::Freeze => fleet.freeze(victim, time).await?,
            Harm::Restart => fleet.restart(victim).await?,
            Harm::CutOff => fleet.cut(victim, &[Direction::Up, Direction::Down], time).await,
            Harm::Reset => fleet.reset(victim),
            Harm::KillServer => {
                let servers = self.servers.iter_mut().flat_map(|servers| &mut servers.data);
                let mut servers: Vec<_> = servers.collect();
                servers.iter_mut().for_each(|server| server.kill());
                tokio::time::sleep(time).await;
                for server in servers {
                    server.launch().await?;
                }
            }
        }
        self.fleet.note(Event::Healed { number });
        Ok(())
    }
}
