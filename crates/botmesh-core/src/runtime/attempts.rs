use std::sync::Arc;
use std::time::Duration;

use super::Runtime;
use super::activity::caught;
use super::event::{Activity, Event};
use super::open_record::OpenRecord;
use super::outbox::Outbox;
use super::recorded::Recorded;
use super::turn::Turn;
use super::writer::has_expired;
use crate::coordination::{LossReason, TurnGuard};
use crate::error::BotError;
use crate::id::Position;
use crate::provider::{ProviderError, SendError};
use crate::store::{Commit, Committed, InboxRecord, Postponement, StoreError};

/// How long the store is left alone after it has failed to end a record.
const COMMIT_AGAIN: Duration = Duration::from_millis(200);
const COMMIT_AGAIN_AT_MOST: Duration = Duration::from_secs(5);
/// How long a chat waits at most until it is noted that a turn was lost.
const UNCOUNT_WITHIN: Duration = Duration::from_secs(1);

/// One attempt to process a record.
pub(super) struct Attempt {
    pub(super) position: Position,
    pub(super) has_more: bool,
    recorded: Recorded,
    /// How often the record was begun, this time included.
    begun: u32,
    outbox: Outbox,
}

/// An attempt that is under way.
pub(super) struct UnderWay {
    record: Arc<OpenRecord>,
    begun: u32,
}

/// How an attempt has ended.
pub(super) enum Ended {
    /// The record is done, or a dead letter.
    Done,
    /// The record is to be begun again.
    Again,
    /// The turn is over, or somebody else has to see to the record.
    Left,
}

impl Attempt {
    /// The first attempt of a record that nobody has begun.
    pub(super) fn first(position: Position, recorded: Recorded) -> Self {
        let outbox = Outbox::new(None, 1, false);
        Self { position, has_more: false, recorded, begun: 1, outbox }
    }

    /// An attempt of a record that was begun for it.
    pub(super) fn begun(record: &InboxRecord, recorded: Recorded, outbox: Outbox) -> Self {
        let InboxRecord { position, attempts, has_more, .. } = *record;
        Self { position, has_more, recorded, begun: attempts, outbox }
    }
}

impl Runtime {
    pub(super) async fn run_attempt(
        self: &Arc<Self>,
        guard: &TurnGuard,
        attempt: Attempt,
        tries: u32,
        under_way: &mut Option<UnderWay>,
    ) -> Ended {
        let Attempt { position, recorded, begun, outbox, .. } = attempt;
        let record = Arc::new(OpenRecord::new(position, outbox));
        *under_way = Some(UnderWay { record: Arc::clone(&record), begun });
        let turn = Turn::of_record(guard.clone(), Arc::clone(&record));
        let handled = caught(self.handle_recorded(&turn, recorded)).await;
        let failure = handled.err().or_else(|| record.failure());
        if guard.check().is_err() {
            return Ended::Left;
        }
        let ended = match failure {
            None => self.end_record(&turn, &record).await,
            Some((during, error)) => {
                self.forget_attempt(&turn, &record);
                self.fail_record(guard, &record, begun, tries, (during, error)).await
            }
        };
        if !matches!(ended, Ended::Left) {
            *under_way = None;
        }
        ended
    }

    /// Notes that an attempt ended because its turn was lost: it does not count. A later holder of
    /// the chat has the record already, and the store refuses this then.
    pub(super) async fn uncount(&self, guard: &TurnGuard, UnderWay { record, begun }: UnderWay) {
        let Some((_, inbox)) = self.durable() else { return };
        let sends = record.outbox().cut_off().await;
        let postponement = Postponement {
            attempts: begun,
            error: "the turn of the chat was lost",
            sends: Some(&sends),
            retry_in: Duration::ZERO,
        };
        let fence = self.fences.to_write(guard.fence());
        let noted = inbox.postpone(guard.key(), record.position(), fence, postponement);
        if !matches!(tokio::time::timeout(UNCOUNT_WITHIN, noted).await, Ok(Ok(_))) {
            tracing::debug!("an attempt whose turn was lost counts");
        }
    }

    /// Stores the effect of a record together with its end.
    async fn end_record(self: &Arc<Self>, turn: &Turn, record: &OpenRecord) -> Ended {
        let Some((_, inbox)) = self.durable() else { return Ended::Left };
        let chat = turn.key();
        let mut staged = record.staged();
        let (mut is_open, mut again) = (false, COMMIT_AGAIN);
        while turn.loss().is_none() {
            let fence = self.fences.to_write(turn.fence());
            let checkpoint = staged.change();
            let commit = Commit { chat, position: record.position(), fence, checkpoint };
            let with_turn = if is_open { None } else { self.commit_with_turn(turn, commit).await };
            let committed = match with_turn {
                Some(committed) => committed,
                None => inbox.commit(commit).await.map_err(BotError::from),
            };
            match committed {
                Ok(Committed::Applied(revision)) => {
                    if let Some(revision) = revision {
                        self.conversations.set_stored(chat, revision);
                    }
                    if staged.removes() {
                        self.conversations.note_absent(chat, self.absent_under(turn));
                    }
                    return Ended::Done;
                }
                Ok(Committed::Refused) => {
                    let conditional = self.store.conditional_checkpoints();
                    if let Some(store) = conditional.filter(|_| staged.may_have_expired())
                        && matches!(has_expired(store, turn, fence).await, Ok(true))
                    {
                        staged = staged.without_row();
                        continue;
                    }
                    // It was somebody else's, or is done by a commit whose answer was lost. What
                    // is in memory may be neither's.
                    self.forget_attempt(turn, record);
                    let reason = if is_open { LossReason::Ended } else { LossReason::Superseded };
                    turn.end(reason);
                    return Ended::Left;
                }
                Err(error) => {
                    if !is_open {
                        self.events.error(Some(chat), Activity::Inbox, error);
                    }
                    is_open = true;
                    tokio::time::sleep(again).await;
                    again = (again * 2).min(COMMIT_AGAIN_AT_MOST);
                }
            }
        }
        Ended::Left
    }

    /// Sees to it that a record whose attempt has failed is tried again, or gives it up.
    async fn fail_record(
        self: &Arc<Self>,
        guard: &TurnGuard,
        record: &OpenRecord,
        begun: u32,
        tries: u32,
        (during, error): (Activity, BotError),
    ) -> Ended {
        let Some((durable, inbox)) = self.durable() else { return Ended::Left };
        let (chat, position) = (guard.key(), record.position());
        if let Some(SendError::NotLeader(_)) = error.downcast_ref::<SendError>() {
            // The replica that is connected finds it in the inbox.
            self.events.error(Some(chat), during, error);
            self.release_record(chat, position).await;
            return Ended::Left;
        }
        let passes = may_pass(&error);
        let number = begun.saturating_sub(record.outbox().lost());
        if !passes && number >= durable.settings.attempts {
            let buried = self.bury(guard, position, number, during, error).await;
            return if buried { Ended::Done } else { Ended::Left };
        }
        // What passes by itself is no fault of the record.
        let attempts = if passes { begun.saturating_sub(1) } else { begun };
        let failed = if passes { tries + 1 } else { number };
        let text = told(&error);
        self.events.error(Some(chat), during, error);
        let sends = record.outbox().complete(attempts).await;
        let postponement = Postponement {
            attempts,
            error: &text,
            sends: Some(&sends),
            retry_in: durable.retry_in(failed),
        };
        let fence = self.fences.to_write(guard.fence());
        match inbox.postpone(chat, position, fence, postponement).await {
            Ok(true) => Ended::Again,
            Ok(false) => {
                guard.end(LossReason::Superseded);
                Ended::Left
            }
            Err(error) => {
                self.events.error(Some(chat), Activity::Inbox, error);
                Ended::Left
            }
        }
    }

    /// Makes a dead letter of a record; false when that is not for this turn to do, or failed.
    pub(super) async fn bury(
        &self,
        guard: &TurnGuard,
        position: Position,
        attempts: u32,
        during: Activity,
        error: BotError,
    ) -> bool {
        let Some((_, inbox)) = self.durable() else { return false };
        let chat = guard.key();
        let fence = self.fences.to_write(guard.fence());
        match inbox.bury(chat, position, fence, &told(&error)).await {
            Ok(true) => {
                tracing::error!(%position, attempts, %error, "a record was given up");
                let error = Arc::new(error);
                let chat = chat.clone();
                self.events.emit(Event::DeadLetter { chat, position, attempts, during, error });
                true
            }
            Ok(false) => {
                guard.end(LossReason::Superseded);
                false
            }
            Err(failure) => {
                self.events.error(Some(chat), during, error);
                self.events.error(Some(chat), Activity::Inbox, failure);
                false
            }
        }
    }

    /// What an attempt that stored nothing has left in memory is put aside: the next one begins
    /// where the store stands.
    fn forget_attempt(&self, turn: &Turn, record: &OpenRecord) {
        let chat = turn.key();
        self.conversations.note_present(chat, self.absent_under(turn));
        if let Some(mut active) = self.conversations.take(chat) {
            if self.keeping_of(active.number).is_checkpointed() {
                active.disarm(&self.timers);
                self.wake_dropped(chat);
            } else {
                active.unstage(record.stored_before());
                self.conversations.park(chat, active);
            }
        }
    }
}

/// An error as every store can keep it: not too long, and without NUL.
fn told(error: &BotError) -> String {
    const MOST: usize = 4_096;
    error.to_string().chars().take(MOST).map(|c| if c == '\0' { '\u{fffd}' } else { c }).collect()
}

/// Whether what failed so may succeed later without anybody's help.
fn may_pass(error: &BotError) -> bool {
    error.chain().any(|error| {
        let send = error.downcast_ref::<SendError>();
        send.is_some_and(|it| matches!(it, SendError::Provider(it) if it.is_transient()))
            || error.downcast_ref::<ProviderError>().is_some_and(ProviderError::is_transient)
            || error.downcast_ref::<StoreError>().is_some_and(StoreError::is_transient)
    })
}
