use std::time::Duration;

use anyhow::{Context as _, Result, bail};

/// How to use the bench.
pub const USAGE: &str = "\
usage: cargo xtask bench coordination [OPTION]

  --backend NAME    redis (by default), postgres, mysql, or mongo at BOTMESH_TEST_MONGO_URL
  --quick           some seconds: does it work at all?
  --full            also with 100,000 chats
  --chats N         throughput only, with so many chats
";

/// On which server replicas are coordinated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backend {
    /// Redis.
    Redis,
    /// PostgreSQL.
    Postgres,
    /// MariaDB, in place of MySQL.
    Mysql,
    /// MongoDB, at the URL in the environment.
    Mongo,
}

/// What is measured, and how much.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// On which server.
    pub backend: Backend,
    /// At which numbers of chats messages are coordinated.
    pub chats: Vec<u64>,
    /// With how many replicas.
    pub replicas: Vec<usize>,
    /// How often throughput is measured, in turn with its limit.
    pub rounds: usize,
    /// How many messages each time.
    pub messages: u64,
    /// How many single messages and hand-overs are timed.
    pub samples: usize,
    /// How many replicas are killed, a few at a time.
    pub kills: usize,
    /// How many chats are held at once.
    pub held: u64,
    /// How long they are watched.
    pub watched: Duration,
    /// Whether throughput is all that is measured.
    pub throughput_only: bool,
}

impl Options {
    /// Reads the arguments; none when the usage is asked for.
    ///
    /// # Errors
    /// When an argument is not known.
    pub fn parse(arguments: impl Iterator<Item = String>) -> Result<Option<Self>> {
        let mut arguments = arguments;
        let mut options = Self {
            backend: Backend::Redis,
            chats: vec![1, 100, 10_000],
            replicas: vec![1, 2, 4],
            rounds: 5,
            messages: 20_000,
            samples: 2_000,
            kills: 24,
            held: 10_000,
            watched: Duration::from_secs(12),
            throughput_only: false,
        };
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                // Cargo tells every bench that it is one.
                "--bench" => {}
                "--help" | "-h" => return Ok(None),
                "--backend" => {
                    options.backend = match arguments.next().as_deref() {
                        Some("redis") => Backend::Redis,
                        Some("postgres") => Backend::Postgres,
                        Some("mysql") => Backend::Mysql,
                        Some("mongo") => Backend::Mongo,
                        other => bail!("there is no backend {other:?}\n{USAGE}"),
                    }
                }
                "--quick" => {
                    options = Self {
                        backend: options.backend,
                        chats: vec![1, 100],
                        replicas: vec![1, 2],
                        rounds: 1,
                        messages: 2_000,
                        samples: 100,
                        kills: 4,
                        held: 500,
                        watched: Duration::from_secs(3),
                        throughput_only: false,
                    }
                }
                "--full" => {
                    options.chats.push(100_000);
                    options.held = 100_000;
                }
                "--chats" => {
                    let number = arguments.next().context("--chats needs a number")?;
                    options.chats = vec![number.parse().context("--chats needs a number")?];
                    options.throughput_only = true;
                }
                other => bail!("the bench does not know {other:?}\n{USAGE}"),
            }
        }
        Ok(Some(options))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strange_arguments_are_refused_and_the_usage_is_told() {
        let parse = |words: &[&str]| Options::parse(words.iter().map(|word| (*word).to_owned()));
        assert!(parse(&["--fast"]).is_err());
        assert!(parse(&["--backend", "paper"]).is_err());
        let postgres = parse(&["--backend", "postgres", "--quick"]).unwrap().unwrap();
        assert_eq!((postgres.backend, postgres.rounds), (Backend::Postgres, 1));
        let mongo = parse(&["--backend", "mongo"]).unwrap().unwrap();
        assert_eq!(mongo.backend, Backend::Mongo);
        let mysql = parse(&["--backend", "mysql"]).unwrap().unwrap();
        assert_eq!(mysql.backend, Backend::Mysql);
        assert_eq!(parse(&["--help"]).unwrap(), None);
        assert_eq!(parse(&["--bench", "--full"]).unwrap().unwrap().held, 100_000);
    }
}
