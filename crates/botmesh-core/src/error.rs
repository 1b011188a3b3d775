//! What every layer's errors share, and the one error that user code returns.

use std::error::Error;
use std::fmt;

/// A foreign error, kept as the source of ours.
pub type BoxError = Box<dyn Error + Send + Sync + 'static>;

/// Why a handler, a conversation or a bot failed: any error, by `?`.
///
/// Handlers and conversations return `Result<_, BotError>`, so that every error with a source
/// chain can leave them; what botmesh itself failed with is found by
/// [`downcast_ref`](Self::downcast_ref).
///
/// ```
/// use botmesh_core::BotError;
/// fn parse(text: &str) -> Result<u8, BotError> {
///     Ok(text.parse()?)
/// }
/// let error = parse("many").unwrap_err();
/// assert!(error.downcast_ref::<std::num::ParseIntError>().is_some());
/// ```
pub struct BotError(BoxError);

impl BotError {
    /// An error that says `message`.
    pub fn message(message: impl Into<String>) -> Self {
        Self(message.into().into())
    }

    /// The error, if it is of type `E`.
    #[must_use]
    pub fn downcast_ref<E: Error + 'static>(&self) -> Option<&E> {
        self.0.downcast_ref()
    }

    /// Whether the error is of type `E`.
    #[must_use]
    pub fn is<E: Error + 'static>(&self) -> bool {
        self.0.is::<E>()
    }

    /// The error as it was.
    #[must_use]
    pub fn into_inner(self) -> BoxError {
        self.0
    }

    /// The error and its sources, the outermost first.
    pub fn chain(&self) -> impl Iterator<Item = &(dyn Error + 'static)> {
        let first: &(dyn Error + 'static) = self.0.as_ref();
        std::iter::successors(Some(first), |error: &&(dyn Error + 'static)| (*error).source())
    }
}

// Not an `Error` itself: otherwise the conversion below would meet the one from T to T.
impl<E: Into<BoxError> + Error> From<E> for BotError {
    fn from(error: E) -> Self {
        Self(error.into())
    }
}

impl fmt::Display for BotError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (depth, error) in self.chain().enumerate() {
            if depth > 0 {
                f.write_str(": ")?;
            }
            write!(f, "{error}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for BotError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
