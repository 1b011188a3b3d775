use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use botmesh_core::store::{
    ConditionalCheckpointStore, InboxStore, LockStore, Realm, Store, StoreError,
};
use redis::{Cmd, Value};
use tokio::time::Instant;

use crate::RedisStoreBuilder;
use crate::error::{Fault, NAME, corrupt, refused};
use crate::keys::{Keyspace, Layout};
use crate::link::{Kind, Link};
use crate::reply;
use crate::script::{PREPARE, Script};
use crate::server::ServerInfo;
use crate::servers::Servers;
use crate::words::Words;

/// The version of the keys and rows that this code writes.
const SCHEMA: u64 = 1;

/// The shortest and the longest pause before a call is repeated.
const PAUSES: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(500));

/// A store in Redis: on one server, on whichever server Sentinel names, or on a cluster.
///
/// Clones share one connection, which opens when it is needed and again after it broke.
#[derive(Clone)]
pub struct RedisStore {
    inner: Arc<Inner>,
}

struct Inner {
    servers: Servers,
    space: Keyspace,
    link: Link,
    durable: AtomicBool,
    warnings: Mutex<Vec<String>>,
    realm: Realm,
    /// Marks the requests of this store.
    mark: String,
    requests: AtomicU64,
}

/// Whether a call may be sent again when its outcome is unknown.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// It reads, or recognises what it has done before.
    Freely,
    /// It would undo what others did meanwhile.
    IfNotExecuted,
}

impl RedisStore {
    /// A store on a single server, such as `redis://:password@localhost:6379/0`; `rediss://` for
    /// TLS.
    pub fn connect(url: impl Into<String>) -> RedisStoreBuilder {
        RedisStoreBuilder::new(Servers::single(url.into()))
    }

    /// A store on whichever server the sentinels at these URLs know as `master`. After a fail-over
    /// it finds the new one by itself.
    pub fn sentinel<U: Into<String>>(
        sentinels: impl IntoIterator<Item = U>,
        master: impl Into<String>,
    ) -> RedisStoreBuilder {
        let sentinels = sentinels.into_iter().map(Into::into).collect();
        RedisStoreBuilder::new(Servers::sentinel(sentinels, master.into()))
    }

    /// A store on the cluster that has these nodes, among others.
    pub fn cluster<U: Into<String>>(nodes: impl IntoIterator<Item = U>) -> RedisStoreBuilder {
        let nodes = nodes.into_iter().map(Into::into).collect();
        RedisStoreBuilder::new(Servers::cluster(nodes))
    }

    pub(crate) fn new(servers: Servers, space: Keyspace) -> Self {
        let link = Link::new(servers.clone(), Kind::Plain);
        let mut mark = uuid::Uuid::new_v4().simple().to_string();
        mark.truncate(16);
        let inner = Inner {
            servers,
            space,
            link,
            durable: AtomicBool::new(false),
            warnings: Mutex::default(),
            realm: Realm::new(),
            mark,
            requests: AtomicU64::new(0),
        };
        Self { inner: Arc::new(inner) }
    }

    /// What is not as it should be at the server, found by the last [`prepare`](Store::prepare).
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        self.inner.warnings.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn space(&self) -> &Keyspace {
        &self.inner.space
    }

    pub(crate) fn servers(&self) -> &Servers {
        &self.inner.servers
    }

    /// What it shares with the coordinators that are made of it.
    pub(crate) fn own_realm(&self) -> &Realm {
        &self.inner.realm
    }

    /// A mark that no other request has: by it a repeated request is recognised.
    pub(crate) fn request(&self) -> String {
        let number = self.inner.requests.fetch_add(1, Ordering::Relaxed);
        format!("{}{number:x}", self.inner.mark)
    }

    /// Runs a script, and repeats it while the server is away.
    pub(crate) async fn call(
        &self,
        operation: &'static str,
        repeat: Repeat,
        script: &Script,
        keys: &[&str],
        arguments: &[&[u8]],
    ) -> Result<Value, StoreError> {
        let attempt = || self.inner.link.evaluate(script, keys, arguments);
        self.insist(operation, repeat, attempt).await
    }

    /// Runs a script that recognises what it has done before, and repeats it while the server is
    /// away.
    pub(crate) async fn call_words(
        &self,
        operation: &'static str,
        script: &Script,
        keys: &[String],
        arguments: &Words,
    ) -> Result<Value, StoreError> {
        let attempt = || self.inner.link.evaluate_words(script, keys, arguments);
        self.insist(operation, Repeat::Freely, attempt).await
    }

    /// Sends a command that only reads, and repeats it while the server is away.
    pub(crate) async fn read(
        &self,
        operation: &'static str,
        command: &Cmd,
    ) -> Result<Value, StoreError> {
        self.insist(operation, Repeat::Freely, || self.inner.link.run(command)).await
    }

    async fn insist<T, F>(
        &self,
        operation: &'static str,
        repeat: Repeat,
        attempt: impl Fn() -> F,
    ) -> Result<T, StoreError>
    where
        F: Future<Output = Result<T, Fault>>,
    {
        let deadline = Instant::now() + self.inner.servers.patience;
        let mut pause = PAUSES.0;
        loop {
            let fault = match attempt().await {
                Ok(answer) => return Ok(answer),
                Err(fault) => fault,
            };
            let repeatable = repeat == Repeat::Freely || fault.is_unexecuted();
            if !fault.is_transient() || !repeatable || Instant::now() + pause >= deadline {
                return Err(fault.into_store_error(operation));
            }
            tracing::debug!(operation, ?fault, ?pause, "redis is away, trying again");
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(PAUSES.1);
        }
    }

    /// What the servers say of themselves, one text for each.
    pub(crate) async fn information(&self) -> Result<Vec<String>, StoreError> {
        let attempt = || self.inner.link.information();
        self.insist("connecting", Repeat::Freely, attempt).await
    }

    /// The settings of each server; none when they are kept from the user.
    pub(crate) async fn configurations(
        &self,
        names: &[&str],
    ) -> Result<Option<Vec<HashMap<String, String>>>, StoreError> {
        let attempt = async || match self.inner.link.configurations(names).await {
            Err(fault) if fault.is_withheld() => Ok(None),
            answered => answered.map(Some),
        };
        self.insist("asking for settings", Repeat::Freely, attempt).await
    }

    async fn examine(&self) -> Result<(), StoreError> {
        let layout = self.space().layout();
        let texts = match self.information().await {
            Err(error) if layout == Layout::Cluster => {
                return Err(self.why_no_cluster().await.unwrap_or(error));
            }
            texts => texts?,
        };
        let mut warnings = Vec::new();
        let mut durable = !texts.is_empty();
        for text in texts {
            let info = ServerInfo::read(&text);
            info.check(layout)?;
            durable &= info.appends;
            warnings.extend(info.warnings(self.inner.servers.has_sentinel()));
        }
        warnings.dedup();
        for warning in &warnings {
            tracing::warn!("{warning}");
        }
        self.inner.durable.store(durable, Ordering::Relaxed);
        *self.inner.warnings.lock().unwrap_or_else(PoisonError::into_inner) = warnings;
        Ok(())
    }

    /// Tells whether what was given as a cluster is a single server.
    async fn why_no_cluster(&self) -> Option<StoreError> {
        let mut first = self.inner.servers.open_first().await.ok()?;
        let text = match &mut first {
            crate::servers::Connection::Node(node) => {
                redis::cmd("INFO").query_async::<String>(node).await.ok()?
            }
            crate::servers::Connection::Cluster(_) => return None,
        };
        ServerInfo::read(&text).check(Layout::Cluster).err()
    }

    /// Writes the description of the space, or compares it with what is there.
    async fn describe(&self) -> Result<(), StoreError> {
        let (key, layout) = (self.space().meta(), self.space().layout().describe());
        let version = SCHEMA.to_string();
        let arguments: [&[u8]; 2] = [version.as_bytes(), layout.as_bytes()];
        let answer = self.call("preparing", Repeat::Freely, &PREPARE, &[&key], &arguments).await?;
        let [found_version, found_layout] = reply::array(answer, "a description of itself")?;
        let found_version = reply::number(found_version, "a schema version")?;
        if found_version > SCHEMA {
            return Err(StoreError::NewerSchema {
                store: NAME,
                found: found_version,
                supported: SCHEMA,
            });
        }
        let found_layout = reply::text(found_layout, "a layout")?;
        if found_layout != layout {
            let reason = format!(
                "the keys of the prefix {:?} have the layout {found_layout:?}, not {layout:?}: \
                 choose another prefix",
                self.space().prefix()
            );
            return Err(refused("preparing", reason));
        }
        if found_version == 0 {
            return Err(corrupt("a schema version", "it is 0"));
        }
        Ok(())
    }
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStore")
            .field("servers", &self.inner.servers)
            .field("prefix", &self.space().prefix())
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl Store for RedisStore {
    fn name(&self) -> &'static str {
        NAME
    }

    fn is_shared(&self) -> bool {
        true
    }

    /// Whether every server appends each write to a file (`appendonly yes`), as the last
    /// [`prepare`](Store::prepare) found it; false before. Snapshots alone do not count: what was
    /// written since the last one would be lost. With `appendfsync everysec`, the default, a
    /// server that loses its power loses a second.
    fn is_durable(&self) -> bool {
        self.inner.durable.load(Ordering::Relaxed)
    }

    async fn prepare(&self) -> Result<(), StoreError> {
        self.examine().await?;
        self.describe().await
    }

    fn conditional_checkpoints(&self) -> Option<&dyn ConditionalCheckpointStore> {
        Some(self)
    }

    fn locks(&self) -> Option<&dyn LockStore> {
        Some(self)
    }

    fn inbox(&self) -> Option<&dyn InboxStore> {
        Some(self)
    }
}
