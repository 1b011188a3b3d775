//! The connections of one store or coordinator.

use std::time::Duration;

use botmesh_sql::{Bounds, Lender};
use sqlx::mysql::MySqlConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions as _, Executor as _, MySql, MySqlConnection};

use crate::failure::Failure;
use crate::settings::{Settings, Source};

/// One that is lent.
pub(crate) type Lent = botmesh_sql::Lent<Opener>;

/// The connections of one store or coordinator.
#[derive(Debug)]
pub(crate) struct Connections {
    lender: Lender<Opener>,
    settings: Settings,
}

impl Connections {
    pub(crate) fn new(settings: Settings) -> Result<Self, String> {
        let Settings { connections, patience, response, .. } = settings;
        let lender = match &settings.source {
            Source::Pool(pool) => Lender::shared(pool.clone()),
            Source::Options(options) => {
                let opener = Opener { options: (**options).clone(), response };
                Lender::own(opener, Bounds { connections, patience, response })?
            }
        };
        Ok(Self { lender, settings })
    }

    pub(crate) const fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Lends a connection for the next statement.
    pub(crate) async fn lend(&self) -> Result<Lent, Failure> {
        self.lender.lend().await.map_err(Failure::from)
    }

    /// A connection broke: those that were opened before it broke are tried out before they are
    /// used again.
    pub(crate) fn doubt(&self) {
        self.lender.doubt();
    }

    /// Closes those that nobody uses, and lends none any more.
    pub(crate) fn close(&self) {
        self.lender.close();
    }
}

/// Opens a connection, with the settings that all statements here rely on.
pub(crate) async fn open(
    options: &MySqlConnectOptions,
    response: Duration,
) -> Result<MySqlConnection, sqlx::Error> {
    let mut connection = options.connect().await?;
    // Who waits for a row gives up before the answer counts as lost, and knows then that nothing
    // was written. What is cut to fit, or stored by an engine without transactions, is an error.
    let patience = (response.as_secs() * 3 / 5).max(1);
    let settings = format!(
        "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED;
        SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', autocommit = 1,
            innodb_lock_wait_timeout = {patience}, default_storage_engine = InnoDB"
    );
    connection.execute(sqlx::raw_sql(AssertSqlSafe(settings))).await?;
    Ok(connection)
}

/// Opens connections with these options.
pub(crate) struct Opener {
    options: MySqlConnectOptions,
    response: Duration,
}

impl botmesh_sql::Opener for Opener {
    type Database = MySql;

    async fn open(&self) -> Result<MySqlConnection, sqlx::Error> {
        open(&self.options, self.response).await
    }
}
