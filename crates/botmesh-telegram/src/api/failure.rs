use std::time::Duration;

use botmesh_core::ProviderId;
use botmesh_core::error::BoxError;
use botmesh_core::provider::ProviderError;
use thiserror::Error;

/// What a wait is taken to be when Telegram gives none.
const DEFAULT_WAIT: Duration = Duration::from_secs(1);

/// Why a call did not work.
#[derive(Debug, Error)]
pub(crate) enum Failure {
    /// The API refused it.
    #[error("{code}: {description}")]
    Refused { code: i64, description: String, retry_after: Option<u64>, moved_to: Option<i64> },
    /// There is no answer that can be read.
    #[error("no answer")]
    NoAnswer(#[source] BoxError),
    /// The answer is longer than it may be.
    #[error("an answer of more than {most} bytes")]
    TooLong { most: usize, head: Vec<u8> },
    /// An answer with updates cannot be read.
    #[error("an answer that cannot be read")]
    Unread { head: Vec<u8> },
    /// The call was not made, since what was to be sent cannot be read or written.
    #[error("{0}")]
    NotSent(String),
}

impl Failure {
    /// The error of the HTTP client, without the address that it carries.
    pub(crate) fn network(error: reqwest::Error) -> Self {
        Self::NoAnswer(error.without_url().into())
    }

    pub(crate) fn unreadable(why: impl Into<String>) -> Self {
        Self::NoAnswer(why.into().into())
    }

    pub(crate) fn server(status: u16) -> Self {
        Self::NoAnswer(format!("a server answered with the status {status}").into())
    }

    /// An answer with updates that cannot be read; its beginning may tell which they are.
    pub(crate) fn unread(answer: &[u8]) -> Self {
        Self::Unread { head: answer[..answer.len().min(256)].to_vec() }
    }

    /// A wait that nobody is to be kept for, told as Telegram would.
    pub(crate) fn limited(wait: Duration) -> Self {
        let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
        let description = "Too Many Requests".to_owned();
        Self::Refused { code: 429, description, retry_after: Some(seconds), moved_to: None }
    }

    pub(crate) fn unwritable(error: serde_json::Error) -> Self {
        Self::NotSent(format!("the request cannot be written: {error}"))
    }

    pub(crate) fn no_address() -> Self {
        Self::NotSent("the address of the API cannot have a path".to_owned())
    }

    fn says(&self, part: &str) -> bool {
        matches!(self, Self::Refused { description, .. } if description.to_ascii_lowercase().contains(part))
    }

    /// The new id of a group that became a supergroup.
    pub(crate) const fn moved_to(&self) -> Option<i64> {
        match self {
            Self::Refused { moved_to, .. } => *moved_to,
            _ => None,
        }
    }

    /// How long Telegram wants us to wait.
    pub(crate) fn wait(&self) -> Option<Duration> {
        match self {
            Self::Refused { code: 429, retry_after, .. } => {
                Some(retry_after.map_or(DEFAULT_WAIT, Duration::from_secs))
            }
            _ => None,
        }
    }

    /// The message says already what it was to be changed to.
    pub(crate) fn is_unchanged(&self) -> bool {
        self.says("message is not modified")
    }

    /// The message has a caption rather than a text.
    pub(crate) fn has_no_text(&self) -> bool {
        self.says("there is no text in the message to edit")
    }

    pub(crate) fn is_conflict(&self) -> bool {
        matches!(self, Self::Refused { code: 409, .. })
    }

    /// A webhook is set, so that nothing can be polled.
    pub(crate) fn is_webhook_conflict(&self) -> bool {
        self.is_conflict() && self.says("webhook")
    }

    pub(crate) fn is_unauthorized(&self) -> bool {
        // A token of which no bot is known is an address of which nothing is known.
        matches!(self, Self::Refused { code: 401 | 404, .. })
    }

    /// The error of a provider. The codes and words are those that the Bot API server gives.
    pub(crate) fn into_error(self, provider: &ProviderId) -> ProviderError {
        let provider = provider.clone();
        if self.is_unauthorized() {
            return ProviderError::Unauthorized { provider };
        }
        if let Some(retry_after) = self.wait() {
            return ProviderError::RateLimited { provider, retry_after };
        }
        let is_gone = self.is_gone();
        match self {
            Self::Refused { description: reason, .. } if is_gone => {
                ProviderError::ChatGone { provider, reason }
            }
            Self::Refused { code: 409, description: reason, .. } => {
                ProviderError::Conflict { provider, reason }
            }
            Self::Refused { code: 500.., description, .. } => {
                ProviderError::Unreachable { provider, source: description.into() }
            }
            Self::Refused { description: reason, .. } | Self::NotSent(reason) => {
                ProviderError::Rejected { provider, reason }
            }
            Self::NoAnswer(source) => ProviderError::Unreachable { provider, source },
            Self::TooLong { .. } | Self::Unread { .. } => {
                ProviderError::Unreachable { provider, source: self.to_string().into() }
            }
        }
    }

    /// Nothing can be sent to the chat any more, whatever it is.
    fn is_gone(&self) -> bool {
        const GONE: [&str; 7] = [
            "chat not found",
            "user not found",
            "peer_id_invalid",
            "group chat was deactivated",
            "group chat was upgraded",
            "message thread not found",
            "topic_deleted",
        ];
        match self {
            // Blocked, kicked, not a member, never written to, deactivated.
            Self::Refused { code: 403, .. } => true,
            Self::Refused { code: 400, .. } => GONE.iter().any(|part| self.says(part)),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(code: i64, description: &str) -> ProviderError {
        let provider = ProviderId::new("telegram").unwrap();
        let description = description.to_owned();
        Failure::Refused { code, description, retry_after: Some(7), moved_to: None }
            .into_error(&provider)
    }

    /// I1: callers act on the kind of an error, so Telegram's words become kinds.
    #[test]
    fn the_words_of_the_api_become_kinds_of_errors() {
        for (code, words) in [
            (403, "Forbidden: bot was blocked by the user"),
            (403, "Forbidden: user is deactivated"),
            (403, "Forbidden: bot was kicked from the supergroup chat"),
            (403, "Forbidden: bot can't initiate conversation with a user"),
            (400, "Bad Request: chat not found"),
            (400, "Bad Request: message thread not found"),
        ] {
            assert!(matches!(told(code, words), ProviderError::ChatGone { .. }), "{words}");
        }
        let rejected = told(400, "Bad Request: message text is empty");
        assert!(matches!(rejected, ProviderError::Rejected { .. }));
        assert!(matches!(told(401, "Unauthorized"), ProviderError::Unauthorized { .. }));
        assert!(matches!(told(404, "Not Found"), ProviderError::Unauthorized { .. }));
        assert!(matches!(told(502, "Bad Gateway"), ProviderError::Unreachable { .. }));
        let limited = told(429, "Too Many Requests: retry after 7");
        let wait = Duration::from_secs(7);
        assert!(
            matches!(limited, ProviderError::RateLimited { retry_after, .. } if retry_after == wait)
        );
        let conflict = told(409, "Conflict: terminated by other getUpdates request");
        assert!(matches!(conflict, ProviderError::Conflict { .. }));
    }
}
