use super::*;
use crate::id::MessageId;
use crate::message::{Attachment, AttachmentSource, MediaKind, Outgoing, OutgoingButton};
use crate::provider::{Capability, ConnectionState, Deliveries, Inbound, Provider, SendOptions};
use async_trait::async_trait;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

type Run = tokio::task::JoinHandle<Result<(), ProviderError>>;

#[derive(Default)]
struct Bot {
    heard: Mutex<Vec<Message>>,
}

#[async_trait]
impl Deliveries for Bot {
    async fn deliver(&self, message: Message) -> Result<Accepted, DeliverError> {
        self.heard.lock().push(message);
        Ok(Accepted::New)
    }
}

struct Connected {
    bot: Arc<Bot>,
    state: watch::Receiver<ConnectionState>,
    cancel: CancellationToken,
    run: Run,
}

fn connect(platform: &TestProvider) -> Connected {
    let bot = Arc::new(Bot::default());
    let (sender, state) = watch::channel(ConnectionState::Connecting);
    let cancel = CancellationToken::new();
    let inbound = Inbound::new(Arc::clone(&bot) as Arc<dyn Deliveries>);
    let session = Session::new(inbound, cancel.clone(), Arc::new(sender));
    let provider = platform.clone();
    let run = tokio::spawn(async move { provider.run(session).await });
    Connected { bot, state, cancel, run }
}

async fn send(
    platform: &TestProvider,
    chat: &ChatKey,
    text: &str,
) -> Result<MessageId, ProviderError> {
    let message = Outgoing::text(text.to_owned());
    let receipt = platform.send(chat, &message, &SendOptions::default()).await?;
    Ok(receipt.message.unwrap())
}

fn log(platform: &TestProvider) -> Vec<String> {
    platform.transcript().iter().map(ToString::to_string).collect()
}

/// A11: what users say waits for a bot, arrives in order, and each has an id of its own.
#[tokio::test(start_paused = true)]
async fn users_talk_to_a_bot_as_soon_as_it_is_connected() {
    let platform = TestProvider::new();
    let ana = platform.chat("ana");
    let (said, connected) = tokio::join!(
        async {
            [platform.says(&ana, "one").await.unwrap(), platform.says(&ana, "two").await.unwrap()]
        },
        async { connect(&platform) },
    );
    assert_ne!(said[0].id, said[1].id);
    assert_eq!(*connected.bot.heard.lock(), said);
    assert_eq!(*connected.state.borrow(), ConnectionState::Open);
}

/// A11: a script that talks to nobody fails instead of waiting for ever.
#[tokio::test(start_paused = true)]
async fn talking_to_no_bot_is_an_error_after_a_minute() {
    let platform = TestProvider::new();
    let said = platform.says(&platform.chat("ana"), "anybody?").await;
    assert!(matches!(said, Err(ScriptError::NotConnected)));
}

/// A11: the transcript has everything in order and reads like a chat.
#[tokio::test(start_paused = true)]
async fn the_transcript_reads_like_a_chat() {
    let platform = TestProvider::new();
    let _connected = connect(&platform);
    let (ana, bo) = (platform.chat("ana"), platform.chat("bo"));
    platform.says(&ana, "hi").await.unwrap();
    let mut menu = Outgoing::text("Tea?");
    menu.buttons = vec![OutgoingButton::new("Yes", "y")];
    let sent = platform.send(&ana, &menu, &SendOptions::default()).await.unwrap();
    let id = sent.message.unwrap();
    send(&platform, &bo, "hello bo").await.unwrap();
    platform.typing(&ana).await.unwrap();
    platform.presses(&ana, "Yes").await.unwrap();
    platform.edit(&ana, &id, &Outgoing::text("Tea.")).await.unwrap();
    platform.react(&ana, &id, Some("👍")).await.unwrap();
    platform.react(&ana, &id, None).await.unwrap();
    platform.delete(&ana, &id).await.unwrap();
    assert_eq!(
        log(&platform),
        [
            "ana> hi",
            "bot> Tea? [Yes]",
            "bot> hello bo",
            "bot types",
            "ana> Yes",
            "bot edits m2> Tea.",
            "bot reacts to m2: 👍",
            "bot takes its reaction to m2 back",
            "bot deletes m2",
        ]
    );
    assert_eq!(platform.transcript_of(&bo).len(), 1);
}

/// A11: the newest button with the label is pressed; one that is gone cannot be.
#[tokio::test(start_paused = true)]
async fn only_buttons_that_are_shown_are_pressed() {
    let platform = TestProvider::new();
    let connected = connect(&platform);
    let ana = platform.chat("ana");
    let mut ids = Vec::new();
    for payload in ["first", "second"] {
        let mut menu = Outgoing::text("Which?");
        menu.buttons = vec![OutgoingButton::new("Go", payload)];
        let receipt = platform.send(&ana, &menu, &SendOptions::default()).await.unwrap();
        ids.push(receipt.message.unwrap());
    }
    platform.presses(&ana, "Go").await.unwrap();
    platform.edit(&ana, &ids[1], &Outgoing::text("Which?")).await.unwrap();
    platform.presses(&ana, "Go").await.unwrap();
    platform.delete(&ana, &ids[0]).await.unwrap();
    let gone = platform.presses(&ana, "Go").await;
    assert!(matches!(gone, Err(ScriptError::NoButton { offered, .. }) if offered.is_empty()));
    let pressed: Vec<_> = connected.bot.heard.lock().iter().map(|m| m.content.clone()).collect();
    let press = |payload: &str, id: &MessageId| {
        let mut press = ButtonPress::new(payload).with_label("Go");
        press.message = Some(id.clone());
        Content::Button(press)
    };
    assert_eq!(pressed, [press("second", &ids[1]), press("first", &ids[0])]);
}

/// A11: the next thing that a chat hears is awaited without sleeping, and none is missed.
#[tokio::test(start_paused = true)]
async fn a_listener_hears_each_thing_once_and_in_order() {
    let platform = TestProvider::new();
    let _connected = connect(&platform);
    let (ana, bo) = (platform.chat("ana"), platform.chat("bo"));
    send(&platform, &ana, "before").await.unwrap();
    let mut heard = platform.listen(&ana);
    assert_eq!(heard.try_next(), None);
    let late = platform.clone();
    let chats = [bo.clone(), ana.clone(), ana.clone()];
    let sending = tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(5)).await;
        late.typing(&chats[1]).await.unwrap();
        for (chat, text) in chats.iter().zip(["for bo", "one", "two"]) {
            send(&late, chat, text).await.unwrap();
        }
    });
    assert_eq!(heard.next().await.what, Happening::Typing);
    assert_eq!(heard.next_message().await.text, "one");
    sending.await.unwrap();
    let mut also = heard.clone();
    assert_eq!(heard.next().await.to_string(), "bot> two");
    assert_eq!(also.next().await.to_string(), "bot> two");
    platform.says(&ana, "thanks").await.unwrap();
    assert_eq!(heard.try_next(), None);
}

/// A11: sends fail, get lost and take their time as the script says.
#[tokio::test(start_paused = true)]
async fn sends_fail_as_scripted() {
    let platform = TestProvider::new();
    let ana = platform.chat("ana");
    let limit = || ProviderError::RateLimited {
        provider: platform.id().clone(),
        retry_after: Duration::from_secs(3),
    };
    platform.fail_next_send(limit());
    platform.lose_next_receipt();
    assert!(matches!(send(&platform, &ana, "1").await, Err(ProviderError::RateLimited { .. })));
    assert!(matches!(send(&platform, &ana, "2").await, Err(ProviderError::Unreachable { .. })));
    send(&platform, &ana, "3").await.unwrap();
    assert_eq!(log(&platform), ["bot> 2", "bot> 3"]);

    platform.delay_sends(Duration::from_secs(10));
    let begun = tokio::time::Instant::now();
    send(&platform, &ana, "4").await.unwrap();
    assert_eq!(begun.elapsed(), Duration::from_secs(10));
    let options = SendOptions { timeout: Some(Duration::from_secs(9)), ..SendOptions::default() };
    let late = platform.send(&ana, &Outgoing::text("5"), &options).await;
    assert!(matches!(late, Err(ProviderError::Unreachable { .. })));
    assert_eq!(log(&platform).len(), 3);
}

/// A11: an interrupted connection holds users and refuses sends until it is there again.
#[tokio::test(start_paused = true)]
async fn an_interrupted_connection_comes_back() {
    let platform = TestProvider::new();
    let mut connected = connect(&platform);
    let ana = platform.chat("ana");
    connected.state.wait_for(|state| *state == ConnectionState::Open).await.unwrap();
    platform.interrupt();
    connected.state.wait_for(|state| *state == ConnectionState::Connecting).await.unwrap();
    assert!(matches!(send(&platform, &ana, "x").await, Err(ProviderError::Unreachable { .. })));
    let user = platform.clone();
    let chat = ana.clone();
    let said = tokio::spawn(async move { user.says(&chat, "still there?").await });
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(connected.bot.heard.lock().is_empty());
    platform.restore();
    said.await.unwrap().unwrap();
    send(&platform, &ana, "yes").await.unwrap();
}

/// A11: a connection that is closed for good ends the run with an error, one that ends without.
#[tokio::test(start_paused = true)]
async fn a_connection_ends_as_scripted() {
    let platform = TestProvider::new();
    let ana = platform.chat("ana");
    let connected = connect(&platform);
    platform.close("logged out");
    assert!(matches!(connected.run.await.unwrap(), Err(ProviderError::Closed { .. })));
    assert_eq!(*connected.state.borrow(), ConnectionState::Closed);
    assert!(matches!(send(&platform, &ana, "x").await, Err(ProviderError::Closed { .. })));
    assert!(!platform.is_connected());

    platform.restore();
    let connected = connect(&platform);
    platform.says(&ana, "again").await.unwrap();
    platform.end();
    connected.run.await.unwrap().unwrap();
    send(&platform, &ana, "the last answer").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn cancelling_or_dropping_a_run_disconnects() {
    let platform = TestProvider::new();
    let connected = connect(&platform);
    platform.says(&platform.chat("ana"), "hi").await.unwrap();
    connected.cancel.cancel();
    connected.run.await.unwrap().unwrap();
    assert!(!platform.is_connected());
    let connected = connect(&platform);
    platform.says(&platform.chat("ana"), "hi").await.unwrap();
    connected.run.abort();
    assert!(connected.run.await.unwrap_err().is_cancelled());
    assert!(!platform.is_connected());
    assert_eq!(*connected.state.borrow(), ConnectionState::Closed);
}

/// A11: the end of an old run does not take the session of a new one away.
#[tokio::test(start_paused = true)]
async fn an_old_run_that_ends_late_disturbs_no_new_one() {
    let platform = TestProvider::new();
    let old = connect(&platform);
    platform.says(&platform.chat("ana"), "to the old").await.unwrap();
    let new = connect(&platform);
    tokio::task::yield_now().await;
    old.cancel.cancel();
    old.run.await.unwrap().unwrap();
    platform.says(&platform.chat("ana"), "to the new").await.unwrap();
    assert_eq!((old.bot.heard.lock().len(), new.bot.heard.lock().len()), (1, 1));
}

/// A8: what the platform is told to lack is an error or said in words.
#[tokio::test(start_paused = true)]
async fn capabilities_are_those_that_were_chosen() {
    let platform = TestProvider::new().with_capabilities(Capabilities::default());
    let ana = platform.chat("ana");
    let mut message = Outgoing::text("Tea?");
    message.buttons = vec![OutgoingButton::new("Yes", "y")];
    let id = platform.send(&ana, &message, &SendOptions::default()).await.unwrap().message.unwrap();
    assert_eq!(log(&platform), ["bot> Tea?\n1. Yes"]);
    let url = AttachmentSource::Url("https://example.org/a.png".into());
    message.attachments = vec![Attachment::new(MediaKind::Image, url)];
    let unsupported = [
        platform.send(&ana, &message, &SendOptions::default()).await.map(drop),
        platform.edit(&ana, &id, &Outgoing::text("x")).await,
        platform.delete(&ana, &id).await,
        platform.react(&ana, &id, None).await,
        platform.typing(&ana).await,
    ];
    let found = unsupported.map(|result| match result {
        Err(ProviderError::Unsupported { capability, .. }) => capability,
        other => panic!("{other:?}"),
    });
    use Capability::{Delete, Edit, Media, React, Typing};
    assert_eq!(found, [Media, Edit, Delete, React, Typing]);
}

/// A11: where the platform honours idempotency keys, a repeated send is one message.
#[tokio::test(start_paused = true)]
async fn a_repeated_key_is_one_message_only_where_keys_are_honoured() {
    for honours in [true, false] {
        let able = Capabilities { idempotent_send: honours, ..Capabilities::default() };
        let platform = TestProvider::new().with_capabilities(able);
        let options = SendOptions { idempotency_key: Some("k".into()), ..SendOptions::default() };
        let mut receipts = Vec::new();
        for chat in ["ana", "ana", "bo"] {
            let message = Outgoing::text("x");
            receipts.push(platform.send(&platform.chat(chat), &message, &options).await.unwrap());
        }
        assert_eq!(receipts[0] == receipts[1], honours);
        assert_eq!(log(&platform).len(), if honours { 2 } else { 3 });
    }
}

/// A11: replicas share the platform, not the connection.
#[tokio::test(start_paused = true)]
async fn another_connection_has_its_own_session_and_faults() {
    let first = TestProvider::new();
    let second = first.another_connection();
    let (one, two) = (connect(&first), connect(&second));
    let ana = first.chat("ana");
    second.says(&ana, "to the second").await.unwrap();
    assert!(one.bot.heard.lock().is_empty());
    assert_eq!(two.bot.heard.lock().len(), 1);
    first.close("gone");
    assert!(send(&first, &ana, "x").await.is_err());
    send(&second, &ana, "y").await.unwrap();
    assert_eq!(log(&first), ["ana> to the second", "bot> y"]);
}

/// A3: the platform can deliver one message twice, with one id.
#[tokio::test(start_paused = true)]
async fn a_repeated_message_has_the_same_id() {
    let platform = TestProvider::new();
    let connected = connect(&platform);
    let ana = platform.chat("ana");
    assert!(matches!(platform.repeats(&ana).await, Err(ScriptError::NothingSaid { .. })));
    let said = platform.says(&ana, "once").await.unwrap();
    platform.repeats(&ana).await.unwrap();
    assert_eq!(*connected.bot.heard.lock(), [said.clone(), said]);
}

/// I7: Debug shows nothing of what was said.
#[tokio::test(start_paused = true)]
async fn debug_shows_no_message() {
    let platform = TestProvider::new();
    send(&platform, &platform.chat("ana"), "secret").await.unwrap();
    assert_eq!(
        format!("{platform:?}"),
        "TestProvider { id: ProviderId(\"test\"), connected: false, .. }"
    );
}
