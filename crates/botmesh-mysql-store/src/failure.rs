//! What went wrong, and what follows from it.

use std::io::ErrorKind;
use std::time::Duration;

use botmesh_sql::{DriverError, Fault, NotLent};
use sqlx::mysql::MySqlDatabaseError;

/// A statement that did not succeed.
#[derive(Debug)]
pub(crate) struct Failure {
    cause: Cause,
    /// Whether the statement may have left this process.
    sent: bool,
}

#[derive(Debug)]
enum Cause {
    Error(sqlx::Error),
    /// Others had all connections, or the rows, for so long.
    Occupied(Duration),
    /// No answer came in this time.
    Silent(Duration),
}

impl From<NotLent> for Failure {
    fn from(reason: NotLent) -> Self {
        match reason {
            NotLent::Failed(error) => Self::unsent(error),
            NotLent::Occupied(waited) => Self::occupied(waited),
            NotLent::Silent(waited) => Self::silent(waited, false),
        }
    }
}

impl Failure {
    /// No connection could be opened, so nothing was sent.
    pub(crate) const fn unsent(error: sqlx::Error) -> Self {
        Self { cause: Cause::Error(error), sent: false }
    }

    /// The statement failed after it had been handed to a connection.
    pub(crate) const fn sent(error: sqlx::Error) -> Self {
        Self { cause: Cause::Error(error), sent: true }
    }

    /// Others had all connections, or the rows, for so long, and nothing was done.
    pub(crate) const fn occupied(waited: Duration) -> Self {
        Self { cause: Cause::Occupied(waited), sent: false }
    }

    /// The server did not answer for so long.
    pub(crate) const fn silent(waited: Duration, sent: bool) -> Self {
        Self { cause: Cause::Silent(waited), sent }
    }

    fn answer(&self) -> Option<&MySqlDatabaseError> {
        match &self.cause {
            Cause::Error(error) => error.as_database_error()?.try_downcast_ref(),
            _ => None,
        }
    }

    /// The number of the error that the server answered; zero when it was no answer. Those of the
    /// two products: <https://dev.mysql.com/doc/mysql-errors/8.0/en/server-error-reference.html>,
    /// <https://mariadb.com/kb/en/mariadb-error-code-reference/>.
    fn code(&self) -> u16 {
        self.answer().map_or(0, MySqlDatabaseError::number)
    }

    /// Whether the statement was surely not applied: it never left, or the server answered that
    /// it was undone.
    pub(crate) fn is_unexecuted(&self) -> bool {
        // ER_ERROR_DURING_COMMIT leaves it open.
        !self.sent || (self.answer().is_some() && self.code() != 1180)
    }

    /// Whether another connection is needed: this one is broken, or leads to a server that takes
    /// no writes any more.
    pub(crate) fn needs_another_connection(&self) -> bool {
        self.answer().is_none() || self.is_final() || self.is_read_only()
    }

    /// Whether the server ended the connection, or a proxy put another one behind it.
    fn is_final(&self) -> bool {
        // ER_SERVER_SHUTDOWN, ER_NET_PACKET_TOO_LARGE, ER_UNKNOWN_STMT_HANDLER,
        // ER_CONNECTION_KILLED (MariaDB), ER_CLIENT_INTERACTION_TIMEOUT (MySQL)
        matches!(self.code(), 1053 | 1153 | 1243 | 1927 | 4031)
    }

    fn is_read_only(&self) -> bool {
        // ER_OPTION_PREVENTS_STATEMENT, ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION,
        // ER_READ_ONLY_MODE
        matches!(self.code(), 1290 | 1792 | 1836)
    }

    /// Whether others were in the way, so that the server undid the statement.
    pub(crate) fn is_contention(&self) -> bool {
        // ER_CHECKREAD, ER_LOCK_WAIT_TIMEOUT, ER_LOCK_DEADLOCK, ER_NEED_REPREPARE
        matches!(self.code(), 1020 | 1205 | 1213 | 1615)
    }

    fn is_full(&self) -> bool {
        // ER_DISK_FULL, ER_RECORD_FILE_FULL; ENOSPC
        matches!(self.code(), 1021 | 1114)
            || (self.answer().is_some() && self.text().contains("errno: 28"))
    }

    /// Whether the same statement may succeed soon without anybody's help.
    pub(crate) fn is_transient(&self) -> bool {
        match &self.cause {
            Cause::Error(error) if error.as_database_error().is_none() => {
                self.remedy().is_none()
                    && matches!(
                        error,
                        sqlx::Error::Io(_)
                            | sqlx::Error::Protocol(_)
                            | sqlx::Error::PoolTimedOut
                            | sqlx::Error::WorkerCrashed
                    )
            }
            Cause::Error(_) => {
                self.is_contention()
                    || self.is_read_only()
                    // ER_CON_COUNT_ERROR, ER_UNKNOWN_COM_ERROR (a node of Galera that is not ready),
                    // ER_SERVER_SHUTDOWN, ER_NET_READ_ERROR and its like, ER_UNKNOWN_STMT_HANDLER,
                    // ER_QUERY_INTERRUPTED, ER_CONNECTION_KILLED, ER_CLIENT_INTERACTION_TIMEOUT
                    || matches!(
                        self.code(),
                        1040 | 1047 | 1053 | 1158..=1161 | 1243 | 1317 | 1927 | 4031
                    )
            }
            Cause::Occupied(_) => false,
            Cause::Silent(_) => true,
        }
    }

    fn text(&self) -> String {
        match &self.cause {
            Cause::Error(error) => match self.answer() {
                Some(answer) => answer.message().to_owned(),
                None => error.to_string(),
            },
            Cause::Occupied(waited) => format!("others were in the way for {waited:?}"),
            Cause::Silent(waited) => format!("the server did not answer within {waited:?}"),
        }
    }

    /// What the user has to do, when this does not pass by itself.
    pub(crate) fn remedy(&self) -> Option<String> {
        let encryption: Option<&dyn std::error::Error> = match &self.cause {
            Cause::Error(sqlx::Error::Tls(error)) => Some(&**error),
            // So the TLS library tells that it does not accept the server.
            Cause::Error(sqlx::Error::Io(error)) if error.kind() == ErrorKind::InvalidData => {
                Some(error)
            }
            _ => None,
        };
        if let Some(error) = encryption {
            return Some(format!(
                "the connection cannot be encrypted ({error}): correct `ssl-mode` in the URL, or \
                 give the authority of the server by `root_certificate`"
            ));
        }
        let said = self.text();
        if self.answer().is_none() && said.contains("RSA") {
            return Some(format!(
                "the password can only be sent over an encrypted connection ({said}): let the \
                 server offer one, and ask for it with `ssl-mode=REQUIRED` in the URL"
            ));
        }
        let remedy = match self.code() {
            // ER_ACCESS_DENIED_ERROR, and without a password
            1045 | 1698 => "correct the user and the password in the URL",
            // ER_HOST_NOT_PRIVILEGED, ER_HOST_IS_BLOCKED
            1129 | 1130 => "allow this host at the server",
            // ER_NO_DB_ERROR, ER_BAD_DB_ERROR
            1046 | 1049 => "create the database, or name another in the URL",
            // ER_DBACCESS_DENIED_ERROR, ER_TABLEACCESS_DENIED_ERROR, ER_COLUMNACCESS_DENIED_ERROR,
            // ER_SPECIFIC_ACCESS_DENIED_ERROR
            1044 | 1142 | 1143 | 1227 => "grant this user what the README lists",
            // ER_NET_PACKET_TOO_LARGE
            1153 => "raise `max_allowed_packet` of the server",
            // ER_TOO_LONG_KEY
            1071 => "use a server with `innodb_page_size` of 16 KiB or more",
            // ER_USER_LIMIT_REACHED
            1226 => "raise this user's limits at the server",
            // ER_BINLOG_STMT_MODE_AND_ROW_ENGINE
            1665 => "set `binlog_format` of the server to ROW or MIXED",
            _ if self.is_read_only() => return Some(format!("{IS_READ_ONLY} ({said})")),
            _ => return None,
        };
        Some(format!("{said}: {remedy}"))
    }

    /// Whether the credentials, the permissions or the set-up are wrong, which does not pass by
    /// itself.
    #[cfg(feature = "coordination")]
    pub(crate) fn is_lasting(&self) -> bool {
        self.remedy().is_some() && !self.is_read_only()
    }

    fn fault(&self) -> Fault {
        if let Some(reason) = self.remedy() {
            return Fault::Refused(reason);
        }
        match &self.cause {
            Cause::Occupied(waited) => Fault::Busy(*waited),
            Cause::Silent(_) => Fault::Unavailable,
            Cause::Error(sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_)) => {
                Fault::Corrupt
            }
            Cause::Error(_) if self.is_transient() => Fault::Unavailable,
            Cause::Error(_) if self.is_full() => Fault::Full,
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

pub(crate) const IS_READ_ONLY: &str = "the server is a replica or read-only: give the URL of the \
    primary, or a name that leads to it";
