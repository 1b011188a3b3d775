//! Finds out whether a pooler lends connections for single transactions.

use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _, Executor as _, PgConnection, Row as _};

/// How often two connections are compared: a pooler with much to do may lend different ones for a
/// while.
const ROUNDS: usize = 4;

/// For how long somebody lends a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lending {
    /// For as long as it is open: it leads to the server, or to a pooler that does so.
    Sessions,
    /// For the time of a transaction.
    Transactions,
    /// There is no room for the two connections that are needed to find out.
    Unknown,
}

/// Opens two connections and compares the processes of the server that answer on them. Each has
/// one of its own that stays, unless somebody lends them.
pub(crate) async fn find(options: &PgConnectOptions) -> Result<Lending, sqlx::Error> {
    let mut one = options.connect().await?;
    let Ok(mut other) = options.connect().await else {
        one.close().await?;
        return Ok(Lending::Unknown);
    };
    let mut seen = None;
    let mut lends = false;
    for _ in 0..ROUNDS {
        let pair = (process(&mut one).await?, process(&mut other).await?);
        lends = pair.0 == pair.1 || seen.is_some_and(|seen| seen != pair);
        if lends {
            break;
        }
        seen = Some(pair);
    }
    one.close().await?;
    other.close().await?;
    Ok(if lends { Lending::Transactions } else { Lending::Sessions })
}

async fn process(connection: &mut PgConnection) -> Result<i32, sqlx::Error> {
    // Not prepared, which a pooler might not bear.
    connection.fetch_one(sqlx::raw_sql("SELECT pg_backend_pid()")).await?.try_get(0)
}
