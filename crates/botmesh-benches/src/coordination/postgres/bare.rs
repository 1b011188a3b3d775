//! What clients without any logic reach by the same driver.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use sqlx::postgres::PgListener;
use sqlx::{Executor as _, PgConnection};
use tokio::task::JoinSet;

use super::server::PrivateServer;

const TABLE: &str = "CREATE UNLOGGED TABLE bare (
    name BYTEA PRIMARY KEY, holder BYTEA, fence BIGINT NOT NULL, expires_at BIGINT NOT NULL
) WITH (fillfactor = 50)";
/// The least that a coordinator has to write before a message and after it.
const TAKE: &str = "INSERT INTO bare AS b (name, holder, fence, expires_at) VALUES ($1, $2, 1, $3)
    ON CONFLICT (name) DO UPDATE
    SET holder = excluded.holder, fence = b.fence + 1, expires_at = excluded.expires_at
    RETURNING fence";
const RELEASE: &str =
    "UPDATE bare SET holder = NULL, expires_at = $3 WHERE name = $1 AND holder = $2";

/// Connections that are tried; each has one task.
const CONNECTIONS: [usize; 4] = [2, 4, 8, 16];

/// Two prepared statements for each message, over a number of connections that each have one task.
pub(super) struct BareClient {
    connections: tokio::sync::Mutex<Vec<PgConnection>>,
}

impl BareClient {
    /// A client with as many connections as serve it best on this machine.
    pub(super) async fn tuned(server: &PrivateServer, messages: u64) -> Result<Self> {
        server.connection().await?.execute(TABLE).await?;
        let mut best = None;
        for connections in CONNECTIONS {
            let client = Self::open(server, connections).await?;
            // Once so that everything is prepared and the rows are there.
            client.run(10_000, messages / 10).await?;
            let took = client.run(10_000, messages / 2).await?;
            if best.as_ref().is_none_or(|(least, _)| took < *least) {
                best = Some((took, client));
            }
        }
        best.map(|(_, client)| client).context("no number of connections was tried")
    }

    async fn open(server: &PrivateServer, connections: usize) -> Result<Self> {
        let mut open = Vec::new();
        for _ in 0..connections {
            open.push(server.connection().await?);
        }
        Ok(Self { connections: tokio::sync::Mutex::new(open) })
    }

    /// How long `messages` messages take, one chat after the other.
    pub(super) async fn run(&self, chats: u64, messages: u64) -> Result<Duration> {
        let mut connections = self.connections.lock().await;
        let next = Arc::new(AtomicU64::new(0));
        let begun = Instant::now();
        let mut workers = JoinSet::new();
        for mut connection in connections.drain(..) {
            let next = Arc::clone(&next);
            workers.spawn(async move {
                loop {
                    let message = next.fetch_add(1, Ordering::Relaxed);
                    if message >= messages {
                        return anyhow::Ok(connection);
                    }
                    let name = format!("chat:bench:{}", 1_000_000_000 + message % chats);
                    for statement in [TAKE, RELEASE] {
                        sqlx::query(statement)
                            .bind(name.as_bytes())
                            .bind(&b"replica#0123456789abcdef01234567"[..])
                            .bind(i64::try_from(message)?)
                            .execute(&mut connection)
                            .await?;
                    }
                }
            });
        }
        while let Some(worker) = workers.join_next().await {
            connections.push(worker??);
        }
        Ok(begun.elapsed())
    }
}

/// One connection that notifies another.
pub(super) struct BareNotifier {
    sender: PgConnection,
    receiver: PgListener,
}

impl BareNotifier {
    pub(super) async fn open(server: &PrivateServer) -> Result<Self> {
        let mut receiver = PgListener::connect(&server.url()).await?;
        receiver.listen("bare").await?;
        Ok(Self { sender: server.connection().await?, receiver })
    }

    /// How long a notification takes from its sending until a task that waits for it runs.
    pub(super) async fn notify(&mut self) -> Result<Duration> {
        let Self { sender, receiver } = self;
        let send = async {
            tokio::task::yield_now().await;
            let begun = Instant::now();
            sqlx::query("SELECT pg_notify('bare', 'x')").execute(sender).await?;
            anyhow::Ok(begun)
        };
        let wait = async {
            receiver.recv().await?;
            Ok(Instant::now())
        };
        let (running, begun) = tokio::try_join!(wait, send)?;
        Ok(running.saturating_duration_since(begun))
    }
}
