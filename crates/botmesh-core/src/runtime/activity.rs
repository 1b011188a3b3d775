use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;

use super::broken_rule::BrokenRule;
use super::conversing::Claimed;
use super::coordination::Coordinated;
use super::event::Activity;
use super::lanes::{Queued, Work};
use super::place::Place;
use super::recorded::Recorded;
use super::records::LaneMemory;
use super::router::{Action, Next};
use super::turn::Turn;
use super::{Context, Runtime};
use crate::conversation::Panicked;
use crate::coordination::{ChatTurn, CoordinationKey, CoordinatorEvent, LossReason, TurnGuard};
use crate::error::BotError;
use crate::id::ChatKey;
use crate::matcher::Matched;
use crate::message::{Content, Message, Reply};
use crate::question::WaitToken;
use crate::text::t;

impl Runtime {
    /// Does one piece of work of a chat under a turn. Nothing that user code does gets beyond it.
    pub(super) async fn process(
        self: &Arc<Self>,
        chat: &ChatKey,
        queued: Queued,
        memory: &mut LaneMemory,
    ) {
        let Queued { work, place } = queued;
        memory.begin();
        match (&self.coordinated, place) {
            (Some(coordinated), Some(place))
                if !(matches!(work, Work::Wake(_))
                    && coordinated.breaks(BrokenRule::WakesWithoutTurn)) =>
            {
                Box::pin(self.process_coordinated(coordinated, chat, place, work, memory)).await;
            }
            _ => {
                let turn = ChatTurn::local(chat.clone(), self.fences.next());
                let (guard, is_record) = (turn.guard(), matches!(work, Work::Record(_)));
                self.work(&guard, work, memory).await;
                if (is_record || memory.is_under_way()) && guard.check().is_err() {
                    self.lanes.drain(chat, self);
                }
            }
        }
    }

    /// Waits for the chat's turn across the replicas and works under it, until the work is done or
    /// the turn is lost.
    async fn process_coordinated(
        self: &Arc<Self>,
        coordinated: &Coordinated,
        chat: &ChatKey,
        place: Place,
        work: Work,
        memory: &mut LaneMemory,
    ) {
        let (is_record, own) = match &work {
            Work::Record(own) => (true, own.as_ref().map(|own| own.position)),
            _ => (false, None),
        };
        let turn = match self.acquire(coordinated, chat, place).await {
            Ok(turn) => turn,
            Err(error) => {
                self.events.error(Some(chat), Activity::Turn, error);
                // It stays in the inbox, and somebody looks after it.
                if let Some(own) = own {
                    self.release_record(chat, own).await;
                }
                return;
            }
        };
        self.forget_if_stale(&turn);
        let guard = turn.guard();
        let lost = tokio::select! {
            biased;
            () = self.work(&guard, work, memory) => None,
            // The work is dropped where it stands before the chat can be somebody else's.
            lost = guard.lost() => Some(lost.reason),
        };
        match guard.loss().or(lost) {
            None => {
                self.conversations.touch(chat, guard.fence());
                turn.end_if_closed();
            }
            Some(reason) => {
                // Whatever kept the turn is told why it has ended.
                guard.end(reason);
                if let Some(mut cut) = self.conversations.take(chat) {
                    cut.disarm(&self.timers);
                }
                self.wake_dropped(chat);
                if is_record || memory.is_under_way() {
                    self.lost_record(&guard, reason, own, memory).await;
                }
                if reason == LossReason::Superseded || reason == LossReason::Settled {
                    let key = CoordinationKey::from(chat);
                    self.emit_coordination(CoordinatorEvent::LeaseLost { key, reason });
                }
            }
        }
    }

    async fn work(self: &Arc<Self>, guard: &TurnGuard, work: Work, memory: &mut LaneMemory) {
        let done = async {
            match work {
                Work::Message(message) => self.handle(&Turn::new(guard.clone()), message).await,
                Work::Wake(wake) => Box::pin(self.wake(guard, &wake, memory)).await,
                Work::Record(own) => {
                    Box::pin(self.run_record(guard, own, memory)).await;
                    Ok(())
                }
            }
        };
        if let Err((during, error)) = caught(done).await {
            self.events.error(Some(guard.key()), during, error);
        }
    }

    /// Does what a record is about.
    pub(super) async fn handle_recorded(
        self: &Arc<Self>,
        turn: &Turn,
        recorded: Recorded,
    ) -> Result<(), (Activity, BotError)> {
        match recorded {
            Recorded::Message(message) => self.handle(turn, message).await,
            Recorded::Wake(wake) => Box::pin(self.wake_recorded(turn, wake)).await,
        }
    }

    pub(super) async fn handle(
        self: &Arc<Self>,
        turn: &Turn,
        message: Box<Message>,
    ) -> Result<(), (Activity, BotError)> {
        let mut message = message;
        for hook in &self.router.hooks {
            match hook(*message).await {
                Ok(Some(changed)) => message = Box::new(changed),
                Ok(None) => return Ok(()),
                Err(error) => return Err((Activity::Hook, error)),
            }
        }
        let handled = if self.router.layers.is_empty() {
            self.route(turn, message).await
        } else {
            let context = self.context(turn, message);
            Box::pin(Next::first(Arc::clone(self)).run(context)).await
        };
        handled.map_err(|error| (Activity::Handler, error))
    }

    /// Gives a message to the conversation that waits for it, else to the first route, else to
    /// the fallback.
    pub(super) async fn route(
        self: &Arc<Self>,
        turn: &Turn,
        message: Box<Message>,
    ) -> Result<(), BotError> {
        let mut message = message;
        if self.conversations.any() {
            // Boxed, as are the other longer ways: a lane's task has room for the shortest one.
            match Box::pin(self.continue_conversation(turn, message)).await? {
                Claimed::Taken => return Ok(()),
                Claimed::Free(free) => message = free,
            }
        }
        match self.router.find(&message) {
            Some((Action::Handle(handler), matched)) => {
                let handler = Arc::clone(handler);
                self.run_handler(turn, message, matched, handler).await
            }
            Some((Action::Enter(number), _)) => Box::pin(self.enter(turn, *number, &message)).await,
            None => Box::pin(self.unmatched(turn, message)).await,
        }
    }

    async fn run_handler(
        self: &Arc<Self>,
        turn: &Turn,
        message: Box<Message>,
        matched: Matched,
        handler: super::BoxHandler,
    ) -> Result<(), BotError> {
        let context = Context::new(Arc::clone(self), turn.clone(), message, matched);
        handler(context.clone()).await?;
        self.enter_if_asked(turn, &context).await
    }

    /// A context for a message of which no route has read anything.
    pub(super) fn context(self: &Arc<Self>, turn: &Turn, message: Box<Message>) -> Context {
        Context::new(Arc::clone(self), turn.clone(), message, Matched::default())
    }

    async fn unmatched(
        self: &Arc<Self>,
        turn: &Turn,
        message: Box<Message>,
    ) -> Result<(), BotError> {
        let text = match &message.content {
            Content::Button(press) if WaitToken::is_question_button(&press.payload) => {
                "core.button.expired"
            }
            // Nobody who edits, reacts or joins is waiting for an answer.
            Content::Event(_) | Content::Reaction(_) => return Ok(()),
            _ => {
                if let Some(handler) = self.router.fallback.clone() {
                    return self.run_handler(turn, message, Matched::default(), handler).await;
                }
                // In a group the command may be meant for another bot.
                let unknown = message.body().is_some_and(|text| text.starts_with('/'))
                    && message.chat.participant().is_none()
                    && self.router.has_commands();
                if !unknown {
                    return Ok(());
                }
                "core.command.unknown"
            }
        };
        let context = self.context(turn, message);
        context.reply(Reply::text(t(text))).await.map(drop)
    }
}

/// Runs user code; a panic in it is an error.
pub(super) fn caught<W>(work: W) -> impl Future<Output = Result<(), (Activity, BotError)>>
where
    W: Future<Output = Result<(), (Activity, BotError)>>,
{
    AssertUnwindSafe(work).catch_unwind().map(|ended| {
        ended.unwrap_or_else(|payload| {
            Err((Activity::Handler, BotError::from(Panicked::new(payload.as_ref()))))
        })
    })
}
