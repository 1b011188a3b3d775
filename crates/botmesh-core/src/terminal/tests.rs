use std::sync::Arc;

use async_trait::async_trait;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use super::*;
use crate::message::{ButtonPress, OutgoingButton};
use crate::provider::{Accepted, ConnectionState, Deliveries, Inbound, Provider, SendOptions};

/// A running terminal, the person at it, and a bot that only listens.
struct Desk {
    terminal: Arc<Terminal>,
    keyboard: Option<DuplexStream>,
    screen: BufReader<DuplexStream>,
    reports: Arc<Mutex<Vec<u8>>>,
    heard: mpsc::UnboundedReceiver<Message>,
    state: watch::Receiver<ConnectionState>,
    cancel: CancellationToken,
    run: JoinHandle<Result<(), ProviderError>>,
}

#[derive(Clone, Default)]
struct Reports(Arc<Mutex<Vec<u8>>>);

impl Write for Reports {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Write::write(&mut *self.0.lock(), bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Refuses as often as told, then takes everything.
struct Listening {
    refusals: Mutex<Vec<DeliverError>>,
    heard: mpsc::UnboundedSender<Message>,
}

#[async_trait]
impl Deliveries for Listening {
    async fn deliver(&self, message: Message) -> Result<Accepted, DeliverError> {
        if let Some(refusal) = self.refusals.lock().pop() {
            return Err(refusal);
        }
        let _ = self.heard.send(message);
        Ok(Accepted::New)
    }
}

fn desk() -> Desk {
    desk_with(|terminal| terminal, Vec::new())
}

fn desk_with(set_up: impl FnOnce(Terminal) -> Terminal, refusals: Vec<DeliverError>) -> Desk {
    let (keyboard, reader) = tokio::io::duplex(1000);
    let (writer, screen) = tokio::io::duplex(1000);
    let reports = Reports::default();
    let terminal = Arc::new(set_up(Terminal::over(reader, writer).reports_to(reports.clone())));
    let (sender, heard) = mpsc::unbounded_channel();
    let listening = Listening { refusals: Mutex::new(refusals), heard: sender };
    let (state_sender, state) = watch::channel(ConnectionState::Connecting);
    let cancel = CancellationToken::new();
    let session =
        Session::new(Inbound::new(Arc::new(listening)), cancel.clone(), Arc::new(state_sender));
    let running = Arc::clone(&terminal);
    let run = tokio::spawn(async move { running.run(session).await });
    let screen = BufReader::new(screen);
    Desk {
        terminal,
        keyboard: Some(keyboard),
        screen,
        reports: reports.0,
        heard,
        state,
        cancel,
        run,
    }
}

impl Desk {
    async fn types(&mut self, bytes: impl AsRef<[u8]>) {
        self.keyboard.as_mut().unwrap().write_all(bytes.as_ref()).await.unwrap();
    }

    async fn hears(&mut self) -> Content {
        self.heard.recv().await.unwrap().content
    }

    async fn says(&self, message: Outgoing) -> MessageId {
        let options = SendOptions::default();
        let sent = self.terminal.send(self.terminal.chat_key(), &message, &options);
        sent.await.unwrap().message.unwrap()
    }

    async fn shows(&mut self) -> String {
        let mut line = String::new();
        self.screen.read_line(&mut line).await.unwrap();
        line
    }

    fn reported(&self) -> String {
        String::from_utf8(self.reports.lock().clone()).unwrap()
    }

    /// Ends the input and collects what was still to be heard.
    async fn ends(mut self) -> Vec<Content> {
        drop(self.keyboard.take());
        self.run.await.unwrap().unwrap();
        assert_eq!(*self.state.borrow(), ConnectionState::Closed);
        drop(self.terminal);
        let mut rest = Vec::new();
        while let Ok(message) = self.heard.try_recv() {
            rest.push(message.content);
        }
        rest
    }
}

fn text(text: &str) -> Content {
    Content::Text(text.into())
}

/// A11: each line of a piped script is a message, in order, and the end of the pipe ends the run
/// without an error.
#[tokio::test(start_paused = true)]
async fn a_piped_script_is_delivered_line_by_line_up_to_its_end() {
    let mut desk = desk();
    desk.types("/signup\nAna\r\n\n  \n42\nlast, without a line end").await;
    let heard = desk.ends().await;
    assert_eq!(heard, ["/signup", "Ana", "42", "last, without a line end"].map(text));
}

/// A11: `/quit` ends the chat; what stands behind it is not read.
#[tokio::test(start_paused = true)]
async fn quit_ends_the_chat() {
    let mut desk = desk();
    desk.types("hello\n /quit \nmore\n").await;
    (&mut desk.run).await.unwrap().unwrap();
    assert_eq!(desk.hears().await, text("hello"));
    assert!(desk.heard.try_recv().is_err());
}

/// A11: bad bytes and giant lines are reported with their line number and spoil nothing else.
#[tokio::test(start_paused = true)]
async fn bad_lines_are_reported_by_number_and_skipped() {
    let mut desk = desk();
    desk.types(b"one\n\xff\xfe\n\n").await;
    desk.types(vec![b'x'; MAX_LINE_BYTES + 1]).await;
    desk.types("\nfive\n").await;
    let reports = Arc::clone(&desk.reports);
    assert_eq!(desk.ends().await, [text("one"), text("five")]);
    assert_eq!(
        String::from_utf8(reports.lock().clone()).unwrap(),
        "terminal: line 2 is not valid UTF-8 and was skipped: send text as UTF-8\n\
         terminal: line 4 has more than 1048576 bytes and was skipped: send shorter messages\n"
    );
}

/// A11: a message of 1 MiB comes and goes whole.
#[tokio::test(start_paused = true)]
async fn one_mebibyte_of_text_comes_and_goes_whole() {
    let mut desk = desk();
    let long = "ñ".repeat(MAX_LINE_BYTES / 2);
    desk.types(format!("{long}\n")).await;
    assert!(desk.hears().await == text(&long));
    let terminal = Arc::clone(&desk.terminal);
    let shown = format!("bot> {long}\n");
    let send = tokio::spawn(async move {
        let message = Outgoing::text(long);
        terminal.send(terminal.chat_key(), &message, &SendOptions::default()).await
    });
    assert!(desk.shows().await == shown);
    send.await.unwrap().unwrap();
}

/// A8: buttons are numbered; a typed number or label brings back payload, label and message.
#[tokio::test(start_paused = true)]
async fn a_typed_number_presses_a_button() {
    let mut desk = desk();
    let mut menu = Outgoing::text("Which size?");
    menu.buttons =
        vec![OutgoingButton::new("Small", "size:s"), OutgoingButton::new("Large", "size:l")];
    let id = desk.says(menu.clone()).await;
    assert_eq!(desk.shows().await, "bot> Which size?\n");
    assert_eq!(desk.shows().await, "  [1] Small\n");
    assert_eq!(desk.shows().await, "  [2] Large\n");
    desk.types("2\n").await;
    let mut press = ButtonPress::new("size:l").with_label("Large");
    press.message = Some(id);
    assert_eq!(desk.hears().await, Content::Button(press));
    desk.types("2\n").await;
    assert_eq!(desk.hears().await, text("2"));
}

/// A8: edits, deletions, reactions are lines; typing is nothing on a pipe.
#[tokio::test(start_paused = true)]
async fn what_is_no_message_is_a_line_and_typing_is_nothing_on_a_pipe() {
    let mut desk = desk();
    let id = desk.says(Outgoing::text("One\nmore")).await;
    let (terminal, chat) = (Arc::clone(&desk.terminal), desk.terminal.chat_key().clone());
    terminal.typing(&chat).await.unwrap();
    terminal.edit(&chat, &id, &Outgoing::text("Two")).await.unwrap();
    terminal.react(&chat, &id, Some("👍")).await.unwrap();
    terminal.react(&chat, &id, None).await.unwrap();
    terminal.delete(&chat, &id).await.unwrap();
    for line in [
        "bot> One\n",
        "     more\n",
        "bot> [edited] Two\n",
        "bot> [reaction] 👍\n",
        "bot> [took a reaction back]\n",
        "bot> [deleted a message]\n",
    ] {
        assert_eq!(desk.shows().await, line);
    }
}

/// A8: where a person watches, typing is a sign that the next line replaces.
#[tokio::test(start_paused = true)]
async fn typing_is_shown_to_a_person() {
    let mut desk = desk_with(|terminal| terminal.live(true), Vec::new());
    desk.terminal.typing(desk.terminal.chat_key()).await.unwrap();
    desk.says(Outgoing::text("Hi")).await;
    assert_eq!(desk.shows().await, "…\rbot> Hi\n");
}

/// A11: a full chat slows the pipe down instead of losing lines; a stopping bot ends the run.
#[tokio::test(start_paused = true)]
async fn a_full_chat_holds_the_pipe_back() {
    let full = || DeliverError::ChatFull { waiting: 16 };
    let mut desk = desk_with(|terminal| terminal, vec![full(), full(), full()]);
    desk.types("one\ntwo\n").await;
    assert_eq!(desk.ends().await, [text("one"), text("two")]);

    let mut desk = desk_with(|terminal| terminal, vec![DeliverError::Stopping]);
    desk.types("one\ntwo\n").await;
    (&mut desk.run).await.unwrap().unwrap();
    assert!(desk.heard.try_recv().is_err());
}

#[tokio::test(start_paused = true)]
async fn a_line_that_cannot_be_stored_is_reported() {
    let mut desk = desk_with(|terminal| terminal, vec![DeliverError::Store("disk full".into())]);
    desk.types("one\ntwo\n").await;
    assert_eq!(desk.hears().await, text("two"));
    assert_eq!(
        desk.reported(),
        "terminal: line 1 was not taken: the message could not be stored\n"
    );
}

/// A11: a run that was cancelled loses nothing: the next one goes on at the same line.
#[tokio::test(start_paused = true)]
async fn a_second_run_goes_on_where_the_first_was_cancelled() {
    let full = DeliverError::ChatFull { waiting: 1 };
    let mut desk = desk_with(|terminal| terminal, vec![full]);
    desk.types("one\ntwo\nth").await;
    desk.state.wait_for(|state| *state == ConnectionState::Open).await.unwrap();
    // The first line waits for its second attempt.
    tokio::time::sleep(Duration::from_millis(1)).await;
    desk.cancel.cancel();
    (&mut desk.run).await.unwrap().unwrap();
    assert!(desk.heard.try_recv().is_err());

    let (sender, mut heard) = mpsc::unbounded_channel();
    let listening = Listening { refusals: Mutex::default(), heard: sender };
    let state = Arc::new(watch::channel(ConnectionState::Connecting).0);
    let session = Session::new(Inbound::new(Arc::new(listening)), CancellationToken::new(), state);
    desk.types("ree\n").await;
    drop(desk.keyboard.take());
    desk.terminal.run(session).await.unwrap();
    drop(desk.terminal);
    for line in ["one", "two", "three"] {
        assert_eq!(heard.recv().await.unwrap().content, text(line));
    }
}

/// A11: a restarted process repeats no message id, so nothing is taken for a duplicate.
#[tokio::test(start_paused = true)]
async fn message_ids_are_unique_over_restarts() {
    let mut ids = std::collections::HashSet::new();
    for _ in 0..2 {
        let mut desk = desk();
        desk.types("a\nb\n").await;
        ids.insert(desk.heard.recv().await.unwrap().id.unwrap());
        ids.insert(desk.heard.recv().await.unwrap().id.unwrap());
        ids.insert(desk.says(Outgoing::text("c")).await);
    }
    assert_eq!(ids.len(), 6);
}

/// A15: chat, user, language and id are those that were set.
#[tokio::test(start_paused = true)]
async fn messages_carry_who_and_where() {
    let mut desk = desk_with(
        |terminal| {
            let id = ProviderId::new("desk").unwrap();
            let terminal = terminal.chat("c").and_then(|terminal| terminal.with_id(id)).unwrap();
            let user = Sender::new("ana").named("Ana");
            terminal.user(user).language(Language::new("es-CO").unwrap())
        },
        Vec::new(),
    );
    desk.types("hola\n").await;
    let message = desk.heard.recv().await.unwrap();
    assert_eq!(message.chat.as_str(), "desk:c");
    assert_eq!(message.user().as_str(), "desk:ana");
    assert_eq!(message.language, Some(Language::new("es-CO").unwrap()));
    assert!(message.sent_at.as_millis() > 0);
}

/// A8: what cannot be sent is a typed error.
#[tokio::test(start_paused = true)]
async fn sends_that_cannot_succeed_are_typed_errors() {
    let desk = desk();
    let options = SendOptions::default();
    let other = ChatKey::new(desk.terminal.id(), "other").unwrap();
    let gone = desk.terminal.send(&other, &Outgoing::text("x"), &options).await;
    assert!(matches!(gone, Err(ProviderError::ChatGone { .. })));
    let chat = desk.terminal.chat_key();
    let empty = desk.terminal.send(chat, &Outgoing::default(), &options).await;
    assert!(matches!(empty, Err(ProviderError::Rejected { .. })));
}

#[tokio::test(start_paused = true)]
async fn a_reader_of_the_output_that_goes_away_ends_the_run() {
    let desk = desk();
    drop(desk.screen);
    let message = Outgoing::text("anybody?");
    let options = SendOptions::default();
    let sent = desk.terminal.send(desk.terminal.chat_key(), &message, &options);
    assert!(matches!(sent.await, Err(ProviderError::Closed { .. })));
    assert!(matches!(desk.run.await.unwrap(), Err(ProviderError::Closed { .. })));
}

/// A11: a send that gave up because nobody reads leaves whole lines behind, in order.
#[tokio::test(start_paused = true)]
async fn a_send_that_times_out_tears_no_line() {
    let mut desk = desk();
    let first = format!("{}|", "1".repeat(3000));
    let options = SendOptions { timeout: Some(Duration::from_secs(1)), ..SendOptions::default() };
    let chat = desk.terminal.chat_key().clone();
    let late = desk.terminal.send(&chat, &Outgoing::text(first.clone()), &options).await;
    assert!(matches!(late, Err(ProviderError::Unreachable { .. })));
    let terminal = Arc::clone(&desk.terminal);
    let second = tokio::spawn(async move {
        terminal.send(&chat, &Outgoing::text("2"), &SendOptions::default()).await
    });
    assert_eq!(desk.shows().await, format!("bot> {first}\n"));
    assert_eq!(desk.shows().await, "bot> 2\n");
    second.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn two_runs_at_once_are_refused() {
    let mut desk = desk();
    desk.state.wait_for(|state| *state == ConnectionState::Open).await.unwrap();
    let listening = Listening { refusals: Mutex::default(), heard: mpsc::unbounded_channel().0 };
    let state = Arc::new(watch::channel(ConnectionState::Connecting).0);
    let session = Session::new(Inbound::new(Arc::new(listening)), CancellationToken::new(), state);
    assert!(matches!(desk.terminal.run(session).await, Err(ProviderError::Closed { .. })));
}

/// I7: Debug shows where messages go, not what was said.
#[tokio::test(start_paused = true)]
async fn debug_shows_no_message() {
    let mut desk = desk();
    let mut menu = Outgoing::text("secret-text");
    menu.buttons = vec![OutgoingButton::new("secret-label", "secret-payload")];
    desk.says(menu).await;
    desk.types("secret-answer\n").await;
    desk.hears().await;
    let shown = format!("{:?}", desk.terminal);
    assert!(shown.contains("terminal:local") && !shown.contains("secret"), "{shown}");
}
