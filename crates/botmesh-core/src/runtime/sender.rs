use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::broken_rule::BrokenRule;
use super::turn::Turn;
use crate::coordination::LeaseLost;
use crate::id::{ChatKey, MessageId, ProviderId};
use crate::message::{Media, Outgoing, Reply};
use crate::provider::{
    Capabilities, MediaStream, Provider, ProviderNotLeader, Receipt, SendError, SendOptions,
};
use crate::text::{Language, Texts};

/// The only place that sends: first the turn of the turn, then the provider.
#[derive(Debug)]
pub(crate) struct Sender {
    providers: Vec<Arc<dyn Provider>>,
    /// Whether another replica is connected to the provider at the same place.
    standby: Box<[AtomicBool]>,
    texts: Texts,
    broken: Option<BrokenRule>,
}

impl Sender {
    pub(crate) fn new(providers: Vec<Arc<dyn Provider>>, texts: Texts) -> Self {
        let standby = providers.iter().map(|_| AtomicBool::new(false)).collect();
        Self { providers, standby, texts, broken: None }
    }

    /// Breaks a rule, for a test.
    pub(crate) const fn breaking(mut self, rule: Option<BrokenRule>) -> Self {
        self.broken = rule;
        self
    }

    fn check(&self, turn: &Turn) -> Result<(), LeaseLost> {
        let breaks = self.broken == Some(BrokenRule::SendsWithoutTurn);
        if cfg!(any(test, feature = "testing")) && breaks { Ok(()) } else { turn.check() }
    }

    /// Whether sends over the provider are left to the replica that leads it.
    pub(crate) fn stand_by(&self, provider: &ProviderId, standby: bool) {
        for (known, flag) in self.providers.iter().zip(&self.standby) {
            if known.id() == provider {
                flag.store(standby, Ordering::Release);
            }
        }
    }

    pub(crate) fn is_standby(&self, provider: &ProviderId) -> bool {
        let mut all = self.providers.iter().zip(&self.standby);
        all.any(|(known, flag)| known.id() == provider && flag.load(Ordering::Acquire))
    }

    /// Whether sends to the chat are left to the replica that leads its provider.
    pub(crate) fn stands_by(&self, chat: &ChatKey) -> bool {
        self.place(chat).is_ok_and(|place| self.standby[place].load(Ordering::Acquire))
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

    /// What the platform of the chat can do.
    pub(crate) fn capabilities(&self, chat: &ChatKey) -> Capabilities {
        self.place(chat).map(|place| self.providers[place].capabilities()).unwrap_or_default()
    }

    /// The provider that is connected for the chat here.
    fn provider(&self, chat: &ChatKey) -> Result<&Arc<dyn Provider>, SendError> {
        let place = self.place(chat)?;
        let provider = &self.providers[place];
        if self.standby[place].load(Ordering::Acquire) {
            return Err(ProviderNotLeader { provider: provider.id().clone() }.into());
        }
        Ok(provider)
    }

    fn place(&self, chat: &ChatKey) -> Result<usize, SendError> {
        let wanted = chat.provider();
        self.providers
            .iter()
            .position(|provider| provider.id().as_str() == wanted)
            .ok_or_else(|| SendError::UnknownProvider { provider: wanted.to_owned() })
    }

    /// Sends under a turn.
    pub(crate) async fn send(
        &self,
        turn: &Turn,
        outgoing: &Outgoing,
        options: &SendOptions,
    ) -> Result<Receipt, SendError> {
        self.check(turn)?;
        Ok(self.provider(turn.key())?.send(turn.key(), outgoing, options).await?)
    }

    /// The words of a reply as the platform shows them.
    pub(crate) fn shown(&self, reply: &Reply, language: Option<&Language>) -> String {
        let language = language.unwrap_or_else(|| self.texts.default_language());
        self.texts.resolve(reply.text.clone(), language).into_owned()
    }

    /// Sends outside any turn, as `RunningBot::send` does.
    pub(crate) async fn deliver(
        &self,
        chat: &ChatKey,
        reply: Reply,
        language: Option<&Language>,
        options: &SendOptions,
    ) -> Result<Receipt, SendError> {
        let provider = self.provider(chat)?;
        let outgoing = self.outgoing(chat, reply, language);
        Ok(provider.send(chat, &outgoing, options).await?)
    }

    pub(crate) async fn edit(
        &self,
        turn: &Turn,
        message: &MessageId,
        reply: Reply,
        language: Option<&Language>,
    ) -> Result<(), SendError> {
        self.check(turn)?;
        let provider = self.provider(turn.key())?;
        let outgoing = self.outgoing(turn.key(), reply, language);
        Ok(provider.edit(turn.key(), message, &outgoing).await?)
    }

    pub(crate) async fn delete(&self, turn: &Turn, message: &MessageId) -> Result<(), SendError> {
        self.check(turn)?;
        Ok(self.provider(turn.key())?.delete(turn.key(), message).await?)
    }

    pub(crate) async fn react(
        &self,
        turn: &Turn,
        message: &MessageId,
        emoji: Option<&str>,
    ) -> Result<(), SendError> {
        self.check(turn)?;
        Ok(self.provider(turn.key())?.react(turn.key(), message, emoji).await?)
    }

    /// Opens what a user sent. It changes nothing, so it needs no turn.
    pub(crate) async fn download(
        &self,
        chat: &ChatKey,
        media: &Media,
    ) -> Result<MediaStream, SendError> {
        // Not only the replica that is connected can read a file of the platform.
        Ok(self.providers[self.place(chat)?].download(media).await?)
    }

    pub(crate) async fn typing(&self, turn: &Turn) -> Result<(), SendError> {
        self.check(turn)?;
        let provider = self.provider(turn.key())?;
        if !provider.capabilities().typing {
            return Ok(());
        }
        Ok(provider.typing(turn.key()).await?)
    }

    /// The reply in this language, as the platform of the chat shows it.
    pub(crate) fn outgoing(
        &self,
        chat: &ChatKey,
        reply: Reply,
        language: Option<&Language>,
    ) -> Outgoing {
        let language = language.unwrap_or_else(|| self.texts.default_language());
        self.texts.localize(reply, language).adapted(&self.capabilities(chat))
    }
}

/// Whether any text of the reply depends on the language of the chat.
pub(crate) fn needs_language(reply: &Reply) -> bool {
    reply.text.is_localized() || reply.buttons.iter().any(|button| button.label.is_localized())
}
