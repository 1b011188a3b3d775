use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::request::Parts;
use http::{Request, Response, StatusCode};

use super::DeliverError;

/// What a platform calls over HTTP instead of being asked. Knows no server: one takes the requests
/// of all providers of a bot and hands each to its provider.
#[async_trait]
pub trait Webhook: fmt::Debug + Send + Sync {
    /// The path at which the platform calls, such as `/telegram`.
    fn path(&self) -> &str;

    /// The longest body, in bytes, that the platform has a reason to send.
    fn max_body(&self) -> usize {
        1 << 20
    }

    /// Looks at a request before its body is read, so that a stranger's is not.
    ///
    /// # Errors
    /// What the request is refused with.
    fn screen(&self, _head: &Parts) -> Result<(), WebhookRefusal> {
        Ok(())
    }

    /// Takes a request. Returns when all that it carries has been accepted, and not before: the
    /// platform never sends again what was answered with success. Dropping the future refuses it.
    ///
    /// # Errors
    /// [`WebhookRefusal`]; the platform should send the request again where that may help.
    async fn receive(&self, request: Request<Bytes>) -> Result<WebhookAnswer, WebhookRefusal>;
}

/// What is answered to a request that was taken.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum WebhookAnswer {
    /// An empty success.
    #[default]
    Taken,
    /// A success with this text, as some platforms want when a webhook is set up.
    Text(String),
}

/// Why a request was not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum WebhookRefusal {
    /// Its secret or signature is missing or wrong.
    Unauthorized,
    /// It is not in the format of the platform.
    Malformed,
    /// Nothing can be taken just now.
    Busy {
        /// When to send it again.
        retry_after: Duration,
    },
    /// Something is wrong on this side that will not pass by itself.
    Broken,
}

impl WebhookRefusal {
    /// The request should come again shortly.
    pub const BUSY: Self = Self::Busy { retry_after: Duration::from_secs(1) };

    /// The HTTP status that tells it.
    #[must_use]
    pub const fn status(&self) -> StatusCode {
        match self {
            Self::Unauthorized => StatusCode::UNAUTHORIZED,
            Self::Malformed => StatusCode::BAD_REQUEST,
            Self::Busy { .. } => StatusCode::SERVICE_UNAVAILABLE,
            Self::Broken => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

impl From<DeliverError> for WebhookRefusal {
    fn from(error: DeliverError) -> Self {
        match error {
            DeliverError::ChatFull { .. } | DeliverError::Stopping | DeliverError::Store(_) => {
                Self::BUSY
            }
            DeliverError::WrongProvider { .. } => Self::Broken,
        }
    }
}

impl From<WebhookAnswer> for Response<Bytes> {
    fn from(answer: WebhookAnswer) -> Self {
        match answer {
            WebhookAnswer::Taken => Self::new(Bytes::new()),
            WebhookAnswer::Text(text) => Self::new(text.into()),
        }
    }
}

impl From<WebhookRefusal> for Response<Bytes> {
    fn from(refusal: WebhookRefusal) -> Self {
        let mut response = Self::new(Bytes::new());
        *response.status_mut() = refusal.status();
        if let WebhookRefusal::Busy { retry_after } = refusal {
            // The header knows whole seconds only, and 0 would mean at once.
            let seconds = retry_after.as_millis().div_ceil(1000).max(1);
            if let Ok(value) = seconds.to_string().parse() {
                response.headers_mut().insert(http::header::RETRY_AFTER, value);
            }
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// I6: what is refused for now says when to come again.
    #[test]
    fn a_refusal_for_now_says_when_to_come_again() {
        let busy = WebhookRefusal::Busy { retry_after: Duration::from_millis(1200) };
        let response = Response::<Bytes>::from(busy);
        assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(response.headers()[http::header::RETRY_AFTER], "2");
        let refused = WebhookRefusal::from(DeliverError::ChatFull { waiting: 3 });
        assert_eq!(refused, WebhookRefusal::BUSY);
    }
}
