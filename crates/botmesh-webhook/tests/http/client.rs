//! HTTP by hand, so that a request can be wrong in any way.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::platform::SECRET;

/// How long an answer is waited for.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.head.lines().filter_map(|line| line.split_once(": "));
        headers.find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }
}

/// A request with the right secret.
pub(crate) fn post(body: &str) -> String {
    post_with(SECRET, body)
}

pub(crate) fn post_with(secret: &str, body: &str) -> String {
    format!(
        "POST /called HTTP/1.1\r\nHost: bot\r\nX-Secret: {secret}\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// Sends these bytes over a connection of their own and reads the answer.
pub(crate) async fn ask(server: SocketAddr, request: impl AsRef<[u8]>) -> Answer {
    let mut stream = TcpStream::connect(server).await.unwrap();
    // The server may answer, and hang up, before it has read all.
    let _ = stream.write_all(request.as_ref()).await;
    answer(&mut stream).await.expect("the connection ended without an answer")
}

/// The next answer on a connection; none when it ended.
pub(crate) async fn answer(stream: &mut TcpStream) -> Option<Answer> {
    tokio::time::timeout(PATIENCE, read(stream)).await.expect("no answer in time")
}

async fn read(stream: &mut TcpStream) -> Option<Answer> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break end + 4;
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
    let status = head.split(' ').nth(1)?.parse().ok()?;
    let mut answer = Answer { status, head, body: String::new() };
    let length = answer.header("content-length").map_or(0, |length| length.parse().unwrap());
    while bytes.len() < end + length {
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
    answer.body = String::from_utf8(bytes[end..end + length].to_vec()).unwrap();
    Some(answer)
}
