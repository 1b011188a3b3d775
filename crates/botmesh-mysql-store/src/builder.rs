use std::fmt;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::str::FromStr as _;
use std::time::Duration;

use botmesh_core::store::{Store as _, StoreError};
use botmesh_sql::TablePrefix;
use sqlx::mysql::{MySqlConnectOptions, MySqlSslMode};
use sqlx::{ConnectOptions as _, MySqlPool};

use crate::MysqlStore;
use crate::connections::Connections;
use crate::driver::NAME;
use crate::settings::{Settings, Source};

/// Opens a [`MysqlStore`]. Await it, or call [`build`](Self::build) for one that connects later.
#[must_use = "await it, or call `build`"]
#[derive(Clone)]
pub struct MysqlStoreBuilder {
    settings: Settings,
    prefix: Option<String>,
    /// What is wrong with the settings so far.
    mistake: Option<String>,
}

impl MysqlStoreBuilder {
    pub(crate) fn at(url: &str) -> Self {
        let (options, mistake) = match read(url) {
            Ok(options) => (options, None),
            Err(mistake) => (MySqlConnectOptions::new(), Some(mistake)),
        };
        Self::new(Source::Options(Box::new(options)), mistake)
    }

    pub(crate) fn over(pool: MySqlPool) -> Self {
        Self::new(Source::Pool(pool), None)
    }

    fn new(source: Source, mistake: Option<String>) -> Self {
        Self { settings: Settings::new(source), prefix: None, mistake }
    }

    /// What the names of the tables begin with, so that several bots share a database; `botmesh_`
    /// by default. It may have up to 32 of `a` to `z`, `0` to `9` and `_`, the first one a letter.
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = Some(prefix.into());
        self
    }

    /// The user and the password, in place of those in the URL.
    pub fn credentials(self, user: &str, password: &str) -> Self {
        self.with("credentials", |options| options.username(user).password(password))
    }

    /// Trusts this certificate (PEM) instead of those of the well-known authorities, and insists on
    /// a server that has one from it for its name (`ssl-mode=VERIFY_IDENTITY`), unless the URL
    /// asks for less.
    pub fn root_certificate(self, pem: impl Into<Vec<u8>>) -> Self {
        let pem = pem.into();
        self.with("root_certificate", |options| {
            let options = match options.get_ssl_mode() {
                MySqlSslMode::Preferred => options.ssl_mode(MySqlSslMode::VerifyIdentity),
                _ => options,
            };
            options.ssl_ca_from_pem(pem)
        })
    }

    /// Shows this certificate with its key (both PEM) to the server.
    pub fn client_certificate(self, certificate: impl AsRef<[u8]>, key: impl AsRef<[u8]>) -> Self {
        self.with("client_certificate", |options| {
            options.ssl_client_cert_from_pem(certificate).ssl_client_key_from_pem(key)
        })
    }

    /// How many connections are open at most; 10 by default. Who needs a further one waits for
    /// [`patience`](Self::patience), then gets [`StoreError::Busy`].
    pub fn max_connections(mut self, connections: usize) -> Self {
        if matches!(self.settings.source, Source::Pool(_)) {
            return self.refuse("max_connections");
        }
        self.settings.connections = connections;
        self
    }

    /// How long an operation is repeated while its server is away, and how long it waits for a
    /// connection; 10 s by default. After that it fails with [`StoreError::Unavailable`], and the
    /// next one tries anew.
    pub const fn patience(mut self, patience: Duration) -> Self {
        self.settings.patience = patience;
        self
    }

    /// How long one answer may take before the connection counts as broken; 5 s by default.
    pub const fn response_timeout(mut self, timeout: Duration) -> Self {
        self.settings.response = timeout;
        self
    }

    /// Makes the store without contacting the server; the first operation connects.
    ///
    /// # Errors
    /// [`StoreError::Refused`] for a URL, a name or a number that cannot be used.
    pub fn build(self) -> Result<MysqlStore, StoreError> {
        let connections = Connections::new(self.checked()?).map_err(refused)?;
        Ok(MysqlStore::new(connections))
    }

    pub(crate) fn checked(self) -> Result<Settings, StoreError> {
        let Self { mut settings, prefix, mistake } = self;
        if let Some(mistake) = mistake {
            return Err(refused(mistake));
        }
        if let Some(prefix) = prefix {
            settings.names =
                TablePrefix::new(&prefix).map_err(|error| refused(error.to_string()))?;
        }
        let day = Duration::from_secs(24 * 3600);
        for (setting, time) in
            [("patience", settings.patience), ("response_timeout", settings.response)]
        {
            if time < Duration::from_millis(1) || time > day {
                return Err(refused(format!(
                    "{setting} is {time:?}: choose between 1 ms and a day"
                )));
            }
        }
        if settings.connections == 0 {
            return Err(refused("max_connections is 0: choose 1 or more".to_owned()));
        }
        Ok(settings)
    }

    fn with(
        mut self,
        setting: &str,
        change: impl FnOnce(MySqlConnectOptions) -> MySqlConnectOptions,
    ) -> Self {
        match self.settings.source {
            Source::Options(options) => {
                self.settings.source = Source::Options(Box::new(change(*options)));
                self
            }
            Source::Pool(_) => self.refuse(setting),
        }
    }

    fn refuse(mut self, setting: &str) -> Self {
        self.mistake =
            Some(format!("{setting} cannot be set for a pool that is open already: set it there"));
        self
    }
}

fn read(url: &str) -> Result<MySqlConnectOptions, String> {
    // Not the error itself: it may show the URL, and the password with it.
    let unreadable = || {
        "the URL cannot be read: write it as in `mysql://user:password@localhost:3306/database`"
            .to_owned()
    };
    let is_ours = ["mysql://", "mariadb://"].iter().any(|scheme| url.starts_with(scheme));
    let options = MySqlConnectOptions::from_str(url).ok().filter(|_| is_ours);
    let options = options.ok_or_else(unreadable)?;
    if options.get_database().is_none() {
        return Err("the URL names no database: end it with one, as in \
                    `mysql://user:password@localhost:3306/database`"
            .to_owned());
    }
    // What statements here rely on is set in one go when a connection is opened.
    let options = options.pipes_as_concat(false).no_engine_substitution(false).timezone(None);
    Ok(options.set_names(false).disable_statement_logging())
}

fn refused(reason: String) -> StoreError {
    StoreError::Refused { store: NAME, operation: "its settings", reason }
}

impl IntoFuture for MysqlStoreBuilder {
    type Output = Result<MysqlStore, StoreError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    /// Connects and [prepares](botmesh_core::store::Store::prepare) the store.
    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let store = self.build()?;
            store.prepare().await?;
            Ok(store)
        })
    }
}

impl fmt::Debug for MysqlStoreBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MysqlStoreBuilder")
            .field("settings", &self.settings)
            .field("prefix", &self.prefix)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_settings_are_refused_before_anything_is_contacted() {
        let refusal = |builder: MysqlStoreBuilder| match builder.build() {
            Err(StoreError::Refused { reason, .. }) => reason,
            other => panic!("{other:?}"),
        };
        for url in ["", "localhost", "http://localhost/d", "mysql://h:port/d"] {
            assert!(refusal(MysqlStore::connect(url)).contains("cannot be read"), "{url}");
        }
        assert!(refusal(MysqlStore::connect("mysql://localhost")).contains("names no database"));
        let local = || MysqlStore::connect("mysql://localhost/bots");
        assert!(refusal(local().prefix("Shop")).contains("table prefix"));
        assert!(refusal(local().patience(Duration::ZERO)).contains("patience"));
        assert!(refusal(local().max_connections(0)).contains("max_connections"));
    }

    /// I7: passwords do not appear in debug output, nor in the error for a URL.
    #[test]
    fn passwords_are_not_shown() {
        let builder = MysqlStore::connect("mysql://user:s3cret@localhost/d");
        assert!(!format!("{builder:?}").contains("s3cret"));
        assert!(!format!("{:?}", builder.build().unwrap()).contains("s3cret"));
        let error = MysqlStore::connect("mysql://user:s3cret@local:host/d").build();
        assert!(!format!("{:?}", error.unwrap_err()).contains("s3cret"));
    }
}
