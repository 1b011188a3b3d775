use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use super::Runtime;
use super::profile;
use super::sender::needs_language;
use crate::conversation::{Next, Request, Response, Script, UserDocument};
use crate::coordination::TurnGuard;
use crate::error::BotError;
use crate::id::UserKey;
use crate::message::{Message, Reply};
use crate::provider::Receipt;
use crate::question::{Question, WaitToken};
use crate::store::{Collection, Swap};
use crate::text::{Language, Text};

/// Who a conversation talks to, kept from the last message.
#[derive(Debug, Clone)]
pub(super) struct Listener {
    user: UserKey,
    language: Option<Language>,
}

impl Listener {
    pub(super) fn of(message: &Message) -> Self {
        Self { user: message.user(), language: message.language.clone() }
    }

    /// The listener of a chat that nobody has written in since the bot started.
    pub(super) fn unheard(guard: &TurnGuard) -> Self {
        Self { user: guard.key().default_user(), language: None }
    }
}

/// A conversation's turn: where it acts while the turn lasts.
pub(super) struct Scene<'a> {
    pub(super) runtime: &'a Arc<Runtime>,
    pub(super) guard: &'a TurnGuard,
    pub(super) listener: &'a Listener,
}

/// Where a script came to rest.
pub(super) enum Pause {
    /// It asked and waits for an answer.
    Asks(Arc<Question>, WaitToken),
    /// It stands still for this long.
    Rests(Duration),
    /// It has ended.
    Ended(Result<(), BotError>),
}

impl Scene<'_> {
    pub(super) async fn say(&self, reply: impl Into<Reply>) -> Result<Receipt, BotError> {
        let reply = reply.into();
        let language = if needs_language(&reply) { Some(self.language().await?) } else { None };
        Ok(self.runtime.sender.send(self.guard, reply, language.as_ref()).await?)
    }

    pub(super) async fn language(&self) -> Result<Language, BotError> {
        if let Some(language) = &self.listener.language {
            return Ok(language.clone());
        }
        profile::language_of_chat(
            self.runtime.store(),
            self.guard.key(),
            self.runtime.sender.texts(),
        )
        .await
    }

    /// The language of the chat if `question` shows labels that depend on it.
    pub(super) async fn label_language(&self, question: &Question) -> Result<Language, BotError> {
        let localized = |label: &Text| matches!(label, Text::Localized(_));
        if question.options().iter().any(|option| localized(option.label())) {
            self.language().await
        } else {
            Ok(self.runtime.sender.texts().default_language().clone())
        }
    }

    pub(super) fn shown<'t>(&self, label: &'t Text, language: &Language) -> Cow<'t, str> {
        match label {
            Text::Plain(text) => Cow::Borrowed(text),
            other => self.runtime.sender.texts().resolve(other.clone(), language),
        }
    }

    /// Runs a script until it waits for somebody or ends; `token` gives each wait its own.
    pub(super) async fn drive(
        &self,
        script: &mut Script,
        mut token: impl FnMut() -> WaitToken,
    ) -> Pause {
        loop {
            let request = match script.next().await {
                Next::Finished(result) => return Pause::Ended(result),
                Next::Request(request) => request,
            };
            let response = match request {
                Request::Ask(question) => {
                    let token = token();
                    match self.say(question.to_reply(&token)).await {
                        Ok(_) => return Pause::Asks(question, token),
                        Err(error) => Response::Failed(error),
                    }
                }
                Request::AskAgain(question, text) => {
                    let token = token();
                    match self.say(question.to_reply(&token).caption(text)).await {
                        Ok(_) => return Pause::Asks(question, token),
                        Err(error) => Response::Failed(error),
                    }
                }
                Request::ResumeAfter(rest) => return Pause::Rests(rest),
                Request::Say(reply) => match self.say(*reply).await {
                    Ok(receipt) => Response::Sent(receipt),
                    Err(error) => Response::Failed(error),
                },
                Request::Typing => match self.runtime.sender.typing(self.guard).await {
                    Ok(()) => Response::Done,
                    Err(error) => Response::Failed(error.into()),
                },
                Request::LoadUser => self.load_user().await,
                Request::SaveUser(document) => self.save_user(document).await,
            };
            script.supply(response);
        }
    }

    async fn load_user(&self) -> Response {
        let user = self.listener.user.as_str();
        match self.runtime.store.load_document(Collection::Users, user).await {
            Ok(document) => Response::User(document),
            Err(error) => Response::Failed(error.into()),
        }
    }

    async fn save_user(&self, UserDocument { body, expected }: UserDocument) -> Response {
        if let Err(lost) = self.guard.check() {
            return Response::Failed(lost.into());
        }
        let user = self.listener.user.as_str();
        let saved = self.runtime.store.save_document_if(Collection::Users, user, &body, expected);
        match saved.await {
            Ok(swap) => Response::Saved(matches!(swap, Swap::Applied(_))),
            Err(error) => Response::Failed(error.into()),
        }
    }
}
