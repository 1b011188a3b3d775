//! Lends connections, one for each statement.

use std::fmt;
use std::ops::DerefMut as _;
use std::time::{Duration, Instant};

use deadpool::managed::{
    Manager, Metrics, Object, Pool, PoolError, QueueMode, RecycleError, RecycleResult, TimeoutType,
};
use parking_lot::Mutex;
use sqlx::pool::PoolConnection;
use sqlx::{Connection as _, Database};

use crate::openings::Openings;

/// A connection that was not used for so long is tried out before it is lent.
pub(crate) const TRUSTED: Duration = Duration::from_secs(2);
/// A connection that was not used for so long is closed.
const IDLE: Duration = Duration::from_secs(600);
/// A connection that is so old is closed, so that a server which was added gets its share.
const OLD: Duration = Duration::from_secs(3600);

/// A connection to the database of an [`Opener`].
pub(crate) type Connection<O> = <<O as Opener>::Database as Database>::Connection;

/// Opens connections.
pub trait Opener: Send + Sync + 'static {
    /// To which kind of database.
    type Database: Database;

    /// Opens one, with the settings that all statements rely on.
    ///
    /// # Errors
    /// The driver's.
    fn open(&self) -> impl Future<Output = Result<Connection<Self>, sqlx::Error>> + Send;
}

/// How many connections there are at most, and how long they are waited for.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// How many at most.
    pub connections: usize,
    /// How long one that others use is waited for.
    pub patience: Duration,
    /// How long the server may take to answer.
    pub response: Duration,
}

/// Why no connection was lent. Nothing was sent.
#[derive(Debug)]
pub enum NotLent {
    /// None could be opened.
    Failed(sqlx::Error),
    /// Others had all of them for so long.
    Occupied(Duration),
    /// The server did not answer for so long.
    Silent(Duration),
}

/// Lends the connections of one store or coordinator.
pub struct Lender<O: Opener> {
    kind: Kind<O>,
}

enum Kind<O: Opener> {
    /// Not the driver's own pool: that one asks the server for a sign of life after each use,
    /// which would double the round trips.
    Own(Pool<Judge<O>>, Bounds),
    Shared(sqlx::Pool<O::Database>),
}

impl<O: Opener> Lender<O> {
    /// Lends connections that `opener` opens.
    ///
    /// # Errors
    /// When the bounds make no sense, in words.
    pub fn own(opener: O, bounds: Bounds) -> Result<Self, String> {
        let pool = Pool::builder(Judge {
            openings: Openings::new(opener, bounds.response),
            doubt: Mutex::default(),
        })
        .max_size(bounds.connections)
        .queue_mode(QueueMode::Lifo)
        .wait_timeout(Some(bounds.patience))
        .create_timeout(Some(bounds.response))
        .recycle_timeout(Some(bounds.response.min(Duration::from_secs(1))))
        .runtime(deadpool::Runtime::Tokio1)
        .build();
        let pool = pool.map_err(|error| error.to_string())?;
        Ok(Self { kind: Kind::Own(pool, bounds) })
    }

    /// Lends the connections of a pool that belongs to the program.
    #[must_use]
    pub const fn shared(pool: sqlx::Pool<O::Database>) -> Self {
        Self { kind: Kind::Shared(pool) }
    }

    /// Lends a connection for the next statement.
    ///
    /// # Errors
    /// [`NotLent`].
    pub async fn lend(&self) -> Result<Lent<O>, NotLent> {
        let held = match &self.kind {
            Kind::Own(pool, bounds) => {
                Held::Own(pool.get().await.map_err(|error| match error {
                    PoolError::Backend(error) => NotLent::Failed(error),
                    PoolError::Timeout(TimeoutType::Wait) => NotLent::Occupied(bounds.patience),
                    PoolError::Timeout(_) => NotLent::Silent(bounds.response),
                    _ => NotLent::Failed(sqlx::Error::PoolClosed),
                })?)
            }
            Kind::Shared(pool) => Held::Shared(pool.acquire().await.map_err(|error| {
                let used_up =
                    pool.num_idle() == 0 && pool.size() >= pool.options().get_max_connections();
                match error {
                    sqlx::Error::PoolTimedOut if used_up => {
                        NotLent::Occupied(pool.options().get_acquire_timeout())
                    }
                    error => NotLent::Failed(error),
                }
            })?),
        };
        Ok(Lent { held: Some(held), is_whole: true })
    }

    /// A connection broke: those that were opened before it broke are tried out before they are
    /// used again.
    pub fn doubt(&self) {
        if let Kind::Own(pool, _) = &self.kind {
            *pool.manager().doubt.lock() = Some(Instant::now());
        }
    }

    /// Closes those that nobody uses, and lends none any more.
    pub fn close(&self) {
        if let Kind::Own(pool, _) = &self.kind {
            pool.close();
            pool.manager().openings.clear();
        }
    }
}

impl<O: Opener> fmt::Debug for Lender<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Lender")
    }
}

/// A connection that is given back when this is dropped, or closed if it is not whole.
pub struct Lent<O: Opener> {
    held: Option<Held<O>>,
    is_whole: bool,
}

enum Held<O: Opener> {
    Own(Object<Judge<O>>),
    Shared(PoolConnection<O::Database>),
}

impl<O: Opener> Lent<O> {
    /// Something begins that must be [finished](Self::end): a future that is dropped meanwhile
    /// leaves a connection on which an answer is still to come.
    pub const fn begin(&mut self) {
        self.is_whole = false;
    }

    /// What was begun is finished.
    pub const fn end(&mut self) {
        self.is_whole = true;
    }

    /// The connection.
    ///
    /// # Errors
    /// [`sqlx::Error::PoolClosed`] when there is none any more.
    pub fn connection(&mut self) -> Result<&mut Connection<O>, sqlx::Error> {
        match &mut self.held {
            Some(Held::Own(object)) => Ok(object.deref_mut()),
            Some(Held::Shared(connection)) => Ok(connection.deref_mut()),
            None => Err(sqlx::Error::PoolClosed),
        }
    }
}

impl<O: Opener> Drop for Lent<O> {
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

impl<O: Opener> fmt::Debug for Lent<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lent").field("is_whole", &self.is_whole).finish_non_exhaustive()
    }
}

/// Opens connections, and judges those that come back.
struct Judge<O: Opener> {
    openings: Openings<O>,
    /// When the last connection broke.
    doubt: Mutex<Option<Instant>>,
}

impl<O: Opener> Manager for Judge<O> {
    type Type = Connection<O>;
    type Error = sqlx::Error;

    async fn create(&self) -> Result<Connection<O>, sqlx::Error> {
        self.openings.next().await
    }

    async fn recycle(
        &self,
        connection: &mut Connection<O>,
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
