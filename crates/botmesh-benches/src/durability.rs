//! What it costs that nothing is lost: `cargo xtask bench durability`.

mod backend;
mod bare;
mod callers;
mod recovery;

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};
use botmesh_core::bot::{Durability, RunningBot};
use botmesh_core::{Bot, BotError};

use crate::spread::{Spread, quantile, rate};
use backend::{Backend, Site};
use callers::{Callers, Crowd};

/// How to use the bench.
pub const USAGE: &str = "\
usage: cargo xtask bench durability [OPTION]...

  --quick          one short round, and few pending records
  --only BACKEND   sqlite, postgres or redis only
  --messages N     so many messages in each round (20,000)
  --rounds N       how often each is measured, in turn (5)
  --pending N      so many records wait after a crash (100,000)
";

/// So many callers wait for their replies at the same time.
const AT_ONCE: usize = 256;
/// So many chats have their turns.
const CHATS: u64 = 10_000;
/// So many messages are timed one at a time.
const ALONE: u64 = 300;

/// What is measured, and how much.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    messages: u64,
    rounds: usize,
    pending: u64,
    only: Option<Backend>,
}

impl Options {
    /// Reads the arguments; none when the usage is asked for.
    ///
    /// # Errors
    /// When an argument is not known.
    pub fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Option<Self>> {
        let mut options = Self { messages: 20_000, rounds: 5, pending: 100_000, only: None };
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().with_context(|| format!("{argument}: a value"));
            match argument.as_str() {
                // Cargo tells every bench that it is one.
                "--bench" => {}
                "--help" | "-h" => return Ok(None),
                "--quick" => {
                    options = Self { messages: 2_000, rounds: 1, pending: 5_000, ..options };
                }
                "--messages" => options.messages = value()?.parse()?,
                "--rounds" => options.rounds = value()?.parse()?,
                "--pending" => options.pending = value()?.parse()?,
                "--only" => options.only = Some(Backend::named(&value()?)?),
                _ => bail!("{argument} is not known\n{USAGE}"),
            }
        }
        if options.messages == 0 || options.rounds == 0 {
            bail!("nothing would be measured\n{USAGE}");
        }
        Ok(Some(options))
    }
}

/// Who processes the messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Contender {
    /// A client without any logic, two statements for each message.
    Bare,
    /// A bot, or so many replicas with coordination.
    Bots { replicas: usize, is_durable: bool },
}

impl Contender {
    fn name(self) -> String {
        let (replicas, kind) = match self {
            Self::Bare => return "a bare client, two statements for each".to_owned(),
            Self::Bots { replicas, is_durable: true } => (replicas, "durable"),
            Self::Bots { replicas, is_durable: false } => (replicas, "not durable"),
        };
        match replicas {
            1 => format!("one process, {kind}"),
            replicas => format!("{replicas} replicas, {kind}"),
        }
    }
}

/// The figures of one contender.
#[derive(Debug, Default)]
struct Runs {
    rates: Vec<f64>,
    loaded: Vec<Duration>,
    alone: Vec<Duration>,
}

/// Bots that run, and the callers of each.
struct Fleet {
    crowd: Arc<Crowd>,
    running: Vec<RunningBot>,
}

impl Fleet {
    async fn start(site: &Site, replicas: usize, is_durable: bool) -> Result<Self> {
        let crowd = Arc::new(Crowd::new(AT_ONCE, replicas));
        let mut running = Vec::new();
        for place in 0..replicas {
            let bot = Bot::new(Callers::new(Arc::clone(&crowd), place)?);
            let mut bot = site.equip(bot, replicas > 1).await?;
            if is_durable {
                bot = bot.durability(Durability::inbox_and_outbox());
            }
            running.push(answering(bot).start().await.map_err(told)?);
        }
        for bot in &running {
            bot.ready().await;
        }
        let fleet = Self { crowd, running };
        // A server that was just started grants no turns for a lease.
        Arc::clone(&fleet.crowd).exchange(AT_ONCE as u64 * 2, AT_ONCE, CHATS).await?;
        Ok(fleet)
    }

    async fn stop(self) {
        for bot in self.running {
            bot.stop().await;
        }
    }
}

fn told(error: BotError) -> anyhow::Error {
    anyhow!("{error}")
}

/// Says back what was said: who called is in the words.
fn answering(bot: Bot) -> Bot {
    bot.fallback(|ctx| async move { ctx.reply(ctx.text().to_owned()).await })
}

/// Measures each backend on a server or a file of its own.
///
/// # Errors
/// When a server cannot be started, or a message is not answered.
pub async fn measure(options: &Options) -> Result<()> {
    println!(
        "{AT_ONCE} callers over {CHATS} chats; p50 and p99 from the delivery to the reply, in us"
    );
    println!(
        "{:<12} {:<42} {:>24} {:>8} {:>9} {:>9} {:>10} {:>10}",
        "backend", "", "messages/s", "of bare", "p50", "p99", "p50 alone", "p99 alone"
    );
    for backend in Backend::ALL {
        if options.only.is_none_or(|only| only == backend) {
            of(backend, options).await.with_context(|| backend.name())?;
        }
    }
    Ok(())
}

async fn of(backend: Backend, options: &Options) -> Result<()> {
    let site = Site::start(backend).await?;
    let bots = |replicas, is_durable| Contender::Bots { replicas, is_durable };
    let mut contenders = vec![Contender::Bare, bots(1, false), bots(1, true)];
    if backend != Backend::Sqlite {
        contenders.extend([bots(2, false), bots(2, true)]);
    }
    let mut runs: Vec<(Contender, Runs)> =
        contenders.into_iter().map(|contender| (contender, Runs::default())).collect();
    let mut bare = bare::Client::open(&site).await?;
    // In turn, so that whatever else the machine does slows all alike.
    for _ in 0..options.rounds {
        for (contender, runs) in &mut runs {
            match *contender {
                Contender::Bare => {
                    let took = bare.run(CHATS, options.messages).await?;
                    runs.rates.push(rate(options.messages, took));
                }
                Contender::Bots { replicas, is_durable } => {
                    let fleet = Fleet::start(&site, replicas, is_durable).await?;
                    let crowd = || Arc::clone(&fleet.crowd);
                    let (took, times) = crowd().exchange(options.messages, AT_ONCE, CHATS).await?;
                    runs.rates.push(rate(options.messages, took));
                    runs.loaded.extend(times);
                    runs.alone.extend(crowd().exchange(ALONE, 1, CHATS).await?.1);
                    fleet.stop().await;
                }
            }
        }
    }
    let mut limit = None;
    for (contender, runs) in runs {
        let spread = Spread::of(&runs.rates).context("nothing was measured")?;
        let limit = *limit.get_or_insert(spread.median);
        let [loaded, alone] = [runs.loaded, runs.alone].map(|mut times| {
            times.sort_unstable();
            [0.5, 0.99].map(|share| {
                quantile(&times, share).map(|time| format!("{time:.0}")).unwrap_or_default()
            })
        });
        println!(
            "{:<12} {:<42} {:>24} {:>8.2} {:>9} {:>9} {:>10} {:>10}",
            backend.name(),
            contender.name(),
            spread.to_string(),
            spread.median / limit,
            loaded[0],
            loaded[1],
            alone[0],
            alone[1]
        );
    }
    if options.pending > 0 {
        let took = recovery::measure(&site, options.pending).await?;
        println!(
            "{:<12} {:<42} {:>24.0} {:>8} {:.2} s",
            backend.name(),
            format!("{} pending records after a crash", options.pending),
            rate(options.pending, took),
            "",
            took.as_secs_f64()
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strange_arguments_are_refused() {
        let parse = |words: &[&str]| Options::parse(words.iter().map(|word| (*word).to_owned()));
        assert!(parse(&["--fast"]).is_err());
        assert!(parse(&["--messages", "0"]).is_err());
        assert!(parse(&["--only", "paper"]).is_err());
        assert_eq!(parse(&["--help"]).unwrap(), None);
        let quick = parse(&["--bench", "--only", "redis", "--quick"]).unwrap().unwrap();
        assert_eq!((quick.only, quick.rounds), (Some(Backend::Redis), 1));
    }
}
