use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use crate::coordination::client::BackendError;
use crate::watched::Watched;

/// What goes wrong between one coordinator and the hub. Clones are the same faults.
#[derive(Debug, Clone)]
pub struct CoordinationFaults(Arc<Faults>);

#[derive(Debug)]
struct Faults {
    requests: AtomicU64,
    plan: Mutex<Plan>,
    reachable: Watched<bool>,
}

/// What happens to the operations to come.
#[derive(Debug, Clone, Copy, Default)]
struct Plan {
    lose_requests: u32,
    lose_replies: u32,
    refuse: u32,
    delay: Duration,
    drop_pushes: bool,
}

impl Default for CoordinationFaults {
    fn default() -> Self {
        let (plan, reachable) = (Mutex::default(), Watched::new(true));
        Self(Arc::new(Faults { requests: AtomicU64::new(0), plan, reachable }))
    }
}

impl CoordinationFaults {
    /// Loses the next `count` requests on their way: they are not executed, which the coordinator
    /// cannot know.
    pub fn lose_requests(&self, count: u32) {
        self.0.plan.lock().lose_requests = count;
    }

    /// Loses the next `count` answers: their operations are executed, which the coordinator cannot
    /// know.
    pub fn lose_replies(&self, count: u32) {
        self.0.plan.lock().lose_replies = count;
    }

    /// Refuses the next `count` operations, as a server that is loading does.
    pub fn refuse(&self, count: u32) {
        self.0.plan.lock().refuse = count;
    }

    /// Delays every operation on its way by `delay`.
    pub fn delay(&self, delay: Duration) {
        self.0.plan.lock().delay = delay;
    }

    /// Drops the wake-ups *for* this coordinator, or delivers them again.
    pub fn drop_pushes(&self, drop: bool) {
        self.0.plan.lock().drop_pushes = drop;
    }

    /// How many requests the coordinator has sent, heartbeats included.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.0.requests.load(Ordering::Relaxed)
    }

    /// Freezes the traffic, as a stopped process or a cut cable does: nothing is sent or received
    /// until [`thaw`](Self::thaw).
    pub fn freeze(&self) {
        self.0.reachable.replace(false);
    }

    /// Ends a freeze.
    pub fn thaw(&self) {
        self.0.reachable.replace(true);
    }

    pub(super) async fn pass(&self) {
        self.0.reachable.watch().wait_for(|reachable| *reachable).await;
    }

    /// Carries an operation to the hub and its answer back, as far as they get.
    pub(super) async fn carry<T>(
        &self,
        executed: impl Future<Output = Result<T, BackendError>>,
    ) -> Result<T, BackendError> {
        let lost = |what: &str| BackendError::Unknown(format!("the {what} was lost").into());
        self.0.requests.fetch_add(1, Ordering::Relaxed);
        let plan = self.take();
        if !plan.delay.is_zero() {
            tokio::time::sleep(plan.delay).await;
        }
        self.pass().await;
        if plan.lose_requests > 0 {
            return Err(lost("request"));
        }
        if plan.refuse > 0 {
            return Err(BackendError::Refused("the hub was told to refuse".into()));
        }
        let answer = executed.await?;
        if plan.lose_replies > 0 {
            return Err(lost("answer"));
        }
        self.pass().await;
        Ok(answer)
    }

    /// Takes what happens to one operation.
    fn take(&self) -> Plan {
        let mut plan = self.0.plan.lock();
        let taken = *plan;
        if taken.lose_requests > 0 {
            plan.lose_requests -= 1;
        } else if taken.refuse > 0 {
            plan.refuse -= 1;
        } else if taken.lose_replies > 0 {
            plan.lose_replies -= 1;
        }
        taken
    }

    pub(super) fn drops_pushes(&self) -> bool {
        self.0.plan.lock().drop_pushes || !self.0.reachable.get()
    }
}
