//! How records end, together with what they did to the checkpoint.

use botmesh_core::id::Revision;
use botmesh_core::store::{CheckpointChange, Commit, Committed, FENCE_MEMORY, StoreError};
use redis::Value;

use crate::store::Repeat;
use crate::{RedisStore, argument, reply, script};

impl RedisStore {
    pub(super) async fn commit_record(&self, commit: Commit<'_>) -> Result<Committed, StoreError> {
        let Commit { chat, position, fence, checkpoint } = commit;
        let keys = self.space().inbox(chat);
        let [row, wakes] = self.space().checkpoint(chat.as_str());
        let keys = [
            &*row,
            &*wakes,
            &*keys.records,
            &*keys.pending,
            &*keys.leases,
            &*keys.shared.claims,
            &*keys.shared.done,
            &*keys.commit,
        ];
        let (fence, request) = (argument::fence(fence), self.request());
        let (memory, position) = (argument::time(FENCE_MEMORY), position.to_string());
        let operation = "ending a record";
        let call = async |script, change: &[&str]| {
            let mut arguments: Vec<&[u8]> = Vec::with_capacity(9);
            arguments.extend([chat.as_str(), &fence].map(str::as_bytes));
            arguments.extend(change.iter().map(|word| word.as_bytes()));
            arguments.extend([&*memory, &request, &position].map(str::as_bytes));
            self.call(operation, Repeat::Freely, script, &keys, &arguments).await
        };
        match checkpoint {
            CheckpointChange::Nothing => read(call(&script::INBOX_COMMIT, &[]).await?, false),
            CheckpointChange::Set { write, expected } => {
                let expected = argument::expected(expected);
                let (wake, end) = (argument::end(write.wake_in), argument::end(write.expires_in));
                let change = [&*expected, write.body, &*wake, &*end];
                read(call(&script::INBOX_COMMIT_SET, &change).await?, true)
            }
            CheckpointChange::Clear { expected } => {
                let expected = argument::expected(Some(expected));
                read(call(&script::INBOX_COMMIT_CLEAR, &[&expected]).await?, false)
            }
        }
    }
}

fn read(answer: Value, has_set: bool) -> Result<Committed, StoreError> {
    match reply::optional(answer) {
        None => Ok(Committed::Refused),
        Some(revision) if has_set => {
            let revision = reply::number(revision, "the revision of a checkpoint")?;
            Ok(Committed::Applied(Some(Revision::new(revision))))
        }
        Some(_) => Ok(Committed::Applied(None)),
    }
}
