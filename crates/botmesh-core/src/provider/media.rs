use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::{Stream, StreamExt};

use super::ProviderError;

type Pieces = Pin<Box<dyn Stream<Item = Result<Bytes, ProviderError>> + Send>>;

/// The bytes of a picture, a recording or a file, piece by piece as they arrive.
pub struct MediaStream(Pieces);

impl MediaStream {
    /// A stream of these pieces.
    pub fn new(pieces: impl Stream<Item = Result<Bytes, ProviderError>> + Send + 'static) -> Self {
        Self(Box::pin(pieces))
    }

    /// The next piece; none at the end. Safe to cancel.
    ///
    /// # Errors
    /// [`ProviderError`] when the download broke off.
    pub async fn next_piece(&mut self) -> Option<Result<Bytes, ProviderError>> {
        self.0.next().await
    }

    /// All that is left, if that is at most `limit` bytes; none if it is more.
    ///
    /// # Errors
    /// [`ProviderError`] when the download broke off.
    pub async fn read_all(mut self, limit: usize) -> Result<Option<Vec<u8>>, ProviderError> {
        let mut all = Vec::new();
        while let Some(piece) = self.next_piece().await {
            let piece = piece?;
            if piece.len() > limit - all.len() {
                return Ok(None);
            }
            all.extend_from_slice(&piece);
        }
        Ok(Some(all))
    }
}

impl Stream for MediaStream {
    type Item = Result<Bytes, ProviderError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.as_mut().poll_next(context)
    }
}

impl fmt::Debug for MediaStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MediaStream")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// I1: what is larger than the caller allows is not kept in memory.
    #[tokio::test]
    async fn reading_all_ends_at_the_limit() {
        let pieces = || futures_util::stream::iter([Ok(Bytes::from("abc")), Ok(Bytes::from("de"))]);
        assert_eq!(MediaStream::new(pieces()).read_all(5).await.unwrap().unwrap(), b"abcde");
        assert_eq!(MediaStream::new(pieces()).read_all(4).await.unwrap(), None);
    }
}
