//! Lends connections, one for each statement.

use std::fmt;
use std::ops::DerefMut as _;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

use deadpool::managed::{
    Manager, Metrics, Object, Pool, PoolError, QueueMode, RecycleError, RecycleResult, TimeoutType,
};
use parking_lot::Mutex;
use sqlx::pool::PoolConnection;
use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _, PgConnection, PgPool, Postgres};

use crate::failure::Failure;
use crate::pooler::{self, Lending};
use crate::protocol::Protocol;
use crate::settings::{Pooler, Settings, Source};

/// A connection that was not used for so long is tried out before it is lent.
const TRUSTED: Duration = Duration::from_secs(2);
/// A connection that was not used for so long is closed.
const IDLE: Duration = Duration::from_secs(600);
/// A connection that is so old is closed, so that a server which was added gets its share.
const OLD: Duration = Duration::from_secs(3600);

/// The connections of one store or coordinator.
pub(crate) struct Connections {
    kind: Kind,
    settings: Settings,
    /// How statements are sent: not known yet, prepared, or plain.
    protocol: AtomicU8,
    finding_out: tokio::sync::Mutex<()>,
}

enum Kind {
    /// Not the driver's own pool: that one asks the server for a sign of life after each use,
    /// which would double the round trips.
    Own(Pool<Opener>),
    Shared(PgPool),
}

const UNKNOWN: u8 = 0;
const PREPARED: u8 = 1;
const PLAIN: u8 = 2;

impl Connections {
    pub(crate) fn new(settings: Settings) -> Result<Self, String> {
        let kind = match &settings.source {
            Source::Pool(pool) => Kind::Shared(pool.clone()),
            Source::Options(options) => {
                let opener = Opener { options: (**options).clone(), doubt: Mutex::new(None) };
                let pool = Pool::builder(opener)
                    .max_size(settings.connections)
                    .queue_mode(QueueMode::Lifo)
                    .wait_timeout(Some(settings.patience))
                    .create_timeout(Some(settings.response))
                    .recycle_timeout(Some(settings.response.min(Duration::from_secs(1))))
                    .runtime(deadpool::Runtime::Tokio1)
                    .build();
                Kind::Own(pool.map_err(|error| error.to_string())?)
            }
        };
        let known = match settings.pooler {
            Pooler::Detect => UNKNOWN,
            Pooler::Absent => PREPARED,
            Pooler::Present => PLAIN,
        };
        let finding_out = tokio::sync::Mutex::new(());
        Ok(Self { kind, settings, protocol: AtomicU8::new(known), finding_out })
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
        let lent = match &self.kind {
            Kind::Own(pool) => Held::Own(pool.get().await.map_err(|error| self.explain(error))?),
            Kind::Shared(pool) => Held::Shared(pool.acquire().await.map_err(|error| {
                let used_up =
                    pool.num_idle() == 0 && pool.size() >= pool.options().get_max_connections();
                match error {
                    sqlx::Error::PoolTimedOut if used_up => {
                        Failure::exhausted(pool.options().get_acquire_timeout())
                    }
                    error => Failure::unsent(error),
                }
            })?),
        };
        Ok(Lent { held: Some(lent), is_whole: true })
    }

    fn explain(&self, error: PoolError<sqlx::Error>) -> Failure {
        match error {
            PoolError::Backend(error) => Failure::unsent(error),
            PoolError::Timeout(TimeoutType::Wait) => Failure::exhausted(self.settings.patience),
            PoolError::Timeout(_) => Failure::silent(self.settings.response, false),
            _ => Failure::unsent(sqlx::Error::PoolClosed),
        }
    }

    /// A connection broke: those that were opened before it broke are tried out before they are
    /// used again.
    pub(crate) fn doubt(&self) {
        if let Kind::Own(pool) = &self.kind {
            *pool.manager().doubt.lock() = Some(Instant::now());
        }
    }

    /// Closes those that nobody uses, and lends none any more.
    pub(crate) fn close(&self) {
        if let Kind::Own(pool) = &self.kind {
            pool.close();
        }
    }
}

impl fmt::Debug for Connections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Connections").field(&self.settings).finish()
    }
}

/// A connection that is given back when this is dropped, or closed if it is not whole.
pub(crate) struct Lent {
    held: Option<Held>,
    is_whole: bool,
}

enum Held {
    Own(Object<Opener>),
    Shared(PoolConnection<Postgres>),
}

impl Lent {
    /// Something begins that must be [finished](Self::end): a future that is dropped meanwhile
    /// leaves a connection on which an answer is still to come.
    pub(crate) const fn begin(&mut self) {
        self.is_whole = false;
    }

    /// What was begun is finished.
    pub(crate) const fn end(&mut self) {
        self.is_whole = true;
    }

    /// The connection.
    pub(crate) fn connection(&mut self) -> Result<&mut PgConnection, sqlx::Error> {
        match &mut self.held {
            Some(Held::Own(object)) => Ok(object.deref_mut()),
            Some(Held::Shared(connection)) => Ok(connection.deref_mut()),
            None => Err(sqlx::Error::PoolClosed),
        }
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if self.is_whole {
            return;
        }
        match self.held.take() {
            Some(Held::Own(object)) => drop(Object::take(object)),
            Some(Held::Shared(mut connection)) => connection.close_on_drop(),
            None => {}
        }
    }
}

impl fmt::Debug for Lent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lent").field("is_whole", &self.is_whole).finish_non_exhaustive()
    }
}

/// Opens connections, and judges those that come back.
struct Opener {
    options: PgConnectOptions,
    /// When the last connection broke.
    doubt: Mutex<Option<Instant>>,
}

impl Manager for Opener {
    type Type = PgConnection;
    type Error = sqlx::Error;

    async fn create(&self) -> Result<PgConnection, sqlx::Error> {
        self.options.connect().await
    }

    async fn recycle(
        &self,
        connection: &mut PgConnection,
        metrics: &Metrics,
    ) -> RecycleResult<sqlx::Error> {
        let (unused, age) = (metrics.last_used(), metrics.created.elapsed());
        if unused > IDLE || age > OLD {
            return Err(RecycleError::message("it is old"));
        }
        let doubted = self.doubt.lock().is_some_and(|since| since.elapsed() < age);
        if unused > TRUSTED || doubted {
            connection.ping().await?;
        }
        Ok(())
    }
}
