//! How records come in and are begun.

use std::time::Duration;

use botmesh_core::ChatKey;
use botmesh_core::id::{Fence, Position};
use botmesh_core::store::{Admission, Begun, InboxRecord, NewRecord, StoreError};
use redis::Value;

use crate::error::corrupt;
use crate::keys::{InboxKeys, Keyspace, SharedInboxKeys};
use crate::store::Repeat;
use crate::words::Words;
use crate::{RedisStore, argument, reply, script};

/// Enough for most admissions, but for their bodies.
const ARGUMENTS: usize = 7;
const BYTES: usize = 128;

/// What the scripts need that admit a record: keys and arguments.
pub(crate) fn admission(
    space: &Keyspace,
    request: &str,
    record: &NewRecord<'_>,
) -> ([String; 6], Words) {
    let InboxKeys { records, pending, leases, shared, .. } = space.inbox(record.chat);
    let SharedInboxKeys { claims, done, last, .. } = shared;
    let body = record.body.unwrap_or_default();
    let mut arguments = Words::with_capacity(ARGUMENTS, BYTES + body.len());
    arguments.push(record.chat.as_str());
    // Without an id it is known by its request, in case the answer gets lost.
    match record.message {
        Some(message) => arguments.push_display(format_args!("m{}", message.as_str())),
        None => arguments.push_display(format_args!("q{request}")),
    }
    arguments.push(request);
    arguments.push(&argument::time(record.lease));
    arguments.push_display(record.most);
    match record.body {
        Some(body) => {
            arguments.push("p");
            arguments.push(body);
        }
        None => arguments.push("k"),
    }
    ([records, pending, leases, claims, done, last], arguments)
}

impl RedisStore {
    pub(super) async fn admit_record(
        &self,
        record: NewRecord<'_>,
    ) -> Result<Admission, StoreError> {
        let (keys, arguments) = admission(self.space(), &self.request(), &record);
        let script = &script::INBOX_ADMIT;
        let answer = self.call_words("admitting a message", script, &keys, &arguments).await?;
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

pub(crate) fn read_admission(answer: Value) -> Result<Admission, StoreError> {
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
