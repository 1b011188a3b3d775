use std::fmt;
use std::io;

use tokio::io::{AsyncWrite, AsyncWriteExt};

/// Writes whole texts: one that was cut short when its future was dropped is completed by the
/// next.
pub(super) struct Output {
    writer: Box<dyn AsyncWrite + Send + Unpin>,
    pending: Vec<u8>,
    written: usize,
}

impl Output {
    pub(super) fn new(writer: impl AsyncWrite + Send + Unpin + 'static) -> Self {
        Self { writer: Box::new(writer), pending: Vec::new(), written: 0 }
    }

    pub(super) async fn write(&mut self, text: &str) -> io::Result<()> {
        self.pending.extend_from_slice(text.as_bytes());
        while self.written < self.pending.len() {
            match self.writer.write(&self.pending[self.written..]).await? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                written => self.written += written,
            }
        }
        self.pending.clear();
        self.written = 0;
        self.writer.flush().await
    }
}

impl fmt::Debug for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Output").field("pending", &self.pending.len()).finish_non_exhaustive()
    }
}
