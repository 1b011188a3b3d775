//! What users do, as a handler sees it.

use botmesh_core::message::{Content, MediaKind};
use botmesh_core::prelude::*;
use botmesh_telegram::Telegram;
use botmesh_telegram::testing::FakeTelegram;
use serde_json::json;

use crate::stage::Stage;

/// I1, D9: people in a group have their own chats, are answered in the group, and a topic is a chat
/// of its own.
#[tokio::test]
async fn a_group_is_one_chat_for_each_participant_and_topic() {
    let stage = Stage::polling().await;
    let ana = stage.platform.group(-100, 42);
    let bo = stage.platform.group(-100, 43);
    ana.says("hi");
    bo.says("hello");
    ana.clone().topic(7).says("here too");
    let given = stage.is_given(3).await;
    let keys: std::collections::BTreeSet<&str> =
        given.iter().map(|message| message.chat.as_str()).collect();
    assert_eq!(
        keys.into_iter().collect::<Vec<_>>(),
        ["telegram:-100#42", "telegram:-100#43", "telegram:-100/7#42"]
    );
    ana.hears(2).await;
    let topics: Vec<_> = ana.heard().iter().map(|call| call.number("message_thread_id")).collect();
    assert_eq!(topics.iter().filter(|topic| **topic == Some(7)).count(), 1, "{topics:?}");
}

/// I1: an album is one message, whose id is that of its first part.
#[tokio::test]
async fn an_album_is_one_message() {
    let stage = Stage::polling().await;
    let ana = stage.platform.private(42);
    ana.sends_album(&["", "the sea", ""]);
    ana.says("after it");
    let given = stage.is_given(2).await;
    let Content::Album(media) = &given[0].content else { panic!("{given:?}") };
    assert_eq!(media.len(), 3);
    assert!(media.iter().all(|one| one.kind == MediaKind::Image && one.reference == "file-1"));
    assert_eq!(given[0].body(), Some("the sea"));
    assert_eq!(given[0].id.as_ref().unwrap().as_str(), "1");
    assert_eq!(given[1].body(), Some("after it"));
    stage.eventually("all is confirmed", |it| it.platform.acknowledged() == 4).await;
}

/// I1: a command may name the bot, and one for another bot is none of ours.
#[tokio::test]
async fn a_command_for_another_bot_is_not_answered() {
    let platform = FakeTelegram::start().await.unwrap();
    let telegram = Telegram::polling(FakeTelegram::TOKEN).api(platform.address());
    let stage = Stage::open(platform, telegram.build().unwrap(), |bot| {
        bot.when(command("start"), |ctx| async move {
            ctx.reply(format!("started with {}", ctx.arguments())).await
        })
    })
    .await;
    let ana = stage.platform.group(-100, 42);
    ana.says("/start@other_bot a");
    ana.says("/start@Fake_Bot b");
    ana.says("/start c");
    assert_eq!(ana.hears(0).await.text(), "started with b");
    assert_eq!(ana.hears(1).await.text(), "started with c");
    assert_eq!(stage.is_given(3).await.len(), 3);
}

/// I1: a press is answered to Telegram, so that its button stops waiting.
#[tokio::test]
async fn a_press_is_answered() {
    let platform = FakeTelegram::start().await.unwrap();
    let telegram = Telegram::polling(FakeTelegram::TOKEN).api(platform.address());
    let stage = Stage::open(platform, telegram.build().unwrap(), |bot| {
        bot.when("menu", |ctx| async move {
            ctx.reply(Reply::text("Which?").button(Button::data("Two", &2)?)).await
        })
        .when(
            predicate(|message| matches!(message.content, Content::Button(_))),
            |ctx| async move {
                let Content::Button(press) = &ctx.message().content else { return Ok(()) };
                let number: u8 = press.data()?;
                ctx.reply(format!("{number}")).await.map(drop)
            },
        )
    })
    .await;
    let ana = stage.platform.private(42);
    ana.says("menu");
    ana.hears(0).await;
    assert!(ana.presses("Two"));
    assert_eq!(ana.hears(1).await.text(), "2");
    stage
        .eventually("the press is answered", |it| {
            it.platform.calls().iter().any(|call| call.method == "answerCallbackQuery")
        })
        .await;
}

/// I1: what nobody knows yet is delivered with all that Telegram said, and disturbs nothing.
#[tokio::test]
async fn unknown_updates_arrive_as_they_are() {
    let stage = Stage::polling().await;
    stage.platform.delivers(json!({ "hologram": { "from": { "id": 42 }, "beam": [1, 2] } }));
    stage.platform.delivers(json!({ "message": 17 }));
    stage.platform.delivers(json!({}));
    let ana = stage.platform.private(42);
    ana.sends(json!({ "hologram": { "beam": 3 } }));
    ana.says("still here");
    let given = stage.is_given(5).await;
    let of_ana: Vec<_> = given.iter().filter(|message| message.chat.chat() == "42").collect();
    let [hologram, sent, said] = of_ana[..] else { panic!("{given:?}") };
    assert!(matches!(hologram.content, Content::Event(_)));
    assert_eq!(hologram.raw.as_ref().unwrap().value()["hologram"]["beam"], json!([1, 2]));
    assert_eq!(sent.content, Content::Unsupported { kind: "hologram".to_owned() });
    assert_eq!(said.body(), Some("still here"));
    let apart = given.iter().filter(|message| message.chat.chat() == "bot").count();
    assert_eq!(apart, 2);
    assert_eq!(stage.errors(), Vec::<String>::new());
}

/// I1: a file that a user sent is read piece by piece.
#[tokio::test]
async fn a_handler_downloads_what_a_user_sent() {
    let platform = FakeTelegram::start().await.unwrap();
    platform.serves_file(vec![7; 300_000]);
    let telegram = Telegram::polling(FakeTelegram::TOKEN).api(platform.address());
    let stage = Stage::open(platform, telegram.build().unwrap(), |bot| {
        bot.when(
            predicate(|message| matches!(message.content, Content::Media(_))),
            |ctx| async move {
                let Content::Media(media) = &ctx.message().content else { return Ok(()) };
                let bytes = ctx.download(media).await?.read_all(1 << 20).await?.unwrap_or_default();
                ctx.reply(format!("{} bytes", bytes.len())).await.map(drop)
            },
        )
    })
    .await;
    let ana = stage.platform.private(42);
    ana.sends_media(MediaKind::Voice, "");
    assert_eq!(ana.hears(0).await.text(), "300000 bytes");
}
