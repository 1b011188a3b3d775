//! On a cluster: one session in each bucket, which live and die together.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use botmesh_core::coordination::client::BackendError;
use botmesh_core::coordination::transition::{Operation, Reply};
use botmesh_core::id::IncarnationId;
use futures_util::future::join_all;

use super::backend::RedisBackend;
use super::wire::Call;
use crate::link::Link;

/// In which buckets the present incarnation has a session.
#[derive(Debug, Default)]
pub(super) struct Sessions(Mutex<Entered>);

#[derive(Debug, Default)]
struct Entered {
    incarnation: Option<IncarnationId>,
    lease: Duration,
    epoch: u32,
    buckets: BTreeSet<usize>,
}

impl Sessions {
    fn entered(&self) -> MutexGuard<'_, Entered> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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
        let chosen: Vec<usize> = match operation {
            Operation::Register { incarnation, lease } => {
                *self.sessions.entered() = Entered {
                    incarnation: Some(incarnation.clone()),
                    lease: *lease,
                    ..Entered::default()
                };
                (0..all.len()).collect()
            }
            Operation::Heartbeat { incarnation, epoch, .. } => {
                let mut entered = self.sessions.entered();
                if entered.incarnation.as_ref() != Some(incarnation) {
                    return Ok(Reply::Expired);
                }
                entered.epoch = entered.epoch.max(*epoch);
                entered.buckets.iter().copied().collect()
            }
            _ => (0..all.len()).collect(),
        };
        let calls = chosen.iter().map(|bucket| self.call(link, call, &all[*bucket..=*bucket]));
        let replies: Vec<_> = chosen.iter().copied().zip(join_all(calls).await).collect();
        match operation {
            Operation::Register { incarnation, .. } => self.registered(incarnation, replies),
            _ => combine(replies),
        }
    }

    /// A part of the cluster may be away: its buckets are entered when they are needed.
    fn registered(
        &self,
        incarnation: &IncarnationId,
        replies: Vec<(usize, Result<Reply, BackendError>)>,
    ) -> Result<Reply, BackendError> {
        let mut entered = self.sessions.entered();
        let mut failure = None;
        for (bucket, reply) in replies {
            match reply {
                Ok(Reply::Registered) if entered.incarnation.as_ref() == Some(incarnation) => {
                    entered.buckets.insert(bucket);
                }
                Ok(reply) => return Ok(reply),
                Err(unfit @ BackendError::Unfit(_)) => return Err(unfit),
                Err(error) => failure = Some(error),
            }
        }
        match failure {
            Some(error) if entered.buckets.is_empty() => Err(error),
            _ => Ok(Reply::Registered),
        }
    }

    /// Makes sure that the present incarnation has a session in a bucket.
    pub(super) async fn enter(&self, bucket: usize, link: &Link) -> Result<(), BackendError> {
        let (incarnation, lease, epoch) = {
            let entered = self.sessions.entered();
            match &entered.incarnation {
                Some(incarnation) if !entered.buckets.contains(&bucket) => {
                    (incarnation.clone(), entered.lease, entered.epoch)
                }
                _ => return Ok(()),
            }
        };
        let all = self.space.sessions();
        let keys = &all[bucket..=bucket];
        let register = Operation::Register { incarnation: incarnation.clone(), lease };
        let mut operations = vec![register];
        if epoch > 0 {
            let (incarnation, age) = (incarnation.clone(), Duration::ZERO);
            operations.push(Operation::Heartbeat { incarnation, epoch, age });
        }
        for operation in operations {
            if let Some(call) = self.encode(&operation) {
                // A duplicate is our own, whose answer was lost.
                self.call(link, &call, keys).await?;
            }
        }
        let mut entered = self.sessions.entered();
        if entered.incarnation.as_ref() == Some(&incarnation) {
            entered.buckets.insert(bucket);
        }
        Ok(())
    }
}

/// One answer for all buckets: what is lost in one is lost.
fn combine(replies: Vec<(usize, Result<Reply, BackendError>)>) -> Result<Reply, BackendError> {
    let mut answer = Reply::Stopped;
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
