//! What the bot sees of the platform.

use async_trait::async_trait;

use super::TestProvider;
use super::platform::{Connection, Fault, Link};
use super::transcript::Happening;
use crate::id::{ChatKey, MessageId, ProviderId};
use crate::message::Outgoing;
use crate::provider::{
    Capabilities, Capability, ConnectionState, Provider, ProviderError, Receipt, SendOptions,
    Session,
};

impl TestProvider {
    fn check_link(&self) -> Result<(), ProviderError> {
        let provider = self.platform.id.clone();
        match self.connection.link.get() {
            Link::Up | Link::Ended => Ok(()),
            Link::Down => Err(ProviderError::Unreachable {
                provider,
                source: "the test interrupted the connection".into(),
            }),
            Link::Closed(reason) => Err(ProviderError::Closed { provider, reason }),
        }
    }

    fn check(&self, chat: &ChatKey) -> Result<(), ProviderError> {
        let provider = &self.platform.id;
        if chat.provider() != provider.as_str() {
            let reason = format!("{chat} is a chat of another provider");
            return Err(ProviderError::ChatGone { provider: provider.clone(), reason });
        }
        self.check_link()
    }

    fn need(
        &self,
        capability: Capability,
        has: impl Fn(&Capabilities) -> bool,
    ) -> Result<(), ProviderError> {
        if has(&self.platform.state.lock().capabilities) {
            Ok(())
        } else {
            Err(self.unsupported(capability))
        }
    }

    /// The message as the platform shows it.
    fn fitting(&self, message: &Outgoing) -> Result<Outgoing, ProviderError> {
        if !message.attachments.is_empty() {
            self.need(Capability::Media, |has| has.media)?;
        }
        if *message == Outgoing::default() {
            let provider = self.platform.id.clone();
            let reason = "the message is empty".to_owned();
            return Err(ProviderError::Rejected { provider, reason });
        }
        Ok(message.clone().adapted(&self.platform.state.lock().capabilities))
    }
}

/// Takes the session away when the run ends or is dropped.
struct Connected<'a> {
    connection: &'a Connection,
    session: &'a Session,
    run: u64,
}

impl<'a> Connected<'a> {
    fn new(connection: &'a Connection, session: &'a Session) -> Self {
        let mut run = 0;
        connection.session.modify(|present| {
            run = present.as_ref().map_or(0, |(last, _)| last + 1);
            *present = Some((run, Some(session.clone())));
        });
        Self { connection, session, run }
    }
}

impl Drop for Connected<'_> {
    fn drop(&mut self) {
        self.connection.session.modify(|present| match present {
            // A later run may have connected already.
            Some((run, session)) if *run == self.run => *session = None,
            _ => {}
        });
        self.session.set_state(ConnectionState::Closed);
    }
}

#[async_trait]
impl Provider for TestProvider {
    fn id(&self) -> &ProviderId {
        &self.platform.id
    }

    fn capabilities(&self) -> Capabilities {
        self.platform.state.lock().capabilities
    }

    async fn run(&self, session: Session) -> Result<(), ProviderError> {
        let mut link = self.connection.link.watch();
        let _connected = Connected::new(&self.connection, &session);
        loop {
            match link.get() {
                Link::Up => session.set_state(ConnectionState::Open),
                Link::Down => session.set_state(ConnectionState::Connecting),
                Link::Ended => return Ok(()),
                Link::Closed(reason) => {
                    let provider = self.platform.id.clone();
                    return Err(ProviderError::Closed { provider, reason });
                }
            }
            tokio::select! {
                biased;
                () = session.cancelled() => return Ok(()),
                () = link.changed() => {}
            }
        }
    }

    async fn send(
        &self,
        chat: &ChatKey,
        message: &Outgoing,
        options: &SendOptions,
    ) -> Result<Receipt, ProviderError> {
        self.check(chat)?;
        let message = self.fitting(message)?;
        let (fault, delay) = {
            let mut faults = self.connection.faults.lock();
            (faults.next_sends.pop_front(), faults.delay)
        };
        let unanswered = |what: &str| ProviderError::Unreachable {
            provider: self.platform.id.clone(),
            source: what.into(),
        };
        if !delay.is_zero() {
            let sleep = tokio::time::sleep(delay);
            match options.timeout {
                Some(timeout) => tokio::time::timeout(timeout, sleep)
                    .await
                    .map_err(|_| unanswered("the send took too long"))?,
                None => sleep.await,
            }
            self.check_link()?;
        }
        let mut lost = false;
        match fault {
            Some(Fault::Refuse(error)) => return Err(error),
            Some(Fault::LoseReceipt) => lost = true,
            None => {}
        }
        let receipt = self.platform.take(chat, message, options);
        if lost { Err(unanswered("the test lost the receipt")) } else { Ok(receipt) }
    }

    async fn edit(
        &self,
        chat: &ChatKey,
        message: &MessageId,
        new: &Outgoing,
    ) -> Result<(), ProviderError> {
        self.need(Capability::Edit, |has| has.edit)?;
        self.check(chat)?;
        let new = self.fitting(new)?;
        let edited = Happening::Edited { id: message.clone(), message: new };
        self.platform.transcript.add(chat, edited);
        Ok(())
    }

    async fn delete(&self, chat: &ChatKey, message: &MessageId) -> Result<(), ProviderError> {
        self.need(Capability::Delete, |has| has.delete)?;
        self.check(chat)?;
        self.platform.transcript.add(chat, Happening::Deleted { id: message.clone() });
        Ok(())
    }

    async fn react(
        &self,
        chat: &ChatKey,
        message: &MessageId,
        emoji: Option<&str>,
    ) -> Result<(), ProviderError> {
        self.need(Capability::React, |has| has.react)?;
        self.check(chat)?;
        let emoji = emoji.map(str::to_owned);
        self.platform.transcript.add(chat, Happening::Reacted { id: message.clone(), emoji });
        Ok(())
    }

    async fn typing(&self, chat: &ChatKey) -> Result<(), ProviderError> {
        self.need(Capability::Typing, |has| has.typing)?;
        self.check(chat)?;
        self.platform.transcript.add(chat, Happening::Typing);
        Ok(())
    }
}
