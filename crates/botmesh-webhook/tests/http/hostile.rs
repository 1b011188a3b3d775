//! Requests that are wrong, huge or slow.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::client::{PATIENCE, answer, ask, post, post_with};
use crate::platform::{MAX_BODY, SECRET, open, stage};

/// I6: nothing that is malformed ends the server, or reaches the bot.
#[tokio::test]
async fn malformed_requests_are_refused_and_the_next_is_taken() {
    let mut stage = stage().await;
    let server = stage.server.address();
    assert_eq!(ask(server, post("nonsense")).await.status, 400);
    let mut bytes = post("12345").into_bytes();
    let end = bytes.len();
    bytes[end - 5..].copy_from_slice(b"\xff\xfe \x80\x80");
    assert_eq!(ask(server, bytes).await.status, 400);
    for raw in ["\0\0\0\r\n\r\n", "GET\r\n\r\n", "POST /called HTTP/9.9\r\n\r\n", "\r\n\r\n\r\n"] {
        let mut stream = TcpStream::connect(server).await.unwrap();
        stream.write_all(raw.as_bytes()).await.unwrap();
        stream.shutdown().await.unwrap();
        if let Some(answer) = answer(&mut stream).await {
            assert!((400..600).contains(&answer.status), "{raw:?} was answered {answer:?}");
        }
    }
    assert_eq!(ask(server, "GET /other HTTP/1.1\r\nHost: bot\r\n\r\n").await.status, 404);
    assert_eq!(ask(server, post("1 fine")).await.status, 200);
    assert_eq!(stage.handles(1).await, ["fine"]);
}

/// I6: a body that ends early is no message, whatever its beginning says.
#[tokio::test]
async fn a_truncated_body_is_not_taken() {
    let mut stage = stage().await;
    let server = stage.server.address();
    for keep in [1, 5, 9] {
        let request = post("1 truncated");
        let cut = request.len() - keep;
        let mut stream = TcpStream::connect(server).await.unwrap();
        stream.write_all(&request.as_bytes()[..cut]).await.unwrap();
        stream.shutdown().await.unwrap();
        if let Some(answer) = answer(&mut stream).await {
            assert_eq!(answer.status, 400);
        }
    }
    assert_eq!(ask(server, post("2 whole")).await.status, 200);
    assert_eq!(stage.handles(1).await, ["whole"]);
}

/// I6: a giant body is refused by what its head says, and without one, when it is too long.
#[tokio::test]
async fn a_giant_body_is_refused_before_it_is_read() {
    let stage = stage().await;
    let server = stage.server.address();
    let told = format!(
        "POST /called HTTP/1.1\r\nHost: bot\r\nX-Secret: {SECRET}\r\nContent-Length: {}\r\n\r\n",
        1u64 << 40
    );
    assert_eq!(ask(server, told).await.status, 413);
    let mut chunked = format!(
        "POST /called HTTP/1.1\r\nHost: bot\r\nX-Secret: {SECRET}\r\nTransfer-Encoding: chunked\r\n\r\n"
    );
    let piece = "x".repeat(8 << 10);
    for _ in 0..=MAX_BODY / piece.len() {
        chunked.push_str(&format!("{:x}\r\n{piece}\r\n", piece.len()));
    }
    assert_eq!(ask(server, chunked).await.status, 413);
    let longest = format!("1 {}", "x".repeat(MAX_BODY - 2));
    assert_eq!(ask(server, post(&longest)).await.status, 200);
}

/// I6: a stranger's body is not read at all.
#[tokio::test]
async fn a_strangers_body_is_not_read() {
    let stage = stage().await;
    let head = post_with("wrong", "").replace("Content-Length: 0", "Content-Length: 1000");
    // The answer comes although no byte of the body does.
    assert_eq!(ask(stage.server.address(), head).await.status, 401);
}

/// I6: giant heads are refused.
#[tokio::test]
async fn a_giant_head_is_refused() {
    let stage = stage().await;
    let giant = "y".repeat(1 << 20);
    let request = format!("GET /health HTTP/1.1\r\nHost: bot\r\nX: {giant}\r\n\r\n");
    let mut stream = TcpStream::connect(stage.server.address()).await.unwrap();
    let _ = stream.write_all(request.as_bytes()).await;
    if let Some(answer) = answer(&mut stream).await {
        assert_eq!(answer.status, 431);
    }
    let many: String = (0..1000).map(|number| format!("X{number}: y\r\n")).collect();
    let request = format!("GET /health HTTP/1.1\r\nHost: bot\r\n{many}\r\n");
    assert_eq!(ask(stage.server.address(), request).await.status, 431);
}

/// I6: whoever sends slowly keeps no connection for ever.
#[tokio::test]
async fn slow_heads_and_bodies_end() {
    let short = Duration::from_millis(200);
    let stage = open(|bot| bot, |limits| limits.header_time(short).body_time(short)).await;
    let server = stage.server.address();
    let mut slow = TcpStream::connect(server).await.unwrap();
    slow.write_all(b"POST /called HT").await.unwrap();
    let mut rest = Vec::new();
    let ended = tokio::time::timeout(PATIENCE, slow.read_to_end(&mut rest)).await;
    assert!(ended.is_ok(), "a connection without a request is kept");
    let whole = post("1 slowly");
    let mut slow = TcpStream::connect(server).await.unwrap();
    slow.write_all(&whole.as_bytes()[..whole.len() - 3]).await.unwrap();
    assert_eq!(answer(&mut slow).await.unwrap().status, 408);
}

/// I6: connections that do nothing leave room for the one that does.
#[tokio::test]
async fn idle_connections_make_room_in_time() {
    let short = Duration::from_millis(300);
    let stage = open(|bot| bot, |limits| limits.connections(2).header_time(short)).await;
    let server = stage.server.address();
    let _idle =
        [TcpStream::connect(server).await.unwrap(), TcpStream::connect(server).await.unwrap()];
    assert_eq!(ask(server, post("1 patient")).await.status, 200);
}
