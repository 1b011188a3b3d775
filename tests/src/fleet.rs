//! The replicas of a run, each a process connected to one platform, and what befalls one of them.

use std::time::Duration;

use anyhow::{Result, bail};
use tokio::time::Instant;

use crate::bots::SHARED;
use crate::bots::notes::{Event, Life};
use crate::bots::platform::Platform;
use crate::process::Process;
use crate::proxy::{Direction, Proxy};

/// How long a replica may take until it is connected.
const START: Duration = Duration::from_secs(60);
/// How long a replica has to send the reply at which it is killed.
const REPLY: Duration = Duration::from_secs(2);

/// Starts replicas.
pub(crate) trait Launcher {
    /// Starts the process of a replica, which connects as soon as it can. `server` is where it finds
    /// its server, if there is one.
    fn launch(
        &self,
        index: usize,
        life: Life,
        platform: u16,
        server: Option<u16>,
    ) -> Result<Process>;

    /// How long one may take to stop.
    fn stop(&self) -> Duration;
}

/// The replicas of a run.
pub(crate) struct Fleet<L> {
    pub(crate) launcher: L,
    pub(crate) platform: Platform,
    /// Before the server, one for each replica; none without a server.
    proxies: Vec<Proxy>,
    replicas: Vec<Replica>,
    lives: Life,
    faults: u64,
}

struct Replica {
    process: Process,
    life: Life,
}

impl<L: Launcher> Fleet<L> {
    /// Starts so many, whose server listens at this port, and waits until they are connected.
    pub(crate) async fn start(
        launcher: L,
        platform: Platform,
        server: Option<u16>,
        replicas: usize,
    ) -> Result<Self> {
        let mut proxies = Vec::new();
        if let Some(port) = server {
            for _ in 0..replicas {
                proxies.push(Proxy::start(port).await?);
            }
        }
        let mut fleet =
            Self { launcher, platform, proxies, replicas: Vec::new(), lives: 0, faults: 0 };
        for index in 0..replicas {
            let replica = fleet.launch(index)?;
            fleet.replicas.push(replica);
        }
        fleet.connected().await?;
        Ok(fleet)
    }

    pub(crate) const fn size(&self) -> usize {
        self.replicas.len()
    }

    pub(crate) fn note(&self, event: Event) {
        self.platform.notes().note(event);
    }

    fn launch(&mut self, index: usize) -> Result<Replica> {
        self.lives += 1;
        let (life, server) = (self.lives, self.proxies.get(index).map(Proxy::port));
        let process = self.launcher.launch(index, life, self.platform.port(), server)?;
        Ok(Replica { process, life })
    }

    /// Waits until all are connected.
    pub(crate) async fn connected(&self) -> Result<()> {
        let deadline = Instant::now() + START;
        while self.platform.connected(SHARED) < self.replicas.len() {
            if Instant::now() >= deadline {
                bail!("a replica does not connect");
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    }

    /// Notes that something befalls one of them, or all; the number of the fault.
    pub(crate) fn begin_fault(&mut self, kind: &str, forgets: bool, victim: Option<usize>) -> u64 {
        self.faults += 1;
        let (number, kind) = (self.faults, kind.to_owned());
        let life = victim.map(|victim| self.replicas[victim].life);
        self.note(Event::Fault { number, kind, forgets, life });
        number
    }

    /// `kill -9`, and a start after a while.
    pub(crate) async fn kill(&mut self, victim: usize, away: Duration) -> Result<()> {
        let replica = &mut self.replicas[victim];
        replica.process.kill();
        let life = replica.life;
        self.note(Event::Killed { life });
        tokio::time::sleep(away).await;
        self.replicas[victim] = self.launch(victim)?;
        Ok(())
    }

    /// `kill -9` as soon as a reply has left, whose receipt does not come any more.
    pub(crate) async fn kill_in_send(&mut self, victim: usize, away: Duration) -> Result<()> {
        let sprung = self.platform.trap(self.replicas[victim].life);
        let _ = tokio::time::timeout(REPLY, sprung).await;
        self.kill(victim, away).await
    }

    /// `SIGSTOP`, and on again.
    pub(crate) async fn freeze(&self, victim: usize, time: Duration) -> Result<()> {
        let process = &self.replicas[victim].process;
        process.pause(true)?;
        tokio::time::sleep(time).await;
        process.pause(false)
    }

    /// `SIGTERM`, and a start when the process has ended.
    pub(crate) async fn restart(&mut self, victim: usize) -> Result<()> {
        let stop = self.launcher.stop();
        let replica = &mut self.replicas[victim];
        let life = replica.life;
        // A process that starts ends at once, where it does not listen yet.
        let _ = replica.process.terminate();
        if !replica.process.ended(Instant::now() + stop).await {
            replica.process.kill();
            self.note(Event::NeverStopped { life });
        }
        self.replicas[victim] = self.launch(victim)?;
        Ok(())
    }

    /// Nothing comes from the server or goes there.
    pub(crate) async fn cut(&self, victim: usize, ways: &[Direction], time: Duration) {
        let flow = |flows| ways.iter().for_each(|way| self.proxies[victim].flow(*way, flows));
        flow(false);
        tokio::time::sleep(time).await;
        flow(true);
    }

    /// Everything to and from the server takes longer.
    pub(crate) async fn slow(&self, victim: usize, latency: Duration, time: Duration) {
        self.proxies[victim].delay(latency);
        tokio::time::sleep(time).await;
        self.proxies[victim].delay(Duration::ZERO);
    }

    /// All connections to the server end.
    pub(crate) fn reset(&self, victim: usize) {
        self.proxies[victim].reset();
    }

    /// Tells all to end what they began, and notes who does not end.
    pub(crate) async fn finish(&mut self) {
        for replica in &mut self.replicas {
            replica.process.finish();
        }
        let deadline = Instant::now() + self.launcher.stop();
        let mut late = Vec::new();
        for replica in &mut self.replicas {
            if !replica.process.ended(deadline).await {
                late.push(replica.life);
            }
        }
        for life in late {
            self.note(Event::NeverStopped { life });
        }
        self.replicas.clear();
    }
}
