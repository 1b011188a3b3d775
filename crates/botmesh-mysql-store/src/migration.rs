//! Defines tables. In MySQL each definition is committed by itself, so a migration is a row of steps
//! of which each may be repeated, run by one replica at a time.

use std::time::Duration;

use async_trait::async_trait;
use botmesh_sql::{DriverError, Row, Statement, Transaction, Value};
use sqlx::{Connection as _, MySqlConnection};

use crate::connections;
use crate::failure::Failure;
use crate::protocol;
use crate::settings::Settings;

/// How long one step may take, and the wait for a migration that another replica has begun.
const PATIENCE: Duration = Duration::from_secs(60);

/// A connection of its own that holds the lock of migrations, until it is closed.
pub(crate) struct Migration {
    connection: MySqlConnection,
}

impl Migration {
    pub(crate) async fn begin(settings: &Settings) -> Result<Self, Failure> {
        let options = settings.options();
        let opening = connections::open(&options, settings.response);
        let connection = match tokio::time::timeout(settings.response, opening).await {
            Ok(opened) => opened.map_err(Failure::unsent)?,
            Err(_) => return Err(Failure::silent(settings.response, false)),
        };
        let mut begun = Self { connection };
        // The lock is one of the whole server, and ends with the connection. Its name may have 64
        // characters, which a database and a prefix may not fit in. MySQL 9.6 has no SHA1 any more.
        let lock = format!(
            "SELECT GET_LOCK(CONCAT('botmesh ', SHA2(CONCAT(DATABASE(), ' {}'), 224)), {})",
            settings.names,
            PATIENCE.as_secs()
        );
        let lock = sqlx::query_scalar(sqlx::AssertSqlSafe(lock));
        // Longer than the wait for the lock, so that the server tells when it is over.
        let patience = PATIENCE + settings.response;
        let locked = tokio::time::timeout(patience, lock.fetch_one(&mut begun.connection)).await;
        match locked {
            Ok(Ok(Some(1_i64))) => Ok(begun),
            Ok(Ok(_)) => Err(Failure::occupied(PATIENCE)),
            Ok(Err(error)) => Err(Failure::sent(error)),
            Err(_) => Err(Failure::silent(patience, true)),
        }
    }
}

#[async_trait]
impl Transaction for Migration {
    async fn run(
        &mut self,
        statement: &Statement,
        values: Vec<Value>,
    ) -> Result<Vec<Row>, DriverError> {
        let running = protocol::run_plain(&mut self.connection, statement, &values);
        let failure = match tokio::time::timeout(PATIENCE, running).await {
            Ok(Ok(rows)) => return Ok(rows),
            Ok(Err(error)) => Failure::sent(error),
            Err(_) => Failure::silent(PATIENCE, true),
        };
        Err(failure.into_error())
    }

    async fn commit(self: Box<Self>) -> Result<(), DriverError> {
        // All is done already. What ends with the connection is the lock.
        self.connection.close().await.map_err(|error| Failure::sent(error).into_error())
    }
}
