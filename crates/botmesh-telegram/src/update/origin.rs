use super::node::Node;
use crate::address::Address;
use botmesh_core::message::Sender;
use botmesh_core::{ChatKey, Language, ProviderId};

/// Where an update comes from, and from whom.
#[derive(Debug, Default)]
pub(super) struct Origin {
    address: Option<Address>,
    participant: Option<i64>,
    pub(super) sender: Option<Sender>,
    pub(super) language: Option<Language>,
}

impl Origin {
    /// Of a message: its author is whoever it is shown to be from.
    pub(super) fn of_message(message: &Node<'_>) -> Self {
        Self::new(message, author(message))
    }

    /// Of a press of a button: its author is who pressed, not who sent the message.
    pub(super) fn of_press(query: &Node<'_>) -> Self {
        let from = &query["from"];
        match address(&query["message"]) {
            Some(_) => Self::new(&query["message"], from),
            // The message was sent through the bot into a chat that it does not see.
            None => Self::private(from),
        }
    }

    /// Of anything else: in its chat if it has one, else in the chat with its author.
    pub(super) fn of_action(action: &Node<'_>) -> Self {
        let author = ["actor_chat", "from", "user", "voter_chat"]
            .iter()
            .map(|field| &action[*field])
            .find(|author| author["id"].as_i64().is_some())
            .unwrap_or(Node::null());
        let with_chat = [action, &action["message"]].into_iter().find(|it| address(it).is_some());
        match (with_chat, action["user_chat_id"].as_i64()) {
            (Some(place), _) => Self::new(place, author),
            (None, Some(chat)) => {
                Self { address: Some(Address::chat(chat)), ..Self::private(author) }
            }
            (None, None) => Self::private(author),
        }
    }

    /// Whether a message in the chat of a business account was written by its owner, or by this
    /// bot for the owner.
    pub(super) fn is_owner(message: &Node<'_>) -> bool {
        let private = message["chat"]["type"].as_str() == Some("private");
        private && message["from"]["id"].as_i64() != message["chat"]["id"].as_i64()
    }

    fn new(place: &Node<'_>, author: &Node<'_>) -> Self {
        let address = address(place);
        let in_group = match place["chat"]["type"].as_str() {
            Some("group" | "supergroup") => true,
            Some("private" | "channel") => false,
            // A kind of chat that is new: where many can write, an author is not the chat.
            _ => address.as_ref().is_some_and(|at| author["id"].as_i64() != Some(at.chat)),
        };
        let participant = if in_group { author["id"].as_i64() } else { None };
        Self { address, participant, sender: sender(author), language: language(author) }
    }

    fn private(author: &Node<'_>) -> Self {
        let address = author["id"].as_i64().map(Address::chat);
        Self { address, participant: None, sender: sender(author), language: language(author) }
    }

    pub(super) const fn has_place(&self) -> bool {
        self.address.is_some()
    }

    pub(super) fn key(&self, provider: &ProviderId) -> Option<ChatKey> {
        self.address.as_ref()?.key(provider, self.participant).ok()
    }
}

/// A channel or an anonymous administrator is shown in place of the account that is told.
fn author<'n, 'a>(message: &'n Node<'a>) -> &'n Node<'a> {
    let shown = &message["sender_chat"];
    if shown["id"].as_i64().is_some() { shown } else { &message["from"] }
}

fn address(place: &Node<'_>) -> Option<Address> {
    let chat = place["chat"]["id"].as_i64()?;
    let topic = place["is_topic_message"]
        .is_true()
        .then(|| place["message_thread_id"].as_i64())
        .flatten()
        .and_then(|topic| i32::try_from(topic).ok());
    let business = place["business_connection_id"].as_str().map(str::to_owned);
    Some(Address { chat, topic, business })
}

fn sender(author: &Node<'_>) -> Option<Sender> {
    let mut sender = Sender::new(author["id"].as_i64()?.to_string());
    sender.is_bot = author["is_bot"].is_true();
    sender.name = name(author);
    Some(sender)
}

/// The name of a person or a chat, as Telegram shows it.
pub(super) fn name(of: &Node<'_>) -> Option<String> {
    match (of["first_name"].as_str(), of["last_name"].as_str(), of["title"].as_str()) {
        (Some(first), Some(last), _) => Some(format!("{first} {last}")),
        (Some(only), None, _) | (None, Some(only), _) | (None, None, Some(only)) => {
            Some(only.to_owned())
        }
        (None, None, None) => None,
    }
}

fn language(author: &Node<'_>) -> Option<Language> {
    Language::new(author["language_code"].as_str()?).ok()
}
