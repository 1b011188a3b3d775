use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;
use tokio::runtime::Handle;

use super::error::CoordinationError;
use super::key::CoordinationKey;
use super::session::SessionLease;

/// Gives up at the backend what guards held.
pub trait Releaser: fmt::Debug + Send + Sync + 'static {
    /// Gives up one ticket. Done when the backend has confirmed it, or when its session has ended,
    /// which frees the key too.
    fn give_up(self: Arc<Self>, release: Release) -> BoxFuture<'static, ()>;
}

/// A ticket whose turn, leadership or place in the queue is given up.
#[derive(Debug, Clone)]
pub struct Release {
    /// The chat or leadership.
    pub key: CoordinationKey,
    /// The lease under which it was reserved.
    pub session: Arc<SessionLease>,
    /// Its number within the incarnation.
    pub sequence: u64,
}

/// Where guards leave what they give up. Cheap to clone.
///
/// Whoever awaits a release carries it out without another task; what is dropped becomes a task of
/// the runtime, for dropping cannot wait.
#[derive(Clone)]
pub struct Releases {
    // Guards may outlive the coordinator.
    releaser: Weak<dyn Releaser>,
    runtime: Handle,
}

impl Releases {
    /// Leaves what is given up to `releaser`, on `runtime` where nobody waits.
    #[must_use]
    pub const fn new(releaser: Weak<dyn Releaser>, runtime: Handle) -> Self {
        Self { releaser, runtime }
    }

    /// Gives one ticket up without waiting for it.
    pub fn put(&self, release: Release) {
        // After the coordinator is gone, its session is stopped and nothing is held.
        if let Some(releaser) = self.releaser.upgrade() {
            self.runtime.spawn(releaser.give_up(release));
        }
    }

    /// Gives one ticket up and waits for it. Dropped meanwhile, it goes on by itself.
    async fn carry_out(&self, release: Release) -> Result<(), CoordinationError> {
        let releaser = self.releaser.upgrade().ok_or(CoordinationError::Stopped)?;
        let rest = Some(releaser.give_up(release));
        ReleaseInPerson { rest, runtime: &self.runtime }.await;
        Ok(())
    }

    pub(super) fn same_as(&self, other: &Self) -> bool {
        std::ptr::addr_eq(self.releaser.as_ptr(), other.releaser.as_ptr())
    }
}

impl fmt::Debug for Releases {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Releases")
    }
}

/// A release that its caller waits for; the rest of it is left to the runtime when it is dropped.
struct ReleaseInPerson<'a> {
    rest: Option<BoxFuture<'static, ()>>,
    runtime: &'a Handle,
}

impl Future for ReleaseInPerson<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let polled = self.rest.as_mut().map_or(Poll::Ready(()), |rest| rest.as_mut().poll(context));
        if polled.is_ready() {
            self.rest = None;
        }
        polled
    }
}

impl Drop for ReleaseInPerson<'_> {
    fn drop(&mut self) {
        if let Some(rest) = self.rest.take() {
            self.runtime.spawn(rest);
        }
    }
}

/// One reserved ticket, given up exactly once: when it is released or dropped.
#[derive(Debug)]
pub(super) struct Claim {
    pub(super) key: CoordinationKey,
    pub(super) session: Arc<SessionLease>,
    pub(super) sequence: u64,
    releases: Option<Releases>,
}

impl Claim {
    pub(super) const fn new(
        key: CoordinationKey,
        session: Arc<SessionLease>,
        sequence: u64,
        releases: Releases,
    ) -> Self {
        Self { key, session, sequence, releases: Some(releases) }
    }

    fn give_up(&mut self) -> Option<(Releases, Release)> {
        let releases = self.releases.take()?;
        let (key, session) = (self.key.clone(), Arc::clone(&self.session));
        Some((releases, Release { key, session, sequence: self.sequence }))
    }

    /// Whoever had the ticket has it no more, and the backend knows.
    pub(super) fn forget(mut self) {
        self.releases = None;
    }

    pub(super) fn comes_from(&self, releases: &Releases) -> bool {
        self.releases.as_ref().is_some_and(|own| own.same_as(releases))
    }

    pub(super) async fn release(mut self) -> Result<(), CoordinationError> {
        match self.give_up() {
            Some((releases, release)) => releases.carry_out(release).await,
            None => Ok(()),
        }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if let Some((releases, release)) = self.give_up() {
            releases.put(release);
        }
    }
}
