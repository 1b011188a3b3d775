use std::borrow::Cow;
use std::fmt::Write;
use std::sync::Arc;

use crate::coordination::TurnGuard;
use crate::id::{ChatKey, MessageId};
use crate::message::{Outgoing, Reply};
use crate::provider::{Capabilities, Provider, Receipt, SendError, SendOptions};
use crate::text::{Language, Text, Texts};

/// The only place that sends: first the guard of the turn, then the provider.
#[derive(Debug)]
pub(crate) struct Sender {
    providers: Vec<Arc<dyn Provider>>,
    texts: Texts,
}

impl Sender {
    pub(crate) const fn new(providers: Vec<Arc<dyn Provider>>, texts: Texts) -> Self {
        Self { providers, texts }
    }

    pub(crate) fn texts(&self) -> &Texts {
        &self.texts
    }

    pub(crate) fn providers(&self) -> &[Arc<dyn Provider>] {
        &self.providers
    }

    pub(crate) fn ids(&self) -> Vec<&str> {
        self.providers.iter().map(|provider| provider.id().as_str()).collect()
    }

    pub(crate) fn provider(&self, chat: &ChatKey) -> Result<&Arc<dyn Provider>, SendError> {
        let wanted = chat.provider();
        self.providers
            .iter()
            .find(|provider| provider.id().as_str() == wanted)
            .ok_or_else(|| SendError::UnknownProvider { provider: wanted.to_owned() })
    }

    /// Sends under a turn.
    pub(crate) async fn send(
        &self,
        guard: &TurnGuard,
        reply: Reply,
        language: Option<&Language>,
    ) -> Result<Receipt, SendError> {
        guard.check()?;
        self.deliver(guard.key(), reply, language).await
    }

    /// Sends outside any turn, as `RunningBot::send` does.
    pub(crate) async fn deliver(
        &self,
        chat: &ChatKey,
        reply: Reply,
        language: Option<&Language>,
    ) -> Result<Receipt, SendError> {
        let provider = self.provider(chat)?;
        let outgoing = self.outgoing(reply, language, provider.capabilities());
        Ok(provider.send(chat, &outgoing, &SendOptions::default()).await?)
    }

    pub(crate) async fn edit(
        &self,
        guard: &TurnGuard,
        message: &MessageId,
        reply: Reply,
        language: Option<&Language>,
    ) -> Result<(), SendError> {
        guard.check()?;
        let provider = self.provider(guard.key())?;
        let outgoing = self.outgoing(reply, language, provider.capabilities());
        Ok(provider.edit(guard.key(), message, &outgoing).await?)
    }

    pub(crate) async fn delete(
        &self,
        guard: &TurnGuard,
        message: &MessageId,
    ) -> Result<(), SendError> {
        guard.check()?;
        Ok(self.provider(guard.key())?.delete(guard.key(), message).await?)
    }

    pub(crate) async fn react(
        &self,
        guard: &TurnGuard,
        message: &MessageId,
        emoji: Option<&str>,
    ) -> Result<(), SendError> {
        guard.check()?;
        Ok(self.provider(guard.key())?.react(guard.key(), message, emoji).await?)
    }

    pub(crate) async fn typing(&self, guard: &TurnGuard) -> Result<(), SendError> {
        guard.check()?;
        let provider = self.provider(guard.key())?;
        if !provider.capabilities().typing {
            return Ok(());
        }
        Ok(provider.typing(guard.key()).await?)
    }

    fn outgoing(
        &self,
        reply: Reply,
        language: Option<&Language>,
        capabilities: Capabilities,
    ) -> Outgoing {
        let outgoing = match language {
            Some(language) => self.texts.localize(reply, language),
            None => self.texts.localize(reply, self.texts.default_language()),
        };
        fall_back(outgoing, capabilities)
    }
}

/// Whether any text of the reply depends on the language of the chat.
pub(crate) fn needs_language(reply: &Reply) -> bool {
    let localized = |text: &Text| matches!(text, Text::Localized(_));
    localized(&reply.text) || reply.buttons.iter().any(|button| localized(&button.label))
}

/// Turns what the platform does not show into text: buttons into numbered lines, a place into
/// the address of a map.
fn fall_back(mut outgoing: Outgoing, capabilities: Capabilities) -> Outgoing {
    if !outgoing.buttons.is_empty() && !capabilities.buttons {
        let mut text = outgoing.text.into_owned();
        for (index, button) in outgoing.buttons.drain(..).enumerate() {
            let _ = write!(text, "\n{}. {}", index + 1, button.label);
        }
        outgoing.text = Cow::Owned(text);
    }
    if !capabilities.location
        && let Some(place) = outgoing.location.take()
    {
        let mut text = outgoing.text.into_owned();
        if !text.is_empty() {
            text.push('\n');
        }
        if let Some(name) = place.name {
            let _ = writeln!(text, "{name}");
        }
        let (latitude, longitude) = (place.latitude, place.longitude);
        let _ = write!(text, "https://www.openstreetmap.org/?mlat={latitude}&mlon={longitude}");
        outgoing.text = Cow::Owned(text);
    }
    outgoing
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::OutgoingButton;

    /// A8: what a platform lacks becomes text rather than silence.
    #[test]
    fn buttons_become_numbered_lines_and_a_place_becomes_an_address() {
        let mut message = Outgoing::text("Which?");
        message.buttons = vec![OutgoingButton::new("Tea", "t"), OutgoingButton::new("Milk", "m")];
        message.location = Reply::location(4.5, -74.25).location;
        let plain = fall_back(message.clone(), Capabilities::default());
        assert_eq!(
            plain.text,
            "Which?\n1. Tea\n2. Milk\nhttps://www.openstreetmap.org/?mlat=4.5&mlon=-74.25"
        );
        assert!(plain.buttons.is_empty() && plain.location.is_none());
        let all = Capabilities { buttons: true, location: true, ..Capabilities::default() };
        assert_eq!(fall_back(message.clone(), all), message);
    }
}
