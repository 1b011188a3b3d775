//! Doing what was chosen to befall the replicas.

use std::time::Duration;

use anyhow::{Result, bail};
use tokio::time::Instant;

use super::notes::Event;
use super::trouble::{Trouble, Troubles};
use super::{Run, STOP};
use crate::nemesis::{Kind, Plan};
use crate::proxy::Direction;

/// How long a replica has to send the reply at which it is killed.
const REPLY: Duration = Duration::from_secs(2);

impl Run {
    /// Does one thing from its beginning to its end.
    pub(super) async fn suffer(&mut self, trouble: Trouble, troubles: &mut Troubles) -> Result<()> {
        let victim = match trouble {
            Trouble::KillInSend { victim, time } => {
                let number = self.begin_fault(trouble.name(), false, Some(victim));
                let sprung = self.platform.trap(self.replicas[victim].life);
                let _ = tokio::time::timeout(REPLY, sprung).await;
                self.kill(victim, time).await?;
                self.note(Event::Healed { number });
                return Ok(());
            }
            Trouble::Restart { victim } => return self.restart(victim, trouble.name()).await,
            Trouble::Fault(plan) => plan,
        };
        self.harm(victim, troubles.latency()).await
    }

    async fn harm(&mut self, plan: Plan, latency: Duration) -> Result<()> {
        let Plan { kind, victim, time, .. } = plan;
        let everybodys = matches!(
            kind,
            Kind::FlushScripts | Kind::KillPushes | Kind::FreezeServer | Kind::Restart
        );
        let number = self.begin_fault(kind.name(), kind.forgets(), (!everybodys).then_some(victim));
        match kind {
            Kind::KillWorker => self.kill(victim, time).await?,
            Kind::FreezeWorker => {
                self.replicas[victim].process.pause(true)?;
                tokio::time::sleep(time).await;
                self.replicas[victim].process.pause(false)?;
            }
            Kind::Reset => self.proxies[victim].reset(),
            Kind::Latency => {
                self.proxies[victim].delay(latency);
                tokio::time::sleep(time).await;
                self.proxies[victim].delay(Duration::ZERO);
            }
            Kind::CutUp => self.cut(victim, &[Direction::Up], time).await,
            Kind::CutDown => self.cut(victim, &[Direction::Down], time).await,
            Kind::CutOff => self.cut(victim, &[Direction::Up, Direction::Down], time).await,
            Kind::FlushScripts => drop(self.server.ask("SCRIPT FLUSH").await),
            Kind::KillPushes => drop(self.server.ask("CLIENT KILL TYPE pubsub").await),
            Kind::FreezeServer => {
                self.server.pause(true)?;
                tokio::time::sleep(time).await;
                self.server.pause(false)?;
            }
            Kind::Restart => {
                self.server.kill();
                tokio::time::sleep(time).await;
                self.server.launch().await?;
            }
            other => bail!("{} is no fault of whole bots", other.name()),
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

    async fn cut(&self, victim: usize, directions: &[Direction], time: Duration) {
        directions.iter().for_each(|way| self.proxies[victim].flow(*way, false));
        tokio::time::sleep(time).await;
        directions.iter().for_each(|way| self.proxies[victim].flow(*way, true));
    }

    /// Restarts the replicas in order, one after the other, and with another version of the bot if
    /// it `deploys`.
    pub(super) async fn roll(&mut self, deploys: bool) -> Result<()> {
        let name = if deploys { "deployment" } else { "rolling restart" };
        if deploys {
            self.version = 3 - self.version;
        }
        for victim in 0..self.replicas.len() {
            self.restart(victim, name).await?;
            self.connected(self.replicas.len()).await?;
        }
        Ok(())
    }

    async fn restart(&mut self, victim: usize, name: &str) -> Result<()> {
        let number = self.begin_fault(name, false, Some(victim));
        let replica = &mut self.replicas[victim];
        let life = replica.life;
        // A process that starts ends at once, where it does not listen yet.
        let _ = replica.process.terminate();
        if !replica.process.ended(Instant::now() + STOP).await {
            replica.process.kill();
            self.note(Event::NeverStopped { life });
        }
        self.replicas[victim] = self.start(victim)?;
        self.note(Event::Healed { number });
        Ok(())
    }

    fn begin_fault(&mut self, kind: &str, forgets: bool, victim: Option<usize>) -> u64 {
        self.faults += 1;
        let (number, kind) = (self.faults, kind.to_owned());
        let life = victim.map(|victim| self.replicas[victim].life);
        self.note(Event::Fault { number, kind, forgets, life });
        number
    }
}
