//! How records end, together with what they did to the checkpoint.

use botmesh_core::id::Revision;
use botmesh_core::store::{CheckpointChange, Commit, Committed, FENCE_MEMORY, StoreError};
use redis::Value;

use crate::keys::{InboxKeys, Keyspace, SharedInboxKeys};
use crate::words::Words;
use crate::{RedisStore, argument, reply, script};

/// Enough for most ends.
const ARGUMENTS: usize = 9;
const BYTES: usize = 512;

/// What the scripts need that end a record: keys and arguments.
pub(crate) fn ending(space: &Keyspace, request: &str, commit: &Commit<'_>) -> ([String; 8], Words) {
    let InboxKeys { records, pending, leases, commit: last, shared } = space.inbox(commit.chat);
    let SharedInboxKeys { claims, done, .. } = shared;
    let [row, wakes] = space.checkpoint(commit.chat.as_str());
    let mut arguments = Words::with_capacity(ARGUMENTS, BYTES);
    arguments.push(commit.chat.as_str());
    arguments.push(&argument::fence(commit.fence));
    match commit.checkpoint {
        CheckpointChange::Nothing => {}
        CheckpointChange::Set { write, expected } => {
            arguments.push(&argument::expected(expected));
            arguments.push(write.body);
            arguments.push(&argument::end(write.wake_in));
            arguments.push(&argument::end(write.expires_in));
        }
        CheckpointChange::Clear { expected } => {
            arguments.push(&argument::expected(Some(expected)));
        }
    }
    arguments.push(&argument::time(FENCE_MEMORY));
    arguments.push(request);
    arguments.push_display(commit.position);
    ([row, wakes, records, pending, leases, claims, done, last], arguments)
}

impl RedisStore {
    pub(super) async fn commit_record(&self, commit: Commit<'_>) -> Result<Committed, StoreError> {
        let (keys, arguments) = ending(self.space(), &self.request(), &commit);
        let script = match commit.checkpoint {
            CheckpointChange::Nothing => &script::INBOX_COMMIT,
            CheckpointChange::Set { .. } => &script::INBOX_COMMIT_SET,
            CheckpointChange::Clear { .. } => &script::INBOX_COMMIT_CLEAR,
        };
        let answer = self.call_words("ending a record", script, &keys, &arguments).await?;
        read_committed(answer, &commit)
    }
}

pub(crate) fn read_committed(answer: Value, commit: &Commit<'_>) -> Result<Committed, StoreError> {
    match reply::optional(answer) {
        None => Ok(Committed::Refused),
        Some(revision) if matches!(commit.checkpoint, CheckpointChange::Set { .. }) => {
            let revision = reply::number(revision, "the revision of a checkpoint")?;
            Ok(Committed::Applied(Some(Revision::new(revision))))
        }
        Some(_) => Ok(Committed::Applied(None)),
    }
}
