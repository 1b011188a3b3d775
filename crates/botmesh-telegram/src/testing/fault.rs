use std::time::Duration;

/// How the platform fails a call.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// An error of the API with this code and words, and seconds to wait where given.
    Error(u16, String, Option<u64>),
    /// Whatever bytes, with this status, in place of an answer.
    Raw(u16, Vec<u8>),
    /// The connection ends without an answer; the call was not taken.
    Reset,
    /// The call is taken, and the connection ends without an answer.
    TakenAndReset,
    /// The call is taken and answered this much later.
    Slow(Duration),
}

impl Fault {
    /// Too many requests; come again after so many seconds.
    #[must_use]
    pub fn too_many(seconds: u64) -> Self {
        Self::Error(429, format!("Too Many Requests: retry after {seconds}"), Some(seconds))
    }

    /// The user has blocked the bot.
    #[must_use]
    pub fn blocked() -> Self {
        Self::Error(403, "Forbidden: bot was blocked by the user".to_owned(), None)
    }

    /// The page of a server in between that cannot reach the API.
    #[must_use]
    pub fn bad_gateway() -> Self {
        Self::Raw(502, b"<html><body>502 Bad Gateway</body></html>".to_vec())
    }
}
