//! One conversation, the same on every platform and however it is connected.

use botmesh_telegram::testing::{FakeChat, FakeTelegram};

use crate::balancer::Balancer;
use crate::process::{Replica, free_address};

/// What a customer does.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Act {
    Says(&'static str),
    Presses(&'static str),
}

impl Act {
    /// The customer does it.
    pub(crate) fn by(self, chat: &FakeChat) {
        match self {
            Self::Says(text) => chat.says(text),
            Self::Presses(label) => assert!(chat.presses(label), "there is no button {label:?}"),
        }
    }
}

/// A step of the conversation: what the customer does, and what the shop says to it.
pub(crate) const STORY: &[(Act, &[&str])] = &[
    (Act::Says("/start"), &["Welcome to the corner shop! What can I do for you?"]),
    (Act::Presses("Order something"), &["What would you like?"]),
    (Act::Presses("Cake"), &["How many pieces of cake?"]),
    (Act::Says("some"), &["A number, please, such as 2."]),
    (Act::Says("3"), &["Shall we deliver it?"]),
    (Act::Presses("Deliver it"), &["Which street and number?"]),
    (Act::Says("Main Street 5"), &["Which town?"]),
    (Act::Says("Cali"), &["Main Street 5, Cali: is that right?"]),
    (
        Act::Presses("Yes"),
        &["Order 1: 3 × cake, 12.60 €.", "It is on its way to Main Street 5, Cali."],
    ),
    (Act::Says("/orders"), &["You have one order:", "1: 3 × cake, 12.60 €"]),
];

/// Plays the steps; `before` is called before each with its number.
pub(crate) async fn play(chat: &FakeChat, mut before: impl AsyncFnMut(usize)) {
    let mut heard = chat.heard().len();
    for (number, (act, answers)) in STORY.iter().enumerate() {
        before(number).await;
        act.by(chat);
        for answer in *answers {
            assert_eq!(plain(&chat.hears(heard).await.text()), *answer, "after {act:?}");
            heard += 1;
        }
    }
    assert_eq!(chat.heard().len(), heard, "more was said: {:?}", chat.heard().last());
}

/// Without the marks that keep languages of two directions apart.
pub(crate) fn plain(text: &str) -> String {
    text.chars().filter(|c| !matches!(c, '\u{2068}' | '\u{2069}')).collect()
}

/// I1, A8: the shop, unchanged, by long polling.
#[tokio::test]
async fn the_shop_sells_a_cake_by_polling() {
    let platform = FakeTelegram::start().await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("shop.db");
    let _bot = Replica::start("telegram", &platform, &[("BOTMESH_DB", database.to_str().unwrap())]);
    let ana = platform.private(42);
    play(&ana, async |_| {}).await;
    let pictures = ana.heard().iter().filter(|call| !call.attachments().is_empty()).count();
    assert_eq!(pictures, 1);
}

/// I1, A8: the shop, unchanged, by webhook.
#[tokio::test]
async fn the_shop_sells_a_cake_by_webhook() {
    let platform = FakeTelegram::start().await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("shop.db");
    let address = free_address();
    let balancer = Balancer::start(vec![address.clone()]).await;
    let settings = [
        ("BOTMESH_DB", database.to_str().unwrap()),
        ("PUBLIC_URL", &balancer.url()),
        ("LISTEN", &address),
    ];
    let _bot = Replica::start("telegram_webhook", &platform, &settings);
    play(&platform.private(42), async |_| {}).await;
}
