use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared};
use redis::aio::ConnectionLike;
use redis::cluster_routing::{MultipleNodeRoutingInfo, RoutingInfo};
use redis::{Cmd, ErrorKind, FromRedisValue, PushInfo, RedisError, RedisResult, Value};
use tokio::runtime::Handle;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::error::Fault;
use crate::pushes::{Listening, Pushes};
use crate::script::Script;
use crate::server::run_of;
use crate::servers::{Connection, Servers};
use crate::words::Words;

/// How long a connection to a cluster is kept at least.
const RESPITE: Duration = Duration::from_secs(1);

/// One shared connection that is opened when it is needed, and again after it broke. With
/// Sentinel, opening also finds out who the master is now.
///
/// It is opened by a task of its own: a caller that gives up does not interrupt it.
pub(crate) struct Link(Arc<Inner>);

struct Inner {
    servers: Servers,
    kind: Kind,
    state: Mutex<State>,
    generations: AtomicU64,
    listening: Listening,
    /// The last connection that was given up.
    discarded: watch::Sender<u64>,
}

/// What a connection is for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Commands that come as they come.
    Plain,
    /// Scripts that must know on which run of a server they are executed.
    Identified,
    /// As `Identified`, and it receives messages.
    Listening,
}

#[derive(Default)]
struct State {
    open: Option<Open>,
    opening: Option<Shared<BoxFuture<'static, RedisResult<Open>>>>,
    /// Where connections live; the caller's runtime otherwise.
    runtime: Option<Handle>,
}

/// A connection with its number.
#[derive(Clone)]
pub(crate) struct Open {
    pub(crate) generation: u64,
    pub(crate) connection: Connection,
    since: Instant,
    /// Names the run of the server; empty where each script finds out.
    run: Arc<str>,
    /// The messages of this connection, to be taken once.
    messages: Arc<Mutex<Option<UnboundedReceiver<PushInfo>>>>,
}

impl Open {
    pub(crate) fn take_messages(&self) -> Option<UnboundedReceiver<PushInfo>> {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    async fn run<C>(command: &Cmd, connection: &mut C) -> RedisResult<Value>
    where
        C: ConnectionLike,
    {
        command.query_async(connection).await
    }
}

impl Link {
    pub(crate) fn new(servers: Servers, kind: Kind) -> Self {
        let (state, generations) = (Mutex::default(), AtomicU64::new(0));
        let (listening, discarded) = (Listening::default(), watch::Sender::new(0));
        Self(Arc::new(Inner { servers, kind, state, generations, listening, discarded }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes later connections live on the caller's runtime, whoever needs them first. One that
    /// lives on another is given up.
    pub(crate) fn settle_here(&self) {
        let Ok(here) = Handle::try_current() else { return };
        let mut state = self.state();
        if state.runtime.as_ref().is_none_or(|runtime| runtime.id() != here.id()) {
            *state = State { runtime: Some(here), ..State::default() };
        }
    }

    /// Where connections live, if that was settled.
    pub(crate) fn runtime(&self) -> Option<Handle> {
        self.state().runtime.clone()
    }

    /// Who hears the messages of all its connections.
    pub(crate) fn listening(&self) -> &Listening {
        &self.0.listening
    }

    /// Forgets the connection of `generation`, so that the next command opens another one.
    pub(crate) fn discard(&self, generation: u64) {
        let mut state = self.state();
        if state.open.as_ref().is_some_and(|open| open.generation == generation) {
            state.open = None;
            self.0.discarded.send_replace(generation);
        }
    }

    /// Waits until the connection of `generation` was given up. Whoever only listens on it would
    /// not notice that it stands still.
    pub(crate) async fn discarded(&self, generation: u64) {
        let mut discarded = self.0.discarded.subscribe();
        // The sender lives as long as `self`.
        let _ = discarded.wait_for(|discarded| *discarded >= generation).await;
    }

    /// Closes the connection; the next command opens another one.
    pub(crate) fn close(&self) {
        self.state().open = None;
    }

    /// The connection, opened if there is none.
    pub(crate) async fn connection(&self) -> Result<Open, Fault> {
        let open = self.state().open.clone();
        match open {
            Some(open) => Ok(open),
            // Rare, and its state is large.
            None => Box::pin(self.opened()).await,
        }
    }

    async fn opened(&self) -> Result<Open, Fault> {
        let opening = {
            let mut state = self.state();
            if let Some(open) = &state.open {
                return Ok(open.clone());
            }
            // Callers share an attempt that is under way, but not one that has failed.
            match &state.opening {
                Some(opening) if opening.peek().is_none() => opening.clone(),
                _ => {
                    let runtime = state.runtime.clone().unwrap_or_else(Handle::current);
                    let opened = runtime.spawn(Arc::clone(&self.0).open());
                    let opening = opened
                        .map(|opened| {
                            let gone = |_| (ErrorKind::Io, "the runtime has stopped").into();
                            opened.map_err(gone).flatten()
                        })
                        .boxed()
                        .shared();
                    state.opening.insert(opening).clone()
                }
            }
        };
        opening.await.map_err(Fault::unsent)
    }

    /// Sends one command once.
    pub(crate) async fn run(&self, command: &Cmd) -> Result<Value, Fault> {
        let open = self.connection().await?;
        self.run_on(&open, command).await
    }

    async fn run_on(&self, open: &Open, command: &Cmd) -> Result<Value, Fault> {
        let answered = match open.connection.clone() {
            Connection::Node(mut node) => Open::run(command, &mut node).await,
            Connection::Cluster(mut cluster) => Open::run(command, &mut cluster).await,
        };
        self.settle(open, answered)
    }

    /// Sends one command to every master; the answers come in no order.
    async fn run_everywhere(&self, command: &Cmd) -> Result<Vec<Value>, Fault> {
        let open = self.connection().await?;
        let answered = match open.connection.clone() {
            Connection::Node(mut node) => {
                Open::run(command, &mut node).await.map(|value| vec![value])
            }
            Connection::Cluster(mut cluster) => {
                let everywhere =
                    RoutingInfo::MultiNode((MultipleNodeRoutingInfo::AllMasters, None));
                let answered = cluster.route_command(command.clone(), everywhere).await;
                answered.map(|value| match value {
                    Value::Map(nodes) => nodes.into_iter().map(|(_, value)| value).collect(),
                    Value::Array(values) => values,
                    value => vec![value],
                })
            }
        };
        // One of many may have refused.
        let answered =
            answered.and_then(|values| values.into_iter().map(Value::extract_error).collect());
        self.settle(&open, answered)
    }

    /// Gives up a connection that is broken.
    pub(crate) fn settle<T>(&self, open: &Open, answered: RedisResult<T>) -> Result<T, Fault> {
        answered.map_err(|error| {
            let fault = Fault::sent(error);
            // A cluster's connection replaces what is broken within it, but does not find back when
            // all of it was away; the other nodes must not suffer too often from one.
            let is_cluster = matches!(open.connection, Connection::Cluster(_));
            if fault.needs_another_connection() && (!is_cluster || open.since.elapsed() > RESPITE) {
                self.discard(open.generation);
            }
            fault
        })
    }

    /// Runs a script once, by its digest or, where that is unknown, by its text.
    pub(crate) async fn evaluate(
        &self,
        script: &Script,
        keys: &[&str],
        arguments: &[&[u8]],
    ) -> Result<Value, Fault> {
        let open = self.connection().await?;
        let (keys, arguments) = (keys.iter().copied(), arguments.iter().copied());
        self.evaluate_on(&open, script, keys, arguments).await
    }

    /// As `evaluate`.
    pub(crate) async fn evaluate_words(
        &self,
        script: &Script,
        keys: &[String],
        arguments: &Words,
    ) -> Result<Value, Fault> {
        let open = self.connection().await?;
        let (keys, arguments) = (keys.iter().map(String::as_str), arguments.iter());
        self.evaluate_on(&open, script, keys, arguments.map(str::as_bytes)).await
    }

    /// As `evaluate`; the first argument is the run of the server that executes it.
    pub(crate) async fn evaluate_identified(
        &self,
        script: &Script,
        keys: &[String],
        arguments: &Words,
    ) -> Result<Value, Fault> {
        let open = self.connection().await?;
        let run = std::iter::once(open.run.as_bytes());
        let arguments = run.chain(arguments.iter().map(str::as_bytes));
        self.evaluate_on(&open, script, keys.iter().map(String::as_str), arguments).await
    }

    async fn evaluate_on<'a>(
        &self,
        open: &Open,
        script: &Script,
        keys: impl ExactSizeIterator<Item = &'a str> + Clone,
        arguments: impl Iterator<Item = &'a [u8]> + Clone,
    ) -> Result<Value, Fault> {
        let by_digest = script.by_digest(keys.clone(), arguments.clone());
        match self.run_on(open, &by_digest).await {
            Err(fault) if fault.is_unknown_script() => {
                self.run_on(open, &script.by_text(keys, arguments)).await
            }
            answered => answered,
        }
    }

    /// The settings of each server.
    pub(crate) async fn configurations(
        &self,
        names: &[&str],
    ) -> Result<Vec<HashMap<String, String>>, Fault> {
        let mut ask = redis::cmd("CONFIG");
        ask.arg("GET").arg(names);
        let answers = self.run_everywhere(&ask).await?;
        let read = |value| HashMap::from_redis_value(value).map_err(RedisError::from);
        answers.into_iter().map(read).collect::<Result<_, _>>().map_err(Fault::sent)
    }

    /// What the servers say of themselves, one text for each.
    pub(crate) async fn information(&self) -> Result<Vec<String>, Fault> {
        let answers = self.run_everywhere(&redis::cmd("INFO")).await?;
        let read = |value| String::from_redis_value(value).map_err(RedisError::from);
        answers.into_iter().map(read).collect::<Result<_, _>>().map_err(Fault::sent)
    }
}

impl Inner {
    async fn open(self: Arc<Self>) -> RedisResult<Open> {
        let generation = self.generations.fetch_add(1, Ordering::Relaxed) + 1;
        let listens = self.kind == Kind::Listening;
        let (queue, receiver) = tokio::sync::mpsc::unbounded_channel();
        let pushes = Pushes { listening: self.listening.clone(), queue };
        let connection = self.servers.open(listens.then_some(&pushes)).await?;
        let run = match &connection {
            Connection::Node(node) if self.kind != Kind::Plain => {
                let mut about = redis::cmd("INFO");
                about.arg("server");
                run_of(&about.query_async::<String>(&mut node.clone()).await?)?
            }
            _ => String::new(),
        };
        let messages = Arc::new(Mutex::new(listens.then_some(receiver)));
        let since = Instant::now();
        let open = Open { generation, connection, since, run: run.into(), messages };
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.open = Some(open.clone());
        Ok(open)
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link")
            .field("servers", &self.0.servers)
            .field("open", &self.state().open.is_some())
            .finish_non_exhaustive()
    }
}
