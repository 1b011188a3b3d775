//! Doing what the nemesis has chosen.

use std::time::Duration;

use anyhow::{Context as _, Result};
use tokio::time::Instant;

use super::{LEASE, Run};
use crate::history::Event;
use crate::nemesis::{Kind, Plan};
use crate::proxy::Direction;
use crate::servers::Layout;

/// How long it may take until another master is elected.
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
            Kind::FlushScripts | Kind::KillPushes => self.tell_master(victim, kind).await,
            Kind::FreezeServer => {
                let master = self.a_master(victim).await.unwrap_or(0);
                self.servers.data[master].pause(true)?;
                self.sleep(time).await;
                self.servers.data[master].pause(false)?;
            }
            Kind::Restart | Kind::Wipe => self.restart(kind == Kind::Wipe, time).await?,
            Kind::ClockForward | Kind::ClockBack => {
                if let Some(clock) = &mut self.clock {
                    let back = kind == Kind::ClockBack;
                    clock.jump(time, back)?;
                    // By as much the sessions of the dead end later.
                    self.sleep(if back { time } else { LEASE / 3 }).await;
                }
            }
            Kind::FailOver => self.fail_over(victim, time).await?,
            Kind::SwitchOver => self.switch_over(victim).await?,
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

    async fn a_master(&self, number: usize) -> Option<usize> {
        let masters = self.servers.masters().await;
        masters.get(number % masters.len().max(1)).copied()
    }

    /// A server that does not answer is harmed enough.
    async fn tell_master(&self, number: usize, kind: Kind) {
        if let Some(master) = self.a_master(number).await {
            let master = &self.servers.data[master];
            let _ = match kind {
                Kind::FlushScripts => master.ask("SCRIPT FLUSH").await.map(drop),
                _ => master.break_pushes().await,
            };
        }
    }

    async fn restart(&mut self, wiped: bool, time: Duration) -> Result<()> {
        let server = &mut self.servers.data[0];
        match wiped {
            true => server.wipe()?,
            false => server.halt(),
        }
        tokio::time::sleep(time).await;
        if let Some(clock) = &mut self.clock {
            // Whoever forgets its fences must not be told times again that were before: that such
            // a server grants higher fences is promised with an honest clock only.
            clock.set_right()?;
        }
        server.launch().await
    }

    async fn fail_over(&mut self, number: usize, time: Duration) -> Result<()> {
        let master = self.a_master(number).await.context("no master answers")?;
        self.servers.data[master].kill();
        self.await_other_masters(master).await;
        tokio::time::sleep(time).await;
        self.servers.data[master].launch().await?;
        self.servers.settle().await
    }

    async fn switch_over(&self, number: usize) -> Result<()> {
        let master = self.a_master(number).await.context("no master answers")?;
        self.servers.switch_over(master).await;
        self.await_other_masters(master).await;
        self.servers.settle().await
    }

    /// Waits until others have taken the place of a master.
    async fn await_other_masters(&self, before: usize) {
        let wanted = if self.chaos.layout == Layout::Cluster { 3 } else { 1 };
        let deadline = Instant::now() + ELECTION;
        while Instant::now() < deadline {
            let masters = self.servers.masters().await;
            if masters.len() == wanted && !masters.contains(&before) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}
