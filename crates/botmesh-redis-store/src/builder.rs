use std::fmt;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::time::Duration;

use botmesh_core::store::{Store, StoreError};

use crate::RedisStore;
use crate::error::refused;
use crate::keys::{Keyspace, Layout};
use crate::servers::Servers;

/// Opens a [`RedisStore`]. Await it, or call [`build`](Self::build) for one that connects later.
#[must_use = "await it, or call `build`"]
#[derive(Clone)]
pub struct RedisStoreBuilder {
    servers: Servers,
    prefix: String,
}

impl RedisStoreBuilder {
    pub(crate) fn new(servers: Servers) -> Self {
        Self { servers, prefix: "botmesh".to_owned() }
    }

    /// What all keys begin with, so that several bots share a server; `botmesh` by default. It may
    /// have up to 64 letters, digits, `.`, `_` and `-`.
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// The user and the password for the servers that hold the data, in place of those in the URL.
    /// With Sentinel, those in the URLs are for the sentinels only.
    pub fn credentials(mut self, user: Option<&str>, password: impl Into<String>) -> Self {
        self.servers.set_credentials(user.map(str::to_owned), password.into());
        self
    }

    /// The number of the database, in place of the one in the URL; 0 by default.
    pub fn database(mut self, number: u16) -> Self {
        self.servers.set_database(number.into());
        self
    }

    /// With Sentinel: whether the servers that hold the data speak TLS. Otherwise the URL tells.
    pub fn encrypted(mut self, encrypted: bool) -> Self {
        self.servers.set_encrypted(encrypted);
        self
    }

    /// Trusts this certificate (PEM) instead of those of the well-known authorities.
    pub fn root_certificate(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.servers.set_root_certificate(pem.into());
        self
    }

    /// Shows this certificate with its key (both PEM) to the servers.
    pub fn client_certificate(
        mut self,
        certificate: impl Into<Vec<u8>>,
        key: impl Into<Vec<u8>>,
    ) -> Self {
        self.servers.set_client_certificate(certificate.into(), key.into());
        self
    }

    /// How long an operation is repeated while its server is away; 10 s by default. After that it
    /// fails with [`StoreError::Unavailable`], and the next one tries anew.
    pub fn patience(mut self, patience: Duration) -> Self {
        self.servers.patience = patience;
        self
    }

    /// How long one answer may take before the connection counts as broken; 5 s by default.
    pub fn response_timeout(mut self, timeout: Duration) -> Self {
        self.servers.response = timeout;
        self
    }

    /// Makes the store without contacting a server; the first operation connects.
    ///
    /// # Errors
    /// [`StoreError::Refused`] for a URL, a prefix or a time that cannot be used.
    pub fn build(self) -> Result<RedisStore, StoreError> {
        let (servers, space) = self.checked()?;
        Ok(RedisStore::new(servers, space))
    }

    pub(crate) fn checked(self) -> Result<(Servers, Keyspace), StoreError> {
        self.servers.check()?;
        let day = Duration::from_secs(24 * 3600);
        for (setting, time) in
            [("patience", self.servers.patience), ("response_timeout", self.servers.response)]
        {
            if time < Duration::from_millis(1) || time > day {
                let reason = format!("{setting} is {time:?}: choose between 1 ms and a day");
                return Err(refused("its settings", reason));
            }
        }
        let layout = if self.servers.is_cluster() { Layout::Cluster } else { Layout::Single };
        let space = Keyspace::new(&self.prefix, layout)?;
        Ok((self.servers, space))
    }
}

impl IntoFuture for RedisStoreBuilder {
    type Output = Result<RedisStore, StoreError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    /// Connects and [prepares](Store::prepare) the store.
    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let store = self.build()?;
            store.prepare().await?;
            Ok(store)
        })
    }
}

impl fmt::Debug for RedisStoreBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStoreBuilder")
            .field("servers", &self.servers)
            .field("prefix", &self.prefix)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_settings_are_refused_before_anything_is_contacted() {
        let refusal = |builder: RedisStoreBuilder| match builder.build() {
            Err(StoreError::Refused { reason, .. }) => reason,
            other => panic!("{other:?}"),
        };
        for url in ["", "localhost", "http://localhost", "redis://h/name", "redis://h:99999"] {
            assert!(refusal(RedisStore::connect(url)).contains("cannot be read"), "{url}");
        }
        assert!(refusal(RedisStore::cluster(Vec::<String>::new())).contains("no address"));
        assert!(refusal(RedisStore::cluster(["redis://h/3"])).contains("other database"));
        let local = || RedisStore::connect("redis://localhost");
        assert!(refusal(local().root_certificate("pem")).contains("rediss://"));
        assert!(refusal(local().prefix("{a}")).contains("braces"));
        assert!(refusal(local().patience(Duration::ZERO)).contains("patience"));
    }

    /// I7: what is secret appears in no `Debug` output and in no error.
    #[test]
    fn passwords_are_never_shown() {
        let shown =
            |builder: RedisStoreBuilder| format!("{builder:?} {:?}", builder.clone().build());
        let url = "redis://user:hunter2@localhost:1234/5";
        for text in [
            shown(RedisStore::connect(url)),
            shown(RedisStore::connect("redis://localhost").credentials(Some("user"), "hunter2")),
            shown(RedisStore::sentinel([url], "main")),
            shown(RedisStore::connect("redis://user:hunter2@local host")),
            shown(RedisStore::connect("redis://user:hunter2@localhost/?protocol=hunter2")),
            shown(RedisStore::cluster(["redis://user:hunter2@localhost:1234"])),
        ] {
            assert!(!text.contains("hunter2"), "{text}");
        }
        assert!(shown(RedisStore::connect(url)).contains("localhost:1234"));
    }
}
