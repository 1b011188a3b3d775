//! What went wrong, and what follows from it.

use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use botmesh_sql::{DriverError, Fault, NotLent};
use sqlx::postgres::{PgDatabaseError, PgSeverity};

/// A statement that did not succeed. Clones are for several callers whose requests went in it.
#[derive(Debug, Clone)]
pub(crate) struct Failure {
    cause: Cause,
    /// Whether the statement may have left this process.
    sent: bool,
}

#[derive(Debug, Clone)]
enum Cause {
    Error(Arc<sqlx::Error>),
    /// No connection became free in this time.
    Exhausted(Duration),
    /// No answer came in this time.
    Silent(Duration),
}

impl From<NotLent> for Failure {
    fn from(reason: NotLent) -> Self {
        match reason {
            NotLent::Failed(error) => Self::unsent(error),
            NotLent::Occupied(waited) => Self::exhausted(waited),
            NotLent::Silent(waited) => Self::silent(waited, false),
        }
    }
}

impl Failure {
    /// No connection could be opened, so nothing was sent.
    pub(crate) fn unsent(error: sqlx::Error) -> Self {
        Self { cause: Cause::Error(Arc::new(error)), sent: false }
    }

    /// The statement failed after it had been handed to a connection.
    pub(crate) fn sent(error: sqlx::Error) -> Self {
        Self { cause: Cause::Error(Arc::new(error)), sent: true }
    }

    /// All connections were in use for so long.
    pub(crate) const fn exhausted(waited: Duration) -> Self {
        Self { cause: Cause::Exhausted(waited), sent: false }
    }

    /// The server did not answer for so long.
    pub(crate) const fn silent(waited: Duration, sent: bool) -> Self {
        Self { cause: Cause::Silent(waited), sent }
    }

    fn error(&self) -> Option<&sqlx::Error> {
        match &self.cause {
            Cause::Error(error) => Some(error),
            _ => None,
        }
    }

    fn answer(&self) -> Option<&PgDatabaseError> {
        self.error()?.as_database_error()?.try_downcast_ref()
    }

    /// The SQLSTATE that the server answered; nothing when it was no answer.
    fn code(&self) -> &str {
        self.answer().map_or("", PgDatabaseError::code)
    }

    /// Whether the server ended the connection with its answer.
    fn is_final(&self) -> bool {
        self.answer().is_some_and(|answer| {
            matches!(answer.severity(), PgSeverity::Fatal | PgSeverity::Panic)
        })
    }

    /// Whether the statement was surely not applied: it never left, or the server answered that
    /// it was undone.
    pub(crate) fn is_unexecuted(&self) -> bool {
        !self.sent || (self.answer().is_some() && !self.is_final())
    }

    /// Whether the server answered that it undid this statement, and goes on.
    #[cfg(any(feature = "coordination", feature = "durability"))]
    pub(crate) fn is_answered(&self) -> bool {
        self.answer().is_some() && !self.is_final()
    }

    /// Whether another connection is needed: this one is broken, or leads to a server that takes
    /// no writes any more.
    pub(crate) fn needs_another_connection(&self) -> bool {
        self.answer().is_none() || self.is_final() || self.code() == READ_ONLY
    }

    /// Whether statements that this connection had prepared are not there: a pooler put another
    /// connection behind it.
    pub(crate) fn is_pooled(&self) -> bool {
        let code = self.code();
        // invalid_sql_statement_name, duplicate_prepared_statement; a statement of somebody else
        // with other parameters.
        matches!(code, "26000" | "42P05")
            || (code == "08P01" && self.text().contains("prepared statement"))
    }

    /// Whether the same statement may succeed soon without anybody's help.
    pub(crate) fn is_transient(&self) -> bool {
        match &self.cause {
            Cause::Error(error) if error.as_database_error().is_none() => {
                self.remedy().is_none()
                    && matches!(
                        **error,
                        sqlx::Error::Io(_)
                            | sqlx::Error::Protocol(_)
                            | sqlx::Error::PoolTimedOut
                            | sqlx::Error::WorkerCrashed
                    )
            }
            Cause::Error(_) => {
                let code = self.code();
                self.is_pooled()
                    || matches!(
                        code,
                        // serialization_failure, deadlock_detected, too_many_connections,
                        // admin_shutdown, crash_shutdown, cannot_connect_now
                        "40001" | "40P01" | "53300" | "57P01" | "57P02" | "57P03" | READ_ONLY
                    )
                    // connection exceptions, also those that poolers answer.
                    || code.starts_with("08")
            }
            Cause::Exhausted(_) => false,
            Cause::Silent(_) => true,
        }
    }

    fn text(&self) -> String {
        match &self.cause {
            Cause::Error(error) => match self.answer() {
                Some(answer) => answer.message().to_owned(),
                None => error.to_string(),
            },
            Cause::Exhausted(waited) => format!("no connection became free within {waited:?}"),
            Cause::Silent(waited) => format!("the server did not answer within {waited:?}"),
        }
    }

    /// What the user has to do, when this does not pass by itself.
    pub(crate) fn remedy(&self) -> Option<String> {
        let encryption: Option<&dyn std::error::Error> = match self.error() {
            Some(sqlx::Error::Tls(error)) => Some(&**error),
            // So the TLS library tells that it does not accept the server.
            Some(sqlx::Error::Io(error)) if error.kind() == ErrorKind::InvalidData => Some(error),
            _ => None,
        };
        if let Some(error) = encryption {
            return Some(format!(
                "the connection cannot be encrypted ({error}): correct `sslmode` in the URL, or give the authority of \
                 the server by `root_certificate`"
            ));
        }
        let said = self.text();
        match self.code() {
            "28P01" => Some(format!("{said}: correct the user and the password in the URL")),
            "28000" => Some(format!(
                "{said}: correct the user in the URL, or allow it in the server's pg_hba.conf"
            )),
            "3D000" => Some(format!("{said}: create it, or name another in the URL")),
            "42501" => Some(format!(
                "{said}: let this user own the tables, or grant it what the README lists"
            )),
            READ_ONLY => Some(IS_READ_ONLY.to_owned()),
            "54000" if said.contains("index row") => {
                Some("the key is too long: PostgreSQL keeps keys of up to 2,600 bytes".to_owned())
            }
            _ => None,
        }
    }

    /// Whether the credentials, the permissions or the set-up are wrong, which does not pass by
    /// itself.
    #[cfg(feature = "coordination")]
    pub(crate) fn is_lasting(&self) -> bool {
        self.remedy().is_some() && self.code() != READ_ONLY
    }

    fn fault(&self) -> Fault {
        if let Some(reason) = self.remedy() {
            return Fault::Refused(reason);
        }
        match &self.cause {
            Cause::Exhausted(waited) => Fault::Busy(*waited),
            Cause::Silent(_) => Fault::Unavailable,
            Cause::Error(error)
                if matches!(**error, sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_)) =>
            {
                Fault::Corrupt
            }
            Cause::Error(_) if self.is_transient() => Fault::Unavailable,
            // disk_full
            Cause::Error(_) if self.code() == "53100" => Fault::Full,
            Cause::Error(_) => Fault::Other,
        }
    }

    /// The driver's error.
    #[cfg(feature = "coordination")]
    pub(crate) fn into_source(self) -> botmesh_core::error::BoxError {
        match self.cause {
            Cause::Error(error) => Box::new(error),
            _ => self.text().into(),
        }
    }

    /// Tells the store.
    pub(crate) fn into_error(self) -> DriverError {
        let fault = self.fault();
        match self.cause {
            Cause::Error(error) => DriverError::new(fault, error),
            _ => DriverError::new(fault, self.text()),
        }
    }
}

/// read_only_sql_transaction
const READ_ONLY: &str = "25006";

pub(crate) const IS_READ_ONLY: &str = "the server is a standby or read-only: give the URL of the \
    primary, or several hosts behind one name that leads to it";
