//! Finds out whether a pooler lends connections for single transactions.

use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _, Executor as _, PgConnection, Row as _};

/// How often two connections are compared: a pooler with much to do may lend different ones for a
/// while.
const ROUNDS: usize = 4;

/// Opens two connections and compares the processes of the server that answer on them. Each has
/// one of its own that stays, unless somebody lends them.
pub(crate) async fn lends_transactions(options: &PgConnectOptions) -> Result<bool, sqlx::Error> {
    let mut one = options.connect().await?;
    let Ok(mut other) = options.connect().await else {
        // There is no room for two. Not to prepare is always right, only slower.
        one.close().await?;
        return Ok(true);
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
    Ok(lends)
}

async fn process(connection: &mut PgConnection) -> Result<i32, sqlx::Error> {
    // Not prepared, which a pooler might not bear.
    connection.fetch_one(sqlx::raw_sql("SELECT pg_backend_pid()")).await?.try_get(0)
}
