use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use botmesh_core::store::StoreError;
use mongodb::Database;
use mongodb::options::{ClientOptions, ConnectionString, Credential, HostInfo, Tls, TlsOptions};

use crate::failure::Failure;
use crate::names::Prefix;

/// How long the choice of a server lasts at most before it is tried again: the driver looks at a
/// server that is away twice a second.
const SELECTION: Duration = Duration::from_secs(1);

/// How connections are opened and used.
#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) source: Source,
    pub(crate) prefix: Prefix,
    /// How many connections to one server at most; without meaning for a client of the program.
    pub(crate) connections: u32,
    pub(crate) patience: Duration,
    pub(crate) response: Duration,
}

/// Where connections come from.
#[derive(Clone)]
pub(crate) enum Source {
    /// A client of our own opens them.
    Address(Box<Address>),
    /// They belong to the program.
    Shared(Database),
}

/// What a client of our own needs to know.
#[derive(Clone)]
pub(crate) struct Address {
    pub(crate) url: ConnectionString,
    pub(crate) database: String,
    pub(crate) credentials: Option<(String, String)>,
    pub(crate) root_certificate: Option<PathBuf>,
    pub(crate) client_certificate: Option<PathBuf>,
}

impl Settings {
    pub(crate) fn new(source: Source) -> Self {
        Self {
            source,
            prefix: Prefix::default(),
            connections: 10,
            patience: Duration::from_secs(10),
            response: Duration::from_secs(5),
        }
    }

    /// How long one attempt may take: to choose a server, and to get its answer.
    pub(crate) fn attempt(&self) -> Duration {
        self.selection() + self.response
    }

    fn selection(&self) -> Duration {
        self.patience.min(self.response).min(SELECTION)
    }

    /// What a client of our own is opened with. A `mongodb+srv://` address is looked up here.
    pub(crate) async fn client_options(&self, address: &Address) -> Result<ClientOptions, Failure> {
        let parsing = ClientOptions::parse(address.url.clone());
        let mut options = parsing.await.map_err(Failure::new)?;
        options.app_name.get_or_insert_with(|| "botmesh".to_owned());
        options.max_pool_size = Some(self.connections);
        options.min_pool_size = options.min_pool_size.map(|least| least.min(self.connections));
        options.server_selection_timeout = Some(self.selection());
        options.connect_timeout = Some(self.response);
        // Repeats are ours: they go on for as long as the patience lasts, recognise what was done
        // already, and cost the server no record of each write.
        options.retry_writes = Some(false);
        options.retry_reads = Some(false);
        if let Some((user, password)) = &address.credentials {
            let credential = options.credential.get_or_insert_with(Credential::default);
            credential.username = Some(user.clone());
            credential.password = Some(password.clone());
        }
        if address.root_certificate.is_some() || address.client_certificate.is_some() {
            let mut tls = match options.tls.take() {
                Some(Tls::Enabled(tls)) => tls,
                _ => TlsOptions::default(),
            };
            tls.ca_file_path = address.root_certificate.clone().or(tls.ca_file_path);
            tls.cert_key_file_path = address.client_certificate.clone().or(tls.cert_key_file_path);
            options.tls = Some(Tls::Enabled(tls));
        }
        Ok(options)
    }
}

/// What a URL says. Not the driver's error: it may show the URL, and the password with it.
pub(crate) fn read(url: &str) -> Result<ConnectionString, String> {
    ConnectionString::parse(url).map_err(|_| {
        "the URL cannot be read: write it as in `mongodb://user:password@localhost:27017/bots`, \
         with the special characters of the user and the password percent-encoded"
            .to_owned()
    })
}

/// Refuses times that make no sense.
pub(crate) fn check_times(settings: &Settings) -> Result<(), StoreError> {
    let day = Duration::from_secs(24 * 3600);
    for (setting, time) in
        [("patience", settings.patience), ("response_timeout", settings.response)]
    {
        if time < Duration::from_millis(1) || time > day {
            let reason = format!("{setting} is {time:?}: choose between 1 ms and a day");
            return Err(crate::failure::refused("its settings", reason));
        }
    }
    Ok(())
}

impl fmt::Debug for Settings {
    /// Without the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Settings");
        match &self.source {
            Source::Address(address) => {
                match &address.url.host_info {
                    HostInfo::HostIdentifiers(hosts) => shown.field("hosts", hosts),
                    HostInfo::DnsRecord(name) => shown.field("hosts", name),
                    _ => &mut shown,
                };
                shown.field("database", &address.database)
            }
            Source::Shared(database) => shown.field("database", &database.name()),
        };
        shown
            .field("prefix", &self.prefix)
            .field("connections", &self.connections)
            .field("patience", &self.patience)
            .field("response", &self.response)
            .finish_non_exhaustive()
    }
}
