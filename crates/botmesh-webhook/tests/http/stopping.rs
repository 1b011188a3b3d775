//! How a server ends.

use std::time::Duration;

use botmesh_webhook::{ServeError, Server, WebhookRouter};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::client::{answer, ask, post};
use crate::platform::{open, stage};

/// A9: what came before the stop is answered, and nothing more is taken.
#[tokio::test]
async fn a_stop_answers_what_has_come_and_takes_no_more() {
    let mut stage = open(|bot| bot.max_in_work(1), |limits| limits).await;
    let server = stage.server.address();
    assert_eq!(ask(server, post("1 wait")).await.status, 200);
    let mut last = TcpStream::connect(server).await.unwrap();
    let request = post("2 last");
    let (begin, end) = request.split_at(request.len() - 4);
    last.write_all(begin.as_bytes()).await.unwrap();
    let mut idle = TcpStream::connect(server).await.unwrap();
    // The connection is known to the server when it has answered once.
    idle.write_all(b"GET /health HTTP/1.1\r\nHost: bot\r\n\r\n").await.unwrap();
    assert_eq!(answer(&mut idle).await.unwrap().status, 200);
    let stopping = tokio::spawn(stage.server.stop());
    assert!(answer(&mut idle).await.is_none(), "an idle connection is kept");
    last.write_all(end.as_bytes()).await.unwrap();
    stage.gate.notify_one();
    assert_eq!(answer(&mut last).await.unwrap().status, 200);
    stopping.await.unwrap();
    assert!(TcpStream::connect(server).await.is_err());
    let handled = stage.handled.wait_for(|all| all.len() == 2);
    tokio::time::timeout(Duration::from_secs(10), handled).await.unwrap().unwrap();
}

/// A9: a request that does not end is cut off, and was not taken.
#[tokio::test]
async fn a_stop_does_not_wait_for_ever() {
    let short = Duration::from_millis(200);
    let stage = open(|bot| bot, |limits| limits.stop_time(short)).await;
    let mut slow = TcpStream::connect(stage.server.address()).await.unwrap();
    slow.write_all(&post("1 slowly").as_bytes()[..40]).await.unwrap();
    let stopped = tokio::time::timeout(Duration::from_secs(5), stage.server.stop()).await;
    assert!(stopped.is_ok(), "the stop waits for a client");
}

/// I6: a bot that stops refuses what comes, so that the platform brings it to another replica.
#[tokio::test]
async fn a_stopped_bot_tells_the_platform_to_come_again() {
    let stage = stage().await;
    let server = stage.server.address();
    stage.bot.stop().await;
    let refused = ask(server, post("1 late")).await;
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("1")));
}

/// A14: an address that is in use is told as such.
#[tokio::test]
async fn an_address_in_use_is_an_error() {
    let stage = stage().await;
    let server = Server::new(WebhookRouter::new(stage.bot.webhooks())).unwrap();
    let error = server.start(stage.server.address()).await.unwrap_err();
    assert!(matches!(error, ServeError::Bind { .. }), "{error:?}");
}
