//! What goes wrong between this crate and Redis, and what it means for the caller.

use botmesh_core::store::StoreError;
use redis::{ErrorKind, RedisError, ServerErrorKind};
use std::error::Error;

/// The store's name in errors and logs.
pub(crate) const NAME: &str = "redis";

/// What to do about a default layout on a cluster.
pub(crate) const IS_A_CLUSTER: &str = "the server is a node of a cluster, where the default layout \
     cannot work: open the store by `RedisStore::cluster` with the addresses of its nodes";

/// What to do about a replica.
pub(crate) const IS_A_REPLICA: &str = "the server is a read-only replica: connect to its master, or \
     by `RedisStore::sentinel` to whichever server is the master at present";

pub(crate) fn refused(operation: &'static str, reason: impl Into<String>) -> StoreError {
    StoreError::Refused { store: NAME, operation, reason: reason.into() }
}

pub(crate) fn corrupt(what: &'static str, detail: impl Into<String>) -> StoreError {
    StoreError::Corrupt { store: NAME, what, detail: detail.into() }
}

/// A command that did not succeed.
#[derive(Debug)]
pub(crate) struct Fault {
    error: RedisError,
    /// Whether the command may have left this process.
    sent: bool,
}

impl Fault {
    /// No connection could be opened, so nothing was sent.
    pub(crate) const fn unsent(error: RedisError) -> Self {
        Self { error, sent: false }
    }

    /// The command failed after it had been handed to a connection.
    pub(crate) const fn sent(error: RedisError) -> Self {
        Self { error, sent: true }
    }

    fn code(&self) -> &str {
        self.error.code().unwrap_or_default()
    }

    /// Whether the command was surely not executed. What a server answers instead of executing is
    /// told apart from what breaks on the way; the scripts write only after all that can fail.
    pub(crate) fn is_unexecuted(&self) -> bool {
        !self.sent
            || matches!(
                self.error.kind(),
                ErrorKind::Server(_)
                    | ErrorKind::Extension
                    | ErrorKind::AuthenticationFailed
                    | ErrorKind::ClusterConnectionNotFound
            )
    }

    /// Whether the server does not know the script.
    pub(crate) fn is_unknown_script(&self) -> bool {
        self.error.kind() == ErrorKind::Server(ServerErrorKind::NoScript)
    }

    /// Whether another connection is needed: this one is broken, or leads to a server that is not
    /// the master any more.
    pub(crate) fn needs_another_connection(&self) -> bool {
        matches!(
            self.error.kind(),
            ErrorKind::Io
                | ErrorKind::Parse
                | ErrorKind::AuthenticationFailed
                | ErrorKind::ClusterConnectionNotFound
                | ErrorKind::Server(ServerErrorKind::ReadOnly | ServerErrorKind::MasterDown)
        )
    }

    /// Whether the same command may succeed soon without anybody's help.
    pub(crate) fn is_transient(&self) -> bool {
        match self.error.kind() {
            ErrorKind::Io
            | ErrorKind::Parse
            | ErrorKind::ClusterConnectionNotFound
            | ErrorKind::MasterNameNotFoundBySentinel
            | ErrorKind::NoValidReplicasFoundBySentinel => true,
            ErrorKind::Server(kind) => matches!(
                kind,
                ServerErrorKind::BusyLoading
                    | ServerErrorKind::TryAgain
                    | ServerErrorKind::ClusterDown
                    | ServerErrorKind::MasterDown
                    | ServerErrorKind::ReadOnly
                    | ServerErrorKind::Ask
                    | ServerErrorKind::Moved
            ),
            _ => matches!(self.code(), "BUSY" | "NOREPLICAS"),
        }
    }

    /// What the user has to do, when this does not pass by itself.
    pub(crate) fn remedy(&self) -> Option<String> {
        let said = self.error.detail().unwrap_or_default();
        match (self.error.kind(), self.code()) {
            (ErrorKind::AuthenticationFailed, _) | (_, "WRONGPASS") => Some(
                "the user or the password is wrong: correct them in the URL or in `credentials`"
                    .to_owned(),
            ),
            (_, "NOAUTH") => Some(
                "the server wants a password: put it into the URL, as in `redis://:password@host`, \
                 or give it by `credentials`"
                    .to_owned(),
            ),
            (_, "NOPERM") => Some(format!(
                "the user lacks a permission ({said}): grant it all commands that the README \
                 lists, on the keys and channels of the prefix"
            )),
            (ErrorKind::Server(ServerErrorKind::ReadOnly), _) => Some(IS_A_REPLICA.to_owned()),
            (ErrorKind::Server(ServerErrorKind::Moved | ServerErrorKind::CrossSlot), _) => {
                Some(IS_A_CLUSTER.to_owned())
            }
            (_, "MISCONF") => Some(format!(
                "the server takes no writes because it cannot save its snapshot ({said}): free its \
                 disk or correct its configuration"
            )),
            (ErrorKind::RESP3NotSupported, _) => Some(
                "the server does not speak RESP3: upgrade it to Redis 7.0 or newer".to_owned(),
            ),
            _ => None,
        }
    }

    /// Tells a user of the store.
    pub(crate) fn into_store_error(self, operation: &'static str) -> StoreError {
        if let Some(reason) = self.remedy() {
            return refused(operation, reason);
        }
        let transient = self.is_transient();
        let full = self.code() == "OOM";
        let source: Box<dyn Error + Send + Sync> = Box::new(self.error);
        match (full, transient) {
            (true, _) => StoreError::Full { store: NAME, operation, source },
            (_, true) => StoreError::Unavailable { store: NAME, operation, source },
            _ => StoreError::Backend { store: NAME, operation, source },
        }
    }

    /// Whether the credentials or the permissions are wrong, which does not pass by itself.
    pub(crate) fn is_forbidden(&self) -> bool {
        self.error.kind() == ErrorKind::AuthenticationFailed
            || matches!(self.code(), "WRONGPASS" | "NOAUTH" | "NOPERM")
    }

    /// Whether the server does not let the user have this, or does not know it.
    pub(crate) fn is_withheld(&self) -> bool {
        let said = self.error.detail().unwrap_or_default();
        self.code() == "NOPERM" || said.starts_with("unknown command")
    }

    /// The driver's error.
    pub(crate) fn into_source(self) -> Box<dyn Error + Send + Sync> {
        Box::new(self.error)
    }
}
