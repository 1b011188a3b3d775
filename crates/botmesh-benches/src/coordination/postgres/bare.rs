//! What clients without any logic reach by the same driver.

use std::time::{Duration, Instant};

use anyhow::Result;
use botmesh_core::id::ChatKey;
use sqlx::postgres::PgListener;
use sqlx::{Executor as _, PgConnection};

use super::server::PrivateServer;
use crate::coordination::workers::{BareClient, Worker};

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

/// Connections that are tried.
const CONNECTIONS: [usize; 4] = [2, 4, 8, 16];

/// A connection that runs two prepared statements for each message.
pub(super) struct Statements(PgConnection);

/// A client with as many connections as serve it best on this machine.
pub(super) async fn client(
    server: &PrivateServer,
    messages: u64,
) -> Result<BareClient<Statements>> {
    server.connection().await?.execute(TABLE).await?;
    let mut clients = Vec::new();
    for connections in CONNECTIONS {
        let mut workers = Vec::new();
        for _ in 0..connections {
            workers.push(Statements(server.connection().await?));
        }
        clients.push(BareClient::new(workers));
    }
    BareClient::fastest(clients, messages).await
}

impl Worker for Statements {
    async fn handle(&mut self, chat: &ChatKey) -> Result<()> {
        for statement in [TAKE, RELEASE] {
            sqlx::query(statement)
                .bind(chat.as_str().as_bytes())
                .bind(&b"replica#0123456789abcdef01234567"[..])
                .bind(1_800_000_000_000_000_i64)
                .execute(&mut self.0)
                .await?;
        }
        Ok(())
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
