//! What befalls the replicas and their server, chosen by a seed.

use std::time::Duration;

use anyhow::Result;
use tokio::time::Instant;

use super::chaos::{Run, STOP};
use super::replica::TURN_LEASE;
use crate::bots::notes::Event;
use crate::proxy::Direction;
use crate::random::Random;

/// How long a replica has to send the reply at which it is killed.
const REPLY: Duration = Duration::from_secs(2);
/// The longest that anything is away.
const AWAY: Duration = TURN_LEASE.saturating_mul(2);

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

    fn choose(random: &mut Random) -> Self {
        match random.below(12) {
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
        let mut random = Random::part(self.chaos.seed, 79);
        let end = Instant::now() + self.chaos.time;
        while Instant::now() < end {
            let harm = Harm::choose(&mut random);
            let victim = usize::try_from(random.below(self.replicas.len() as u64))?;
            let time = random.between(Duration::ZERO, AWAY);
            self.suffer(harm, victim, time).await?;
            tokio::time::sleep(random.between(TURN_LEASE / 4, TURN_LEASE * 2)).await;
        }
        Ok(())
    }

    async fn suffer(&mut self, harm: Harm, victim: usize, time: Duration) -> Result<()> {
        self.faults += 1;
        let number = self.faults;
        let life = match harm {
            Harm::KillServer => None,
            _ => Some(self.replicas[victim].life),
        };
        self.note(Event::Fault { number, kind: harm.name().to_owned(), forgets: false, life });
        match harm {
            Harm::Kill => self.kill(victim, time).await?,
            Harm::KillInSend => {
                let sprung = self.platform.trap(self.replicas[victim].life);
                let _ = tokio::time::timeout(REPLY, sprung).await;
                self.kill(victim, time).await?;
            }
            Harm::Freeze => {
                self.replicas[victim].process.pause(true)?;
                tokio::time::sleep(time).await;
                self.replicas[victim].process.pause(false)?;
            }
            Harm::Restart => {
                let process = &mut self.replicas[victim].process;
                // A process that starts ends at once, where it does not listen yet.
                let _ = process.terminate();
                if !process.ended(Instant::now() + STOP).await {
                    process.kill();
                    self.note(Event::NeverStopped { life: self.replicas[victim].life });
                }
                self.replicas[victim] = self.start(victim)?;
            }
            Harm::CutOff => {
                for (way, flows) in [(Direction::Up, false), (Direction::Down, false)] {
                    self.proxies[victim].flow(way, flows);
                }
                tokio::time::sleep(time).await;
                for way in [Direction::Up, Direction::Down] {
                    self.proxies[victim].flow(way, true);
                }
            }
            Harm::Reset => self.proxies[victim].reset(),
            Harm::KillServer => {
                for server in &mut self.servers.data {
                    server.kill();
                }
                tokio::time::sleep(time).await;
                for server in &mut self.servers.data {
                    server.launch().await?;
                }
            }
        }
        self.note(Event::Healed { number });
        Ok(())
    }

    async fn kill(&mut self, victim: usize, time: Duration) -> Result<()> {
        let replica = &mut self.replicas[victim];
        replica.process.kill();
        let life = replica.life;
        self.note(Event::Killed { life });
        tokio::time::sleep(time).await;
        self.replicas[victim] = self.start(victim)?;
        Ok(())
    }
}
