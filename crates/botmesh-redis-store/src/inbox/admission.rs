//! How records come in and are begun.

use std::time::Duration;

use botmesh_core::ChatKey;
use botmesh_core::id::{Fence, Position};
use botmesh_core::store::{Admission, Begun, InboxRecord, NewRecord, StoreError};
use redis::Value;

use crate::error::corrupt;
use crate::store::Repeat;
use crate::{RedisStore, argument, reply, script};

impl RedisStore {
    pub(super) async fn admit_record(
        &self,
        record: NewRecord<'_>,
    ) -> Result<Admission, StoreError> {
        let keys = self.space().inbox(record.chat);
        let request = self.request();
        // Without an id it is known by its request, in case the answer gets lost.
        let identity = match record.message {
            Some(message) => format!("m{}", message.as_str()),
            None => format!("q{request}"),
        };
        let (lease, most) = (argument::time(record.lease), record.most.to_string());
        let mut arguments = vec![
            record.chat.as_str().as_bytes(),
            identity.as_bytes(),
            request.as_bytes(),
            lease.as_bytes(),
            most.as_bytes(),
        ];
        match record.body {
            Some(body) => arguments.extend([b"p", body.as_bytes()]),
            None => arguments.push(b"k"),
        }
        let shared = &keys.shared;
        let keys = [
            &*keys.records,
            &*keys.pending,
            &*keys.leases,
            &*shared.claims,
            &*shared.done,
            &*shared.last,
        ];
        let script = &script::INBOX_ADMIT;
        let operation = "admitting a message";
        let answer = self.call(operation, Repeat::Freely, script, &keys, &arguments).await?;
        read_admission(answer)
    }

    pub(super) async fn begin_record(
        &self,
        chat: &ChatKey,
        fence: Fence,
        lease: Duration,
    ) -> Result<Begun, StoreError> {
        let keys = self.space().inbox(chat);
        let (fence, lease) = (argument::fence(fence), argument::time(lease));
        let request = self.request();
        let arguments = [chat.as_str(), &fence, &lease, &request].map(str::as_bytes);
        let keys = [&*keys.records, &*keys.pending, &*keys.leases];
        let script = &script::INBOX_BEGIN;
        let operation = "beginning a record";
        let answer = self.call(operation, Repeat::Freely, script, &keys, &arguments).await?;
        read_begun(answer)
    }
}

fn read_admission(answer: Value) -> Result<Admission, StoreError> {
    const WHAT: &str = "the outcome of an admission";
    match reply::optional(answer) {
        None => Ok(Admission::Known),
        Some(Value::Array(parts)) if parts.len() == 1 => {
            let [waiting] = reply::array(Value::Array(parts), WHAT)?;
            Ok(Admission::Full { waiting: super::count(waiting, WHAT)? })
        }
        Some(parts) => {
            let [position, before] = reply::array(parts, WHAT)?;
            let position = Position::new(reply::number(position, "a position")?);
            Ok(Admission::New { position, is_behind: super::count(before, WHAT)? > 0 })
        }
    }
}

fn read_begun(answer: Value) -> Result<Begun, StoreError> {
    const WHAT: &str = "a record";
    match reply::optional(answer) {
        None => Ok(Begun::Nothing),
        Some(Value::Array(parts)) if parts.len() == 2 => {
            let [why, detail] = reply::array(Value::Array(parts), WHAT)?;
            match reply::text(why, WHAT)?.as_str() {
                "f" => Ok(Begun::Refused(Fence::new(reply::number(detail, "a fence")?))),
                "d" => Ok(Begun::NotYet(reply::time(detail, "the time until a record is due")?)),
                other => Err(corrupt(WHAT, format!("it begins with {other:?}"))),
            }
        }
        Some(parts) => {
            let [position, more, attempts, sends, error, body] = reply::array(parts, WHAT)?;
            let optional = |value, what| {
                reply::optional(value).map(|value| reply::text(value, what)).transpose()
            };
            Ok(Begun::Record(InboxRecord {
                position: Position::new(reply::number(position, "a position")?),
                body: reply::text(body, "the body of a record")?,
                attempts: super::attempts(attempts)?,
                sends: optional(sends, "the sends of a record")?,
                error: optional(error, "the error of a record")?,
                has_more: super::count(more, WHAT)? > 0,
            }))
        }
    }
}
