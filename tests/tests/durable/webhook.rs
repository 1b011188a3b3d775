//! The same call of a webhook at several replicas.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use botmesh_telegram::testing::Call;
use botmesh_tests::durable::replica::{Connection, SECRET};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::setting::{PATIENCE, Setting, postgres};

const USER: i64 = 42;

fn free_address() -> SocketAddr {
    let probe = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    probe.local_addr().unwrap()
}

/// Sends a request on a connection of its own; the status of the answer.
async fn request(address: SocketAddr, head: &str, body: &str) -> std::io::Result<u16> {
    let mut stream = TcpStream::connect(address).await?;
    let length = body.len();
    let request = format!(
        "{head} HTTP/1.1\r\nhost: bot.example\r\nconnection: close\r\ncontent-type: application/json\r\n\
         x-telegram-bot-api-secret-token: {SECRET}\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await?;
    let status = String::from_utf8_lossy(&answer);
    let status = status.split(' ').nth(1).and_then(|status| status.parse().ok());
    status.ok_or_else(|| std::io::ErrorKind::InvalidData.into())
}

async fn is_ready(address: SocketAddr) {
    let ready = async {
        while !matches!(request(address, "GET /ready", "").await, Ok(200)) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, ready).await.expect("a replica does not get ready");
}

fn update(number: i64, text: &str) -> String {
    let user = json!({ "id": USER, "is_bot": false, "first_name": "Ana" });
    let chat = json!({ "id": USER, "type": "private", "first_name": "Ana" });
    let message: Value = json!({
        "message_id": number, "date": 1_790_000_000, "from": user, "chat": chat, "text": text,
    });
    json!({ "update_id": number, "message": message }).to_string()
}

/// G1: a platform that loses its patience posts the same update three times to two replicas
/// while the handler works on it: each call is answered at once, and the user gets one reply.
#[tokio::test]
async fn an_update_that_is_posted_three_times_to_two_replicas_is_answered_once() {
    let Some(store) = postgres() else { return };
    let handling = Duration::from_secs(3);
    let setting = Setting::new(store, handling).await;
    let ana = setting.platform.private(USER);
    let listens = [free_address(), free_address()];
    let mut replicas = Vec::new();
    for (number, listen) in listens.into_iter().enumerate() {
        let connection = Connection::Webhook { platform: setting.platform.address(), listen };
        replicas.push(setting.start(&format!("r{number}"), connection));
    }
    for listen in listens {
        is_ready(listen).await;
    }
    let body = update(1, "slow");
    let post = async |address| {
        let begun = Instant::now();
        let status = request(address, "POST /telegram", &body).await.unwrap();
        (status, begun.elapsed())
    };
    let [one, other] = listens;
    let answers = tokio::join!(post(one), post(other), post(other));
    for (status, time) in [answers.0, answers.1, answers.2] {
        println!("{status} after {time:?}");
        assert_eq!(status, 200);
        assert!(time < Duration::from_secs(1), "the platform waited {time:?} for the handler");
    }
    // Its turn comes when the first one is done, however often that was to be.
    let last = request(one, "POST /telegram", &update(2, "last")).await.unwrap();
    assert_eq!(last, 200);
    ana.hears(1).await;
    // After the answer once more, as a platform does that did not get ours.
    assert_eq!(request(one, "POST /telegram", &body).await.unwrap(), 200);
    assert_eq!(request(other, "POST /telegram", &update(3, "end")).await.unwrap(), 200);
    ana.hears(2).await;
    let heard: Vec<_> = ana.heard().iter().map(Call::text).collect();
    assert_eq!(heard, ["re slow", "re last", "re end"]);
}
