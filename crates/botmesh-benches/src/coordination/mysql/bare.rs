//! What a client without any logic reaches by the same driver.

use anyhow::Result;
use botmesh_core::id::ChatKey;
use sqlx::{Executor as _, MySqlConnection};

use super::server::PrivateServer;
use crate::coordination::workers::{BareClient, Worker};

const TABLE: &str = "CREATE TABLE bare (
    name VARBINARY(2048) NOT NULL PRIMARY KEY, holder VARBINARY(2048), fence BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC";
/// The least that a coordinator has to write before a message and after it.
const TAKE: &str = "INSERT INTO bare (holder, expires_at, name, fence) VALUES (?, ?, ?, 1)
    ON DUPLICATE KEY UPDATE
    holder = VALUES(holder), fence = fence + 1, expires_at = VALUES(expires_at)";
const RELEASE: &str = "UPDATE bare SET holder = IF(holder = ?, NULL, holder), expires_at = ? + 1
    WHERE name = ?";

/// Connections that are tried.
const CONNECTIONS: [usize; 4] = [2, 4, 8, 16];

/// A connection that runs two prepared statements for each message.
pub(super) struct Statements(MySqlConnection);

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
                .bind(&b"replica#0123456789abcdef01234567"[..])
                .bind(1_800_000_000_000_000_i64)
                .bind(chat.as_str().as_bytes())
                .execute(&mut self.0)
                .await?;
        }
        Ok(())
    }
}
