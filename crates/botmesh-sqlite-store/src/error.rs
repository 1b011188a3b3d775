use std::path::Path;

use botmesh_sql::{DriverError, Fault};

use crate::connection::Settings;

/// How far an error reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reach {
    /// Only the statement failed; its transaction can go on.
    Statement,
    /// The transaction may have been rolled back.
    Transaction,
    /// The connection is of no use any more.
    Connection,
}

/// An error of SQLite, classified.
#[derive(Debug)]
pub(crate) struct Failure {
    fault: Fault,
    pub(crate) reach: Reach,
    source: sqlx::Error,
}

/// The result code without its extension.
pub(crate) fn primary_code(error: &sqlx::Error) -> Option<i32> {
    let code: i32 = error.as_database_error()?.code()?.parse().ok()?;
    Some(code & 0xff)
}

impl Failure {
    pub(crate) fn new(source: sqlx::Error, settings: &Settings) -> Self {
        let (fault, reach) = match primary_code(&source) {
            // SQLITE_BUSY and SQLITE_LOCKED.
            Some(5 | 6) => (Fault::Busy(settings.busy_timeout), Reach::Transaction),
            // SQLITE_PERM, SQLITE_READONLY, SQLITE_CANTOPEN, SQLITE_AUTH, SQLITE_NOTADB.
            Some(code @ (3 | 8 | 14 | 23 | 26)) => {
                (Fault::Refused(refusal(code, settings)), Reach::Connection)
            }
            // SQLITE_IOERR: the disk may come back.
            Some(10) => (Fault::Unavailable, Reach::Connection),
            // SQLITE_CORRUPT.
            Some(11) => (Fault::Corrupt, Reach::Connection),
            // SQLITE_FULL.
            Some(13) => (Fault::Full, Reach::Transaction),
            // SQLITE_ERROR, _TOOBIG, _CONSTRAINT, _MISMATCH, _MISUSE, _RANGE.
            Some(1 | 18..=21 | 25) => (Fault::Other, Reach::Statement),
            // SQLITE_NOMEM, SQLITE_INTERRUPT and what is not expected.
            Some(_) => (Fault::Other, Reach::Transaction),
            None => match &source {
                sqlx::Error::PoolTimedOut => {
                    (Fault::Busy(settings.busy_timeout), Reach::Transaction)
                }
                sqlx::Error::Encode(_) | sqlx::Error::ColumnDecode { .. } => {
                    (Fault::Corrupt, Reach::Statement)
                }
                _ => (Fault::Unavailable, Reach::Connection),
            },
        };
        Self { fault, reach, source }
    }

    pub(crate) const fn fault(&self) -> &Fault {
        &self.fault
    }

    pub(crate) fn into_error(self) -> DriverError {
        DriverError::new(self.fault, self.source)
    }

    /// The error once more, for another one whom it concerns.
    pub(crate) fn copy(&self) -> DriverError {
        DriverError::new(self.fault.clone(), self.source.to_string())
    }
}

/// Why the file cannot be used, with the remedy.
fn refusal(code: i32, settings: &Settings) -> String {
    let Some(path) = &settings.path else {
        return "SQLite does not allow a database in memory here".to_owned();
    };
    let shown = path.display();
    match code {
        26 => format!(
            "{shown} is not an SQLite database: choose another path, or remove the file if nobody needs it"
        ),
        14 if path.is_dir() => format!("{shown} is a directory: name a file in it"),
        14 if let Some(directory) = path.parent().filter(|parent| !parent.is_dir()) => {
            missing(directory)
        }
        _ => format!(
            "{shown} cannot be opened for writing: give this user the right to write the file and its directory, where SQLite also keeps a -wal and a -shm file"
        ),
    }
}

pub(crate) fn gone(path: &Path) -> String {
    format!(
        "{} has been removed or renamed: put it back, or start again to begin with an empty one",
        path.display()
    )
}

fn missing(directory: &Path) -> String {
    let shown = directory.display();
    if directory.exists() {
        format!("{shown} is not a directory: choose another path")
    } else {
        format!("there is no directory {shown}: create it, or choose another path")
    }
}
