use std::io;
use std::net::SocketAddr;

use thiserror::Error;

/// What is wrong with the settings of a router.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// A limit would refuse everything.
    #[error("{setting} is zero, which refuses everything: leave it out for the default")]
    Zero {
        /// The setting.
        setting: &'static str,
    },
    /// Two providers are called at the same path.
    #[error("two providers are called at {path}: give one of them another id or path")]
    SamePath {
        /// The path.
        path: String,
    },
    /// A path that no request can have.
    #[error(
        "{path:?} is no path for a webhook: it begins with '/' and has no '{{', '}}', '*', '?' or '#'"
    )]
    BadPath {
        /// The path.
        path: String,
    },
    /// No provider of the bot is called over HTTP.
    #[error(
        "no provider of the bot is called over HTTP: add one that has a webhook, or serve health alone"
    )]
    NoWebhook,
}

/// Why the server cannot be started.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The address cannot be listened at.
    #[error("cannot listen at {address}: is it in use, or not of this machine?")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The router cannot be made.
    #[error(transparent)]
    Settings(#[from] SettingsError),
}
