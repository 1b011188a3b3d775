use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use botmesh_core::coordination::CoordinationKey;
use botmesh_core::coordination::client::{Backend, BackendError, JournalBackend, PushSink};
use botmesh_core::coordination::transition::{Limits, Operation, Reply, TicketId};
use botmesh_core::id::IncarnationId;
use redis::Value;
use tokio::runtime::Handle;

use super::ear::Ear;
use super::scripts::SCRIPTS;
use super::sessions::Sessions;
use super::wire::{Call, decode, encode};
use crate::RedisStore;
use crate::error::{Fault, NAME};
use crate::keys::{Keyspace, Layout};
use crate::link::{Kind, Link};
use crate::script::Script;
use crate::servers::Servers;
use crate::words::Words;

/// Carries the operations of a coordinator to the scripts.
#[derive(Debug)]
pub(super) struct RedisBackend {
    pub(super) space: Keyspace,
    /// The store on the same servers.
    pub(super) store: RedisStore,
    limits: Limits,
    /// Tickets poll otherwise.
    can_push: bool,
    /// Turns and their wake-ups.
    link: Arc<Link>,
    /// Heartbeats only, so that they never wait behind turns.
    heartbeats: Link,
    ear: Ear,
    pub(super) sessions: Sessions,
    /// Whether it has worked before: then what is refused now may pass.
    has_worked: AtomicBool,
}

impl RedisBackend {
    pub(super) fn new(servers: &Servers, store: RedisStore, limits: Limits) -> Self {
        let can_push = servers.can_push();
        let kind = if can_push { Kind::Listening } else { Kind::Identified };
        Self {
            space: store.space().clone(),
            store,
            limits,
            can_push,
            link: Arc::new(Link::new(servers.clone(), kind)),
            heartbeats: Link::new(servers.clone(), Kind::Identified),
            ear: Ear::default(),
            sessions: Sessions::default(),
            has_worked: AtomicBool::new(false),
        }
    }

    /// Makes the traffic of turns live on the caller's runtime.
    pub(super) fn settle_here(&self) {
        self.link.settle_here();
    }

    /// Closes all connections, as when the process is killed.
    pub(super) fn abandon(&self) {
        self.ear.close();
        self.link.close();
        self.heartbeats.close();
    }

    async fn execute(&self, operation: &Operation, link: &Link) -> Result<Reply, BackendError> {
        let call = self.known(operation)?;
        let reply = match (&call.keys, self.space.layout()) {
            (Some(keys), _) => {
                self.enter_for(operation, link).await?;
                self.call(link, &call, keys).await
            }
            (None, Layout::Single) => self.call(link, &call, &self.space.sessions()).await,
            (None, Layout::Cluster) => Box::pin(self.everywhere(operation, link, &call)).await,
        }?;
        self.has_worked.store(true, Ordering::Relaxed);
        Ok(reply)
    }

    /// Executes an operation about a turn by a script that needs further keys and arguments.
    pub(super) async fn execute_with<const N: usize>(
        &self,
        operation: &Operation,
        script: &Script,
        (keys, arguments): ([String; N], Words),
    ) -> Result<Value, BackendError> {
        let mut call = self.known(operation)?;
        let keys: Vec<String> = call.keys.take().into_iter().flatten().chain(keys).collect();
        call.arguments.extend(&arguments);
        self.enter_for(operation, &self.link).await?;
        let answer = self.link.evaluate_identified(script, &keys, &call.arguments).await;
        let answer = answer.map_err(|fault| self.explain(fault))?;
        self.has_worked.store(true, Ordering::Relaxed);
        Ok(answer)
    }

    fn known(&self, operation: &Operation) -> Result<Call, BackendError> {
        let unknown = || BackendError::Unfit(format!("{} is not known", operation.name()));
        self.encode(operation).ok_or_else(unknown)
    }

    /// Makes sure that whoever asks for a turn has a session in its bucket.
    async fn enter_for(&self, operation: &Operation, link: &Link) -> Result<(), BackendError> {
        if self.space.layout() == Layout::Cluster
            && let Some((key, ticket)) = asks(operation)
        {
            let bucket = usize::from(self.space.turn_bucket(key));
            Box::pin(self.enter(&ticket.incarnation, bucket, link)).await?;
        }
        Ok(())
    }

    /// Executes one call.
    pub(super) async fn call(
        &self,
        link: &Link,
        call: &Call,
        keys: &[String],
    ) -> Result<Reply, BackendError> {
        let answer = link.evaluate_identified(call.script, keys, &call.arguments).await;
        let answer = answer.map_err(|fault| self.explain(fault))?;
        decode(answer).map_err(|error| BackendError::Unknown(Box::new(error)))
    }

    fn explain(&self, fault: Fault) -> BackendError {
        if fault.is_forbidden()
            && !self.has_worked.load(Ordering::Relaxed)
            && let Some(reason) = fault.remedy()
        {
            return BackendError::Unfit(reason);
        }
        match fault.is_unexecuted() {
            true => BackendError::Refused(fault.into_source()),
            false => BackendError::Unknown(fault.into_source()),
        }
    }

    pub(super) fn encode(&self, operation: &Operation) -> Option<Call> {
        encode(operation, &self.space, &self.limits, &SCRIPTS)
    }
}

#[async_trait]
impl Backend for RedisBackend {
    fn name(&self) -> &'static str {
        NAME
    }

    async fn send(&self, operation: &Operation) -> Result<Reply, BackendError> {
        self.execute(operation, &self.link).await
    }

    async fn renew(&self, operation: &Operation) -> Result<Reply, BackendError> {
        self.execute(operation, &self.heartbeats).await
    }

    async fn listen(
        &self,
        incarnation: &IncarnationId,
        pushes: PushSink,
    ) -> Result<(), BackendError> {
        // The keeper calls this first, on the thread where it renews.
        self.heartbeats.settle_here();
        if !self.can_push {
            pushes.disconnected();
            return Ok(());
        }
        let runtime = self.link.runtime().unwrap_or_else(Handle::current);
        let channels = self.space.channels(incarnation.as_str());
        let link = Arc::clone(&self.link);
        let begun = self.ear.listen(&runtime, link, channels, incarnation.clone(), pushes);
        begun.await.map_err(|fault| self.explain(fault))
    }

    fn journal(&self) -> Option<&dyn JournalBackend> {
        Some(self)
    }

    async fn close(&self) {
        self.abandon();
    }
}

/// What is asked for by an operation that needs a session.
const fn asks(operation: &Operation) -> Option<(&CoordinationKey, &TicketId)> {
    match operation {
        Operation::Reserve { key, ticket, .. }
        | Operation::Attempt { key, ticket, .. }
        | Operation::Poll { key, ticket } => Some((key, ticket)),
        _ => None,
    }
}
