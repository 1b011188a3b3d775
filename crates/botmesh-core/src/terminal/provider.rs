//! The terminal as a provider: its session and what it sends.

use std::future::Future;

use async_trait::async_trait;

use super::Terminal;
use crate::id::{ChatKey, MessageId, ProviderId};
use crate::message::Outgoing;
use crate::provider::{
    Capabilities, ChoiceLimits, ConnectionState, Provider, ProviderError, Receipt, SendOptions,
    Session,
};

#[async_trait]
impl Provider for Terminal {
    fn id(&self) -> &ProviderId {
        &self.id
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            buttons: Some(ChoiceLimits::NONE),
            media: true,
            location: true,
            edit: true,
            delete: true,
            react: true,
            typing: true,
            ..Capabilities::default()
        }
    }

    async fn run(&self, session: Session) -> Result<(), ProviderError> {
        let mut input =
            self.input.try_lock().map_err(|_| self.closed("the terminal is in use already"))?;
        session.set_state(ConnectionState::Open);
        let _closing = Closing(&session);
        let standard = input.is_standard();
        tokio::select! {
            biased;
            () = session.cancelled() => Ok(()),
            () = interrupted(standard) => Ok(()),
            () = self.output_gone.cancelled() => {
                Err(self.closed("nobody reads the output any more"))
            }
            ended = self.read(&mut input, &session) => ended,
        }
    }

    async fn send(
        &self,
        chat: &ChatKey,
        message: &Outgoing,
        options: &SendOptions,
    ) -> Result<Receipt, ProviderError> {
        self.check_chat(chat)?;
        self.check_content(message)?;
        let id = self.next_id('b')?;
        let text = self.style.message(message);
        let print = self.print(&text, |choices| choices.shown(&id, &message.buttons));
        within(&self.id, options, print).await?;
        Ok(Receipt::of(id))
    }

    async fn edit(
        &self,
        chat: &ChatKey,
        message: &MessageId,
        new: &Outgoing,
    ) -> Result<(), ProviderError> {
        self.check_chat(chat)?;
        self.check_content(new)?;
        let text = self.style.edited(new);
        self.print(&text, |choices| choices.edited(message, &new.buttons)).await
    }

    async fn delete(&self, chat: &ChatKey, message: &MessageId) -> Result<(), ProviderError> {
        self.check_chat(chat)?;
        let text = self.style.note("[deleted a message]");
        self.print(&text, |choices| choices.deleted(message)).await
    }

    async fn react(
        &self,
        chat: &ChatKey,
        _message: &MessageId,
        emoji: Option<&str>,
    ) -> Result<(), ProviderError> {
        self.check_chat(chat)?;
        let note =
            emoji.map_or("[took a reaction back]".into(), |emoji| format!("[reaction] {emoji}"));
        self.print(&self.style.note(&note), |_| {}).await
    }

    async fn typing(&self, chat: &ChatKey) -> Result<(), ProviderError> {
        self.check_chat(chat)?;
        if !self.style.live {
            return Ok(());
        }
        // The next line is written over it.
        self.print("…\r", |_| {}).await
    }
}

/// Resolves at Ctrl-C; never where `enabled` is false or the process has no signals.
async fn interrupted(enabled: bool) {
    if !enabled || tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}

async fn within<T>(
    provider: &ProviderId,
    options: &SendOptions,
    send: impl Future<Output = Result<T, ProviderError>> + Send,
) -> Result<T, ProviderError> {
    let Some(timeout) = options.timeout else { return send.await };
    tokio::time::timeout(timeout, send).await.unwrap_or_else(|elapsed| {
        Err(ProviderError::Unreachable { provider: provider.clone(), source: elapsed.into() })
    })
}

/// Tells the session that the connection is closed, also when the run is dropped.
struct Closing<'a>(&'a Session);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.0.set_state(ConnectionState::Closed);
    }
}
