use std::sync::Arc;

use super::Runtime;
use super::activity::caught;
use super::attempts::{Attempt, Ended, UnderWay};
use super::event::Activity;
use super::outbox::Outbox;
use super::recorded::Recorded;
use super::turn::Turn;
use crate::coordination::{Begins, LossReason, TurnGuard};
use crate::error::BotError;
use crate::id::{ChatKey, Position};
use crate::store::{Begun, CheckpointChange, Commit, Committed, InboxRecord};

/// A record that was admitted by this process and waits for its turn.
pub(crate) struct Own {
    pub(super) position: Position,
    pub(super) recorded: Recorded,
    /// Whether the chat had earlier pending records.
    pub(super) is_behind: bool,
    pub(super) begins: Begins,
}

/// What the task of a lane remembers from one piece of work to the next.
#[derive(Default)]
pub(super) struct LaneMemory {
    /// The last record that came to its end here.
    done: Option<Position>,
    /// The attempt whose turn was lost before its end.
    under_way: Option<UnderWay>,
}

impl LaneMemory {
    /// Another piece of work begins.
    pub(super) fn begin(&mut self) {
        self.under_way = None;
    }

    /// Whether the present piece of work has a record that has not come to its end.
    pub(super) const fn is_under_way(&self) -> bool {
        self.under_way.is_some()
    }
}

/// Each piece of work about records is the right to process the first pending one of the chat:
/// which one that is is only known under the turn.
impl Runtime {
    pub(super) async fn run_record(
        self: &Arc<Self>,
        guard: &TurnGuard,
        own: Option<Box<Own>>,
        memory: &mut LaneMemory,
    ) {
        if !self.journals() {
            if let Some(own) = own {
                self.run_claimed(guard, *own).await;
            }
            return;
        }
        let position = own.as_ref().map(|own| own.position);
        if self.sender.stands_by(guard.key()) {
            // The replica that is connected finds it in the inbox.
            if let Some(position) = position {
                self.release_record(guard.key(), position).await;
            }
            return;
        }
        let (mut own, mut direct) = (own, None);
        // Nobody else processes records of this process, and positions grow: the first of its
        // chat when it was admitted is the first now, unless it was done in place of another.
        if self.coordinated.is_none() && own.as_ref().is_some_and(|own| !own.is_behind) {
            if memory.done >= position {
                return;
            }
            direct = own.take().map(|own| Attempt::first(own.position, own.recorded));
        }
        // Begun with its admission, under the turn that was granted by the same step.
        if let Some(own) = own.take_if(|own| own.begins == Begins::Under(guard.fence())) {
            direct = Some(Attempt::first(own.position, own.recorded));
        }
        let mut tries = 0;
        loop {
            let attempt = match direct.take() {
                Some(attempt) => attempt,
                None => match self.begin(guard, &mut own, tries).await {
                    Some(attempt) => attempt,
                    None => return,
                },
            };
            let (done, has_more) = (attempt.position, attempt.has_more);
            match self.run_attempt(guard, attempt, tries, &mut memory.under_way).await {
                Ended::Done => {
                    memory.done = Some(done);
                    // What came before the own record leaves that one without a place.
                    if has_more && position != Some(done) {
                        self.lanes.drain(guard.key(), self);
                    }
                    return;
                }
                Ended::Again => tries += 1,
                Ended::Left => return,
            }
        }
    }

    /// Begins the first pending record of the chat, when it is due.
    async fn begin(
        self: &Arc<Self>,
        guard: &TurnGuard,
        own: &mut Option<Box<Own>>,
        tries: u32,
    ) -> Option<Attempt> {
        let (durable, inbox) = self.durable()?;
        loop {
            let fence = self.fences.to_write(guard.fence());
            let record = match inbox.begin(guard.key(), fence, durable.lease).await {
                Ok(Begun::Record(record)) => record,
                Ok(Begun::Nothing) => return None,
                Ok(Begun::NotYet(left)) => {
                    tokio::time::sleep(left).await;
                    continue;
                }
                Ok(Begun::Refused(_)) if self.coordinated.is_some() => {
                    guard.end(LossReason::Superseded);
                    return None;
                }
                Ok(Begun::Refused(higher)) => {
                    // An earlier process of this bot gave higher fences, as when the clock was
                    // set back.
                    self.fences.observe(higher);
                    continue;
                }
                Err(error) => {
                    // Its lease ends, and then somebody looks after it.
                    self.events.error(Some(guard.key()), Activity::Inbox, error);
                    return None;
                }
            };
            match self.attempt_of(record, own, tries) {
                Ok(attempt) => return Some(attempt),
                Err((position, attempts, error)) => {
                    if !self.bury(guard, position, attempts, Activity::Inbox, error).await {
                        return None;
                    }
                }
            }
        }
    }

    /// Makes an attempt of a record that was begun, or says why there is to be none.
    fn attempt_of(
        &self,
        record: InboxRecord,
        own: &mut Option<Box<Own>>,
        tries: u32,
    ) -> Result<Attempt, (Position, u32, BotError)> {
        let (position, attempts) = (record.position, record.attempts);
        let is_own = own.as_ref().is_some_and(|own| own.position == position);
        // A process that is alone does not begin a record that it processes at once: of such an
        // attempt of an earlier process nothing was counted.
        let was_open = self.coordinated.is_none() && !is_own && tries == 0;
        let outbox = Outbox::new(record.sends.as_deref(), attempts, was_open);
        let most = self.durable.as_ref().map_or(u32::MAX, |durable| durable.settings.attempts);
        if attempts.saturating_sub(outbox.lost()) > most {
            let last = record.error.map(|error| format!(": {error}")).unwrap_or_default();
            let error = format!("it was begun {most} times and never came to its end{last}");
            return Err((position, most, BotError::message(error)));
        }
        let recorded = match own.take_if(|_| is_own) {
            Some(own) => own.recorded,
            None => Recorded::read(&record.body)
                .map_err(|error| (position, attempts, BotError::from(error)))?,
        };
        Ok(Attempt::begun(&record, recorded, outbox))
    }

    /// Processes a message of which only the id is kept: it is known once it was processed, and
    /// new again when that failed.
    async fn run_claimed(self: &Arc<Self>, guard: &TurnGuard, own: Own) {
        let Some((_, inbox)) = self.durable() else { return };
        let (chat, position) = (guard.key(), own.position);
        let turn = Turn::new(guard.clone());
        if let Err((during, error)) = caught(self.handle_recorded(&turn, own.recorded)).await {
            self.events.error(Some(chat), during, error);
            return self.release_record(chat, position).await;
        }
        let fence = self.fences.to_write(guard.fence());
        let checkpoint = CheckpointChange::Nothing;
        match inbox.commit(Commit { chat, position, fence, checkpoint }).await {
            Ok(Committed::Applied(_)) => {}
            Ok(Committed::Refused) => {
                tracing::warn!("the claim on a message ended before it was processed");
            }
            Err(error) => self.events.error(Some(chat), Activity::Inbox, error),
        }
    }

    /// Sees to what was to be processed under a turn that was lost; `own` was admitted here.
    pub(super) async fn lost_record(
        self: &Arc<Self>,
        guard: &TurnGuard,
        reason: LossReason,
        own: Option<Position>,
        memory: &mut LaneMemory,
    ) {
        if !self.journals() {
            if let Some(own) = own {
                self.release_record(guard.key(), own).await;
            }
            return;
        }
        if let Some(cut) = memory.under_way.take()
            && reason != LossReason::Settled
        {
            self.uncount(guard, cut).await;
        }
        self.lanes.drain(guard.key(), self);
    }

    /// Leaves a record to others. A claim is given up: the message is new when it comes again.
    pub(super) async fn release_record(&self, chat: &ChatKey, position: Position) {
        let Some((_, inbox)) = self.durable() else { return };
        if let Err(error) = inbox.release(chat, position).await {
            self.events.error(Some(chat), Activity::Inbox, error);
        }
    }
}
