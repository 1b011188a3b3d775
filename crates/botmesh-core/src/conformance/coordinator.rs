//! The suite of coordinators. Its cases are in the modules below; each works with replicas of a
//! space of its own.

mod crashing;
pub mod death;
pub mod giving_up;
pub mod journaled;
pub mod leading;
mod macros;
#[cfg(test)]
mod tests;
pub mod turns;

pub(in crate::conformance) use crashing::CrashingCoordinator;

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::Instant;

use super::case::{ABSENT, ensure};
use super::{CaseError, CaseRun};
use crate::coordination::{
    AcquireTurn, ChatTurn, CoordinationError, Coordinator, CoordinatorSettings, SettingsError,
};
use crate::id::{ChatKey, LeaderName, ProviderId, ReplicaId};
use crate::store::Store;

/// Gives the suite its replicas.
#[async_trait]
pub trait CoordinatorFixture: Debug + Send + Sync {
    /// A further replica of the space `prefix`, not yet started. `prefix` has at most 16
    /// characters of `a` to `z`, `0` to `9` and `_`. None when the backend is absent: then nothing
    /// is run.
    async fn open(
        &self,
        prefix: &str,
        replica: ReplicaId,
        settings: CoordinatorSettings,
    ) -> Option<Arc<dyn Replica>>;

    /// Lets `time` pass for everybody. A fixture with a virtual clock advances that.
    async fn pass(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }

    /// How many operations the backend has executed for all replicas of `prefix`, heartbeats
    /// included, if it can tell.
    async fn operations(&self, prefix: &str) -> Option<u64> {
        let _ = prefix;
        None
    }
}

/// One replica, and what can be done to it. What a fixture cannot do answers false, and cases that
/// need it do not run.
#[async_trait]
pub trait Replica: Debug + Send + Sync {
    /// Its coordinator.
    fn coordinator(&self) -> &dyn Coordinator;

    /// Ends it as a killed process ends: nothing is released, and the backend hears no more.
    async fn crash(&self);

    /// Stops all traffic between it and the backend until [`thaw`](Replica::thaw).
    async fn freeze(&self) -> bool {
        false
    }

    /// Ends a freeze.
    async fn thaw(&self) {}

    /// The store whose inbox's steps its coordinator takes along, if it does, in the same space.
    fn store(&self) -> Option<Arc<dyn Store>> {
        None
    }

    /// Loses all wake-ups for it from now on, without its noticing.
    async fn lose_pushes(&self) -> bool {
        false
    }
}

/// One case of the suite of coordinators.
#[derive(Debug, Clone, Copy)]
pub struct CoordinatorCase {
    /// The name of the case and of its test.
    pub name: &'static str,
    /// What it checks.
    pub promise: &'static str,
    /// Runs it.
    pub run: for<'a> fn(&'a dyn CoordinatorFixture) -> CaseRun<'a>,
}

/// All cases of the suite, for those who do not run it by
/// [`coordinator_conformance!`](crate::coordinator_conformance).
pub const COORDINATOR_CASES: &[CoordinatorCase] = crate::__coordinator_cases!(@each list []);

/// The lease of the replicas unless a case says otherwise: short enough to wait for it in real
/// time.
pub(super) const LEASE: Duration = Duration::from_millis(1500);

/// How late something may be on a busy machine.
pub(super) const SLACK: Duration = Duration::from_millis(700);

/// The replicas of one case.
pub(super) struct Cluster<'a> {
    pub(super) fixture: &'a dyn CoordinatorFixture,
    pub(super) prefix: String,
}

impl<'a> Cluster<'a> {
    pub(super) fn new(fixture: &'a dyn CoordinatorFixture) -> Self {
        let random = uuid::Uuid::new_v4().simple().to_string();
        Self { fixture, prefix: format!("c{}_", &random[..12]) }
    }

    /// A started replica with the short lease.
    pub(super) async fn replica(&self, name: &str) -> Result<Arc<dyn Replica>, CaseError> {
        self.replica_with(name, settings(LEASE)?).await
    }

    pub(super) async fn replica_with(
        &self,
        name: &str,
        settings: CoordinatorSettings,
    ) -> Result<Arc<dyn Replica>, CaseError> {
        let id = ReplicaId::new(name).map_err(|error| CaseError::Violation(error.to_string()))?;
        let opened = self.fixture.open(&self.prefix, id, settings).await;
        let replica = opened.ok_or(CaseError::NotRun(ABSENT))?;
        replica.coordinator().start().await?;
        Ok(replica)
    }

    pub(super) async fn replicas<const N: usize>(
        &self,
        names: [&str; N],
    ) -> Result<[Arc<dyn Replica>; N], CaseError> {
        self.replicas_with(names, LEASE).await
    }

    pub(super) async fn replicas_with<const N: usize>(
        &self,
        names: [&str; N],
        lease: Duration,
    ) -> Result<[Arc<dyn Replica>; N], CaseError> {
        let mut replicas = Vec::with_capacity(N);
        for name in names {
            replicas.push(self.replica_with(name, settings(lease)?).await?);
        }
        // Newcomers bury nobody, and a backend that was just made grants nothing, for a lease.
        self.fixture.pass(lease).await;
        replicas.try_into().map_err(|_| CaseError::Violation("replicas are missing".into()))
    }
}

/// Settings with this lease.
pub(super) fn settings(lease: Duration) -> Result<CoordinatorSettings, CaseError> {
    Ok(CoordinatorSettings::builder().lease(lease).build()?)
}

/// A chat whose platform calls it `chat`.
pub(super) fn chat(chat: &str) -> Result<ChatKey, CaseError> {
    let provider = ProviderId::new("suite").map_err(|error| error.to_string());
    let key = provider.and_then(|id| ChatKey::new(&id, chat).map_err(|error| error.to_string()));
    key.map_err(CaseError::Violation)
}

/// What can be led.
pub(super) fn leader(name: &str) -> Result<LeaderName, CaseError> {
    LeaderName::new(name).map_err(|error| CaseError::Violation(error.to_string()))
}

/// Reserves and waits.
pub(super) async fn take(replica: &dyn Replica, key: &ChatKey) -> Result<ChatTurn, CaseError> {
    let ticket = replica.coordinator().reserve(key).await?;
    Ok(replica.coordinator().acquire_turn(ticket, AcquireTurn::new()).await?)
}

/// Waits for `what`, which must come within `limit` and the slack.
pub(super) async fn within<T>(
    limit: Duration,
    what: &str,
    future: impl Future<Output = T>,
) -> Result<T, CaseError> {
    let done = tokio::time::timeout(limit + SLACK, future).await;
    done.map_err(|_| CaseError::Violation(format!("{what}: not within {:?}", limit + SLACK)))
}

/// Checks that `what` took at least `least`.
pub(super) fn not_before(since: Instant, least: Duration, what: &str) -> Result<(), CaseError> {
    let after = since.elapsed();
    ensure!(after >= least, "{what} after {after:?}, at least {least:?} must pass");
    Ok(())
}

/// What a task of a case found.
pub(super) async fn joined<T>(
    task: tokio::task::JoinHandle<Result<T, CaseError>>,
) -> Result<T, CaseError> {
    task.await.map_err(|error| CaseError::Violation(error.to_string()))?
}

impl From<CoordinationError> for CaseError {
    fn from(error: CoordinationError) -> Self {
        let mut text = format!("the coordinator failed: {error}");
        let mut source = std::error::Error::source(&error);
        while let Some(cause) = source {
            text.push_str(": ");
            text.push_str(&cause.to_string());
            source = cause.source();
        }
        Self::Violation(text)
    }
}

impl From<SettingsError> for CaseError {
    fn from(error: SettingsError) -> Self {
        Self::Violation(error.to_string())
    }
}
