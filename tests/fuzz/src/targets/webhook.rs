//! A request to the webhook of a bot, from the router to the bot.
//!
//! The first byte says what the request is like, the rest is its body.

use std::cell::OnceCell;
use std::sync::Arc;

use async_trait::async_trait;
use axum::Router;
use axum::body::Body;
use botmesh_core::Message;
use botmesh_core::provider::{
    Accepted, ConnectionState, DeliverError, Deliveries, Inbound, Provider, Session,
};
use botmesh_telegram::Telegram;
use botmesh_telegram::testing::FakeTelegram;
use botmesh_webhook::WebhookRouter;
use http::{Method, Request, StatusCode};
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

use super::telegram_update;
use crate::memory::bounded;

const SECRET: &str = "a-secret-that-nobody-guesses";

/// A bot behind a webhook that takes everything.
struct Called {
    runtime: Runtime,
    router: Router,
    _platform: FakeTelegram,
}

struct Taking;

#[async_trait]
impl Deliveries for Taking {
    async fn deliver(&self, message: Message) -> Result<Accepted, DeliverError> {
        assert!(message.id.is_some());
        Ok(Accepted::New)
    }
}

thread_local! {
    static CALLED: OnceCell<Called> = const { OnceCell::new() };
}

pub(crate) fn run(bytes: &[u8]) {
    let (kind, body) = bytes.split_first().map_or((0, bytes), |(kind, body)| (*kind, body));
    CALLED.with(|called| {
        let called = called.get_or_init(open);
        bounded(bytes, 256, 256 << 10, |_| {
            let status = called.runtime.block_on(async {
                called.router.clone().oneshot(request(kind, body)).await.unwrap().status()
            });
            match kind & 3 {
                3 => assert_eq!(status, StatusCode::UNAUTHORIZED),
                2 => assert!(!status.is_success()),
                _ => assert!(
                    matches!(status, StatusCode::OK | StatusCode::BAD_REQUEST),
                    "a body of {} bytes is answered with {status}",
                    body.len()
                ),
            }
        });
    });
}

fn request(kind: u8, body: &[u8]) -> Request<Body> {
    let secret = if kind & 3 == 3 { "another" } else { SECRET };
    let method = if kind & 3 == 2 { Method::PUT } else { Method::POST };
    Request::builder()
        .method(method)
        .uri("/telegram")
        .header("x-telegram-bot-api-secret-token", secret)
        .header("content-type", "application/json")
        .body(Body::from(body.to_vec()))
        .unwrap()
}

/// Registers the webhook at a platform on loopback; afterwards the clock stands still, so that an
/// album is not waited for.
fn open() -> Called {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (router, platform) = runtime.block_on(async {
        let platform = FakeTelegram::start().await.unwrap();
        let telegram = Telegram::webhook(FakeTelegram::TOKEN, "https://bot.example/telegram")
            .api(platform.address())
            .secret(SECRET)
            .build()
            .unwrap();
        let telegram: Arc<dyn Provider> = Arc::new(telegram);
        let (state, mut states) = watch::channel(ConnectionState::Connecting);
        let inbound = Inbound::new(Arc::new(Taking));
        let session = Session::new(inbound, CancellationToken::new(), Arc::new(state));
        let running = Arc::clone(&telegram);
        tokio::spawn(async move { running.run(session).await });
        states.wait_for(|state| *state == ConnectionState::Open).await.unwrap();
        (WebhookRouter::of(vec![telegram]).build().unwrap(), platform)
    });
    runtime.block_on(async { tokio::time::pause() });
    Called { runtime, router, _platform: platform }
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let updates = telegram_update::seeds();
    let mut seeds: Vec<_> = updates.iter().map(|update| [b"\0", &update[..]].concat()).collect();
    seeds.extend([vec![1], vec![2], vec![3], b"\0{\"update_id\":1}".to_vec()]);
    seeds
}
