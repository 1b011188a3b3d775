//! Telegram as a provider.

use async_trait::async_trait;
use botmesh_core::message::{Media, Outgoing};
use botmesh_core::provider::{
    Capabilities, MediaStream, Provider, ProviderError, Receipt, SendOptions, Session, Webhook,
};
use botmesh_core::{ChatKey, MessageId, ProviderId};
use futures_util::StreamExt;
use serde_json::Value;
use serde_json::value::RawValue;
use teloxide_core::payloads::{GetFile, SendChatAction};
use teloxide_core::types::{ChatAction, ChatId, FileId};

use crate::address::Address;
use crate::api::{Failure, Request};
use crate::send;
use crate::telegram::{Inner, Mode, Telegram};
use crate::{polling, webhook};

#[async_trait]
impl Provider for Telegram {
    fn id(&self) -> &ProviderId {
        &self.inner.id
    }

    fn capabilities(&self) -> Capabilities {
        let mut able = Capabilities::default();
        able.exclusive_session = matches!(self.inner.mode, Mode::Polling(_));
        able.formatting = true;
        able.buttons = Some(send::BUTTONS);
        able.media = true;
        able.download = true;
        able.location = true;
        able.edit = true;
        able.delete = true;
        able.react = true;
        able.typing = true;
        able
    }

    async fn run(&self, session: Session) -> Result<(), ProviderError> {
        match &self.inner.mode {
            Mode::Polling(settings) => polling::run(&self.inner, settings, &session).await,
            Mode::Webhook(registration, slot) => {
                webhook::run(&self.inner, registration, slot, &session).await
            }
        }
    }

    async fn send(
        &self,
        chat: &ChatKey,
        message: &Outgoing,
        options: &SendOptions,
    ) -> Result<Receipt, ProviderError> {
        let sending = self.inner.send(chat, message);
        let Some(timeout) = options.timeout else { return sending.await };
        tokio::time::timeout(timeout, sending).await.unwrap_or_else(|elapsed| {
            let provider = self.inner.id.clone();
            Err(ProviderError::Unreachable { provider, source: elapsed.into() })
        })
    }

    async fn edit(
        &self,
        chat: &ChatKey,
        message: &MessageId,
        new: &Outgoing,
    ) -> Result<(), ProviderError> {
        let inner = &self.inner;
        let to = inner.address(chat)?;
        let message = inner.number(message)?;
        let _place = inner.pace.enter(to.chat).await;
        for caption in [false, true] {
            let call = send::edit(&to, message, new, caption).map_err(|why| inner.rejected(why))?;
            match inner.request(&to, call).await {
                Err(failure) if failure.has_no_text() && !caption => {}
                // The same words again are what was wanted.
                Err(failure) if failure.is_unchanged() => return Ok(()),
                done => return done.map(drop).map_err(|failure| failure.into_error(&inner.id)),
            }
        }
        Ok(())
    }

    async fn delete(&self, chat: &ChatKey, message: &MessageId) -> Result<(), ProviderError> {
        let to = self.inner.address(chat)?;
        let message = self.inner.number(message)?;
        let _place = self.inner.pace.enter(to.chat).await;
        self.inner.called(self.inner.request(&to, send::deletion(&to, message)).await)
    }

    async fn react(
        &self,
        chat: &ChatKey,
        message: &MessageId,
        emoji: Option<&str>,
    ) -> Result<(), ProviderError> {
        let to = self.inner.address(chat)?;
        let message = self.inner.number(message)?;
        let _place = self.inner.pace.enter(to.chat).await;
        self.inner.called(self.inner.request(&to, send::reaction(&to, message, emoji)).await)
    }

    async fn typing(&self, chat: &ChatKey) -> Result<(), ProviderError> {
        let to = self.inner.address(chat)?;
        let mut call = SendChatAction::new(ChatId(self.inner.present(to.chat)), ChatAction::Typing);
        call.message_thread_id = to
            .topic
            .map(|topic| teloxide_core::types::ThreadId(teloxide_core::types::MessageId(topic)));
        call.business_connection_id = to.business.map(teloxide_core::types::BusinessConnectionId);
        self.inner.called(self.inner.call(&call).await)
    }

    async fn download(&self, media: &Media) -> Result<MediaStream, ProviderError> {
        let inner = &self.inner;
        let file = inner.call(&GetFile::new(FileId(media.reference.clone()))).await;
        let file = file.map_err(|failure| failure.into_error(&inner.id))?;
        let file: Value = serde_json::from_str(file.get()).unwrap_or_default();
        let Some(path) = file["file_path"].as_str() else {
            return Err(inner.rejected("Telegram does not give this file".to_owned()));
        };
        let response = inner.api.open(path).await;
        let response = response.map_err(|failure| failure.into_error(&inner.id))?;
        let provider = inner.id.clone();
        Ok(MediaStream::new(response.bytes_stream().map(move |piece| {
            piece.map_err(|error| Failure::network(error).into_error(&provider))
        })))
    }

    fn webhook(&self) -> Option<&dyn Webhook> {
        matches!(self.inner.mode, Mode::Webhook(..)).then_some(self as &dyn Webhook)
    }
}

impl Inner {
    async fn send(&self, chat: &ChatKey, message: &Outgoing) -> Result<Receipt, ProviderError> {
        let to = self.address(chat)?;
        let calls = send::plan(&to, message).map_err(|why| self.rejected(why))?;
        // Until all parts are sent: nothing else of ours comes between them.
        let _place = self.pace.enter(to.chat).await;
        let mut receipt = Receipt::default();
        for call in calls {
            let sent = self.request(&to, call).await;
            let sent = sent.map_err(|failure| failure.into_error(&self.id))?;
            // Telegram has the message, whatever else the answer says.
            let sent: Value = serde_json::from_str(sent.get()).unwrap_or_default();
            let id = send::last_message(&sent).and_then(|id| MessageId::new(id.to_string()).ok());
            receipt.message = id.or(receipt.message);
        }
        Ok(receipt)
    }

    /// Makes a request to a chat, waits as long as Telegram wants, and follows the chat where it
    /// moved.
    async fn request(&self, to: &Address, mut call: Request<'_>) -> Result<Box<RawValue>, Failure> {
        let mut waited = std::time::Duration::ZERO;
        let mut chat = self.present(to.chat);
        loop {
            if let Some(wait) = self.pace.wait(chat) {
                waited += wait;
                if waited > self.longest_wait {
                    return Err(Failure::limited(wait));
                }
                tokio::time::sleep(wait).await;
            }
            call.set("chat_id", chat);
            let failure = match self.api.send(&call).await {
                Ok(result) => return Ok(result),
                Err(failure) => failure,
            };
            match (failure.wait(), failure.moved_to()) {
                (Some(wait), _) => self.pace.limited(chat, wait),
                (None, Some(moved)) if moved != chat => {
                    tracing::info!("a group became a supergroup");
                    self.moved(to.chat, moved);
                    chat = moved;
                }
                _ => return Err(failure),
            }
        }
    }

    fn address(&self, chat: &ChatKey) -> Result<Address, ProviderError> {
        let own = chat.provider() == self.id.as_str();
        own.then(|| Address::of(chat)).flatten().ok_or_else(|| ProviderError::ChatGone {
            provider: self.id.clone(),
            reason: format!("{chat} is not a chat of this bot on Telegram"),
        })
    }

    fn number(&self, message: &MessageId) -> Result<i64, ProviderError> {
        let text = message.as_str();
        text.parse().map_err(|_| self.rejected(send::no_message(text)))
    }

    fn rejected(&self, reason: String) -> ProviderError {
        ProviderError::Rejected { provider: self.id.clone(), reason }
    }

    fn called(&self, result: Result<Box<RawValue>, Failure>) -> Result<(), ProviderError> {
        result.map(drop).map_err(|failure| failure.into_error(&self.id))
    }
}
