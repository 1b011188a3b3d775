use std::fmt;
use std::time::Duration;

use botmesh_core::store::StoreError;
use redis::aio::MultiplexedConnection;
use redis::cluster::ClusterClient;
use redis::cluster_async::ClusterConnection;
use redis::sentinel::{SentinelClientBuilder, SentinelServerType};
use redis::{
    AsyncConnectionConfig, Client, ClientTlsConfig, ConnectionAddr, ConnectionInfo, ErrorKind,
    IntoConnectionInfo, ProtocolVersion, RedisConnectionInfo, RedisError, RedisResult,
    TlsCertificates, TlsMode,
};

use crate::error::refused;
use crate::pushes::Pushes;

/// How long opening one connection may take.
const CONNECT: Duration = Duration::from_secs(5);

/// How many commands may wait to be written before their callers wait too.
const AT_ONCE: usize = 1024;

/// Where the data are and how to get there.
#[derive(Clone)]
pub(crate) struct Servers {
    topology: Topology,
    /// Of the servers that hold the data; those of the URLs otherwise.
    credentials: Option<(Option<String>, String)>,
    database: Option<i64>,
    tls: Option<TlsCertificates>,
    /// With Sentinel: whether the servers speak TLS.
    encrypted: bool,
    /// How long an answer may take.
    pub(crate) response: Duration,
    /// How long a call is repeated.
    pub(crate) patience: Duration,
}

/// How the servers are found.
#[derive(Clone)]
enum Topology {
    Single(String),
    Sentinel { sentinels: Vec<String>, master: String },
    Cluster(Vec<String>),
}

/// An open connection. Cheap to clone; clones share it.
#[derive(Clone)]
pub(crate) enum Connection {
    Node(MultiplexedConnection),
    Cluster(ClusterConnection),
}

impl Servers {
    pub(crate) fn single(url: String) -> Self {
        Self::new(Topology::Single(url))
    }

    pub(crate) fn sentinel(sentinels: Vec<String>, master: String) -> Self {
        Self::new(Topology::Sentinel { sentinels, master })
    }

    pub(crate) fn cluster(nodes: Vec<String>) -> Self {
        Self::new(Topology::Cluster(nodes))
    }

    const fn new(topology: Topology) -> Self {
        Self {
            topology,
            credentials: None,
            database: None,
            tls: None,
            encrypted: false,
            response: Duration::from_secs(5),
            patience: Duration::from_secs(10),
        }
    }

    pub(crate) fn set_credentials(&mut self, user: Option<String>, password: String) {
        self.credentials = Some((user, password));
    }

    pub(crate) const fn set_database(&mut self, database: i64) {
        self.database = Some(database);
    }

    pub(crate) const fn set_encrypted(&mut self, encrypted: bool) {
        self.encrypted = encrypted;
    }

    pub(crate) fn set_root_certificate(&mut self, pem: Vec<u8>) {
        self.certificates().root_cert = Some(pem);
    }

    pub(crate) fn set_client_certificate(&mut self, client_cert: Vec<u8>, client_key: Vec<u8>) {
        self.certificates().client_tls = Some(ClientTlsConfig { client_cert, client_key });
    }

    fn certificates(&mut self) -> &mut TlsCertificates {
        self.tls.get_or_insert(TlsCertificates { client_tls: None, root_cert: None })
    }

    pub(crate) const fn is_cluster(&self) -> bool {
        matches!(self.topology, Topology::Cluster(_))
    }

    /// Whether sentinels name the master.
    pub(crate) const fn has_sentinel(&self) -> bool {
        matches!(self.topology, Topology::Sentinel { .. })
    }

    /// Whether servers can push messages: not where the URL asks for the older protocol.
    pub(crate) fn can_push(&self) -> bool {
        match &self.topology {
            Topology::Single(url) => self
                .info(url)
                .is_ok_and(|info| info.redis_settings().protocol() != ProtocolVersion::RESP2),
            Topology::Sentinel { .. } | Topology::Cluster(_) => true,
        }
    }

    fn urls(&self) -> &[String] {
        match &self.topology {
            Topology::Single(url) => std::slice::from_ref(url),
            Topology::Sentinel { sentinels, .. } => sentinels,
            Topology::Cluster(nodes) => nodes,
        }
    }

    /// Checks what can be checked without a connection.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        if self.urls().is_empty() {
            return Err(refused("its settings", "it was given no address: name one at least"));
        }
        for url in self.urls() {
            // The text of the URL is not told: it may hold a password.
            let info = self.info(url).map_err(|error| {
                let reason = format!(
                    "a URL cannot be read ({}): write it as \
                     `redis[s]://[user][:password@]host[:port][/database]`",
                    error.category()
                );
                refused("its settings", reason)
            })?;
            let plain = !matches!(info.addr(), ConnectionAddr::TcpTls { .. });
            let nodes_encrypted =
                matches!(self.topology, Topology::Sentinel { .. }) && self.encrypted;
            if self.tls.is_some() && plain && !nodes_encrypted {
                let reason = "it was given a certificate, but its URL asks for no encryption: write \
                              `rediss://` instead of `redis://`";
                return Err(refused("its settings", reason));
            }
            if self.is_cluster() && info.redis_settings().db() != 0 {
                let reason = "a cluster has no other database than 0: leave the number out";
                return Err(refused("its settings", reason));
            }
        }
        Ok(())
    }

    /// What a URL says, with what the settings say instead.
    fn info(&self, url: &str) -> RedisResult<ConnectionInfo> {
        let info = url.into_connection_info()?;
        let mut redis = info.redis_settings().clone();
        // Pushes need it, and every server that is supported speaks it.
        if !url.contains("protocol=") {
            redis = redis.set_protocol(ProtocolVersion::RESP3);
        }
        if !matches!(self.topology, Topology::Sentinel { .. }) {
            redis = self.override_settings(redis);
        }
        Ok(info.set_redis_settings(redis))
    }

    fn override_settings(&self, mut redis: RedisConnectionInfo) -> RedisConnectionInfo {
        if let Some((user, password)) = &self.credentials {
            redis = redis.set_password(password);
            if let Some(user) = user {
                redis = redis.set_username(user);
            }
        }
        match self.database {
            Some(database) => redis.set_db(database),
            None => redis,
        }
    }

    /// Opens a connection to whichever server is in charge now.
    pub(crate) async fn open(&self, pushes: Option<&Pushes>) -> RedisResult<Connection> {
        install_cryptography();
        match tokio::time::timeout(CONNECT, self.open_unbounded(pushes)).await {
            Ok(opened) => opened,
            Err(_) => Err((ErrorKind::Io, "no connection within five seconds").into()),
        }
    }

    async fn open_unbounded(&self, pushes: Option<&Pushes>) -> RedisResult<Connection> {
        let client = match &self.topology {
            Topology::Cluster(nodes) => return self.open_cluster(nodes, pushes).await,
            Topology::Single(url) => self.client(url)?,
            Topology::Sentinel { sentinels, master } => self.find_master(sentinels, master).await?,
        };
        connect(&client, self.response, pushes).await
    }

    fn client(&self, url: &str) -> RedisResult<Client> {
        let info = self.info(url)?;
        match &self.tls {
            Some(tls) => Client::build_with_tls(info, tls.clone()),
            None => Client::open(info),
        }
    }

    /// Opens a connection to the first node of a cluster as if it were a single server, to learn
    /// why it cannot be used as a cluster.
    pub(crate) async fn open_first(&self) -> RedisResult<Connection> {
        let url = self.urls().first().map_or("", String::as_str);
        let client = self.client(url)?;
        let opened = connect(&client, self.response, None);
        match tokio::time::timeout(CONNECT, opened).await {
            Ok(opened) => opened,
            Err(_) => Err((ErrorKind::Io, "no connection within five seconds").into()),
        }
    }

    async fn find_master(&self, sentinels: &[String], master: &str) -> RedisResult<Client> {
        let infos: Vec<ConnectionInfo> =
            sentinels.iter().map(|url| self.info(url)).collect::<RedisResult<_>>()?;
        let addresses = infos.iter().map(|info| info.addr().clone());
        let mut builder =
            SentinelClientBuilder::new(addresses, master, SentinelServerType::Master)?
                .set_client_to_redis_protocol(ProtocolVersion::RESP3);
        if let Some(first) = infos.first() {
            if let Some(user) = first.redis_settings().username() {
                builder = builder.set_client_to_sentinel_username(user);
            }
            if let Some(password) = first.redis_settings().password() {
                builder = builder.set_client_to_sentinel_password(password);
            }
        }
        if let Some((user, password)) = &self.credentials {
            builder = builder.set_client_to_redis_password(password);
            if let Some(user) = user {
                builder = builder.set_client_to_redis_username(user);
            }
        }
        if let Some(database) = self.database {
            builder = builder.set_client_to_redis_db(database);
        }
        if self.encrypted {
            builder = builder.set_client_to_redis_tls_mode(TlsMode::Secure);
            if let Some(tls) = &self.tls {
                builder = builder.set_client_to_redis_certificates(tls.clone());
            }
        }
        builder.build()?.async_get_client().await
    }

    async fn open_cluster(
        &self,
        nodes: &[String],
        pushes: Option<&Pushes>,
    ) -> RedisResult<Connection> {
        let infos: Vec<ConnectionInfo> =
            nodes.iter().map(|url| self.info(url)).collect::<RedisResult<_>>()?;
        let mut builder = ClusterClient::builder(infos)
            .use_protocol(ProtocolVersion::RESP3)
            .connection_timeout(CONNECT / 2)
            .response_timeout(self.response)
            .overall_response_timeout(Some(self.response))
            // Only the caller knows what may be repeated.
            .retries(0);
        if let Some(tls) = &self.tls {
            builder = builder.certs(tls.clone());
        }
        if let Some(pushes) = pushes {
            builder = builder.push_sender(pushes.clone());
        }
        Ok(Connection::Cluster(builder.build()?.get_async_connection().await?))
    }
}

async fn connect(
    client: &Client,
    response: Duration,
    pushes: Option<&Pushes>,
) -> RedisResult<Connection> {
    let mut config = AsyncConnectionConfig::new()
        .set_connection_timeout(Some(CONNECT / 2))
        .set_response_timeout(Some(response))
        .set_pipeline_buffer_size(AT_ONCE);
    if let Some(pushes) = pushes {
        config = config.set_push_sender(pushes.clone());
    }
    let node = client.get_multiplexed_async_connection_with_config(&config).await?;
    Ok(Connection::Node(node))
}

/// The address of a URL, without what is secret in it.
fn address(url: &str) -> String {
    match url.into_connection_info() {
        Ok(info) => info.addr().to_string(),
        Err(RedisError { .. }) => "unreadable".to_owned(),
    }
}

impl fmt::Debug for Servers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let addresses: Vec<String> = self.urls().iter().map(|url| address(url)).collect();
        let mut shown = f.debug_struct(match self.topology {
            Topology::Single(_) => "Single",
            Topology::Sentinel { .. } => "Sentinel",
            Topology::Cluster(_) => "Cluster",
        });
        if let Topology::Sentinel { master, .. } = &self.topology {
            shown.field("master", master);
        }
        shown.field("addresses", &addresses).finish_non_exhaustive()
    }
}

/// Chooses the cryptography of TLS, unless the program has chosen.
fn install_cryptography() {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // An error means that somebody else was faster.
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
}
