//! The client, and how many operations it may have under way.

use std::fmt;
use std::time::Duration;

use mongodb::bson::Document;
use mongodb::error::Error;
use mongodb::options::{
    CollectionOptions, ReadConcern, ReadPreference, SelectionCriteria, WriteConcern,
};
use mongodb::{Client, Collection, Database};
use tokio::sync::{OnceCell, Semaphore};

use crate::failure::Failure;
use crate::settings::{Settings, Source};

/// The connections of one store or coordinator.
pub(crate) struct Connections {
    settings: Settings,
    /// Opened by the first operation: the driver starts tasks of its own, and may look up a name.
    client: OnceCell<Client>,
    /// One for each connection of our own client, whose pool would let callers wait for ever.
    permits: Semaphore,
}

impl Connections {
    pub(crate) fn new(settings: Settings) -> Self {
        let permits = match &settings.source {
            Source::Address(_) => usize::try_from(settings.connections).unwrap_or(usize::MAX),
            // Whoever opened the client has decided.
            Source::Shared(_) => usize::MAX,
        };
        let permits = Semaphore::new(permits.min(Semaphore::MAX_PERMITS));
        Self { settings, client: OnceCell::new(), permits }
    }

    pub(crate) const fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The database, through a client that is opened if there is none yet.
    pub(crate) async fn database(&self) -> Result<Database, Failure> {
        match &self.settings.source {
            Source::Shared(database) => Ok(database.clone()),
            Source::Address(address) => {
                let open = async || {
                    let options = self.settings.client_options(address).await?;
                    Client::with_options(options).map_err(Failure::new)
                };
                Ok(self.client.get_or_try_init(open).await?.database(&address.database))
            }
        }
    }

    /// A collection. Whatever the URL says, it is read at the primary, and what is written or read
    /// is on the disks of a majority.
    pub(crate) async fn collection(&self, kind: &str) -> Result<Collection<Document>, Failure> {
        let name = self.settings.prefix.collection(kind);
        let options = CollectionOptions::builder()
            .selection_criteria(SelectionCriteria::ReadPreference(ReadPreference::Primary))
            .read_concern(ReadConcern::majority())
            .write_concern(self.write_concern())
            .build();
        Ok(self.database().await?.collection_with_options(&name, options))
    }

    /// What a write waits for.
    pub(crate) fn write_concern(&self) -> WriteConcern {
        let mut concern = WriteConcern::majority();
        concern.journal = Some(true);
        concern.w_timeout = Some(self.settings.response);
        concern
    }

    /// Waits for a free connection and for an operation, but for neither without end.
    pub(crate) async fn run<T>(
        &self,
        operation: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Failure> {
        self.run_within(self.settings.attempt(), operation).await
    }

    /// The same with a time of its own.
    pub(crate) async fn run_within<T>(
        &self,
        limit: Duration,
        operation: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Failure> {
        let patience = self.settings.patience;
        let waiting = tokio::time::timeout(patience, self.permits.acquire());
        let Ok(Ok(_permit)) = waiting.await else { return Err(Failure::Exhausted(patience)) };
        match tokio::time::timeout(limit, operation).await {
            Ok(done) => done.map_err(Failure::new),
            Err(_) => Err(Failure::Silent(limit)),
        }
    }

    /// Ends the connections of our own client.
    pub(crate) async fn close(&self) {
        if let Some(client) = self.client.get() {
            client.clone().shutdown().immediate(true).await;
        }
    }
}

impl fmt::Debug for Connections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Connections").field(&self.settings).finish()
    }
}
