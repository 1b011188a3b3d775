use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::Bot;
use super::problem::Problem;
use crate::error::BotError;
use crate::provider::Provider;
use crate::runtime::{BoxJob, JobContext, JobDefinition, Jobs};
use crate::schedule::{CoordinatorLeases, Job, Leases, Schedule, ScheduleError, Zone};
use crate::store::Store;
use crate::time::{Clock, Timestamp};

/// A job that was added and not checked yet.
pub(super) struct PendingJob {
    setting: &'static str,
    job: Job,
    schedule: Result<Schedule, ScheduleError>,
    run: BoxJob,
}

/// The jobs of a definition.
#[derive(Default)]
pub(super) struct PendingJobs {
    jobs: Vec<PendingJob>,
    leases: Option<Arc<dyn Leases>>,
    clock: Clock,
}

/// Jobs (feature `scheduler`).
impl Bot {
    /// Runs a job every `period`: at its multiples, counted from 1970-01-01 UTC, so that all
    /// replicas and all restarts agree on the moments.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use botmesh_core::{Bot, testing::TestProvider};
    /// use botmesh_core::schedule::{durable, plain};
    /// let bot = Bot::new(TestProvider::new())
    ///     .every(Duration::from_secs(300), durable("report"), |job| async move {
    ///         println!("the report of {:?}", job.slot());
    ///         Ok(())
    ///     })
    ///     .every(Duration::from_secs(10), plain("cache"), |_| async { Ok(()) });
    /// ```
    pub fn every<F, R, T>(self, period: Duration, job: Job, run: F) -> Self
    where
        F: Fn(JobContext) -> R + Send + Sync + 'static,
        R: Future<Output = Result<T, BotError>> + Send + 'static,
    {
        self.job("Bot::every", job, Schedule::every(period), run)
    }

    /// Runs a job at the local times of a zone that match a [cron pattern](Schedule::cron).
    ///
    /// ```
    /// # use botmesh_core::{Bot, testing::TestProvider};
    /// use botmesh_core::schedule::{durable, tz};
    /// let bot = Bot::new(TestProvider::new()).cron(
    ///     "0 9 * * MON-FRI",
    ///     tz("America/Bogota"),
    ///     durable("standup"),
    ///     |_| async { Ok(()) },
    /// );
    /// ```
    pub fn cron<F, R, T>(self, pattern: &str, zone: Zone, job: Job, run: F) -> Self
    where
        F: Fn(JobContext) -> R + Send + Sync + 'static,
        R: Future<Output = Result<T, BotError>> + Send + 'static,
    {
        self.job("Bot::cron", job, Schedule::cron(pattern, &zone), run)
    }

    /// Runs a job once, at a moment. A durable one that was not run by then is run when the bot
    /// starts, unless its [misfire policy](Job::misfire) says otherwise.
    pub fn at<F, R, T>(self, moment: impl Into<Timestamp>, job: Job, run: F) -> Self
    where
        F: Fn(JobContext) -> R + Send + Sync + 'static,
        R: Future<Output = Result<T, BotError>> + Send + 'static,
    {
        self.job("Bot::at", job, Ok(Schedule::at(moment.into())), run)
    }

    fn job<F, R, T>(
        mut self,
        setting: &'static str,
        job: Job,
        schedule: Result<Schedule, ScheduleError>,
        run: F,
    ) -> Self
    where
        F: Fn(JobContext) -> R + Send + Sync + 'static,
        R: Future<Output = Result<T, BotError>> + Send + 'static,
    {
        let run: BoxJob = Box::new(move |context| {
            let done = run(context);
            Box::pin(async move { done.await.map(drop) })
        });
        self.jobs.jobs.push(PendingJob { setting, job, schedule, run });
        self
    }

    /// Who may run the durable jobs. Without it the coordinator decides, where there is
    /// [coordination](Self::coordination), else this process is the only one.
    ///
    /// ```
    /// # use botmesh_core::{Bot, MemoryStore, testing::TestProvider};
    /// use botmesh_core::schedule::StoreLeases;
    /// let store = MemoryStore::new();
    /// let bot = Bot::new(TestProvider::new())
    ///     .scheduler_lease(StoreLeases::new(store.clone()))
    ///     .store(store);
    /// ```
    pub fn scheduler_lease(mut self, leases: impl Leases) -> Self {
        self.jobs.leases = Some(Arc::new(leases));
        self
    }

    /// The clock of the schedules, for a test.
    #[cfg(any(test, feature = "testing"))]
    pub fn scheduler_clock(mut self, clock: Clock) -> Self {
        self.jobs.clock = clock;
        self
    }
}

impl PendingJobs {
    /// Checks the jobs, and makes them what the runtime runs.
    pub(super) fn define(
        self,
        store: Option<&dyn Store>,
        providers: &[Arc<dyn Provider>],
        coordination: Option<&super::Coordination>,
        problems: &mut Vec<Problem>,
    ) -> Jobs {
        let Self { jobs, leases, clock } = self;
        let leases = leases.or_else(|| {
            let coordinator = coordination.map(super::Coordination::coordinator)?;
            Some(Arc::new(CoordinatorLeases::new(coordinator)) as Arc<dyn Leases>)
        });
        let durable = jobs.iter().any(|pending| pending.job.durable);
        if durable {
            problems.extend(store_problems(store, leases.is_some()));
        }
        let mut definitions: Vec<Arc<JobDefinition>> = Vec::new();
        for PendingJob { setting, job, schedule, run } in jobs {
            let setting = format!("{setting}({:?})", job.name);
            let mut wrong = |text: String| problems.push(Problem::error(&*setting, text));
            if job.durable && definitions.iter().any(|it| it.job.durable && it.job.name == job.name)
            {
                wrong("another durable job has this name: give each its own".into());
            }
            if let Err(error) = job.key() {
                wrong(format!("the name does not fit: {error}"));
            }
            let known = |id: &String| providers.iter().any(|it| it.id().as_str() == id);
            if let Some(id) = job.beside.as_ref().filter(|id| !known(id)) {
                wrong(format!("the bot has no provider {id:?}: name one that it has in `beside`"));
            }
            if job.retry.attempts == 0 {
                wrong("with 0 attempts it never runs: allow at least 1".into());
            }
            if job.timeout == Some(Duration::ZERO) {
                wrong("a timeout of 0 leaves no time: give a duration".into());
            }
            match schedule {
                Err(error) => wrong(error.to_string()),
                Ok(schedule) => {
                    let name = job.name.as_str().into();
                    definitions.push(Arc::new(JobDefinition { name, job, schedule, run }));
                }
            }
        }
        Jobs { definitions, leases, clock }
    }
}

fn store_problems(store: Option<&dyn Store>, leased: bool) -> Vec<Problem> {
    let mut problems = Vec::new();
    let name = store.map_or("MemoryStore", Store::name);
    if store.is_some_and(|store| store.conditional_checkpoints().is_none()) {
        problems.push(Problem::error(
            "Bot::store",
            format!("durable jobs need compare-and-set, which the store {name} lacks: use another store, or plain jobs"),
        ));
    } else if !store.is_some_and(Store::is_durable) {
        problems.push(Problem::warning(
            "Bot::store",
            format!("{name} forgets when the process ends, and with it which occurrences of durable jobs were run"),
        ));
    }
    if !leased && store.is_some_and(Store::is_shared) {
        problems.push(Problem::warning(
            "Bot::scheduler_lease",
            "durable jobs take this process for the only one: with replicas, give a lease (`StoreLeases`) or coordination",
        ));
    }
    problems
}

impl fmt::Debug for PendingJobs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.jobs.iter().map(|pending| &pending.job.name)).finish()
    }
}
