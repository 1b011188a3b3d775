//! The connections of one store or coordinator, and how statements are sent over them.

use std::sync::atomic::{AtomicU8, Ordering};

use botmesh_sql::{Bounds, Lender};
use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions as _, PgConnection, Postgres};

use crate::failure::Failure;
use crate::pooler::{self, Lending};
use crate::protocol::Protocol;
use crate::settings::{Pooler, Settings, Source};

/// One that is lent.
pub(crate) type Lent = botmesh_sql::Lent<Opener>;

/// The connections of one store or coordinator.
#[derive(Debug)]
pub(crate) struct Connections {
    lender: Lender<Opener>,
    settings: Settings,
    /// How statements are sent: not known yet, prepared, or plain.
    protocol: AtomicU8,
    finding_out: tokio::sync::Mutex<()>,
}

const UNKNOWN: u8 = 0;
const PREPARED: u8 = 1;
const PLAIN: u8 = 2;

impl Connections {
    pub(crate) fn new(settings: Settings) -> Result<Self, String> {
        let Settings { connections, patience, response, .. } = settings;
        let lender = match &settings.source {
            Source::Pool(pool) => Lender::shared(pool.clone()),
            Source::Options(options) => {
                let opener = Opener((**options).clone());
                Lender::own(opener, Bounds { connections, patience, response })?
            }
        };
        let known = match settings.pooler {
            Pooler::Detect => UNKNOWN,
            Pooler::Absent => PREPARED,
            Pooler::Present => PLAIN,
        };
        let finding_out = tokio::sync::Mutex::new(());
        Ok(Self { lender, settings, protocol: AtomicU8::new(known), finding_out })
    }

    pub(crate) const fn settings(&self) -> &Settings {
        &self.settings
    }

    /// How statements are sent. Must be known before the first is prepared: through a pooler, one
    /// with the same name may be somebody else's.
    pub(crate) async fn protocol(&self) -> Result<Protocol, Failure> {
        loop {
            match self.protocol.load(Ordering::Acquire) {
                PREPARED => return Ok(Protocol::Prepared),
                PLAIN => return Ok(Protocol::Plain),
                _ => self.find_out().await?,
            }
        }
    }

    async fn find_out(&self) -> Result<(), Failure> {
        let _finding_out = self.finding_out.lock().await;
        if self.protocol.load(Ordering::Acquire) != UNKNOWN {
            return Ok(());
        }
        let (options, response) = (self.settings.options(), self.settings.response);
        let found = tokio::time::timeout(response, pooler::find(&options)).await;
        match found {
            Ok(Ok(Lending::Sessions)) => self.protocol.store(PREPARED, Ordering::Release),
            // Not to prepare is always right, only slower.
            Ok(Ok(Lending::Transactions | Lending::Unknown)) => self.stop_preparing(),
            Ok(Err(error)) => return Err(Failure::unsent(error)),
            Err(_) => return Err(Failure::silent(response, false)),
        }
        Ok(())
    }

    /// A pooler was found, also where none was expected.
    pub(crate) fn stop_preparing(&self) {
        if self.protocol.swap(PLAIN, Ordering::AcqRel) != PLAIN {
            tracing::info!(
                "a pooler lends connections by transaction: statements are not prepared"
            );
        }
    }

    /// Lends a connection for the next statement.
    pub(crate) async fn lend(&self) -> Result<Lent, Failure> {
        self.lender.lend().await.map_err(Failure::from)
    }

    /// A connection broke: those that were opened before it broke are tried out before they are
    /// used again.
    pub(crate) fn doubt(&self) {
        self.lender.doubt();
    }

    /// Closes those that nobody uses, and lends none any more.
    pub(crate) fn close(&self) {
        self.lender.close();
    }
}

/// Opens connections with these options.
pub(crate) struct Opener(PgConnectOptions);

impl botmesh_sql::Opener for Opener {
    type Database = Postgres;

    async fn open(&self) -> Result<PgConnection, sqlx::Error> {
        self.0.connect().await
    }
}
