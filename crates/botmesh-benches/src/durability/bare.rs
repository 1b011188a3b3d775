//! What a client without any logic reaches with as much as must be written for each message: one
//! statement that takes it in, and one that ends it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use redis::aio::MultiplexedConnection;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use sqlx::{ConnectOptions as _, Connection as _, Executor as _, PgConnection, SqliteConnection};
use tokio::task::JoinSet;

use super::AT_ONCE;
use super::backend::Site;

const TABLE: &str = "CREATE TABLE bare (
    chat TEXT NOT NULL, message TEXT NOT NULL, body TEXT NOT NULL, state INT NOT NULL,
    PRIMARY KEY (chat, message)
)";
const TAKE: &str = "INSERT INTO bare (chat, message, body, state) VALUES ($1, $2, $3, 0)
    ON CONFLICT DO NOTHING";
const END: &str = "UPDATE bare SET state = 1, body = '' WHERE chat = $1 AND message = $2";
/// So many connections to PostgreSQL write at the same time.
const CONNECTIONS: usize = 32;

/// A client that is used again and again.
pub(super) struct Client {
    kind: Kind,
    /// No message comes twice.
    said: u64,
}

enum Kind {
    Sqlite(Box<SqliteConnection>),
    Postgres(Vec<PgConnection>),
    Redis(MultiplexedConnection),
}

/// A message as the bots get it.
struct Words {
    chat: String,
    message: String,
    body: String,
}

impl Words {
    fn new(number: u64, chats: u64) -> Self {
        let chat = format!("callers:{}", 1_000_000_000 + number % chats);
        let message = number.to_string();
        let body = format!(
            r#"{{"chat":"{chat}","id":"{message}","content":{{"text":"200"}},"sent_at":0}}"#
        );
        Self { chat, message, body }
    }
}

impl Client {
    pub(super) async fn open(site: &Site) -> Result<Self> {
        let kind = match site {
            Site::Sqlite(directory) => {
                let options = SqliteConnectOptions::new()
                    .filename(directory.path().join("bare.db"))
                    .create_if_missing(true)
                    .journal_mode(SqliteJournalMode::Wal)
                    .synchronous(SqliteSynchronous::Full);
                let mut connection = options.connect().await?;
                connection.execute(TABLE).await?;
                Kind::Sqlite(Box::new(connection))
            }
            Site::Postgres(server) => {
                let mut open = Vec::new();
                for _ in 0..CONNECTIONS {
                    open.push(PgConnection::connect(&Site::synchronous(server)).await?);
                }
                open.first_mut().context("no connection")?.execute(TABLE).await?;
                Kind::Postgres(open)
            }
            Site::Redis(server) => Kind::Redis(server.connection().await?),
        };
        Ok(Self { kind, said: 0 })
    }

    /// How long `messages` messages take, one chat after the other.
    pub(super) async fn run(&mut self, chats: u64, messages: u64) -> Result<Duration> {
        let first = self.said;
        self.said += messages;
        let numbers = first..self.said;
        let begun = Instant::now();
        match &mut self.kind {
            Kind::Sqlite(connection) => {
                for number in numbers {
                    let Words { chat, message, body } = Words::new(number, chats);
                    let take = sqlx::query(TAKE).bind(&chat).bind(&message).bind(body);
                    take.execute(&mut **connection).await?;
                    sqlx::query(END).bind(chat).bind(message).execute(&mut **connection).await?;
                }
            }
            Kind::Postgres(connections) => {
                let next = Arc::new(AtomicU64::new(first));
                let mut working = JoinSet::new();
                for mut connection in connections.drain(..) {
                    let (next, end) = (Arc::clone(&next), self.said);
                    working.spawn(async move {
                        loop {
                            let number = next.fetch_add(1, Ordering::Relaxed);
                            if number >= end {
                                return anyhow::Ok(connection);
                            }
                            let Words { chat, message, body } = Words::new(number, chats);
                            let take = sqlx::query(TAKE).bind(&chat).bind(&message).bind(body);
                            take.execute(&mut connection).await?;
                            let end = sqlx::query(END).bind(chat).bind(message);
                            end.execute(&mut connection).await?;
                        }
                    });
                }
                while let Some(worked) = working.join_next().await {
                    connections.push(worked??);
                }
            }
            Kind::Redis(connection) => {
                let next = Arc::new(AtomicU64::new(first));
                let mut working = JoinSet::new();
                for _ in 0..AT_ONCE {
                    let (next, end) = (Arc::clone(&next), self.said);
                    let mut connection = connection.clone();
                    working.spawn(async move {
                        loop {
                            let number = next.fetch_add(1, Ordering::Relaxed);
                            if number >= end {
                                return anyhow::Ok(());
                            }
                            let Words { chat, message, body } = Words::new(number, chats);
                            let hash = format!("bare:{chat}");
                            let mut take = redis::cmd("HSET");
                            take.arg(&hash).arg(&message).arg(body);
                            take.exec_async(&mut connection).await?;
                            let mut end = redis::cmd("HSET");
                            end.arg(&hash).arg(message).arg("");
                            end.exec_async(&mut connection).await?;
                        }
                    });
                }
                while let Some(worked) = working.join_next().await {
                    worked??;
                }
            }
        }
        Ok(begun.elapsed())
    }
}
