//! What goes wrong between this crate and MongoDB, and what it means for the caller.

use std::io::ErrorKind as Io;
use std::time::Duration;

use botmesh_core::error::BoxError;
use botmesh_core::store::StoreError;
use mongodb::error::{Error, ErrorKind, WriteFailure};

/// The store's name in errors and logs.
pub(crate) const NAME: &str = "mongo";

/// <https://github.com/mongodb/mongo/blob/master/src/mongo/base/error_codes.yml>
const DUPLICATE_KEY: i32 = 11_000;
const UNAUTHORIZED: i32 = 13;
const AUTHENTICATION_FAILED: i32 = 18;
const OUT_OF_DISK_SPACE: i32 = 14_031;
/// A document would be larger than any may be.
const TOO_LARGE: &[i32] = &[10_334, 17_419];

/// What passes by itself: a network between servers, an election, a shutdown, a conflict.
const PASSING: &[i32] =
    &[6, 7, 64, 89, 91, 112, 134, 189, 262, 9_001, 10_107, 11_600, 11_602, 13_435, 13_436];

pub(crate) fn refused(operation: &'static str, reason: impl Into<String>) -> StoreError {
    StoreError::Refused { store: NAME, operation, reason: reason.into() }
}

pub(crate) fn corrupt(what: &'static str, detail: impl Into<String>) -> StoreError {
    StoreError::Corrupt { store: NAME, what, detail: detail.into() }
}

/// An operation that did not succeed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// What the driver said.
    Driver(Box<Error>),
    /// No connection became free in this time.
    Exhausted(Duration),
    /// No answer came in this time.
    Silent(Duration),
}

impl Failure {
    pub(crate) fn new(error: Error) -> Self {
        Self::Driver(Box::new(error))
    }

    fn kind(&self) -> Option<&ErrorKind> {
        match self {
            Self::Driver(error) => Some(&error.kind),
            Self::Exhausted(_) | Self::Silent(_) => None,
        }
    }

    /// The number of the error that the server answered; none when it was no answer.
    pub(crate) fn code(&self) -> Option<i32> {
        match self.kind()? {
            ErrorKind::Command(error) => Some(error.code),
            ErrorKind::Write(WriteFailure::WriteError(error)) => Some(error.code),
            ErrorKind::Write(WriteFailure::WriteConcernError(error)) => Some(error.code),
            _ => None,
        }
    }

    /// Whether somebody else made a row with this key at the same moment. Nothing was written.
    pub(crate) fn is_duplicate(&self) -> bool {
        self.code() == Some(DUPLICATE_KEY)
    }

    /// Whether the operation was surely not applied: it never left, or the server answered an
    /// error in place of a result. An error of the write concern comes after the write.
    pub(crate) fn is_unexecuted(&self) -> bool {
        match self.kind() {
            Some(
                ErrorKind::ServerSelection { .. }
                | ErrorKind::ConnectionPoolCleared { .. }
                | ErrorKind::DnsResolve { .. }
                | ErrorKind::InvalidTlsConfig { .. }
                | ErrorKind::Authentication { .. }
                | ErrorKind::InvalidArgument { .. }
                | ErrorKind::Command(_)
                | ErrorKind::Write(WriteFailure::WriteError(_)),
            ) => true,
            Some(_) => false,
            None => matches!(self, Self::Exhausted(_)),
        }
    }

    /// Whether the same operation may succeed soon without anybody's help.
    pub(crate) fn is_transient(&self) -> bool {
        if self.remedy().is_some() {
            return false;
        }
        match self.kind() {
            Some(
                ErrorKind::ServerSelection { .. }
                | ErrorKind::ConnectionPoolCleared { .. }
                | ErrorKind::DnsResolve { .. }
                | ErrorKind::Io(_)
                | ErrorKind::Write(WriteFailure::WriteConcernError(_)),
            ) => true,
            Some(_) => self.code().is_some_and(|code| PASSING.contains(&code)),
            None => matches!(self, Self::Silent(_)),
        }
    }

    /// What the user has to do, when this does not pass by itself.
    pub(crate) fn remedy(&self) -> Option<String> {
        let Self::Driver(error) = self else { return None };
        let said = said(error);
        match &*error.kind {
            ErrorKind::Authentication { .. } => Some(wrong_password(&said)),
            ErrorKind::Command(answer) => match answer.code {
                AUTHENTICATION_FAILED => Some(wrong_password(&said)),
                UNAUTHORIZED => Some(format!(
                    "the user lacks a right ({said}): give it the role `readWrite` on the database"
                )),
                _ => None,
            },
            ErrorKind::InvalidTlsConfig { .. } => Some(wrong_certificate(&said)),
            ErrorKind::Io(error) if error.kind() == Io::InvalidData => {
                Some(wrong_certificate(&said))
            }
            // So the driver tells that it does not accept the certificate of any server.
            ErrorKind::ServerSelection { .. } if said.contains("certificate") => {
                Some(wrong_certificate(&said))
            }
            ErrorKind::IncompatibleServer { .. } => {
                Some(format!("{said}: upgrade it to MongoDB {OLDEST} or newer"))
            }
            _ => None,
        }
    }

    /// What was said.
    pub(crate) fn into_source(self) -> BoxError {
        match self {
            Self::Driver(error) => error,
            Self::Exhausted(waited) => {
                format!("no connection became free within {waited:?}").into()
            }
            Self::Silent(waited) => format!("the server did not answer within {waited:?}").into(),
        }
    }

    /// Tells a user of the store.
    pub(crate) fn into_store_error(self, operation: &'static str) -> StoreError {
        if let Some(reason) = self.remedy() {
            return refused(operation, reason);
        }
        if let Self::Exhausted(waited) = self {
            return StoreError::Busy { store: NAME, operation, waited };
        }
        if let Some(ErrorKind::Bson(_) | ErrorKind::InvalidResponse { .. }) = self.kind() {
            return corrupt("an answer", self.into_source().to_string());
        }
        let is_full = |code| code == OUT_OF_DISK_SPACE || TOO_LARGE.contains(&code);
        let (full, transient) = (self.code().is_some_and(is_full), self.is_transient());
        let source = self.into_source();
        match (full, transient) {
            (true, _) => StoreError::Full { store: NAME, operation, source },
            (_, true) => StoreError::Unavailable { store: NAME, operation, source },
            _ => StoreError::Backend { store: NAME, operation, source },
        }
    }
}

/// The oldest version that this crate speaks to, as it is written.
pub(crate) const OLDEST: &str = "7.0";

/// What the server or the driver said, without the labels around it.
fn said(error: &Error) -> String {
    match &*error.kind {
        ErrorKind::Command(answer) => answer.message.clone(),
        kind => kind.to_string(),
    }
}

fn wrong_password(said: &str) -> String {
    format!(
        "the user or the password is wrong ({said}): correct them in the URL or in `credentials`, \
         and name the database that knows the user as in `?authSource=admin`"
    )
}

fn wrong_certificate(said: &str) -> String {
    format!(
        "the connection cannot be encrypted ({said}): give the authority of the server by \
         `root_certificate_file`, or as `tlsCAFile` in the URL"
    )
}
