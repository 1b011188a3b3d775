use std::fmt;
use std::io::{self, Read};

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::mpsc;

use super::line::{Line, LineCutter};
use crate::message::Message;

const CHUNK_BYTES: usize = 64 * 1024;

/// Lines from standard input or another reader. What was read and not yet delivered outlives the
/// future that read it.
pub(super) struct Input {
    source: Source,
    chunk: Vec<u8>,
    position: usize,
    ended: bool,
    lines: LineCutter,
    /// The message that is being delivered and the number of its line.
    pub(super) held: Option<(u64, Message)>,
}

enum Source {
    /// Not started yet: nothing is read before the first run.
    Unopened,
    /// A thread of its own reads, because a read of standard input cannot be interrupted: a
    /// runtime that shuts down would wait for it, a process that ends does not.
    Thread(mpsc::Receiver<io::Result<Vec<u8>>>),
    Reader(Box<dyn AsyncRead + Send + Unpin>),
}

impl Input {
    pub(super) fn standard() -> Self {
        Self::of(Source::Unopened)
    }

    pub(super) fn reader(reader: impl AsyncRead + Send + Unpin + 'static) -> Self {
        Self::of(Source::Reader(Box::new(reader)))
    }

    fn of(source: Source) -> Self {
        Self {
            source,
            chunk: Vec::new(),
            position: 0,
            ended: false,
            lines: LineCutter::default(),
            held: None,
        }
    }

    pub(super) const fn is_standard(&self) -> bool {
        !matches!(self.source, Source::Reader(_))
    }

    /// The next line; none at the end of the input. Safe to cancel.
    pub(super) async fn next(&mut self) -> io::Result<Option<Line>> {
        loop {
            let mut rest = &self.chunk[self.position..];
            let line = self.lines.next(&mut rest);
            self.position = self.chunk.len() - rest.len();
            if line.is_some() {
                return Ok(line);
            }
            if self.ended {
                return Ok(self.lines.finish());
            }
            self.chunk.clear();
            self.position = 0;
            self.fill().await?;
            self.ended = self.chunk.is_empty();
        }
    }

    async fn fill(&mut self) -> io::Result<()> {
        if matches!(self.source, Source::Unopened) {
            self.source = Source::Thread(read_standard_input()?);
        }
        match &mut self.source {
            Source::Unopened => {}
            Source::Thread(chunks) => {
                if let Some(chunk) = chunks.recv().await {
                    self.chunk = chunk?;
                }
            }
            Source::Reader(reader) => {
                self.chunk.reserve(CHUNK_BYTES);
                reader.read_buf(&mut self.chunk).await?;
            }
        }
        Ok(())
    }
}

fn read_standard_input() -> io::Result<mpsc::Receiver<io::Result<Vec<u8>>>> {
    // One chunk ahead: what the bot has not taken stays in the pipe.
    let (sender, receiver) = mpsc::channel(1);
    std::thread::Builder::new().name("botmesh-terminal".into()).spawn(move || {
        let mut chunk = vec![0; CHUNK_BYTES];
        loop {
            let read = match io::stdin().lock().read(&mut chunk) {
                Ok(0) => return,
                Ok(read) => Ok(chunk[..read].to_vec()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => Err(error),
            };
            let failed = read.is_err();
            if sender.blocking_send(read).is_err() || failed {
                return;
            }
        }
    })?;
    Ok(receiver)
}

impl fmt::Debug for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Input").field("ended", &self.ended).finish_non_exhaustive()
    }
}
