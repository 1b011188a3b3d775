use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Runtime;
use super::handover::MAX_ANSWER_BYTES;
use super::turn::Turn;
use super::writer::{Stored, Times};
use crate::error::BotError;
use crate::flow::{FlowDefinition, Persistence, Run, SaveError};
use crate::id::ConversationName;

/// How long an expiring checkpoint outlasts its last write, where nothing else is set.
const EPHEMERAL: Duration = Duration::from_secs(300);
/// How long the stub of a conversation is kept at least.
const STUB: Duration = Duration::from_secs(24 * 3600);

/// What the store has of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keeping {
    /// Nothing: it lives in memory only.
    Nothing,
    /// Only its name, so that another replica knows that it was interrupted.
    Stub,
    /// A checkpoint that expires this long after its last write.
    Ephemeral(Duration),
    /// A checkpoint that stays.
    Persistent,
}

/// What is stored of a conversation that cannot be handed over.
#[derive(Serialize, Deserialize)]
pub(super) struct Stub {
    pub(super) stub: ConversationName,
}

impl Keeping {
    pub(super) const fn is_checkpointed(self) -> bool {
        matches!(self, Self::Ephemeral(_) | Self::Persistent)
    }
}

impl Runtime {
    pub(super) fn keeping(&self, persistence: Persistence) -> Keeping {
        match (persistence, &self.coordinated) {
            (Persistence::Persistent, _) => Keeping::Persistent,
            (_, None) => Keeping::Nothing,
            (Persistence::Forwardable, Some(coordinated))
                if coordinated.settings.handover.forward =>
            {
                let ttl = coordinated.settings.handover.ttl.or(self.conversations.timeout());
                Keeping::Ephemeral(ttl.unwrap_or(EPHEMERAL))
            }
            (_, Some(coordinated)) if coordinated.settings.handover.leaves_stubs() => Keeping::Stub,
            _ => Keeping::Nothing,
        }
    }

    /// Whether the store may have something of a chat's conversation.
    pub(super) fn keeps_any(&self) -> bool {
        self.conversations.any_persistent()
            || (self.coordinated.is_some() && self.conversations.any())
    }

    /// Writes where a run stands; `unasked`, as if its present question had not been asked yet.
    pub(super) async fn keep_run(
        &self,
        turn: &Turn,
        flow: &dyn FlowDefinition,
        // Exclusive, for user states need not be `Sync`.
        run: &mut Run,
        unasked: bool,
        wake_in: Option<Duration>,
        stored: &mut Option<Stored>,
    ) -> Result<(), BotError> {
        let expires_in = match self.keeping(flow.persistence()) {
            Keeping::Persistent => None,
            Keeping::Ephemeral(ttl) => Some(ttl.max(wake_in.unwrap_or_default())),
            Keeping::Stub => {
                let name = ConversationName::new(flow.name())?;
                return self.keep_stub(turn, &name, wake_in, stored).await;
            }
            Keeping::Nothing => return Ok(()),
        };
        let most = self.max_answer_bytes();
        let saved = if unasked { flow.save_unasked(run, most) } else { flow.save(run, most) };
        let body = match saved {
            // What cannot be written cannot be forwarded: the fallback applies to it.
            Err(SaveError::State { .. }) if expires_in.is_some() => {
                let name = ConversationName::new(flow.name())?;
                return self.write_stub(turn, &name, wake_in, stored).await;
            }
            saved => saved?,
        };
        let times = Times { wake_in, expires_in };
        *stored = Some(self.save_checkpoint(turn, body, times, *stored).await?);
        Ok(())
    }

    /// How large an answer may be to be kept in a checkpoint. With durability none is asked for
    /// twice.
    fn max_answer_bytes(&self) -> usize {
        match &self.coordinated {
            _ if self.journals() => usize::MAX,
            Some(coordinated) => coordinated.settings.handover.max_answer_bytes,
            None => MAX_ANSWER_BYTES,
        }
    }

    /// Notes in the store that a conversation which cannot be handed over is under way: once.
    pub(super) async fn keep_stub(
        &self,
        turn: &Turn,
        name: &ConversationName,
        wait: Option<Duration>,
        stored: &mut Option<Stored>,
    ) -> Result<(), BotError> {
        if stored.is_some() { Ok(()) } else { self.write_stub(turn, name, wait, stored).await }
    }

    async fn write_stub(
        &self,
        turn: &Turn,
        name: &ConversationName,
        wait: Option<Duration>,
        stored: &mut Option<Stored>,
    ) -> Result<(), BotError> {
        let body = serde_json::to_string(&Stub { stub: name.clone() })?;
        let expires_in = Some(STUB.max(wait.unwrap_or_default()));
        let times = Times { wake_in: None, expires_in };
        *stored = Some(self.save_checkpoint(turn, body, times, *stored).await?);
        Ok(())
    }
}
