//! Runs jobs: plain ones on every replica, durable ones where the lease is.

mod context;
mod durable;
mod event;
mod sends;

pub use context::JobContext;
pub use event::{JobEvent, JobOutcome};

use std::collections::BTreeSet;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::Runtime;
use super::event::{Activity, Event};
use crate::conversation::Panicked;
use crate::error::BotError;
use crate::id::Fence;
use crate::schedule::{Job, Leases, Schedule};
use crate::time::{Clock, Timestamp};

/// Clocks jump and machines sleep: so long at most a wait trusts its beginning.
const LOOK_AGAIN: Duration = Duration::from_secs(30);

pub(crate) type BoxJob = Box<
    dyn Fn(JobContext) -> Pin<Box<dyn Future<Output = Result<(), BotError>> + Send>> + Send + Sync,
>;

/// A job with its schedule and what it does.
pub(crate) struct JobDefinition {
    pub(crate) job: Job,
    /// The name of the job, for whoever is told of it.
    pub(crate) name: Arc<str>,
    pub(crate) schedule: Schedule,
    pub(crate) run: BoxJob,
}

/// The jobs of a bot.
#[derive(Default)]
pub(crate) struct Jobs {
    pub(crate) definitions: Vec<Arc<JobDefinition>>,
    /// Who may run the durable ones; none when this process is the only one.
    pub(crate) leases: Option<Arc<dyn Leases>>,
    pub(crate) clock: Clock,
}

impl Jobs {
    fn of(&self, durable: bool) -> impl Iterator<Item = &Arc<JobDefinition>> {
        self.definitions.iter().filter(move |it| it.job.durable == durable)
    }
}

/// One attempt that is about to begin.
struct Attempt {
    slot: Timestamp,
    number: u32,
    fence: Fence,
}

impl Runtime {
    /// Starts what runs the jobs. Told to stop, each ends after the occurrence that it is at.
    pub(super) fn start_jobs(self: &Arc<Self>, tasks: &mut JoinSet<()>, stop: &CancellationToken) {
        for definition in self.jobs.of(false) {
            let (runtime, definition) = (Arc::clone(self), Arc::clone(definition));
            tasks.spawn(runtime.run_plain(definition, stop.clone()));
        }
        let places: BTreeSet<_> = self.jobs.of(true).map(|it| it.job.beside.clone()).collect();
        for beside in places {
            tasks.spawn(Arc::clone(self).run_durable(beside, stop.clone()));
        }
    }

    async fn run_plain(self: Arc<Self>, definition: Arc<JobDefinition>, stop: CancellationToken) {
        let mut slot = definition.schedule.beginning(self.jobs.clock.now());
        while let Some(next) = definition.schedule.next_after(slot) {
            if self.wait_until(next, &stop).await.is_break() {
                return;
            }
            slot = next;
            let attempt = Attempt { slot, number: 1, fence: self.fences.next() };
            if let Err(error) = self.attempt(&definition, &attempt).await {
                self.report(&definition, slot, JobOutcome::Failed { attempt: 1, again_in: None });
                self.events.error(None, Activity::Job(Arc::clone(&definition.name)), error);
            }
            // What came due meanwhile is not made up for.
            let now = self.jobs.clock.now();
            slot = definition.schedule.last_until(now).map_or(slot, |passed| passed.max(slot));
        }
    }

    /// Waits for a moment; breaks when the bot stops.
    async fn wait_until(
        &self,
        moment: Timestamp,
        stop: &CancellationToken,
    ) -> std::ops::ControlFlow<()> {
        loop {
            let left = moment.since(self.jobs.clock.now());
            if left.is_zero() {
                return std::ops::ControlFlow::Continue(());
            }
            tokio::select! {
                biased;
                () = stop.cancelled() => return std::ops::ControlFlow::Break(()),
                () = tokio::time::sleep(left.min(LOOK_AGAIN)) => {}
            }
        }
    }

    /// Runs what the user wrote, once. It can be dropped at any time.
    async fn attempt(
        self: &Arc<Self>,
        definition: &JobDefinition,
        attempt: &Attempt,
    ) -> Result<(), BotError> {
        let context = JobContext::new(Arc::clone(self), definition, attempt);
        let done = async { (definition.run)(context).await };
        let done = AssertUnwindSafe(done).catch_unwind();
        let done = match definition.job.timeout {
            None => done.await,
            Some(limit) => match tokio::time::timeout(limit, done).await {
                Ok(done) => done,
                Err(_) => {
                    let name = &definition.name;
                    return Err(BotError::message(format!(
                        "the job {name:?} did not end within {limit:?} and was cancelled"
                    )));
                }
            },
        };
        done.unwrap_or_else(|payload| Err(Panicked::new(payload.as_ref()).into()))
    }

    fn report(&self, definition: &JobDefinition, slot: Timestamp, outcome: JobOutcome) {
        let job = Arc::clone(&definition.name);
        self.events.emit(Event::Job(JobEvent { job, slot, outcome }));
    }
}
