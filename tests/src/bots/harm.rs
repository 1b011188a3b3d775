//! Doing what was chosen to befall the replicas.

use std::time::Duration;

use anyhow::{Result, bail};

use super::Run;
use super::notes::Event;
use super::trouble::{Trouble, Troubles};
use crate::nemesis::{Kind, Plan};
use crate::proxy::Direction;

impl Run {
    /// Does one thing from its beginning to its end.
    pub(super) async fn suffer(&mut self, trouble: Trouble, troubles: &mut Troubles) -> Result<()> {
        let name = trouble.name();
        match trouble {
            Trouble::KillInSend { victim, time } => {
                let number = self.fleet.begin_fault(name, false, Some(victim));
                self.fleet.kill_in_send(victim, time).await?;
                self.fleet.note(Event::Healed { number });
                Ok(())
            }
            Trouble::Restart { victim } => self.restart(victim, name).await,
            Trouble::Fault(plan) => self.harm(plan, troubles.latency()).await,
        }
    }

    async fn harm(&mut self, plan: Plan, latency: Duration) -> Result<()> {
        let Plan { kind, victim, time, .. } = plan;
        let everybodys = matches!(
            kind,
            Kind::FlushScripts | Kind::KillPushes | Kind::FreezeServer | Kind::Restart
        );
        let fleet = &mut self.fleet;
        let of = (!everybodys).then_some(victim);
        let number = fleet.begin_fault(kind.name(), kind.forgets(), of);
        match kind {
            Kind::KillWorker => fleet.kill(victim, time).await?,
            Kind::FreezeWorker => fleet.freeze(victim, time).await?,
            Kind::Reset => fleet.reset(victim),
            Kind::Latency => fleet.slow(victim, latency, time).await,
            Kind::CutUp => fleet.cut(victim, &[Direction::Up], time).await,
            Kind::CutDown => fleet.cut(victim, &[Direction::Down], time).await,
            Kind::CutOff => fleet.cut(victim, &[Direction::Up, Direction::Down], time).await,
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
        self.fleet.note(Event::Healed { number });
        Ok(())
    }

    /// Restarts the replicas in order, one after the other, and with another version of the bot if
    /// it `deploys`.
    pub(super) async fn roll(&mut self, deploys: bool) -> Result<()> {
        let name = if deploys { "deployment" } else { "rolling restart" };
        if deploys {
            self.fleet.launcher.version = 3 - self.fleet.launcher.version;
        }
        for victim in 0..self.fleet.size() {
            self.restart(victim, name).await?;
            self.fleet.connected().await?;
        }
        Ok(())
    }

    async fn restart(&mut self, victim: usize, name: &str) -> Result<()> {
        let number = self.fleet.begin_fault(name, false, Some(victim));
        self.fleet.restart(victim).await?;
        self.fleet.note(Event::Healed { number });
        Ok(())
    }
}
