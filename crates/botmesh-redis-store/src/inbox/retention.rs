//! What is forgotten.

use botmesh_core::ChatKey;
use botmesh_core::store::{Retention, StoreError};
use futures_util::future::try_join_all;
use redis::Value;

use crate::error::corrupt;
use crate::keys::SharedInboxKeys;
use crate::store::Repeat;
use crate::{RedisStore, argument, reply, script};

/// How many records one script removes: it keeps the server from all else.
const AT_ONCE: usize = 1000;

/// How many places one script looks at.
const PLACES: usize = 64;

impl RedisStore {
    pub(super) async fn forget_records(
        &self,
        retention: Retention,
        limit: usize,
    ) -> Result<usize, StoreError> {
        let kept = [argument::time(retention.done), argument::time(retention.dead)];
        let inboxes = self.space().inboxes();
        let mut room = limit;
        let shares: Vec<usize> = match inboxes.len() {
            1 => vec![limit],
            // No bucket may remove what another one has the room for.
            _ => {
                let counts = inboxes.iter().map(|keys| self.forgettable(keys, &kept));
                let share = |count: usize| {
                    let share = count.min(room);
                    room -= share;
                    share
                };
                try_join_all(counts).await?.into_iter().map(share).collect()
            }
        };
        let shared = inboxes.iter().zip(shares).filter(|(_, share)| *share > 0);
        let forgotten = shared.map(|(keys, share)| self.forget_of(keys, &kept, share));
        Ok(try_join_all(forgotten).await?.into_iter().sum())
    }

    /// How many records of a bucket need not be kept.
    async fn forgettable(
        &self,
        keys: &SharedInboxKeys,
        kept: &[String; 2],
    ) -> Result<usize, StoreError> {
        let keys = [&*keys.done, &*keys.claims, &*keys.buried];
        let arguments = kept.each_ref().map(|time| time.as_bytes());
        let script = &script::INBOX_COUNT;
        let operation = "counting what may be forgotten";
        let answer = self.call(operation, Repeat::Freely, script, &keys, &arguments).await?;
        super::count(answer, "a count")
    }

    async fn forget_of(
        &self,
        keys: &SharedInboxKeys,
        kept: &[String; 2],
        limit: usize,
    ) -> Result<usize, StoreError> {
        let mut forgotten = 0;
        loop {
            let wanted = AT_ONCE.min(limit - forgotten);
            let now = self.forget_some(keys, kept, wanted).await?;
            forgotten += now;
            if now < wanted || forgotten == limit {
                return Ok(forgotten);
            }
        }
    }

    async fn forget_some(
        &self,
        keys: &SharedInboxKeys,
        [done, dead]: &[String; 2],
        limit: usize,
    ) -> Result<usize, StoreError> {
        const WHAT: &str = "what was forgotten";
        let limit = limit.to_string();
        let arguments = [done, dead, &limit].map(|word| word.as_bytes());
        let indexes = [&*keys.done, &*keys.claims, &*keys.buried];
        let (operation, script) = ("forgetting records", &script::INBOX_FORGET);
        let answer = self.call(operation, Repeat::Freely, script, &indexes, &arguments).await?;
        let [forgotten, places] = reply::array(answer, WHAT)?;
        let mut forgotten = super::count(forgotten, WHAT)?;
        let Value::Array(places) = places else { return Err(corrupt(WHAT, "it is no list")) };
        let places = places.into_iter().map(|place| reply::text(place, WHAT));
        let places = places.map(|place| place.and_then(read_place));
        let places: Vec<(String, ChatKey)> = places.collect::<Result<_, _>>()?;
        for places in places.chunks(PLACES) {
            forgotten += self.forget_places(keys, dead, places).await?;
        }
        Ok(forgotten)
    }

    /// Forgets claims and dead letters whose time is over.
    async fn forget_places(
        &self,
        keys: &SharedInboxKeys,
        dead: &str,
        places: &[(String, ChatKey)],
    ) -> Result<usize, StoreError> {
        let records: Vec<_> =
            places.iter().map(|(_, chat)| self.space().inbox(chat).records).collect();
        let indexes = [&*keys.claims, &*keys.dead, &*keys.buried].into_iter();
        let keys: Vec<&str> = indexes.chain(records.iter().map(String::as_str)).collect();
        let places = places.iter().flat_map(|(position, chat)| [position, chat.as_str()]);
        let arguments: Vec<&[u8]> = [dead].into_iter().chain(places).map(str::as_bytes).collect();
        let (operation, script) = ("forgetting records", &script::INBOX_FORGET_PLACES);
        let answer = self.call(operation, Repeat::Freely, script, &keys, &arguments).await?;
        super::count(answer, "what was forgotten")
    }
}

/// A position, as a text, and a chat.
fn read_place(place: String) -> Result<(String, ChatKey), StoreError> {
    match place.split_once('|') {
        Some((position, chat)) => Ok((position.to_owned(), super::chat(chat)?)),
        None => Err(corrupt("the place of a record", "it has no chat")),
    }
}
