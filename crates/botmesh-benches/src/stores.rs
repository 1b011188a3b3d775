//! How many operations of a store there are in each second: `cargo xtask bench stores`.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use botmesh_core::MemoryStore;
use botmesh_core::id::{ChatKey, Fence, MessageId, Revision};
use botmesh_core::store::{
    Admission, Begun, CheckpointChange, CheckpointWrite, Collection, Commit, Committed, NewRecord,
    Store, Swap,
};
use botmesh_mongo_store::MongoStore;
use botmesh_mysql_store::MysqlStore;
use botmesh_postgres_store::PostgresStore;
use botmesh_redis_store::RedisStore;
use botmesh_sqlite_store::SqliteStore;
use tokio::task::JoinSet;

use crate::coordination::{mongo, mysql, postgres, server};
use crate::spread::{quantile, rate};

/// How to use the bench.
pub const USAGE: &str = "\
usage: cargo xtask bench stores [--operations N] [--only NAME]
";

/// So many tasks work at the same time, each on chats of its own.
const AT_ONCE: u64 = 64;
/// So many chats each of them has.
const CHATS: u64 = 16;
/// As long as a checkpoint of a usual conversation.
const BODY: usize = 300;
/// So many operations are timed alone.
const TIMED: u64 = 500;

/// What is measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// How many operations of each kind.
    pub operations: u64,
    /// The only store that is measured.
    pub only: Option<String>,
}

impl Options {
    /// Reads the arguments; none when the usage is asked for.
    ///
    /// # Errors
    /// When an argument is not known.
    pub fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Option<Self>> {
        let mut options = Self { operations: 20_000, only: None };
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().with_context(|| format!("{argument}: a value"));
            match argument.as_str() {
                "--bench" => {}
                "--help" | "-h" => return Ok(None),
                "--operations" => options.operations = value()?.parse()?,
                "--only" => options.only = Some(value()?),
                _ => bail!("{argument} is not known\n{USAGE}"),
            }
        }
        Ok(Some(options))
    }
}

/// The kinds of operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Write,
    Read,
    Save,
    /// A message that finds its chat free: admitted, and ended together with the checkpoint.
    Accept,
    /// A message that is begun in between, as one that had to wait.
    Process,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Write => "checkpoint written conditionally",
            Self::Read => "checkpoint read",
            Self::Save => "document saved conditionally",
            Self::Accept => "message admitted and ended",
            Self::Process => "message admitted, begun and ended",
        })
    }
}

/// Measures each store on a server or a file of its own.
///
/// # Errors
/// When a server cannot be started, or an operation fails.
pub async fn measure(options: &Options) -> Result<()> {
    println!(
        "{:<36} {:<34} {:>12} {:>10} {:>10}",
        "store", "operation", "each second", "p50 us", "p99 us"
    );
    let wanted = |name: &str| options.only.as_deref().is_none_or(|only| name.starts_with(only));
    if wanted("memory") {
        of("memory", Arc::new(MemoryStore::new()), options).await?;
    }
    if wanted("sqlite") {
        let directory = tempfile::tempdir()?;
        let store = SqliteStore::open(directory.path().join("bench.db")).await?;
        of("sqlite", Arc::new(store), options).await?;
    }
    if wanted("redis") {
        let server = server::PrivateServer::start()?;
        of("redis", Arc::new(RedisStore::connect(server.url()).await?), options).await?;
    }
    if wanted("postgres") {
        let server = postgres::server::PrivateServer::start().await?;
        for (name, commit) in [("postgres", "on"), ("postgres, synchronous_commit=off", "off")] {
            let url = format!("{}?options[synchronous_commit]={commit}", server.url());
            let store = PostgresStore::connect(url).prefix(format!("{commit}_")).await?;
            of(name, Arc::new(store), options).await?;
        }
    }
    if wanted("mysql") {
        let server = mysql::server::PrivateServer::start().await?;
        of("mysql (MariaDB)", Arc::new(MysqlStore::connect(server.url()).await?), options).await?;
    }
    // Of the reader's own, if there is one.
    if wanted("mongo")
        && let Ok(url) = std::env::var(mongo::URL)
    {
        let server = mongo::Server::open(&url).await?;
        ensure!(!server.is_stand_in().await?, "{} is a stand-in for MongoDB", mongo::URL);
        let store = MongoStore::connect(url).database(mongo::DATABASE).await?;
        of("mongo", Arc::new(store), options).await?;
        server.drop_everything().await?;
    }
    Ok(())
}

async fn of(name: &str, store: Arc<dyn Store>, options: &Options) -> Result<()> {
    prepare(&store).await?;
    for kind in [Kind::Write, Kind::Read, Kind::Save, Kind::Accept, Kind::Process] {
        if matches!(kind, Kind::Accept | Kind::Process) && store.inbox().is_none() {
            continue;
        }
        let took = run(&store, kind, options.operations).await?;
        let mut times = Vec::new();
        let mut task = Task::new(&store, 0)?;
        for number in 0..TIMED {
            let begun = Instant::now();
            task.operate(kind, number).await?;
            times.push(begun.elapsed());
        }
        times.sort_unstable();
        let at = |share| quantile(&times, share).unwrap_or_default();
        println!(
            "{name:<36} {kind:<34} {:>12.0} {:>10.0} {:>10.0}",
            rate(options.operations, took),
            at(0.5),
            at(0.99)
        );
    }
    Ok(())
}

/// Sees to it that all rows are there and all connections open.
async fn prepare(store: &Arc<dyn Store>) -> Result<()> {
    let mut working = JoinSet::new();
    for number in 0..AT_ONCE {
        let mut task = Task::new(store, number)?;
        working.spawn(async move {
            for chat in 0..CHATS {
                task.operate(Kind::Write, chat).await?;
            }
            anyhow::Ok(())
        });
    }
    while let Some(ended) = working.join_next().await {
        ended??;
    }
    Ok(())
}

async fn run(store: &Arc<dyn Store>, kind: Kind, operations: u64) -> Result<Duration> {
    let next = Arc::new(AtomicU64::new(0));
    let mut tasks = Vec::new();
    for number in 0..AT_ONCE {
        tasks.push(Task::new(store, number)?);
    }
    let begun = Instant::now();
    let mut working = JoinSet::new();
    for mut task in tasks {
        let next = Arc::clone(&next);
        working.spawn(async move {
            let mut done = 0;
            while next.fetch_add(1, Ordering::Relaxed) < operations {
                task.operate(kind, done).await?;
                done += 1;
            }
            anyhow::Ok(())
        });
    }
    while let Some(ended) = working.join_next().await {
        ended??;
    }
    Ok(begun.elapsed())
}

/// One that works on chats of its own.
struct Task {
    store: Arc<dyn Store>,
    chats: Vec<ChatKey>,
    body: String,
    /// What the checkpoints of the chats were last set to, as whoever has the turn knows it.
    revisions: Vec<Option<Revision>>,
}

/// Ids of messages, each of which comes once in the whole run.
static MESSAGES: AtomicU64 = AtomicU64::new(0);

impl Task {
    fn new(store: &Arc<dyn Store>, number: u64) -> Result<Self> {
        let chat = |chat| ChatKey::decode(&format!("bench:{}", number * CHATS + chat));
        let chats = (0..CHATS).map(chat).collect::<Result<_, _>>()?;
        Ok(Self { store: Arc::clone(store), chats, body: "x".repeat(BODY), revisions: Vec::new() })
    }

    async fn operate(&mut self, kind: Kind, number: u64) -> Result<()> {
        let chat = &self.chats[usize::try_from(number % CHATS)?];
        match kind {
            // As a turn does it: what was read is replaced.
            Kind::Write => {
                let stored = self.store.load_checkpoint(chat).await?;
                let store = self.store.conditional_checkpoints().context("no conditions")?;
                let write = CheckpointWrite { body: &self.body, wake_in: None, expires_in: None };
                let before = stored.map(|stored| stored.revision);
                let swap = store.set_checkpoint_if(chat, write, before, Fence::new(1)).await?;
                ensure!(swap != Swap::Refused, "somebody else wrote to {chat}");
            }
            Kind::Read => {
                let stored = self.store.load_checkpoint(chat).await?;
                ensure!(stored.is_some(), "{chat} has no checkpoint");
            }
            Kind::Save => {
                let (users, name) = (Collection::Users, chat.as_str().to_owned());
                let stored = self.store.load_document(users, &name).await?;
                let before = stored.map(|stored| stored.revision);
                let swap = self.store.save_document_if(users, &name, &self.body, before).await?;
                ensure!(swap != Swap::Refused, "somebody else saved {name}");
            }
            Kind::Accept | Kind::Process => self.process(kind == Kind::Process, number).await?,
        }
        Ok(())
    }

    async fn process(&mut self, begins: bool, number: u64) -> Result<()> {
        if self.revisions.is_empty() {
            for chat in &self.chats {
                let stored = self.store.load_checkpoint(chat).await?;
                self.revisions.push(stored.map(|stored| stored.revision));
            }
        }
        let index = usize::try_from(number % CHATS)?;
        let (chat, revision) = (&self.chats[index], &mut self.revisions[index]);
        let inbox = self.store.inbox().context("no inbox")?;
        let id = MessageId::new(MESSAGES.fetch_add(1, Ordering::Relaxed).to_string())?;
        let (message, body, lease) = (Some(&id), Some(&*self.body), Duration::from_secs(60));
        let admission = inbox.admit(NewRecord { chat, message, body, lease, most: 100 }).await?;
        let Admission::New { position, .. } = admission else { bail!("{admission:?}") };
        let fence = Fence::new(1);
        if begins {
            let begun = inbox.begin(chat, fence, lease).await?;
            ensure!(matches!(begun, Begun::Record(_)), "{begun:?}");
        }
        let write = CheckpointWrite { body: &self.body, wake_in: None, expires_in: None };
        let checkpoint = CheckpointChange::Set { write, expected: *revision };
        let commit = Commit { chat, position, fence, checkpoint };
        match inbox.commit(commit).await? {
            Committed::Applied(written) => *revision = written,
            Committed::Refused => bail!("somebody else wrote to {chat}"),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strange_arguments_are_refused() {
        let parse = |words: &[&str]| Options::parse(words.iter().map(|word| (*word).to_owned()));
        assert!(parse(&["--fast"]).is_err());
        assert!(parse(&["--operations"]).is_err());
        assert_eq!(parse(&["--help"]).unwrap(), None);
        assert_eq!(parse(&["--bench", "--only", "redis"]).unwrap().unwrap().operations, 20_000);
    }
}
