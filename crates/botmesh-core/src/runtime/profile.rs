use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::coordination::TurnGuard;
use crate::error::BotError;
use crate::id::{ChatKey, UserKey};
use crate::message::Message;
use crate::store::{Collection, Store, Swap};
use crate::text::{Language, Texts};

/// What is kept of a chat.
#[derive(Default, Serialize, Deserialize)]
struct ChatProfile {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    language: Option<Language>,
}

pub(crate) async fn load_user<T: DeserializeOwned + Default>(
    store: &dyn Store,
    user: &UserKey,
) -> Result<T, BotError> {
    match store.load_document(Collection::Users, user.as_str()).await? {
        None => Ok(T::default()),
        Some(document) => Ok(serde_json::from_str(&document.body)?),
    }
}

pub(crate) async fn update_user<T>(
    store: &dyn Store,
    guard: &TurnGuard,
    user: &UserKey,
    change: impl FnMut(&mut T) + Send,
) -> Result<T, BotError>
where
    T: Serialize + DeserializeOwned + Default + Send,
{
    update(store, guard, Collection::Users, user.as_str(), change).await
}

/// The language of a message: the one that was set for its chat, else its own, else the default.
pub(crate) async fn language(
    store: &dyn Store,
    message: &Message,
    texts: &Texts,
) -> Result<Language, BotError> {
    let set = language_of_chat(store, &message.chat).await?;
    let language = set.or_else(|| message.language.clone());
    Ok(language.unwrap_or_else(|| texts.default_language().clone()))
}

/// The language that was set for the chat.
pub(crate) async fn language_of_chat(
    store: &dyn Store,
    chat: &ChatKey,
) -> Result<Option<Language>, BotError> {
    let document = store.load_document(Collection::Chats, chat.as_str()).await?;
    match document {
        None => Ok(None),
        Some(document) => Ok(serde_json::from_str::<ChatProfile>(&document.body)?.language),
    }
}

pub(crate) async fn set_language(
    store: &dyn Store,
    guard: &TurnGuard,
    chat: &ChatKey,
    language: &Language,
) -> Result<(), BotError> {
    let set = |profile: &mut ChatProfile| profile.language = Some(language.clone());
    update(store, guard, Collection::Chats, chat.as_str(), set).await.map(drop)
}

async fn update<T>(
    store: &dyn Store,
    guard: &TurnGuard,
    collection: Collection,
    key: &str,
    mut change: impl FnMut(&mut T) + Send,
) -> Result<T, BotError>
where
    T: Serialize + DeserializeOwned + Default + Send,
{
    loop {
        let stored = store.load_document(collection, key).await?;
        let mut data: T = match &stored {
            None => T::default(),
            Some(document) => serde_json::from_str(&document.body)?,
        };
        change(&mut data);
        let body = serde_json::to_string(&data)?;
        guard.check()?;
        let expected = stored.map(|document| document.revision);
        if let Swap::Applied(_) = store.save_document_if(collection, key, &body, expected).await? {
            return Ok(data);
        }
    }
}
