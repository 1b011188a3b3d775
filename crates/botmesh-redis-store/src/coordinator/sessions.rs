//! On a cluster: one session in each bucket, which live and die together.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use botmesh_core::coordination::client::BackendError;
use botmesh_core::coordination::transition::{Operation, Reply};
use botmesh_core::id::IncarnationId;
use futures_util::future::join_all;

use super::backend::RedisBackend;
use super::wire::Call;
use crate::link::Link;

/// In which buckets incarnations have a session: the present one, and those that were not yet
/// stopped.
#[derive(Debug, Default)]
pub(super) struct Sessions(Mutex<HashMap<IncarnationId, Entered>>);

#[derive(Debug, Clone, Default)]
struct Entered {
    lease: Duration,
    epoch: u32,
    buckets: BTreeSet<usize>,
}

type Replies = Vec<(usize, Result<Reply, BackendError>)>;

impl Sessions {
    fn lock(&self) -> MutexGuard<'_, HashMap<IncarnationId, Entered>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// In which buckets a session is to be renewed.
    fn renewed(&self, incarnation: &IncarnationId, epoch: u32) -> Vec<usize> {
        let mut sessions = self.lock();
        let Some(entered) = sessions.get_mut(incarnation) else { return Vec::new() };
        entered.epoch = entered.epoch.max(epoch);
        entered.buckets.iter().copied().collect()
    }

    /// A part of the cluster may be away: its buckets are entered when they are needed.
    fn registered(
        &self,
        incarnation: &IncarnationId,
        lease: Duration,
        replies: Replies,
    ) -> Result<Reply, BackendError> {
        let mut buckets = BTreeSet::new();
        let (mut least, mut most) = (lease, lease);
        let mut failure = None;
        for (bucket, reply) in replies {
            match reply {
                Ok(Reply::Registered { shortest, longest }) => {
                    buckets.insert(bucket);
                    (least, most) = (least.min(shortest), most.max(longest));
                }
                Ok(reply) => return Ok(reply),
                Err(unfit @ BackendError::Unfit(_)) => return Err(unfit),
                Err(error) => failure = Some(error),
            }
        }
        match failure {
            Some(error) if buckets.is_empty() => Err(error),
            _ => {
                let entered = Entered { lease, epoch: 0, buckets };
                self.lock().insert(incarnation.clone(), entered);
                Ok(Reply::Registered { shortest: least, longest: most })
            }
        }
    }

    /// The session that is missing in a bucket.
    fn missing(&self, incarnation: &IncarnationId, bucket: usize) -> Option<Entered> {
        let sessions = self.lock();
        sessions.get(incarnation).filter(|entered| !entered.buckets.contains(&bucket)).cloned()
    }
}

impl RedisBackend {
    /// Executes an operation on the sessions of all buckets and answers for all of them.
    pub(super) async fn everywhere(
        &self,
        operation: &Operation,
        link: &Link,
        call: &Call,
    ) -> Result<Reply, BackendError> {
        let all = self.space.sessions();
        let chosen = match operation {
            Operation::Heartbeat { incarnation, epoch, .. } => {
                self.sessions.renewed(incarnation, *epoch)
            }
            _ => (0..all.len()).collect(),
        };
        let calls = chosen.iter().map(|bucket| self.call(link, call, &all[*bucket..=*bucket]));
        let replies = chosen.iter().copied().zip(join_all(calls).await).collect();
        match operation {
            Operation::Register { incarnation, lease } => {
                self.sessions.registered(incarnation, *lease, replies)
            }
            Operation::Heartbeat { incarnation, .. } => {
                let reply = combine(replies, Reply::Expired)?;
                if reply == Reply::Expired {
                    self.sessions.lock().remove(incarnation);
                }
                Ok(reply)
            }
            Operation::Stop { incarnation } => {
                self.sessions.lock().remove(incarnation);
                combine(replies, Reply::Stopped)
            }
            _ => combine(replies, Reply::NoSession),
        }
    }

    /// Makes sure that an incarnation which has sessions has one in this bucket.
    pub(super) async fn enter(
        &self,
        incarnation: &IncarnationId,
        bucket: usize,
        link: &Link,
    ) -> Result<(), BackendError> {
        let Some(Entered { lease, epoch, .. }) = self.sessions.missing(incarnation, bucket) else {
            return Ok(());
        };
        let all = self.space.sessions();
        let incarnation = incarnation.clone();
        let mut operations = vec![Operation::Register { incarnation: incarnation.clone(), lease }];
        if epoch > 0 {
            let (incarnation, age) = (incarnation.clone(), Duration::ZERO);
            operations.push(Operation::Heartbeat { incarnation, epoch, age });
        }
        for operation in operations {
            if let Some(call) = self.encode(&operation) {
                // A duplicate is our own, whose answer was lost.
                self.call(link, &call, &all[bucket..=bucket]).await?;
            }
        }
        if let Some(entered) = self.sessions.lock().get_mut(&incarnation) {
            entered.buckets.insert(bucket);
        }
        Ok(())
    }
}

/// One answer for all buckets, `none` when there are none: what is lost in one is lost.
fn combine(replies: Replies, none: Reply) -> Result<Reply, BackendError> {
    let mut answer = none;
    let mut failure: Option<BackendError> = None;
    for (_, reply) in replies {
        match reply {
            Ok(Reply::Expired) => return Ok(Reply::Expired),
            Ok(reply) if answer != Reply::Jumped => answer = reply,
            Ok(_) => {}
            // That an outcome is not known weighs more than that another was refused.
            Err(error) => match (&failure, &error) {
                (Some(BackendError::Unknown(_)), BackendError::Refused(_)) => {}
                _ => failure = Some(error),
            },
        }
    }
    failure.map_or(Ok(answer), Err)
}
