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
    pub(super) fn of_message(message: Node<'_, '_>) -> Self {
        Self::new(message, author(message))
    }

    /// Of a press of a button: its author is who pressed, not who sent the message.
    pub(super) fn of_press(query: Node<'_, '_>) -> Self {
        let (from, message) = (query.get("from"), query.get("message"));
        match address(message) {
            Some(_) => Self::new(message, from),
            // The message was sent through the bot into a chat that it does not see.
            None => Self::private(from),
        }
    }

    /// Of anything else: in its chat if it has one, else in the chat with its author.
    pub(super) fn of_action(action: Node<'_, '_>) -> Self {
        let author = ["actor_chat", "from", "user", "voter_chat"]
            .iter()
            .map(|field| action.get(field))
            .find(|author| author.get("id").as_i64().is_some())
            .unwrap_or(Node::NULL);
        let with_chat =
            [action, action.get("message")].into_iter().find(|it| address(*it).is_some());
        match (with_chat, action.get("user_chat_id").as_i64()) {
            (Some(place), _) => Self::new(place, author),
            (None, Some(chat)) => {
                Self { address: Some(Address::chat(chat)), ..Self::private(author) }
            }
            (None, None) => Self::private(author),
        }
    }

    /// Whether a message in the chat of a business account was written by its owner, or by this
    /// bot for the owner.
    pub(super) fn is_owner(message: Node<'_, '_>) -> bool {
        let private = message.get("chat").get("type").as_str() == Some("private");
        private && message.get("from").get("id").as_i64() != message.get("chat").get("id").as_i64()
    }

    fn new(place: Node<'_, '_>, author: Node<'_, '_>) -> Self {
        let address = address(place);
        let in_group = match place.get("chat").get("type").as_str() {
            Some("group" | "supergroup") => true,
            Some("private" | "channel") => false,
            // A kind of chat that is new: where many can write, an author is not the chat.
            _ => address.as_ref().is_some_and(|at| author.get("id").as_i64() != Some(at.chat)),
        };
        let participant = if in_group { author.get("id").as_i64() } else { None };
        Self { address, participant, sender: sender(author), language: language(author) }
    }

    fn private(author: Node<'_, '_>) -> Self {
        let address = author.get("id").as_i64().map(Address::chat);
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
fn author<'n, 'a>(message: Node<'n, 'a>) -> Node<'n, 'a> {
    let shown = message.get("sender_chat");
    if shown.get("id").as_i64().is_some() { shown } else { message.get("from") }
}

fn address(place: Node<'_, '_>) -> Option<Address> {
    let chat = place.get("chat").get("id").as_i64()?;
    let topic = place
        .get("is_topic_message")
        .is_true()
        .then(|| place.get("message_thread_id").as_i64())
        .flatten()
        .and_then(|topic| i32::try_from(topic).ok());
    let business = place.get("business_connection_id").as_str().map(str::to_owned);
    Some(Address { chat, topic, business })
}

fn sender(author: Node<'_, '_>) -> Option<Sender> {
    let mut sender = Sender::new(author.get("id").as_i64()?.to_string());
    sender.is_bot = author.get("is_bot").is_true();
    sender.name = name(author);
    Some(sender)
}

/// The name of a person or a chat, as Telegram shows it.
pub(super) fn name(of: Node<'_, '_>) -> Option<String> {
    match (of.get("first_name").as_str(), of.get("last_name").as_str(), of.get("title").as_str()) {
        (Some(first), Some(last), _) => Some([first, " ", last].concat()),
        (Some(only), None, _) | (None, Some(only), _) | (None, None, Some(only)) => {
            Some(only.to_owned())
        }
        (None, None, None) => None,
    }
}

fn language(author: Node<'_, '_>) -> Option<Language> {
    Language::new(author.get("language_code").as_str()?).ok()
}
