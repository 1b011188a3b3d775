use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use super::Runtime;
use super::profile;
use super::turn::Turn;
use crate::conversation::{Next, Request, Response, Script, UserDocument};
use crate::error::BotError;
use crate::id::{ChatKey, UserKey};
use crate::message::{Message, Reply};
use crate::provider::Receipt;
use crate::question::Question;
use crate::store::{Collection, Swap};
use crate::text::{Language, Text};

/// Who a conversation talks to, and in which language.
#[derive(Debug, Clone)]
pub(super) struct Listener {
    /// None for the user that the chat key names.
    user: Option<UserKey>,
    /// The language that was set for the chat.
    set: Option<Language>,
    /// The language of the last message, else the bot's.
    heard: Language,
}

impl Runtime {
    /// The listener of a conversation that is entered or restored by `message`.
    pub(super) async fn listener(&self, message: &Message) -> Result<Listener, BotError> {
        let set = profile::language_of_chat(self.store(), &message.chat).await?;
        let heard = message.language.as_ref();
        let heard = heard.unwrap_or_else(|| self.sender.texts().default_language()).clone();
        Ok(Listener { user: named_user(message), set, heard })
    }

    /// The listener of a chat in which nobody has written since the bot started.
    pub(super) async fn unheard_listener(&self, chat: &ChatKey) -> Result<Listener, BotError> {
        let set = profile::language_of_chat(self.store(), chat).await?;
        Ok(Listener { user: None, set, heard: self.sender.texts().default_language().clone() })
    }
}

impl Listener {
    /// Goes on with who wrote `message`.
    pub(super) fn hears(&mut self, message: &Message) {
        self.user = named_user(message);
        if let Some(language) = &message.language {
            self.heard = language.clone();
        }
    }

    pub(super) fn set_language(&mut self, language: &Language) {
        self.set = Some(language.clone());
    }

    pub(super) fn language(&self) -> &Language {
        self.set.as_ref().unwrap_or(&self.heard)
    }
}

fn named_user(message: &Message) -> Option<UserKey> {
    message.sender.is_some().then(|| message.user())
}

/// A conversation's turn: where it acts while the turn lasts.
pub(super) struct Scene<'a> {
    pub(super) runtime: &'a Arc<Runtime>,
    pub(super) turn: &'a Turn,
    pub(super) listener: &'a Listener,
}

/// Where a script came to rest.
pub(super) enum Pause {
    /// It wants to ask this; the text is what a wrong answer is told when it asks again.
    Asks(Arc<Question>, Option<Text>),
    /// It stands still for this long.
    Rests(Duration),
    /// It has ended.
    Ended(Result<(), BotError>),
}

impl Scene<'_> {
    pub(super) async fn say(&self, reply: impl Into<Reply>) -> Result<Receipt, BotError> {
        let language = Some(self.listener.language());
        self.runtime.send(self.turn, reply.into(), language).await
    }

    /// A text as the user sees it.
    pub(super) fn shown<'t>(&self, text: &'t Text) -> Cow<'t, str> {
        match text {
            Text::Plain(text) => Cow::Borrowed(text),
            other => self.runtime.sender.texts().resolve(other.clone(), self.listener.language()),
        }
    }

    /// Runs a script until it asks, rests or ends. A muted script goes over what was said before.
    pub(super) async fn drive(&self, script: &mut Script, muted: bool) -> Pause {
        loop {
            let request = match script.next().await {
                Next::Finished(result) => return Pause::Ended(result),
                Next::Request(request) => request,
            };
            let response = match request {
                Request::Ask(question) => return Pause::Asks(question, None),
                Request::AskAgain(question, text) => return Pause::Asks(question, Some(text)),
                Request::ResumeAfter(rest) => return Pause::Rests(rest),
                Request::Say(_) | Request::Typing if muted => Response::Sent(Receipt::default()),
                Request::Say(reply) => match self.say(*reply).await {
                    Ok(receipt) => Response::Sent(receipt),
                    Err(error) => Response::Failed(error),
                },
                Request::Typing => match self.runtime.sender.typing(self.turn).await {
                    Ok(()) => Response::Done,
                    Err(error) => Response::Failed(error.into()),
                },
                Request::LoadUser => self.load_user().await,
                Request::SaveUser(document) => self.save_user(document).await,
            };
            script.supply(response);
        }
    }

    fn user(&self) -> Cow<'_, UserKey> {
        match &self.listener.user {
            Some(user) => Cow::Borrowed(user),
            None => Cow::Owned(self.turn.key().default_user()),
        }
    }

    async fn load_user(&self) -> Response {
        let user = self.user();
        match self.runtime.store.load_document(Collection::Users, user.as_str()).await {
            Ok(document) => Response::User(document),
            Err(error) => Response::Failed(error.into()),
        }
    }

    async fn save_user(&self, UserDocument { body, expected }: UserDocument) -> Response {
        if let Err(lost) = self.turn.check() {
            return Response::Failed(lost.into());
        }
        let user = self.user();
        let store = self.runtime.store();
        match store.save_document_if(Collection::Users, user.as_str(), &body, expected).await {
            Ok(swap) => Response::Saved(matches!(swap, Swap::Applied(_))),
            Err(error) => Response::Failed(error.into()),
        }
    }
}
