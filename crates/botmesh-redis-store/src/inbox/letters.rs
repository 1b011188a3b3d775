//! The dead letters.

use botmesh_core::ChatKey;
use botmesh_core::id::Position;
use botmesh_core::store::{DeadLetter, StoreError};
use futures_util::future::try_join_all;
use redis::Value;

use crate::error::corrupt;
use crate::store::Repeat;
use crate::{RedisStore, reply, script};

/// How many letters one script reads.
const AT_ONCE: usize = 64;

type Place = (ChatKey, Position);

impl RedisStore {
    pub(super) async fn read_dead_letters(
        &self,
        after: Option<(&ChatKey, Position)>,
        limit: usize,
    ) -> Result<Vec<DeadLetter>, StoreError> {
        let mut after = after.map(|(chat, position)| (chat.clone(), position));
        let mut letters = Vec::new();
        while letters.len() < limit {
            let wanted = limit - letters.len();
            let places = self.dead_places(after.as_ref(), wanted).await?;
            letters.extend(self.letters(&places).await?);
            // Some may have been revived meanwhile, and others are behind them.
            match places.last() {
                Some(last) if places.len() == wanted => after = Some(last.clone()),
                _ => break,
            }
        }
        Ok(letters)
    }

    /// Where dead letters are, in their order.
    async fn dead_places(
        &self,
        after: Option<&Place>,
        limit: usize,
    ) -> Result<Vec<Place>, StoreError> {
        let from = match after {
            Some((chat, position)) => format!("({}\0{:020}", chat.as_str(), position.get()),
            None => "-".to_owned(),
        };
        let indexes = self.space().inboxes();
        let found = try_join_all(indexes.iter().map(|keys| self.dead_of(&keys.dead, &from, limit)));
        let mut found: Vec<Place> = found.await?.into_iter().flatten().collect();
        found.sort_unstable();
        found.truncate(limit);
        Ok(found)
    }

    async fn dead_of(
        &self,
        index: &str,
        from: &str,
        limit: usize,
    ) -> Result<Vec<Place>, StoreError> {
        let mut list = redis::cmd("ZRANGE");
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        list.arg(index).arg(from).arg("+").arg("BYLEX").arg("LIMIT").arg(0).arg(limit);
        let Value::Array(members) = self.read("listing dead letters", &list).await? else {
            return Err(corrupt("a list of dead letters", "it is no list"));
        };
        let read = |member| {
            let member = reply::text(member, "a dead letter")?;
            let (chat, position) = member
                .split_once('\0')
                .ok_or_else(|| corrupt("a dead letter", "it has no position"))?;
            let position = position.parse().map_err(|_| corrupt("a dead letter", "no position"))?;
            Ok((super::chat(chat)?, Position::new(position)))
        };
        members.into_iter().map(read).collect()
    }

    /// Those of the letters that are still there.
    async fn letters(&self, places: &[Place]) -> Result<Vec<DeadLetter>, StoreError> {
        // One script reads what is in one bucket; neighbours in the order may be in others.
        let mut buckets: Vec<(u16, Vec<&Place>)> = Vec::new();
        for place in places {
            let bucket = self.space().bucket(place.0.as_str());
            match buckets.iter_mut().find(|(of, found)| *of == bucket && found.len() < AT_ONCE) {
                Some((_, found)) => found.push(place),
                None => buckets.push((bucket, vec![place])),
            }
        }
        let read = buckets.into_iter().map(|(_, places)| self.letters_of(places));
        let mut letters: Vec<DeadLetter> =
            try_join_all(read).await?.into_iter().flatten().collect();
        letters.sort_by(|a, b| (&a.chat, a.position).cmp(&(&b.chat, b.position)));
        Ok(letters)
    }

    async fn letters_of(&self, places: Vec<&Place>) -> Result<Vec<DeadLetter>, StoreError> {
        const WHAT: &str = "a dead letter";
        let records: Vec<_> =
            places.iter().map(|(chat, _)| self.space().inbox(chat).records).collect();
        let positions: Vec<_> = places.iter().map(|(_, position)| position.to_string()).collect();
        let keys: Vec<&str> = records.iter().map(String::as_str).collect();
        let arguments: Vec<&[u8]> = positions.iter().map(String::as_bytes).collect();
        let script = &script::INBOX_DEAD;
        let operation = "reading dead letters";
        let answer = self.call(operation, Repeat::Freely, script, &keys, &arguments).await?;
        let Value::Array(found) = answer else {
            return Err(corrupt("a list of dead letters", "it is no list"));
        };
        let mut letters = Vec::with_capacity(places.len());
        for (place, letter) in places.into_iter().zip(found) {
            let Some(letter) = reply::optional(letter) else { continue };
            let [attempts, error, age, body] = reply::array(letter, WHAT)?;
            letters.push(DeadLetter {
                chat: place.0.clone(),
                position: place.1,
                body: reply::text(body, "the body of a dead letter")?,
                attempts: super::attempts(attempts)?,
                error: reply::text(error, "the error of a dead letter")?,
                age: reply::time(age, "the age of a dead letter")?,
            });
        }
        Ok(letters)
    }
}
