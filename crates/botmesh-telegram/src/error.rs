use thiserror::Error;

/// What is wrong with the settings of a Telegram provider.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// The token is not what BotFather gives out. It is not shown here.
    #[error(
        "the token is not one of Telegram's: copy all of it from BotFather, as in 123456:ABC-DEF"
    )]
    Token,
    /// The id of the provider cannot be used in chat keys.
    #[error("the provider id cannot be used: {0}")]
    Id(#[from] botmesh_core::IdError),
    /// The address of the API is none.
    #[error(
        "{address:?} is not the address of a Bot API server: write it as in https://api.telegram.org"
    )]
    ApiAddress {
        /// The address, without what stood before an `@`.
        address: String,
    },
    /// The public address of the webhook is none.
    #[error(
        "{address:?} is not a public address for webhooks: write it as in https://bot.example.org, without a path, query or fragment behind it that you do not serve"
    )]
    WebhookAddress {
        /// The address.
        address: String,
    },
    /// Telegram does not take the secret of the webhook.
    #[error("the webhook secret must have 1 to 256 characters of A-Z, a-z, 0-9, _ and -")]
    WebhookSecret,
    /// A number is out of its range.
    #[error("{setting} must be within {least} and {most}")]
    OutOfRange {
        /// The setting.
        setting: &'static str,
        /// The least allowed.
        least: u64,
        /// The most allowed.
        most: u64,
    },
    /// The HTTP client cannot be made, as when there are no file handles left.
    #[error("the HTTP client cannot be made")]
    Client(#[source] botmesh_core::error::BoxError),
}

/// Why a call of [`Telegram::call`](crate::Telegram::call) did not work.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CallError {
    /// Telegram refused the call, or did not answer.
    #[error(transparent)]
    Provider(#[from] botmesh_core::provider::ProviderError),
    /// The call worked, and its answer is not what the method is documented to give.
    #[error("the call worked, and its answer cannot be read")]
    Answer(#[source] serde_json::Error),
}
