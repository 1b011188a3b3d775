use std::fmt;
use std::future::{Future, IntoFuture};
use std::path::PathBuf;
use std::pin::Pin;
use std::time::Duration;

use botmesh_core::store::{Store as _, StoreError};
use mongodb::Database;

use crate::MongoStore;
use crate::connections::Connections;
use crate::failure::refused;
use crate::names::{Prefix, check_database};
use crate::settings::{self, Address, Settings, Source};

/// Opens a [`MongoStore`]. Await it, or call [`build`](Self::build) for one that connects later.
#[must_use = "await it, or call `build`"]
#[derive(Clone)]
pub struct MongoStoreBuilder {
    /// What is wrong with the settings so far, in their place.
    settings: Result<Settings, String>,
    prefix: Option<String>,
}

impl MongoStoreBuilder {
    pub(crate) fn at(url: &str) -> Self {
        let settings = settings::read(url).map(|url| {
            let database = url.default_database.clone().unwrap_or_else(|| "botmesh".to_owned());
            Settings::new(Source::Address(Box::new(Address {
                url,
                database,
                credentials: None,
                root_certificate: None,
                client_certificate: None,
            })))
        });
        Self { settings, prefix: None }
    }

    pub(crate) fn over(database: Database) -> Self {
        Self { settings: Ok(Settings::new(Source::Shared(database))), prefix: None }
    }

    /// What the names of the collections begin with, so that several bots share a database;
    /// `botmesh_` by default. It may have up to 32 of `a` to `z`, `0` to `9` and `_`, the first
    /// one a letter.
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = Some(prefix.into());
        self
    }

    /// The database, in place of the one in the URL. The server makes it when it is first used.
    pub fn database(self, name: impl Into<String>) -> Self {
        let name = name.into();
        self.with("database", |address| address.database = name)
    }

    /// The user and the password, in place of those in the URL.
    pub fn credentials(self, user: impl Into<String>, password: impl Into<String>) -> Self {
        let credentials = (user.into(), password.into());
        self.with("credentials", |address| address.credentials = Some(credentials))
    }

    /// Encrypts, and trusts the certificate in this file (PEM) instead of those of the well-known
    /// authorities; in place of `tlsCAFile` in the URL.
    pub fn root_certificate_file(self, path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        self.with("root_certificate_file", |address| address.root_certificate = Some(path))
    }

    /// Encrypts, and shows the certificate in this file (PEM, with its key) to the server; in
    /// place of `tlsCertificateKeyFile` in the URL.
    pub fn client_certificate_file(self, path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        self.with("client_certificate_file", |address| address.client_certificate = Some(path))
    }

    /// How many operations are under way at most, each on a connection of its own; 10 by default.
    /// Whoever needs a further one waits for [`patience`](Self::patience), then gets
    /// [`StoreError::Busy`].
    pub fn max_connections(mut self, connections: u32) -> Self {
        if let Ok(settings) = &mut self.settings {
            settings.connections = connections;
        }
        self.with("max_connections", |_| {})
    }

    /// How long an operation is repeated while its server is away or no primary is elected, and
    /// how long it waits for a connection; 10 s by default. After that it fails with
    /// [`StoreError::Unavailable`], and the next one tries anew.
    pub fn patience(mut self, patience: Duration) -> Self {
        if let Ok(settings) = &mut self.settings {
            settings.patience = patience;
        }
        self
    }

    /// How long one answer may take, also that of the majority, before it counts as lost; 5 s by
    /// default.
    pub fn response_timeout(mut self, timeout: Duration) -> Self {
        if let Ok(settings) = &mut self.settings {
            settings.response = timeout;
        }
        self
    }

    /// Makes the store without contacting a server; the first operation connects.
    ///
    /// # Errors
    /// [`StoreError::Refused`] for a URL, a name or a number that cannot be used.
    pub fn build(self) -> Result<MongoStore, StoreError> {
        Ok(MongoStore::new(Connections::new(self.checked()?)))
    }

    pub(crate) fn checked(self) -> Result<Settings, StoreError> {
        let of_settings = |reason: String| refused("its settings", reason);
        let mut settings = self.settings.map_err(of_settings)?;
        if let Some(prefix) = self.prefix {
            settings.prefix = Prefix::new(&prefix)?;
        }
        if let Source::Address(address) = &settings.source {
            check_database(&address.database)?;
        }
        settings::check_times(&settings)?;
        if settings.connections == 0 {
            return Err(of_settings("max_connections is 0: choose 1 or more".to_owned()));
        }
        Ok(settings)
    }

    /// Changes what a client of our own needs to know.
    fn with(mut self, setting: &str, change: impl FnOnce(&mut Address)) -> Self {
        match &mut self.settings {
            Ok(Settings { source: Source::Address(address), .. }) => change(address),
            Ok(Settings { source: Source::Shared(_), .. }) => {
                self.settings = Err(format!(
                    "{setting} cannot be set for a client that is open already: set it there"
                ));
            }
            Err(_) => {}
        }
        self
    }
}

impl IntoFuture for MongoStoreBuilder {
    type Output = Result<MongoStore, StoreError>;
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

impl fmt::Debug for MongoStoreBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MongoStoreBuilder")
            .field("settings", &self.settings)
            .field("prefix", &self.prefix)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_settings_are_refused_before_anything_is_contacted() {
        let refusal = |builder: MongoStoreBuilder| match builder.build() {
            Err(StoreError::Refused { reason, .. }) => reason,
            other => panic!("{other:?}"),
        };
        for url in ["", "localhost", "http://localhost", "mongodb://h:port/d", "mongodb://u:p@ss@h"]
        {
            assert!(refusal(MongoStore::connect(url)).contains("cannot be read"), "{url}");
        }
        let local = || MongoStore::connect("mongodb://localhost");
        assert!(refusal(local().prefix("Shop")).contains("prefix"));
        assert!(refusal(local().database("a b")).contains("database"));
        assert!(refusal(local().patience(Duration::ZERO)).contains("patience"));
        assert!(refusal(local().response_timeout(Duration::ZERO)).contains("response_timeout"));
        assert!(refusal(local().max_connections(0)).contains("max_connections"));
    }

    /// I7: passwords do not appear in debug output, nor in the error for a URL.
    #[test]
    fn passwords_are_not_shown() {
        let shown =
            |builder: MongoStoreBuilder| format!("{builder:?} {:?}", builder.clone().build());
        for text in [
            shown(MongoStore::connect("mongodb://user:hunter2@localhost:1234/d")),
            shown(MongoStore::connect("mongodb://localhost").credentials("user", "hunter2")),
            shown(MongoStore::connect("mongodb://user:hunter2@local host:x/d")),
            shown(MongoStore::connect("mongodb://user:hunter2@localhost/?w=hunter2&tls=hunter2")),
            shown(MongoStore::connect("mongodb+srv://user:hunter2@db.example/d")),
        ] {
            assert!(!text.contains("hunter2"), "{text}");
        }
    }
}
