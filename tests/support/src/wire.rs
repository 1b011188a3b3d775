//! As much of the protocols as tells one message of a server from the next.

/// What a server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wire {
    /// RESP3.
    Redis,
    /// PostgreSQL's protocol 3.
    Postgres,
    /// MySQL's packets. The server pushes nothing.
    Mysql,
    /// MongoDB's messages. What a change stream tells is an answer; without it the connection of
    /// the stream stands still.
    Mongo,
}

impl Wire {
    /// Where a client finds such a server on a port of this machine. It is not encrypted, or
    /// nothing could be told apart.
    #[must_use]
    pub fn url(self, port: u16) -> String {
        match self {
            Self::Redis => format!("redis://127.0.0.1:{port}"),
            Self::Postgres => {
                format!("postgres://postgres@127.0.0.1:{port}/postgres?sslmode=disable")
            }
            Self::Mysql => format!("mysql://bot@127.0.0.1:{port}/bots?ssl-mode=DISABLED"),
            Self::Mongo => format!("mongodb://127.0.0.1:{port}/?directConnection=true"),
        }
    }

    /// The length of the server's first message, once it is complete.
    #[must_use]
    pub fn frame(self, bytes: &[u8]) -> Option<usize> {
        let length = match self {
            Self::Redis => return resp(bytes),
            Self::Postgres => {
                let length: [u8; 4] = bytes.get(1..5)?.try_into().ok()?;
                usize::try_from(u32::from_be_bytes(length)).ok()? + 1
            }
            Self::Mysql => {
                let length: [u8; 3] = bytes.get(..3)?.try_into().ok()?;
                usize::try_from(u32::from_le_bytes([length[0], length[1], length[2], 0])).ok()? + 4
            }
            Self::Mongo => {
                let length: [u8; 4] = bytes.get(..4)?.try_into().ok()?;
                usize::try_from(u32::from_le_bytes(length)).ok()?
            }
        };
        (length <= bytes.len()).then_some(length)
    }

    /// Whether a message is one of a subscription.
    #[must_use]
    pub fn is_push(self, frame: &[u8]) -> bool {
        match self {
            Self::Redis => {
                frame.first() == Some(&b'>') && frame.windows(7).any(|word| word == b"message")
            }
            Self::Postgres => frame.first() == Some(&b'A'),
            Self::Mysql => false,
            Self::Mongo => {
                let holds = |word: &[u8]| frame.windows(word.len()).any(|part| part == word);
                holds(b"nextBatch") && holds(b"operationType")
            }
        }
    }
}

fn resp(bytes: &[u8]) -> Option<usize> {
    let line = bytes.windows(2).position(|pair| pair == b"\r\n")?;
    let count = || std::str::from_utf8(&bytes[1..line]).ok()?.parse::<i64>().ok();
    let mut length = line + 2;
    let parts = match bytes[0] {
        b'$' | b'=' | b'!' => {
            length += usize::try_from(count()?).map_or(0, |count| count + 2);
            0
        }
        b'*' | b'~' | b'>' => count()?.max(0),
        b'%' => count()? * 2,
        b'|' => count()? * 2 + 1,
        _ => 0,
    };
    for _ in 0..parts {
        length += resp(bytes.get(length..)?)?;
    }
    (length <= bytes.len()).then_some(length)
}
