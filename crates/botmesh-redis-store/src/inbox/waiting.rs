//! Which chats somebody has to look after.

use std::collections::HashSet;
use std::time::Duration;

use botmesh_core::ChatKey;
use botmesh_core::id::ProviderId;
use botmesh_core::store::StoreError;
use futures_util::future::try_join_all;
use redis::Value;

use crate::error::corrupt;
use crate::store::Repeat;
use crate::{RedisStore, argument, reply, script};

/// How many chats one script looks at.
const AT_ONCE: usize = 64;

/// A chat and the moment at which its lease ended.
type Ended = (u64, ChatKey);

impl RedisStore {
    /// Looks first and takes then: the buckets of a cluster know nothing of each other, and none
    /// may take more than is told in the end.
    pub(super) async fn take_waiting_chats(
        &self,
        provider: &ProviderId,
        lease: Duration,
        limit: usize,
    ) -> Result<Vec<ChatKey>, StoreError> {
        let indexes = self.space().leases(provider);
        let found = try_join_all(indexes.iter().map(|index| self.ended_leases(index, limit)));
        let mut found: Vec<(Ended, &str)> =
            Vec::from_iter(
                found.await?.into_iter().zip(&indexes).flat_map(|(ended, index)| {
                    ended.into_iter().map(|ended| (ended, index.as_str()))
                }),
            );
        found.sort_unstable();
        found.truncate(limit);
        let mut taking = Vec::new();
        for index in &indexes {
            let chats = found.iter().filter(|(_, of)| of == index).map(|((_, chat), _)| chat);
            let chats: Vec<&ChatKey> = chats.collect();
            taking.extend(chats.chunks(AT_ONCE).map(|chats| {
                let chats = chats.to_vec();
                self.lease_again(index, lease, chats)
            }));
        }
        let taken: HashSet<ChatKey> = try_join_all(taking).await?.into_iter().flatten().collect();
        let told = found.into_iter().map(|((_, chat), _)| chat);
        Ok(told.filter(|chat| taken.contains(chat)).collect())
    }

    async fn ended_leases(&self, index: &str, limit: usize) -> Result<Vec<Ended>, StoreError> {
        let limit = limit.to_string();
        let script = &script::INBOX_WAITING;
        let arguments = [limit.as_bytes()];
        let operation = "finding chats that wait";
        let answer = self.call(operation, Repeat::Freely, script, &[index], &arguments).await?;
        let Value::Array(parts) = answer else {
            return Err(corrupt("a list of chats that wait", "it is no list"));
        };
        let mut parts = parts.into_iter();
        let mut found = Vec::with_capacity(parts.len() / 2);
        while let (Some(chat), Some(ended)) = (parts.next(), parts.next()) {
            let chat = super::chat(&reply::text(chat, "a chat that waits")?)?;
            found.push((reply::number(ended, "the end of a lease")?, chat));
        }
        Ok(found)
    }

    /// Those of the chats whose leases have ended, and begin anew by this.
    async fn lease_again(
        &self,
        index: &str,
        lease: Duration,
        chats: Vec<&ChatKey>,
    ) -> Result<Vec<ChatKey>, StoreError> {
        let pending: Vec<_> = chats.iter().map(|chat| self.space().inbox(chat).pending).collect();
        let keys: Vec<&str> =
            [index].into_iter().chain(pending.iter().map(String::as_str)).collect();
        let lease = argument::time(lease);
        let own = [lease.as_str()].into_iter();
        let words = own.chain(chats.iter().map(|chat| chat.as_str()));
        let arguments: Vec<&[u8]> = words.map(str::as_bytes).collect();
        let script = &script::INBOX_LEASE;
        let operation = "taking chats that wait";
        let answer = self.call(operation, Repeat::Freely, script, &keys, &arguments).await?;
        let Value::Array(leased) = answer else {
            return Err(corrupt("a list of leases", "it is no list"));
        };
        let mut taken = Vec::with_capacity(chats.len());
        for (chat, leased) in chats.into_iter().zip(leased) {
            if reply::flag(leased, "whether a lease has ended")? {
                taken.push(chat.clone());
            }
        }
        Ok(taken)
    }
}
