use super::Runtime;
use super::durability::Durable;
use super::event::Event;
use super::open_record::OpenRecord;
use super::outbox::{Step, Uncertain, UncertainOutcome, UncertainSend, idempotency_key};
use super::turn::Turn;
use crate::coordination::{LeaseLost, LossReason};
use crate::error::BotError;
use crate::message::Reply;
use crate::provider::{ProviderError, Receipt, SendError, SendOptions};
use crate::store::InboxStore;
use crate::text::Language;

impl Runtime {
    /// Sends under a turn: once for all attempts of a record, as far as the platform allows.
    pub(super) async fn send(
        &self,
        turn: &Turn,
        reply: Reply,
        language: Option<&Language>,
    ) -> Result<Receipt, BotError> {
        match (turn.record(), self.durable()) {
            (Some(record), Some((durable, inbox))) => {
                // Boxed: what is sent without a record needs no room for it.
                Box::pin(self.send_once(turn, record, durable, inbox, reply, language)).await
            }
            _ => {
                let outgoing = self.sender.outgoing(turn.key(), reply, language);
                Ok(self.sender.send(turn, &outgoing, &SendOptions::default()).await?)
            }
        }
    }

    async fn send_once(
        &self,
        turn: &Turn,
        record: &OpenRecord,
        durable: &Durable,
        inbox: &dyn InboxStore,
        reply: Reply,
        language: Option<&Language>,
    ) -> Result<Receipt, BotError> {
        let (chat, position) = (turn.key(), record.position());
        let mut sends = record.outbox().next().await;
        let idempotency_key = idempotency_key(chat, position, sends.index());
        if !self.sender.capabilities(chat).idempotent_send {
            let policy = durable.uncertain(chat);
            match sends.step(policy) {
                Step::Sent(receipt) => return Ok(receipt),
                Step::New => {}
                Step::Uncertain => {
                    let text = self.sender.shown(&reply, language);
                    let chat = chat.clone();
                    let send =
                        UncertainSend { chat, text, idempotency_key: idempotency_key.clone() };
                    if !self.sends_uncertain(policy, send).await? {
                        sends.sent(&Receipt::default());
                        return Ok(Receipt::default());
                    }
                }
            }
            if let Some(notes) = sends.unnoted(policy) {
                let fence = self.fences.to_write(turn.fence());
                if !inbox.note_sends(chat, position, fence, &notes).await? {
                    let reason = LossReason::Superseded;
                    turn.end(reason);
                    return Err(LeaseLost::new(chat.clone(), turn.fence(), reason).into());
                }
                sends.noted();
            }
        }
        let options = SendOptions { idempotency_key: Some(idempotency_key), timeout: None };
        let outgoing = self.sender.outgoing(chat, reply, language);
        let sent = self.sender.send(turn, &outgoing, &options).await;
        match &sent {
            Ok(receipt) => sends.sent(receipt),
            Err(error) => sends.failed(may_have_arrived(error)),
        }
        Ok(sent?)
    }

    /// Whether a send is made though it may have arrived already.
    async fn sends_uncertain(
        &self,
        policy: &Uncertain,
        send: UncertainSend,
    ) -> Result<bool, BotError> {
        let chat = send.chat.clone();
        let outcome = match policy {
            Uncertain::Resend => UncertainOutcome::Resent,
            Uncertain::Skip => UncertainOutcome::Skipped,
            Uncertain::Reconcile(function) => match function.has_arrived(send).await? {
                true => UncertainOutcome::Arrived,
                false => UncertainOutcome::Missing,
            },
        };
        tracing::warn!(provider = chat.provider(), ?outcome, "a send was uncertain");
        self.events.emit(Event::Uncertain { chat, outcome });
        Ok(matches!(outcome, UncertainOutcome::Resent | UncertainOutcome::Missing))
    }
}

/// Whether the platform may have taken the message although the send has failed.
const fn may_have_arrived(error: &SendError) -> bool {
    matches!(error, SendError::Provider(ProviderError::Unreachable { .. }))
}
