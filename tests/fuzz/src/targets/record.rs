//! Records of the inbox: a message that a process accepted, and what it noted of its sends.

use std::time::Duration;

use botmesh_core::bot::{Durability, Uncertain};
use botmesh_core::id::Fence;
use botmesh_core::store::{
    Admission, Begun, InboxStore as _, MemoryStore, NewRecord, Postponement,
};
use botmesh_core::{Bot, ChatKey, Message, MessageId, ProviderId};

use super::{message, stored};
use crate::memory::bounded;

const LEASE: Duration = Duration::from_millis(10);

/// What a bot is made of, beside what it holds of an input.
const BOT: usize = 16 << 20;

pub(crate) fn body(bytes: &[u8]) {
    let Ok(body) = std::str::from_utf8(bytes) else { return };
    bounded(bytes, 1024, BOT, |_| {
        stored::goes_on(
            |bot| durable(bot, Uncertain::Resend),
            async |store, chat| admit(store, chat, body).await,
        );
    });
}

pub(crate) fn sends(bytes: &[u8]) {
    let Ok(notes) = std::str::from_utf8(bytes) else { return };
    bounded(bytes, 1024, BOT, |_| {
        for policy in [Uncertain::Resend, Uncertain::Skip] {
            stored::goes_on(
                |bot| durable(bot, policy.clone()),
                async |store, chat| {
                    let body = serde_json::to_string(&Message::text(chat.clone(), "hi")).unwrap();
                    admit(store, chat, &body).await;
                    cut_off(store, chat, notes).await;
                },
            );
        }
    });
}

/// A bot whose answers to most messages are three.
fn durable(bot: Bot, policy: Uncertain) -> Bot {
    let short = Duration::from_millis(20);
    bot.durability(Durability::inbox_and_outbox().retry(short, short).uncertain(policy))
        .when("ping", |ctx| async move { ctx.reply("pong").await })
        .fallback(|ctx| async move {
            for answer in ["one", "two", "three"] {
                ctx.reply(answer).await?;
            }
            Ok(())
        })
}

async fn admit(store: &MemoryStore, chat: &ChatKey, body: &str) {
    let message = Some(MessageId::new("stored").unwrap());
    let body = Some(body);
    let record = NewRecord { chat, message: message.as_ref(), body, lease: LEASE, most: 10 };
    let admitted = store.admit(record).await.unwrap();
    assert!(matches!(admitted, Admission::New { .. }));
}

/// An attempt at the record has failed, with these notes.
async fn cut_off(store: &MemoryStore, chat: &ChatKey, notes: &str) {
    let fence = Fence::new(1);
    let Begun::Record(record) = store.begin(chat, fence, LEASE).await.unwrap() else {
        panic!("nothing was begun")
    };
    let postponement = Postponement {
        attempts: record.attempts,
        error: "cut off",
        sends: Some(notes),
        retry_in: Duration::ZERO,
    };
    assert!(store.postpone(chat, record.position, fence, postponement).await.unwrap());
}

pub(crate) fn body_seeds() -> Vec<Vec<u8>> {
    let chat = ChatKey::new(&ProviderId::new("test").unwrap(), "ana").unwrap();
    let said = Message::text(chat, "hi").with_id(MessageId::new("7").unwrap());
    let mut seeds = message::seeds();
    seeds.push(serde_json::to_vec(&said).unwrap());
    seeds
}

pub(crate) fn sends_seeds() -> Vec<Vec<u8>> {
    [
        r#"{"sends":[{"sent":"7"},"failed","begun"],"complete":1,"lost":1}"#,
        r#"{"sends":[{"sent":null}],"complete":0}"#,
        r#"{"sends":[],"complete":1}"#,
        "{}",
    ]
    .map(|notes| notes.as_bytes().to_vec())
    .into()
}
