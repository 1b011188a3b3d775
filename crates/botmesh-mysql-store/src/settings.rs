use std::fmt;
use std::time::Duration;

use botmesh_sql::TablePrefix;
use sqlx::MySqlPool;
use sqlx::mysql::MySqlConnectOptions;

/// How connections are opened and used.
#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) source: Source,
    pub(crate) names: TablePrefix,
    /// How many connections at most; without meaning for a shared pool.
    pub(crate) connections: usize,
    pub(crate) patience: Duration,
    pub(crate) response: Duration,
}

/// Where connections come from.
#[derive(Clone)]
pub(crate) enum Source {
    /// They are opened with these options.
    Options(Box<MySqlConnectOptions>),
    /// They belong to the program.
    Pool(MySqlPool),
}

impl Settings {
    pub(crate) fn new(source: Source) -> Self {
        Self {
            source,
            names: TablePrefix::default(),
            connections: 10,
            patience: Duration::from_secs(10),
            response: Duration::from_secs(5),
        }
    }

    /// What further connections are opened with.
    pub(crate) fn options(&self) -> MySqlConnectOptions {
        match &self.source {
            Source::Options(options) => (**options).clone(),
            Source::Pool(pool) => (*pool.connect_options()).clone(),
        }
    }
}

impl fmt::Debug for Settings {
    /// Without the password, which the driver's own options would show.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let options = self.options();
        f.debug_struct("Settings")
            .field("host", &options.get_host())
            .field("port", &options.get_port())
            .field("user", &options.get_username())
            .field("database", &options.get_database())
            .field("tables", &self.names)
            .field("connections", &self.connections)
            .field("patience", &self.patience)
            .field("response", &self.response)
            .finish_non_exhaustive()
    }
}
