//! Being called.

use botmesh_core::Bot;
use botmesh_core::message::Content;
use botmesh_core::provider::Provider;
use botmesh_telegram::Telegram;
use botmesh_telegram::testing::FakeTelegram;
use botmesh_webhook::{Server, ServerHandle, WebhookRouter};

use crate::stage::Stage;

async fn called() -> (Stage, ServerHandle) {
    let platform = FakeTelegram::start().await.unwrap();
    let probe = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = probe.local_addr().unwrap();
    drop(probe);
    let telegram = Telegram::webhook(FakeTelegram::TOKEN, format!("http://{address}"));
    let telegram = telegram.api(platform.address()).build().unwrap();
    let stage = Stage::open(platform, telegram, |bot: Bot| bot).await;
    let server = Server::new(WebhookRouter::new(stage.bot.webhooks())).unwrap();
    (stage, server.start(address).await.unwrap())
}

/// I1, E2: Telegram is told where to call, and calls with the secret that the server wants.
#[tokio::test]
async fn telegram_is_told_where_to_call() {
    let (stage, server) = called().await;
    let url = format!("http://{}/telegram", server.address());
    assert_eq!(stage.platform.webhook(), Some(url));
    let ana = stage.platform.private(42);
    ana.says("hi");
    assert_eq!(ana.hears(0).await.text(), "you said hi");
    assert_eq!(stage.is_given(1).await.len(), 1);
    stage.eventually("it is taken", |it| it.platform.acknowledged() == 1).await;
}

/// I1: an album that comes in several calls at once is one message.
#[tokio::test]
async fn an_album_that_comes_in_several_calls_is_one_message() {
    let (stage, _server) = called().await;
    let ana = stage.platform.private(42);
    ana.sends_album(&["the sea", "", "", ""]);
    let given = stage.is_given(1).await;
    let Content::Album(media) = &given[0].content else { panic!("{given:?}") };
    assert_eq!(media.len(), 4);
    assert_eq!(given[0].body(), Some("the sea"));
    stage.eventually("all is taken", |it| it.platform.acknowledged() == 4).await;
    // A part that Telegram sends again is no message of its own.
    stage.platform.repeats();
    ana.says("after it");
    let given = stage.is_given(2).await;
    assert_eq!(given[1].body(), Some("after it"));
}

/// E2: who asks has to be alone, and calls may go to all replicas.
#[test]
fn polling_is_exclusive_and_a_webhook_is_shared() {
    let polling = Telegram::polling(FakeTelegram::TOKEN).build().unwrap();
    let called = Telegram::webhook(FakeTelegram::TOKEN, "https://b.example").build().unwrap();
    assert!(polling.capabilities().exclusive_session && polling.webhook().is_none());
    assert!(!called.capabilities().exclusive_session && called.webhook().is_some());
}
