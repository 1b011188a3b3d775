use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::Instant;

use crate::coordination::{Coordinator, Leadership};
use crate::error::BotError;
use crate::id::{Fence, LeaderName};
use crate::store::{FencedLock, LockStore, Store, StoreError};

/// Gives the exclusive right to run durable jobs to one replica at a time.
///
/// With [`Bot::coordination`](crate::Bot::coordination) the coordinator does; without it, or to
/// use another backend, a store's locks can ([`StoreLeases`]).
#[async_trait]
pub trait Leases: Debug + Send + Sync + 'static {
    /// Waits until this replica has the right. Dropping the future gives up the wait.
    ///
    /// # Errors
    /// When it cannot be had; it is tried again after a pause.
    async fn acquire(&self, name: &LeaderName) -> Result<Box<dyn Lease>, BotError>;
}

/// The right, until it is released, dropped or lost.
#[async_trait]
pub trait Lease: Send {
    /// Grows with each replica that has it.
    fn fence(&self) -> Fence;

    /// Waits until it may be another replica's soon. It has to be awaited all the time, as this may
    /// be what renews the lease.
    async fn lost(&mut self);

    /// Gives it up.
    async fn release(self: Box<Self>);
}

/// Leases by leaderships of a coordinator.
#[derive(Debug)]
pub struct CoordinatorLeases(Arc<dyn Coordinator>);

impl CoordinatorLeases {
    /// Leases by `coordinator`, which somebody else starts and stops.
    pub fn new(coordinator: Arc<dyn Coordinator>) -> Self {
        Self(coordinator)
    }
}

#[async_trait]
impl Leases for CoordinatorLeases {
    async fn acquire(&self, name: &LeaderName) -> Result<Box<dyn Lease>, BotError> {
        Ok(Box::new(Led(self.0.lead(name).await?)))
    }
}

struct Led(Leadership);

#[async_trait]
impl Lease for Led {
    fn fence(&self) -> Fence {
        self.0.fence()
    }

    async fn lost(&mut self) {
        let _ = self.0.lost().await;
    }

    async fn release(self: Box<Self>) {
        if let Err(error) = self.0.release().await {
            tracing::debug!(%error, "the scheduler's leadership ends with its lease");
        }
    }
}

/// Leases by the fenced locks of a store: 15 s, renewed every 5 s, and given up 2 s before they run
/// out.
#[derive(Debug, Clone)]
pub struct StoreLeases<S>(Arc<S>);

const TTL: Duration = Duration::from_secs(15);
const MARGIN: Duration = Duration::from_secs(2);

impl<S: Store> StoreLeases<S> {
    /// Leases by the locks of `store`.
    pub fn new(store: S) -> Self {
        Self(Arc::new(store))
    }
}

fn locks<S: Store>(store: &S) -> Result<&dyn LockStore, BotError> {
    store.locks().ok_or_else(|| {
        BotError::message(format!(
            "the store {} has no locks: lease the scheduler by a store that has, or by coordination",
            store.name()
        ))
    })
}

#[async_trait]
impl<S: Store> Leases for StoreLeases<S> {
    async fn acquire(&self, name: &LeaderName) -> Result<Box<dyn Lease>, BotError> {
        let key = format!("lease:{name}");
        loop {
            let sent = Instant::now();
            let lock = locks(&*self.0)?.acquire_lock_fenced(&key, TTL).await?;
            if let Some(lock) = lock {
                let deadline = sent + TTL - MARGIN;
                let store = Arc::clone(&self.0);
                return Ok(Box::new(Locked { store, key, lock, deadline }));
            }
            tokio::time::sleep(TTL / 5).await;
        }
    }
}

struct Locked<S> {
    store: Arc<S>,
    key: String,
    lock: FencedLock,
    /// By this process's own clock, counted from before the request was sent.
    deadline: Instant,
}

impl<S: Store> Locked<S> {
    /// Whether the store has it still.
    async fn renew(&mut self) -> Result<bool, StoreError> {
        let Some(locks) = self.store.locks() else { return Ok(false) };
        let sent = Instant::now();
        let renewed = locks.renew_lock(&self.key, &self.lock.token, TTL).await?;
        if renewed {
            self.deadline = sent + TTL - MARGIN;
        }
        Ok(renewed)
    }
}

#[async_trait]
impl<S: Store> Lease for Locked<S> {
    fn fence(&self) -> Fence {
        self.lock.fence
    }

    async fn lost(&mut self) {
        let mut pause = TTL / 3;
        loop {
            let deadline = self.deadline;
            let renewed = async {
                tokio::time::sleep(pause).await;
                self.renew().await
            };
            match tokio::time::timeout_at(deadline, renewed).await {
                Ok(Ok(true)) => pause = TTL / 3,
                Ok(Err(error)) => {
                    tracing::warn!(%error, "the scheduler's lease was not renewed");
                    pause = TTL / 15;
                }
                Ok(Ok(false)) | Err(_) => return,
            }
        }
    }

    async fn release(self: Box<Self>) {
        let Some(locks) = self.store.locks() else { return };
        if let Err(error) = locks.release_lock(&self.key, &self.lock.token).await {
            tracing::debug!(%error, "the scheduler's lease runs out by itself");
        }
    }
}
