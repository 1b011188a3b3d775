//! The coordinator of a replica with notes of its turns.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use botmesh_core::coordination::{
    AcquireTurn, ChatTurn, CoordinationError, Coordinator, CoordinatorEvent, Leadership,
    LossReason, SessionLease, Ticket, TurnGuard,
};
use botmesh_core::id::IncarnationId;
use botmesh_core::{ChatKey, LeaderName, ReplicaId};
use botmesh_redis_store::RedisCoordinator;
use parking_lot::Mutex;
use tokio::sync::broadcast;

use super::notes::{Event, Notebook};

/// The guards of the turns that the replica has now.
#[derive(Debug, Default)]
pub struct Turns(Mutex<HashMap<String, TurnGuard>>);

impl Turns {
    /// The guard of the newest turn of a chat.
    #[must_use]
    pub fn of(&self, chat: &str) -> Option<TurnGuard> {
        self.0.lock().get(chat).cloned()
    }

    fn end(&self, chat: &str, ended: &TurnGuard) {
        let mut turns = self.0.lock();
        if turns.get(chat).is_some_and(|turn| turn.fence() == ended.fence()) {
            turns.remove(chat);
        }
    }
}

/// Notes each turn from its grant to its end.
#[derive(Debug)]
pub struct Watched {
    /// What decides.
    pub inner: RedisCoordinator,
    /// Where it is noted.
    pub notes: Arc<Notebook>,
    /// Where the guards are.
    pub turns: Arc<Turns>,
}

impl Watched {
    fn watch(&self, turn: &ChatTurn, session: Arc<SessionLease>) {
        let (guard, chat) = (turn.guard(), turn.key().as_str().to_owned());
        let fence = guard.fence().get();
        self.notes.note(Event::Granted { chat: chat.clone(), fence });
        self.turns.0.lock().insert(chat.clone(), guard.clone());
        let (notes, turns) = (Arc::clone(&self.notes), Arc::clone(&self.turns));
        tokio::spawn(async move {
            let ended = guard.lost().await.reason == LossReason::Ended;
            // Work that is dropped because its session is lost ends its turn, too.
            let clean = ended && session.loss().is_none();
            notes.note(Event::Over { chat: chat.clone(), fence, clean });
            turns.end(&chat, &guard);
        });
    }
}

#[async_trait]
impl Coordinator for Watched {
    fn replica_id(&self) -> &ReplicaId {
        self.inner.replica_id()
    }

    fn incarnation(&self) -> Option<IncarnationId> {
        self.inner.incarnation()
    }

    async fn start(&self) -> Result<(), CoordinationError> {
        self.inner.start().await
    }

    async fn stop(&self) -> Result<(), CoordinationError> {
        self.inner.stop().await
    }

    async fn reserve(&self, key: &ChatKey) -> Result<Ticket, CoordinationError> {
        self.inner.reserve(key).await
    }

    async fn acquire_turn(
        &self,
        ticket: Ticket,
        options: AcquireTurn,
    ) -> Result<ChatTurn, CoordinationError> {
        let session = Arc::clone(ticket.session());
        let turn = self.inner.acquire_turn(ticket, options).await?;
        self.watch(&turn, session);
        Ok(turn)
    }

    async fn lead(&self, name: &LeaderName) -> Result<Leadership, CoordinationError> {
        self.inner.lead(name).await
    }

    async fn try_lead(&self, name: &LeaderName) -> Result<Option<Leadership>, CoordinationError> {
        self.inner.try_lead(name).await
    }

    fn subscribe(&self) -> broadcast::Receiver<CoordinatorEvent> {
        self.inner.subscribe()
    }
}
