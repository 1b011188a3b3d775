//! Doing what the nemesis has chosen.

use std::time::Duration;

use anyhow::Result;
use tokio::time::Instant;

use super::Run;
use crate::history::Event;
use crate::nemesis::{Kind, Plan};
use crate::proxy::Direction;

/// How long Sentinel may take to name another master.
const ELECTION: Duration = Duration::from_secs(20);

impl Run {
    /// Does one fault, from its beginning to its end.
    pub(super) async fn harm(&mut self, plan: Plan, latency: Duration) -> Result<()> {
        let Plan { kind, victim, time, .. } = plan;
        let number = self.begin(kind.name(), kind.forgets());
        match kind {
            Kind::KillWorker => self.kill_worker(victim, time).await?,
            Kind::FreezeWorker => {
                self.workers[victim].process.pause(true)?;
                self.sleep(time).await;
                self.workers[victim].process.pause(false)?;
            }
            Kind::Reset => self.proxies[victim].reset(),
            Kind::Latency => {
                self.proxies[victim].delay(latency);
                self.sleep(time).await;
                self.proxies[victim].delay(Duration::ZERO);
            }
            Kind::CutUp => self.cut(victim, &[Direction::Up], time).await,
            Kind::CutDown => self.cut(victim, &[Direction::Down], time).await,
            Kind::CutOff => self.cut(victim, &[Direction::Up, Direction::Down], time).await,
            Kind::FlushScripts => self.tell_master("SCRIPT FLUSH").await,
            Kind::KillPushes => self.tell_master("CLIENT KILL TYPE pubsub").await,
            Kind::FreezeServer => {
                let master = self.servers.master().await.unwrap_or(0);
                self.servers.data[master].pause(true)?;
                self.sleep(time).await;
                self.servers.data[master].pause(false)?;
            }
            Kind::Restart | Kind::Wipe => {
                let server = &mut self.servers.data[0];
                server.kill();
                if kind == Kind::Wipe {
                    server.wipe()?;
                }
                tokio::time::sleep(time).await;
                server.launch().await?;
            }
            Kind::FailOver => self.fail_over(time).await?,
            Kind::SwitchOver => self.switch_over().await?,
        }
        self.driver.note(Event::Healed { number });
        Ok(())
    }

    async fn kill_worker(&mut self, victim: usize, time: Duration) -> Result<()> {
        let worker = &mut self.workers[victim];
        worker.process.kill();
        self.driver.note(Event::Killed { history: worker.history });
        self.sleep(time).await;
        self.workers[victim] = self.start_worker(victim)?;
        Ok(())
    }

    async fn cut(&self, victim: usize, directions: &[Direction], time: Duration) {
        directions.iter().for_each(|way| self.proxies[victim].flow(*way, false));
        self.sleep(time).await;
        directions.iter().for_each(|way| self.proxies[victim].flow(*way, true));
    }

    /// A server that does not answer is harmed enough.
    async fn tell_master(&self, command: &str) {
        if let Ok(master) = self.servers.master().await {
            let _ = self.servers.data[master].ask(command).await;
        }
    }

    async fn fail_over(&mut self, time: Duration) -> Result<()> {
        let master = self.servers.master().await?;
        self.servers.data[master].kill();
        self.await_other_master(master).await;
        tokio::time::sleep(time).await;
        self.servers.data[master].launch().await?;
        self.servers.settle().await
    }

    async fn switch_over(&self) -> Result<()> {
        let master = self.servers.master().await?;
        let command = format!("SENTINEL FAILOVER {}", crate::backend::MASTER);
        if let Some(sentinel) = self.servers.sentinel_ports().first() {
            let _ = crate::servers::ask(*sentinel, &command).await;
        }
        self.await_other_master(master).await;
        self.servers.settle().await
    }

    async fn await_other_master(&self, before: usize) {
        let deadline = Instant::now() + ELECTION;
        while Instant::now() < deadline {
            if self.servers.master().await.is_ok_and(|master| master != before) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}
