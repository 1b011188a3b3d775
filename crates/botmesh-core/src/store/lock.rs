use std::fmt;
use std::time::Duration;

use async_trait::async_trait;

use super::StoreError;
use crate::id::Fence;

/// A lock that was acquired: what proves its possession, and its fence.
///
/// The fence grows with each acquisition of the same key. Give it to the resource that the lock
/// protects and let the resource refuse a fence lower than one it has seen: then a holder that was
/// frozen for longer than its lock can do no harm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FencedLock {
    /// Proves possession; needed to renew and to release.
    pub token: LockToken,
    /// Grows with each acquisition of the key, also after expiry and deletion.
    pub fence: Fence,
}

/// Proves the possession of a lock. `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct LockToken(String);

impl LockToken {
    /// A random token.
    #[must_use]
    pub fn random() -> Self {
        Self(uuid::Uuid::new_v4().simple().to_string())
    }

    /// The text that is stored.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for LockToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LockToken(..)")
    }
}

/// Locks that expire, with fences.
#[async_trait]
pub trait LockStore: Send + Sync {
    /// Takes the lock `key` for `ttl` if nobody holds it; none when somebody does.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn acquire_lock_fenced(
        &self,
        key: &str,
        ttl: Duration,
    ) -> Result<Option<FencedLock>, StoreError>;

    /// Holds the lock for another `ttl` from now; false when `token` does not hold it any more.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn renew_lock(
        &self,
        key: &str,
        token: &LockToken,
        ttl: Duration,
    ) -> Result<bool, StoreError>;

    /// Gives the lock back; false when `token` did not hold it any more.
    ///
    /// # Errors
    /// [`StoreError`].
    async fn release_lock(&self, key: &str, token: &LockToken) -> Result<bool, StoreError>;
}
