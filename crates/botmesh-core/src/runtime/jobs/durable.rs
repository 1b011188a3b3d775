use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::super::Runtime;
use super::super::event::Activity;
use super::{Attempt, JobDefinition, JobOutcome};
use crate::error::BotError;
use crate::id::{ChatKey, Fence, LeaderName, ProviderId, Revision};
use crate::schedule::Lease;
use crate::schedule::record::{Occurrence, Record, Skipped, Step};
use crate::store::{CheckpointWrite, ConditionalCheckpointStore, Swap};
use crate::time::Timestamp;

/// The pause after the store or the leases failed.
const AGAIN: Duration = Duration::from_secs(2);
/// How often it is looked whether the provider of a job is still connected here.
const LOOK: Duration = Duration::from_millis(250);
/// What replicas are elected for.
const SCHEDULER: &str = "scheduler";

/// Why durable jobs are not run here any more.
enum Ended {
    Lost,
    /// The provider that they belong to is connected on another replica.
    Elsewhere,
    Stopped,
}

/// The lease of a process that is the only one.
struct Alone(Fence);

#[async_trait::async_trait]
impl Lease for Alone {
    fn fence(&self) -> Fence {
        self.0
    }

    async fn lost(&mut self) {
        std::future::pending::<()>().await;
    }

    async fn release(self: Box<Self>) {}
}

/// What is known of a job while the lease lasts.
struct Kept<'a> {
    checkpoints: &'a dyn ConditionalCheckpointStore,
    key: ChatKey,
    fence: Fence,
    record: Record,
    revision: Option<Revision>,
}

impl Kept<'_> {
    async fn write(&mut self, record: Record) -> Result<(), BotError> {
        let body = serde_json::to_string(&record)?;
        let write = CheckpointWrite { body: &body, wake_in: None, expires_in: None };
        let swap = self.checkpoints.set_checkpoint_if(&self.key, write, self.revision, self.fence);
        match swap.await? {
            Swap::Applied(revision) => {
                self.revision = Some(revision);
                self.record = record;
                Ok(())
            }
            Swap::Refused => {
                Err(BotError::message("another replica has taken over this job meanwhile"))
            }
        }
    }
}

impl Runtime {
    /// Waits for the lease, runs the durable jobs of one place while it lasts, and again.
    pub(super) async fn run_durable(
        self: Arc<Self>,
        beside: Option<String>,
        stop: CancellationToken,
    ) {
        let name = match &beside {
            None => LeaderName::new(SCHEDULER),
            Some(provider) => LeaderName::new(format!("{SCHEDULER}:{provider}")),
        };
        let Ok(name) = name else { return };
        let provider = beside.as_deref().and_then(|id| ProviderId::new(id).ok());
        loop {
            let acquired = async {
                self.stands_by(provider.as_ref(), false).await;
                match &self.jobs.leases {
                    Some(leases) => leases.acquire(&name).await,
                    None => Ok(Box::new(Alone(self.fences.next())) as Box<dyn Lease>),
                }
            };
            let acquired = tokio::select! {
                biased;
                () = stop.cancelled() => return,
                acquired = acquired => acquired,
            };
            let mut lease = match acquired {
                Ok(lease) => lease,
                Err(error) => {
                    self.events.error(None, Activity::Leadership, error);
                    if self.pause(AGAIN, &stop).await.is_break() {
                        return;
                    }
                    continue;
                }
            };
            let mut jobs = JoinSet::new();
            let here = self.jobs.of(true).filter(|it| it.job.beside == beside);
            for definition in here {
                let (runtime, definition) = (Arc::clone(&self), Arc::clone(definition));
                let (fence, stop) = (lease.fence(), stop.clone());
                jobs.spawn(async move { runtime.keep_running(&definition, fence, &stop).await });
            }
            let all_ended = async { while jobs.join_next().await.is_some() {} };
            let ended = tokio::select! {
                biased;
                () = lease.lost() => Ended::Lost,
                () = all_ended => Ended::Stopped,
                () = self.stands_by(provider.as_ref(), true) => Ended::Elsewhere,
            };
            // Whatever runs is dropped before another replica can have the lease.
            jobs.shutdown().await;
            match ended {
                Ended::Lost => tracing::warn!(%name, "the lease of the scheduler was lost"),
                Ended::Elsewhere => lease.release().await,
                Ended::Stopped => return lease.release().await,
            }
        }
    }

    /// Waits until the provider is connected here, or elsewhere. Where no provider matters, this
    /// is the right place.
    async fn stands_by(&self, provider: Option<&ProviderId>, standby: bool) {
        let Some(provider) = provider else {
            if standby {
                std::future::pending::<()>().await;
            }
            return;
        };
        while self.sender.is_standby(provider) != standby {
            tokio::time::sleep(LOOK).await;
        }
    }

    async fn pause(&self, pause: Duration, stop: &CancellationToken) -> ControlFlow<()> {
        tokio::select! {
            biased;
            () = stop.cancelled() => ControlFlow::Break(()),
            () = tokio::time::sleep(pause) => ControlFlow::Continue(()),
        }
    }

    /// Runs a job until the bot stops, whatever fails.
    async fn keep_running(
        self: &Arc<Self>,
        definition: &JobDefinition,
        fence: Fence,
        stop: &CancellationToken,
    ) {
        while let Err(error) = self.follow(definition, fence, stop).await {
            self.events.error(None, Activity::Job(Arc::clone(&definition.name)), error);
            if self.pause(AGAIN, stop).await.is_break() {
                return;
            }
        }
    }

    /// Reads the record and does what follows from it, again and again.
    async fn follow(
        self: &Arc<Self>,
        definition: &JobDefinition,
        fence: Fence,
        stop: &CancellationToken,
    ) -> Result<(), BotError> {
        let JobDefinition { job, schedule, .. } = definition;
        let mut kept = self.read_record(definition, fence).await?;
        loop {
            let now = self.jobs.clock.now();
            match kept.record.next(schedule, job.misfire, &job.retry, now) {
                Step::Wait(until) => {
                    if self.wait_until(until, stop).await.is_break() {
                        return Ok(());
                    }
                }
                Step::Run(record, occurrence) => {
                    if stop.is_cancelled() {
                        return Ok(());
                    }
                    kept.write(record).await?;
                    self.run_occurrence(definition, &mut kept, &occurrence).await?;
                }
                Step::Skip(record, Skipped { until, count }) => {
                    kept.write(record).await?;
                    self.report(definition, until, JobOutcome::Skipped { count });
                }
                Step::GiveUp(record, Occurrence { slot, attempt, .. }) => {
                    kept.write(record).await?;
                    self.report(definition, slot, JobOutcome::GaveUp { attempts: attempt });
                }
                Step::Done => {
                    stop.cancelled().await;
                    return Ok(());
                }
            }
        }
    }

    async fn read_record(
        &self,
        definition: &JobDefinition,
        fence: Fence,
    ) -> Result<Kept<'_>, BotError> {
        let missing = || BotError::message("the store has no compare-and-set");
        let checkpoints = self.store.conditional_checkpoints().ok_or_else(missing)?;
        let key = definition.job.key()?;
        let adopted = checkpoints.adopt_checkpoint(&key, fence).await?;
        // Alone, there is nobody but an earlier process with a clock that was ahead.
        let fence = match (&self.jobs.leases, adopted.previous_fence) {
            (None, Some(seen)) if seen > fence => {
                self.fences.observe(seen);
                self.fences.next()
            }
            _ => fence,
        };
        let now = self.jobs.clock.now();
        let (schedule, begin) = (&definition.schedule, Record::begin(&definition.schedule, now));
        let Some(stored) = adopted.checkpoint else {
            let mut kept = Kept { checkpoints, key, fence, record: begin.clone(), revision: None };
            // Written, what is missed from now on is known to be missed.
            kept.write(begin).await?;
            return Ok(kept);
        };
        let record = match serde_json::from_str::<Record>(&stored.body) {
            Ok(record) => record.resume(schedule, now),
            Err(error) => {
                let name = Arc::clone(&definition.name);
                let error = BotError::message(format!(
                    "what is stored of the job {name:?} cannot be read ({error}): it begins anew"
                ));
                self.events.error(None, Activity::Job(name), error);
                begin
            }
        };
        Ok(Kept { checkpoints, key, fence, record, revision: Some(stored.revision) })
    }

    async fn run_occurrence(
        self: &Arc<Self>,
        definition: &JobDefinition,
        kept: &mut Kept<'_>,
        occurrence: &Occurrence,
    ) -> Result<(), BotError> {
        let Occurrence { slot, attempt, skipped } = *occurrence;
        if skipped > 0 {
            let until = Timestamp::from_millis(slot.as_millis().saturating_sub(1));
            let until = definition.schedule.last_until(until).unwrap_or(until);
            self.report(definition, until, JobOutcome::Skipped { count: skipped });
        }
        let run = Attempt { slot, number: attempt, fence: kept.fence };
        let outcome = match self.attempt(definition, &run).await {
            Ok(()) => {
                kept.write(kept.record.settled()).await?;
                JobOutcome::Done { attempt }
            }
            Err(error) => {
                self.events.error(None, Activity::Job(Arc::clone(&definition.name)), error);
                let now = self.jobs.clock.now();
                let (record, again_in) = kept.record.failed(&definition.job.retry, now);
                kept.write(record).await?;
                JobOutcome::Failed { attempt, again_in }
            }
        };
        self.report(definition, slot, outcome);
        Ok(())
    }
}
