//! What the bot sends.

use std::time::{Duration, Instant};

use botmesh_core::message::{Attachment, AttachmentSource, MediaKind};
use botmesh_core::prelude::*;
use botmesh_core::provider::{Provider, ProviderError, SendError, SendOptions};
use botmesh_core::{ChatKey, MessageId, Outgoing};
use botmesh_telegram::Telegram;
use botmesh_telegram::testing::{FakeTelegram, Fault};
use teloxide_core::payloads::SetMyCommands;
use teloxide_core::types::BotCommand;

use crate::stage::Stage;

fn key(chat: &str) -> ChatKey {
    ChatKey::new(&botmesh_core::ProviderId::new("telegram").unwrap(), chat).unwrap()
}

async fn platform() -> (FakeTelegram, Telegram) {
    let platform = FakeTelegram::start().await.unwrap();
    let telegram = Telegram::polling(FakeTelegram::TOKEN).api(platform.address());
    (platform, telegram.longest_wait(Duration::from_secs(5)).build().unwrap())
}

/// I1: a limit delays, and neither loses nor reorders, also when several send at once.
#[tokio::test]
async fn a_rate_limit_delays_without_losing_or_reordering() {
    let (platform, telegram) = platform().await;
    let ana = platform.private(42);
    platform.fails("sendMessage", Fault::too_many(1));
    let begun = Instant::now();
    let mut sends = tokio::task::JoinSet::new();
    for number in 0..5 {
        let telegram = telegram.clone();
        sends.spawn(async move {
            let message = Outgoing::text(format!("m{number}"));
            telegram.send(&key("42"), &message, &SendOptions::default()).await.unwrap();
        });
        // Each is in line before the next comes.
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    platform.private(43);
    let other = Outgoing::text("to another");
    telegram.send(&key("43"), &other, &SendOptions::default()).await.unwrap();
    assert!(begun.elapsed() < Duration::from_secs(1), "one chat's limit delayed another");
    assert!(ana.heard().is_empty());
    sends.join_all().await;
    assert!(begun.elapsed() >= Duration::from_secs(1));
    let heard: Vec<String> = ana.heard().iter().map(|call| call.text()).collect();
    assert_eq!(heard, ["m0", "m1", "m2", "m3", "m4"]);
}

/// I1: a limit delays deletions and reactions as well, and those that follow a group go where it went.
#[tokio::test]
async fn deletions_and_reactions_wait_and_follow_as_messages_do() {
    let (platform, telegram) = platform().await;
    platform.group(-5, 42);
    let moved = platform.group(-1005, 42);
    let (hi, options) = (Outgoing::text("hi"), SendOptions::default());
    let id = telegram.send(&key("-1005"), &hi, &options).await.unwrap().message.unwrap();
    let upgraded = r#"{"ok":false,"error_code":400,"description":"Bad Request: group chat was upgraded to a supergroup chat","parameters":{"migrate_to_chat_id":-1005}}"#;
    platform.fails("setMessageReaction", Fault::Raw(400, upgraded.as_bytes().to_vec()));
    telegram.react(&key("-5"), &id, Some("👍")).await.unwrap();
    platform.fails("deleteMessage", Fault::too_many(1));
    let begun = Instant::now();
    telegram.delete(&key("-5"), &id).await.unwrap();
    assert!(begun.elapsed() >= Duration::from_secs(1));
    let methods: Vec<String> = moved.calls().iter().map(|call| call.method.clone()).collect();
    assert_eq!(methods, ["sendMessage", "setMessageReaction", "deleteMessage"]);
}

/// I1: a wait that is too long is told instead of waited for.
#[tokio::test]
async fn a_long_limit_is_an_error_that_says_how_long() {
    let (platform, telegram) = platform().await;
    platform.private(42);
    platform.fails("sendMessage", Fault::too_many(60));
    let begun = Instant::now();
    for _ in 0..2 {
        let sent = telegram.send(&key("42"), &Outgoing::text("hi"), &SendOptions::default()).await;
        match sent.unwrap_err() {
            ProviderError::RateLimited { retry_after, .. } => {
                assert!(retry_after > Duration::from_secs(50), "{retry_after:?}");
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(begun.elapsed() < Duration::from_secs(5));
}

/// I1: a group that became a supergroup is followed.
#[tokio::test]
async fn a_group_that_moved_is_followed() {
    let (platform, telegram) = platform().await;
    platform.group(-5, 42);
    let moved = platform.group(-1005, 42);
    let words = "Bad Request: group chat was upgraded to a supergroup chat";
    let body = format!(
        r#"{{"ok":false,"error_code":400,"description":"{words}","parameters":{{"migrate_to_chat_id":-1005}}}}"#
    );
    platform.fails("sendMessage", Fault::Raw(400, body.into_bytes()));
    for text in ["first", "second"] {
        telegram.send(&key("-5"), &Outgoing::text(text), &SendOptions::default()).await.unwrap();
    }
    let heard: Vec<String> = moved.heard().iter().map(|call| call.text()).collect();
    assert_eq!(heard, ["first", "second"]);
}

/// I1: a long answer comes in parts, in order, and the last one has the buttons.
#[tokio::test]
async fn a_long_text_comes_in_parts() {
    let (platform, telegram) = platform().await;
    let ana = platform.private(42);
    let line = "A sentence of some length. ";
    let text = line.repeat(400);
    let message = Outgoing::text(text.clone());
    let receipt = telegram.send(&key("42"), &message, &SendOptions::default()).await.unwrap();
    let heard = ana.heard();
    assert_eq!(heard.len(), 3);
    assert_eq!(heard.iter().map(|call| call.text()).collect::<String>(), text);
    assert!(heard[0].text().ends_with(". "));
    assert_eq!(receipt.message, MessageId::new(heard[2].made[0].to_string()).ok());
}

/// I1: files go up from memory and from disk, several as an album.
#[tokio::test]
async fn files_are_sent_with_their_bytes() {
    let (platform, telegram) = platform().await;
    let ana = platform.private(42);
    let path = std::env::temp_dir().join(format!("botmesh-telegram-{}.txt", std::process::id()));
    std::fs::write(&path, b"twelve bytes").unwrap();
    let in_memory = AttachmentSource::Bytes(vec![1; 1000].into());
    let on_disk = AttachmentSource::Path(path.clone());
    let mut message = Outgoing::text("two files");
    message.attachments = vec![
        Attachment::new(MediaKind::Document, in_memory).named("a.bin"),
        Attachment::new(MediaKind::Document, on_disk),
    ];
    telegram.send(&key("42"), &message, &SendOptions::default()).await.unwrap();
    let album = &ana.heard()[0];
    assert_eq!(album.method, "sendMediaGroup");
    assert_eq!(album.files, [1000, 12]);
    assert_eq!(album.text(), "two files");
    std::fs::remove_file(&path).unwrap();
    let sent = telegram.send(&key("42"), &message, &SendOptions::default()).await;
    assert!(matches!(sent, Err(ProviderError::Rejected { .. })), "{sent:?}");
}

/// A8: a picture's caption is edited as one, and an edit that changes nothing is no error.
#[tokio::test]
async fn words_and_captions_are_edited() {
    let (platform, telegram) = platform().await;
    let ana = platform.private(42);
    let mut message = Outgoing::text("before");
    let source = AttachmentSource::Reference("file".to_owned());
    message.attachments = vec![Attachment::new(MediaKind::Image, source)];
    let receipt = telegram.send(&key("42"), &message, &SendOptions::default()).await.unwrap();
    let id = receipt.message.unwrap();
    for _ in 0..2 {
        telegram.edit(&key("42"), &id, &Outgoing::text("after")).await.unwrap();
    }
    let calls = ana.calls();
    assert_eq!(calls.last().unwrap().method, "editMessageCaption");
    assert_eq!(calls.last().unwrap().text(), "after");
}

/// I1: a user who blocked the bot is an error of its own for whoever replies.
#[tokio::test]
async fn a_blocked_bot_is_told_apart() {
    let stage = Stage::polling().await;
    stage.platform.private(42);
    stage.platform.fails("sendMessage", Fault::blocked());
    let error = stage.bot.send(&key("42"), "hello?", None).await.unwrap_err();
    assert!(matches!(error, SendError::Provider(ProviderError::ChatGone { .. })), "{error:?}");
    let error = stage.bot.send(&key("bot"), "hello?", None).await.unwrap_err();
    assert!(matches!(error, SendError::Provider(ProviderError::ChatGone { .. })), "{error:?}");
}

/// I7: an error of the network has the address of the API in it, and so the token, unless it is
/// taken out.
#[tokio::test]
async fn an_error_of_the_network_does_not_show_the_token() {
    let telegram = Telegram::polling(FakeTelegram::TOKEN).api("http://127.0.0.1:9");
    let telegram = telegram.build().unwrap();
    let error = telegram.send(&key("42"), &Outgoing::text("hi"), &SendOptions::default()).await;
    let error = error.unwrap_err();
    let mut shown = format!("{error} {error:?}");
    let mut source = std::error::Error::source(&error);
    while let Some(cause) = source {
        shown.push_str(&format!("{cause} {cause:?}"));
        source = cause.source();
    }
    assert!(matches!(error, ProviderError::Unreachable { .. }));
    assert!(!shown.contains("AAFakeToken"), "{shown}");
}

/// A8: what only Telegram has is called by its own types.
#[tokio::test]
async fn any_method_is_called_by_its_type() {
    let (platform, telegram) = platform().await;
    let commands = SetMyCommands::new([BotCommand::new("start", "Begin")]);
    telegram.call(&commands).await.unwrap();
    assert_eq!(platform.calls()[0].json("commands")[0]["command"], "start");
}

/// I1: the bot shows that it is writing, reacts, deletes, and answers a message.
#[tokio::test]
async fn a_handler_acts_in_its_chat() {
    let (platform, telegram) = platform().await;
    let stage = Stage::open(platform, telegram, |bot| {
        bot.when("act", |ctx| async move {
            ctx.typing().await?;
            ctx.react("👍").await?;
            let message = ctx.message().id.clone().unwrap();
            let receipt = ctx.reply(Reply::text("done").answering(message)).await?;
            ctx.delete(&receipt.message.unwrap()).await
        })
    })
    .await;
    let ana = stage.platform.private(42);
    ana.says("act");
    stage.eventually("it acted", |_| ana.calls().len() == 4).await;
    let calls = ana.calls();
    let methods: Vec<_> = calls.iter().map(|call| call.method.as_str()).collect();
    assert_eq!(methods, ["sendChatAction", "setMessageReaction", "sendMessage", "deleteMessage"]);
    assert_eq!(calls[2].json("reply_parameters")["message_id"], 1);
}
