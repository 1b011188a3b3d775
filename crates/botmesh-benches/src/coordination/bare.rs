//! What a client without any logic reaches with the very calls that the coordinator makes.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use botmesh_core::coordination::Coordinator as _;
use botmesh_core::id::ChatKey;
use botmesh_redis_store::RedisCoordinator;
use redis::Value;

use super::server::PrivateServer;
use super::take;

/// Stands for the chat in the calls that are listened to.
const PLACEHOLDER: &str = "placeholder";
/// Sequences of tickets that no coordinator comes to.
const FIRST_SEQUENCE: u64 = 1 << 40;
/// So many messages are sent before an answer is read; twice as many are under way.
const BATCH: u64 = 64;
/// Granted or queued.
const RESERVED: &[i64] = &[7, 8];
/// Released, perhaps to the next in line.
const RELEASED: &[i64] = &[14];

/// The calls of a coordinator for one message, as the server received them.
#[derive(Debug, Clone)]
pub(super) struct Calls {
    reserve: Vec<String>,
    release: Vec<String>,
    incarnation: String,
    port: u16,
}

impl Calls {
    /// Listens to what a replica sends for one message. The bare client sends the same under the
    /// session of that replica.
    pub(super) async fn overhear(
        server: &PrivateServer,
        replica: &RedisCoordinator,
    ) -> Result<Self> {
        let chat = ChatKey::decode(&format!("bench:{PLACEHOLDER}"))?;
        // Makes the scripts known, so that they are called by their digests.
        take(replica, &chat).await?.release().await?;
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, server.port))?;
        stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        (&stream).write_all(b"MONITOR\r\n")?;
        let mut lines = BufReader::new(stream).lines();
        let answer = lines.next().context("the server closed the connection")??;
        ensure!(answer == "+OK", "the server does not let its commands be listened to: {answer}");
        take(replica, &chat).await?.release().await?;
        let mut calls = lines.filter_map(|line| {
            let words = line.map(|line| words(&line));
            words.map(|words| words.filter(|words| is_call(words))).transpose()
        });
        let mut next = || {
            calls.next().context("the server closed the connection")?.map_err(anyhow::Error::from)
        };
        let (reserve, release) = (next()?, next()?);
        let incarnation = replica.incarnation().context("the replica has no session")?;
        Ok(Self {
            reserve,
            release,
            incarnation: incarnation.as_str().to_owned(),
            port: server.port,
        })
    }

    /// Takes and releases the turns of `messages` messages, one chat after the other, and returns
    /// how long it took. With `ahead`, so many reservations are sent before their releases: where
    /// chats are fewer, messages wait for each other as those of the replicas do. Blocks.
    pub(super) fn run(&self, chats: u64, messages: u64, ahead: u64) -> Result<Duration> {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port))?;
        stream.set_nodelay(true)?;
        let mut answers = BufReader::new(stream.try_clone()?);
        let mut parser = redis::Parser::new();
        let suffix = format!("/{}", self.incarnation);
        let begun = Instant::now();
        let steps = messages + ahead;
        let calls = |step: u64| {
            let reserve = (step < messages).then_some((&self.reserve, step, RESERVED));
            let release = step.checked_sub(ahead).map(|step| (&self.release, step, RELEASED));
            reserve.into_iter().chain(release)
        };
        let (mut sent, mut answered) = (0, 0);
        let mut buffer = Vec::new();
        while answered < steps {
            while sent < steps && sent - answered < 2 * BATCH {
                buffer.clear();
                let end = steps.min(sent + BATCH);
                for (call, message, _) in (sent..end).flat_map(calls) {
                    let chat = (1_000_000_000 + message % chats).to_string();
                    let ticket = format!("{}{suffix}", FIRST_SEQUENCE + message);
                    write_call(&mut buffer, call, &chat, &ticket, &suffix)?;
                }
                (&stream).write_all(&buffer)?;
                sent = end;
            }
            let end = steps.min(answered + BATCH);
            for (_, _, wanted) in (answered..end).flat_map(calls) {
                match parser.parse_value(&mut answers)? {
                    Value::Array(parts) if matches!(parts.first(), Some(Value::Int(code)) if wanted.contains(code)) =>
                        {}
                    other => bail!("a script answered {other:?} instead of {wanted:?}"),
                }
            }
            answered = end;
        }
        Ok(begun.elapsed())
    }
}

fn is_call(words: &[String]) -> bool {
    words.first().is_some_and(|word| word == "EVALSHA")
        && words.iter().any(|word| word.contains(PLACEHOLDER))
}

fn write_call(
    buffer: &mut Vec<u8>,
    call: &[String],
    chat: &str,
    ticket: &str,
    suffix: &str,
) -> Result<()> {
    write!(buffer, "*{}\r\n", call.len())?;
    for word in call {
        if word.ends_with(suffix) {
            write!(buffer, "${}\r\n{ticket}\r\n", ticket.len())?;
        } else if let Some((before, after)) = word.split_once(PLACEHOLDER) {
            let length = word.len() - PLACEHOLDER.len() + chat.len();
            write!(buffer, "${length}\r\n{before}{chat}{after}\r\n")?;
        } else {
            write!(buffer, "${}\r\n{word}\r\n", word.len())?;
        }
    }
    Ok(())
}

/// The words of a command that `MONITOR` shows; none for commands of scripts and for words that are
/// no plain text.
fn words(line: &str) -> Option<Vec<String>> {
    let (head, command) = line.split_once("] ")?;
    if head.ends_with("lua") || command.contains('\\') {
        return None;
    }
    let command = command.strip_prefix('"')?.strip_suffix('"')?;
    Some(command.split("\" \"").map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_of_clients_are_read_and_those_of_scripts_are_not() {
        let line = r#"+17.5 [0 127.0.0.1:1] "EVALSHA" "ab" "0" "" "1/a#b""#;
        assert_eq!(words(line).unwrap(), ["EVALSHA", "ab", "0", "", "1/a#b"]);
        assert_eq!(words(r#"+17.5 [0 lua] "GET" "a""#), None);
    }

    #[test]
    fn a_call_is_written_for_another_chat_and_another_ticket() {
        let call = ["EVALSHA", "x:placeholder:y", "1/a#b"].map(str::to_owned);
        let mut buffer = Vec::new();
        write_call(&mut buffer, &call, "12", "99/a#b", "/a#b").unwrap();
        let expected = "*3\r\n$7\r\nEVALSHA\r\n$6\r\nx:12:y\r\n$6\r\n99/a#b\r\n";
        assert_eq!(String::from_utf8(buffer).unwrap(), expected);
    }
}
