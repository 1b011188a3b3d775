//! The way of a wake-up into the conversation of its chat.
//!
//! Where the inbox keeps what came in, the wake-up of a stored conversation becomes a record of it:
//! so the outbox has its sends, and its end and the change of the checkpoint are one step.

use std::sync::Arc;

use super::Runtime;
use super::conversing::{Active, State};
use super::event::Activity;
use super::recorded::{DueWake, Recorded};
use super::records::{LaneMemory, Own};
use super::restoring::{Found, Restored};
use super::timer::{Wake, WakeReason};
use super::turn::Turn;
use super::writer::Stored;
use crate::coordination::{Begins, TurnGuard};
use crate::error::BotError;
use crate::id::ChatKey;
use crate::store::{Admission, NewRecord};

type Failed = (Activity, BotError);

/// A conversation whose moment has come.
struct Due {
    active: Box<Active>,
    is_idle: bool,
    /// Whether it was read from the store.
    is_restored: bool,
}

impl Due {
    const fn restored(active: Box<Active>, is_idle: bool) -> Self {
        Self { active, is_idle, is_restored: true }
    }
}

impl Runtime {
    /// Wakes a chat whose time has come.
    pub(super) async fn wake(
        self: &Arc<Self>,
        guard: &TurnGuard,
        wake: &Wake,
        memory: &mut LaneMemory,
    ) -> Result<(), Failed> {
        let turn = Turn::new(guard.clone());
        let Some(due) = self.due(&turn, wake).await? else { return Ok(()) };
        let (revision, is_idle) = match due.active.stored {
            Some(Stored::At(revision)) if self.journals() => (revision, due.is_idle),
            _ => return self.wake_now(&turn, due).await,
        };
        if !self.keeping_of(due.active.number).is_checkpointed() {
            return self.wake_now(&turn, due).await;
        }
        // Its record finds it again. What was read from the store is due for others as well, such
        // as a message that comes first.
        let Due { mut active, is_restored, .. } = due;
        if is_restored {
            active.disarm(&self.timers);
        } else {
            self.conversations.park(guard.key(), active);
        }
        self.wake_by_record(guard, DueWake { revision, is_idle }, memory).await
    }

    /// The conversation that a wake-up means, taken to be woken.
    async fn due(self: &Arc<Self>, turn: &Turn, wake: &Wake) -> Result<Option<Due>, Failed> {
        let (chat, reason) = (turn.key(), wake.reason);
        if let Some(active) = self.conversations.take_if(chat, |active| active.is_meant(reason)) {
            let is_idle = matches!(reason, WakeReason::Idle { .. });
            return Ok(Some(Due { active, is_idle, is_restored: false }));
        }
        let is_here = self.conversations.peek(chat, |_| ()).is_some();
        // With replicas, another one may have had the chat meanwhile and know nothing of the
        // moment: what was in memory here is put aside then, and the store says what is due.
        let asks = reason == WakeReason::Stored || self.coordinated.is_some();
        if is_here || !asks {
            return Ok(None);
        }
        let Some(restored) = self.read_conversation(turn).await? else { return Ok(None) };
        if restored.is_due {
            return Ok(Some(Due::restored(restored.active, false)));
        }
        // Somebody has written meanwhile.
        self.put_off(chat, restored);
        Ok(None)
    }

    async fn wake_now(self: &Arc<Self>, turn: &Turn, due: Due) -> Result<(), Failed> {
        let Due { active, is_idle, is_restored } = due;
        if is_restored {
            self.resumed(turn, &active);
        }
        match &active.state {
            State::Function(..) => self.wake_function(turn, active).await,
            State::Flow(_) => {
                let input = active.wake_input(is_idle);
                self.drive_flow(turn, active, input).await;
            }
        }
        Ok(())
    }

    /// Puts a wake into the inbox, unless it is there, and processes the first record of the chat.
    async fn wake_by_record(
        self: &Arc<Self>,
        guard: &TurnGuard,
        due: DueWake,
        memory: &mut LaneMemory,
    ) -> Result<(), Failed> {
        let chat = guard.key();
        let Some((durable, inbox)) = self.durable() else { return Ok(()) };
        let failed = |error| (Activity::Inbox, error);
        let (id, body) = (due.id().map_err(failed)?, due.body().map_err(failed)?);
        let admitted = {
            // Whatever was admitted before it is in the lane then, and none of it comes later as
            // if it were the first.
            let _gate = durable.gates.gate(chat).lock_owned().await;
            let (message, body) = (Some(&id), Some(body.as_str()));
            // It makes room for what comes: the limit is for what users send.
            inbox
                .admit(NewRecord { chat, message, body, lease: durable.lease, most: usize::MAX })
                .await
        };
        self.leave_gate(chat);
        match admitted {
            Ok(Admission::New { position, is_behind }) => {
                let (recorded, begins) = (Recorded::Wake(due), Begins::Later);
                let own = Own { position, recorded, is_behind, begins };
                self.run_record(guard, Some(Box::new(own)), memory).await;
            }
            // Whoever put it there may not have come to its end.
            Ok(_) => {
                self.put_aside(chat, due);
                self.run_record(guard, None, memory).await;
            }
            Err(error) => {
                self.put_aside(chat, due);
                self.wake_dropped(chat);
                return Err(failed(error.into()));
            }
        }
        Ok(())
    }

    /// Wakes the conversation that a record is about, unless that has moved on.
    pub(super) async fn wake_recorded(
        self: &Arc<Self>,
        turn: &Turn,
        wake: DueWake,
    ) -> Result<(), Failed> {
        let (chat, is_idle) = (turn.key(), wake.is_idle);
        if let Some(active) = self.conversations.take_if(chat, |active| wake.means(active)) {
            return self.wake_now(turn, Due { active, is_idle, is_restored: false }).await;
        }
        if self.conversations.peek(chat, |_| ()).is_some() {
            return Ok(());
        }
        match self.read_conversation(turn).await? {
            Some(restored) if wake.means(&restored.active) => {
                self.wake_now(turn, Due::restored(restored.active, is_idle)).await
            }
            Some(restored) => {
                self.put_off(chat, restored);
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Reads the chat's conversation, where nobody wrote. One that cannot go on is given up.
    async fn read_conversation(self: &Arc<Self>, turn: &Turn) -> Result<Option<Restored>, Failed> {
        let failed = |error| (Activity::Checkpoint, error);
        let listener = || self.unheard_listener(turn.key());
        match self.restore(turn, listener).await.map_err(failed)? {
            Found::Nothing => Ok(None),
            Found::Conversation(restored) => Ok(Some(restored)),
            Found::Broken(info, stored) => {
                self.give_up(turn, info, stored).await.map_err(failed)?;
                Ok(None)
            }
        }
    }

    /// Leaves a conversation that is not due to the store, until its moment.
    fn put_off(&self, chat: &ChatKey, restored: Restored) {
        let Restored { mut active, left, .. } = restored;
        active.disarm(&self.timers);
        if let Some(left) = left {
            self.wake_stored_in(chat, left);
        }
    }

    /// Leaves a conversation that is due to the store.
    fn put_aside(&self, chat: &ChatKey, due: DueWake) {
        if let Some(mut active) = self.conversations.take_if(chat, |active| due.means(active)) {
            active.disarm(&self.timers);
        }
    }
}

impl DueWake {
    fn means(self, active: &Active) -> bool {
        active.stored == Some(Stored::At(self.revision))
    }
}
