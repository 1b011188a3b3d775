use std::fmt;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};

use redis::cluster_routing::{MultipleNodeRoutingInfo, RoutingInfo};
use redis::{Cmd, FromRedisValue, PushInfo, RedisError, Value};
use tokio::sync::mpsc::UnboundedSender;

use crate::error::Fault;
use crate::script::Script;
use crate::servers::{Connection, Servers};

/// One shared connection that is opened when it is needed, and again after it broke. With
/// Sentinel, opening also finds out who the master is now.
pub(crate) struct Link {
    servers: Arc<Servers>,
    pushes: Option<UnboundedSender<PushInfo>>,
    open: Mutex<Option<Open>>,
    /// Held by the one that opens; says how the last attempt ended.
    opening: tokio::sync::Mutex<Option<RedisError>>,
    attempts: AtomicU64,
}

/// A connection with the number of the attempt that opened it.
#[derive(Clone)]
struct Open {
    generation: u64,
    connection: Connection,
}

impl Link {
    pub(crate) fn new(servers: Arc<Servers>, pushes: Option<UnboundedSender<PushInfo>>) -> Self {
        let (open, opening) = (Mutex::new(None), tokio::sync::Mutex::new(None));
        Self { servers, pushes, open, opening, attempts: AtomicU64::new(0) }
    }

    fn present(&self) -> Option<Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn replace(&self, open: Option<Open>) {
        *self.open.lock().unwrap_or_else(PoisonError::into_inner) = open;
    }

    /// Forgets the connection of `generation`, so that the next command opens another one.
    fn discard(&self, generation: u64) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.as_ref().is_some_and(|open| open.generation == generation) {
            *open = None;
        }
    }

    async fn connection(&self) -> Result<Open, Fault> {
        if let Some(open) = self.present() {
            return Ok(open);
        }
        let before = self.attempts.load(Ordering::Acquire);
        let mut last = self.opening.lock().await;
        if let Some(open) = self.present() {
            return Ok(open);
        }
        // Whoever waited while another one tried in vain shares that result.
        if self.attempts.load(Ordering::Acquire) > before
            && let Some(error) = &*last
        {
            return Err(Fault::unsent(error.clone()));
        }
        let opened = self.servers.open(self.pushes.as_ref()).await;
        let generation = self.attempts.fetch_add(1, Ordering::AcqRel) + 1;
        match opened {
            Ok(connection) => {
                *last = None;
                let open = Open { generation, connection };
                self.replace(Some(open.clone()));
                Ok(open)
            }
            Err(error) => {
                *last = Some(error.clone());
                Err(Fault::unsent(error))
            }
        }
    }

    /// Sends one command once.
    pub(crate) async fn run(&self, command: &Cmd) -> Result<Value, Fault> {
        let Open { generation, connection } = self.connection().await?;
        let answered = match connection {
            Connection::Node(mut node) => command.query_async(&mut node).await,
            Connection::Cluster(mut cluster) => command.query_async(&mut cluster).await,
        };
        self.settle(generation, answered)
    }

    /// Sends one command to every master; the answers come in no order.
    pub(crate) async fn run_everywhere(&self, command: &Cmd) -> Result<Vec<Value>, Fault> {
        let Open { generation, connection } = self.connection().await?;
        let answered = match connection {
            Connection::Node(mut node) => {
                command.query_async(&mut node).await.map(|value| vec![value])
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
        self.settle(generation, answered)
    }

    fn settle<T>(&self, generation: u64, answered: Result<T, RedisError>) -> Result<T, Fault> {
        answered.map_err(|error| {
            let fault = Fault::sent(error);
            if fault.needs_another_connection() {
                self.discard(generation);
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
        match self.run(&script.by_digest(keys, arguments)).await {
            Err(fault) if fault.is_unknown_script() => {
                self.run(&script.by_text(keys, arguments)).await
            }
            answered => answered,
        }
    }

    /// What the servers say of themselves, one text for each.
    pub(crate) async fn information(&self) -> Result<Vec<String>, Fault> {
        let answers = self.run_everywhere(&redis::cmd("INFO")).await?;
        let read = |value| String::from_redis_value(value).map_err(RedisError::from);
        answers.into_iter().map(read).collect::<Result<_, _>>().map_err(Fault::sent)
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link")
            .field("servers", &self.servers)
            .field("open", &self.present().is_some())
            .finish_non_exhaustive()
    }
}
