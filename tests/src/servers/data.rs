//! A server that holds data, of whichever kind.

use anyhow::{Result, bail};

use super::{Mongo, Mysql, Postgres, Server};

/// A server that holds data.
#[derive(Debug)]
pub enum DataServer {
    /// Redis.
    Redis(Server),
    /// PostgreSQL.
    Postgres(Postgres),
    /// MariaDB.
    Mysql(Mysql),
    /// What stands in for MongoDB.
    Mongo(Mongo),
}

impl DataServer {
    /// Where it listens.
    #[must_use]
    pub const fn port(&self) -> u16 {
        match self {
            Self::Redis(server) => server.port(),
            Self::Postgres(server) => server.port(),
            Self::Mysql(server) => server.port(),
            Self::Mongo(server) => server.port(),
        }
    }

    /// Starts it again.
    ///
    /// # Errors
    /// When it cannot be started or does not answer.
    pub async fn launch(&mut self) -> Result<()> {
        match self {
            Self::Redis(server) => server.launch().await,
            Self::Postgres(server) => server.launch().await,
            Self::Mysql(server) => server.launch().await,
            Self::Mongo(server) => server.launch().await,
        }
    }

    /// Ends it so that it keeps what it has written.
    pub fn halt(&mut self) {
        match self {
            Self::Redis(server) => server.kill(),
            Self::Postgres(server) => server.stop(),
            Self::Mysql(server) => server.stop(),
            Self::Mongo(server) => server.kill(),
        }
    }

    /// Kills it at once.
    pub fn kill(&mut self) {
        match self {
            Self::Redis(server) => server.kill(),
            Self::Postgres(server) => server.kill(),
            Self::Mysql(server) => server.kill(),
            Self::Mongo(server) => server.kill(),
        }
    }

    /// Kills it so that it knows no turn when it starts again.
    ///
    /// # Errors
    /// When its data cannot be removed.
    pub fn wipe(&mut self) -> Result<()> {
        self.kill();
        match self {
            Self::Redis(server) => server.wipe(),
            Self::Postgres(_) => Ok(()),
            Self::Mysql(server) => {
                server.wipe();
                Ok(())
            }
            Self::Mongo(server) => server.wipe(),
        }
    }

    /// Stops its processes, or lets them go on.
    ///
    /// # Errors
    /// When it does not run.
    pub fn pause(&self, paused: bool) -> Result<()> {
        match self {
            Self::Redis(server) => server.pause(paused),
            Self::Postgres(server) => {
                server.pause(paused);
                Ok(())
            }
            Self::Mysql(server) => {
                server.pause(paused);
                Ok(())
            }
            Self::Mongo(server) => server.pause(paused),
        }
    }

    /// Ends the connections that get wake-ups.
    ///
    /// # Errors
    /// When it does not answer.
    pub async fn break_pushes(&self) -> Result<()> {
        match self {
            Self::Redis(server) => server.ask("CLIENT KILL TYPE pubsub").await.map(drop),
            Self::Postgres(server) => server.break_pushes().await,
            Self::Mongo(server) => server.break_pushes().await,
            // There are none.
            Self::Mysql(_) => Ok(()),
        }
    }

    /// Sends a command of Redis and answers what comes back first.
    ///
    /// # Errors
    /// When it does not answer within a second, or is no Redis.
    pub async fn ask(&self, command: &str) -> Result<String> {
        match self {
            Self::Redis(server) => server.ask(command).await,
            Self::Postgres(_) | Self::Mysql(_) | Self::Mongo(_) => {
                bail!("this is no Redis, and knows no {command}")
            }
        }
    }
}
