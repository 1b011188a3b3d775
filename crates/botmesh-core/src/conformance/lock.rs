//! Cases about locks.

use std::time::Duration;

use tokio::time::Instant;

use super::case::{GRAIN, ensure, ensure_eq, eventually};
use super::samples::{long_keys, strange_texts};
use super::store::{Space, at_once, locks};
use super::{CaseError, StoreFixture};
use crate::id::Fence;
use crate::store::{FencedLock, LockStore, LockToken};

const MINUTE: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(300);

async fn acquire(locks: &dyn LockStore, key: &str, ttl: Duration) -> Result<FencedLock, CaseError> {
    let lock = locks.acquire_lock_fenced(key, ttl).await?;
    lock.ok_or_else(|| CaseError::Violation(format!("the lock {key:?} is free but was not given")))
}

/// B3: of many who take one lock at once, through several handles, exactly one gets it.
pub async fn of_many_who_take_a_lock_exactly_one_gets_it(
    fixture: &dyn StoreFixture,
) -> Result<(), CaseError> {
    let space = Space::new(fixture);
    let handles = [space.open().await?, space.open().await?, space.open().await?];
    let first = locks(&*handles[0])?;
    let mut highest = Fence::new(0);
    for round in 0..5 {
        let taken = at_once(&handles, 12, |store, _| async move {
            match store.locks() {
                Some(locks) => locks.acquire_lock_fenced("k", MINUTE).await,
                None => Ok(None),
            }
        });
        let taken: Vec<_> = taken.await?.into_iter().flatten().collect();
        ensure_eq!(taken.len(), 1, "holders of one lock in round {round}");
        for lock in taken {
            ensure!(lock.fence > highest, "fence {} after {highest}", lock.fence);
            highest = lock.fence;
            ensure!(first.release_lock("k", &lock.token).await?, "an own lock was not released");
        }
    }
    Ok(())
}

/// B3: the fence grows with each acquisition, after release as well as after expiry.
pub async fn the_fence_of_a_lock_grows_over_release_and_expiry(
    fixture: &dyn StoreFixture,
) -> Result<(), CaseError> {
    let store = Space::new(fixture).open().await?;
    let locks = locks(&*store)?;
    let mut highest = Fence::new(0);
    for round in 0..12 {
        let expire = round % 3 == 2;
        let ttl = if expire { Duration::from_millis(30) } else { MINUTE };
        let lock = acquire(locks, "k", ttl).await?;
        ensure!(lock.fence > highest, "round {round}: fence {} after {highest}", lock.fence);
        highest = lock.fence;
        if expire {
            eventually(fixture, "the lock expires", async || {
                let again = locks.acquire_lock_fenced("k", MINUTE).await?;
                let Some(again) = again else { return Ok(false) };
                ensure!(again.fence > highest, "fence {} after {highest}", again.fence);
                highest = again.fence;
                Ok(locks.release_lock("k", &again.token).await?)
            })
            .await?;
        } else {
            ensure!(locks.release_lock("k", &lock.token).await?, "an own lock was not released");
            ensure!(!locks.release_lock("k", &lock.token).await?, "a lock was released twice");
        }
    }
    Ok(())
}

/// B3: renewing and releasing need the token of the present holder.
pub async fn only_the_token_of_the_holder_renews_and_releases(
    fixture: &dyn StoreFixture,
) -> Result<(), CaseError> {
    let store = Space::new(fixture).open().await?;
    let locks = locks(&*store)?;
    let stranger = LockToken::random();
    ensure!(!locks.renew_lock("k", &stranger, MINUTE).await?, "a free lock was renewed");
    ensure!(!locks.release_lock("k", &stranger).await?, "a free lock was released");
    let former = acquire(locks, "k", MINUTE).await?;
    ensure!(locks.release_lock("k", &former.token).await?, "an own lock was not released");
    let holder = acquire(locks, "k", MINUTE).await?;
    for token in [&stranger, &former.token] {
        ensure!(!locks.renew_lock("k", token, MINUTE).await?, "renewed by who does not hold it");
        ensure!(!locks.release_lock("k", token).await?, "released by who does not hold it");
        let second = locks.acquire_lock_fenced("k", MINUTE).await?;
        ensure!(second.is_none(), "a lock that is held was given to another");
    }
    ensure!(locks.renew_lock("k", &holder.token, MINUTE).await?, "an own lock was not renewed");
    ensure!(locks.release_lock("k", &holder.token).await?, "an own lock was not released");
    Ok(())
}

/// B3, B4: a lock is held for its time, told by the backend's clock, and then by nobody.
pub async fn a_lock_is_held_for_its_time_and_no_longer(
    fixture: &dyn StoreFixture,
) -> Result<(), CaseError> {
    let store = Space::new(fixture).open().await?;
    let locks = locks(&*store)?;
    let started = Instant::now();
    let former = acquire(locks, "k", SHORT).await?;
    let mut holder = None;
    eventually(fixture, "the lock expires", async || {
        holder = locks.acquire_lock_fenced("k", MINUTE).await?;
        let after = started.elapsed();
        ensure!(
            holder.is_none() || after + GRAIN >= SHORT,
            "given to another after {after:?}, although held for {SHORT:?}"
        );
        Ok(holder.is_some())
    })
    .await?;
    ensure!(!locks.renew_lock("k", &former.token, MINUTE).await?, "renewed after expiry");
    ensure!(!locks.release_lock("k", &former.token).await?, "released after expiry");
    ensure!(
        locks.acquire_lock_fenced("k", MINUTE).await?.is_none(),
        "the former holder took the lock of the present one away"
    );

    let expired = acquire(locks, "nobody", Duration::from_millis(30)).await?;
    acquire(locks, "later", Duration::from_millis(40)).await?;
    eventually(fixture, "a lock that ends later expires", async || {
        Ok(locks.acquire_lock_fenced("later", MINUTE).await?.is_some())
    })
    .await?;
    ensure!(!locks.renew_lock("nobody", &expired.token, MINUTE).await?, "renewed after expiry");
    ensure!(!locks.release_lock("nobody", &expired.token).await?, "released after expiry");
    Ok(())
}

/// B3: a lock that is renewed stays with its holder beyond its first time.
pub async fn a_renewed_lock_is_kept(fixture: &dyn StoreFixture) -> Result<(), CaseError> {
    let store = Space::new(fixture).open().await?;
    let locks = locks(&*store)?;
    let kept = acquire(locks, "kept", SHORT).await?;
    acquire(locks, "lost", SHORT).await?;
    ensure!(locks.renew_lock("kept", &kept.token, MINUTE).await?, "an own lock was not renewed");
    eventually(fixture, "the other lock expires", async || {
        Ok(locks.acquire_lock_fenced("lost", MINUTE).await?.is_some())
    })
    .await?;
    let second = locks.acquire_lock_fenced("kept", MINUTE).await?;
    ensure!(second.is_none(), "a lock that was renewed expired after its first time");
    ensure!(locks.release_lock("kept", &kept.token).await?, "an own lock was not released");
    Ok(())
}

/// B4: locks of keys that differ are different locks, however alike the keys look.
pub async fn locks_of_keys_that_look_alike_do_not_meet(
    fixture: &dyn StoreFixture,
) -> Result<(), CaseError> {
    let store = Space::new(fixture).open().await?;
    let locks = locks(&*store)?;
    let keys: Vec<_> = strange_texts().into_iter().chain(long_keys()).collect();
    let mut held = Vec::new();
    for key in &keys {
        held.push(acquire(locks, key, MINUTE).await?);
    }
    for (key, lock) in keys.iter().zip(held) {
        ensure!(locks.release_lock(key, &lock.token).await?, "the lock {key:?} was not released");
    }
    Ok(())
}
