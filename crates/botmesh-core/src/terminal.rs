//! A provider on the terminal, or on a pipe: one chat, one line a message.

mod choice;
mod input;
mod line;
mod output;
mod provider;
mod show;

pub use line::MAX_LINE_BYTES;

use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use crate::id::{ChatKey, IdError, MessageId, ProviderId};
use crate::message::{Content, Message, Outgoing, Sender};
use crate::provider::{DeliverError, ProviderError, Session};
use crate::text::Language;
use choice::Choices;
use input::Input;
use output::Output;
use show::Style;

const DEFAULT_ID: &str = "terminal";
const DEFAULT_CHAT: &str = "local";
const QUIT: &str = "/quit";

/// Waits between attempts to deliver a line to a chat that is full.
const FIRST_WAIT: Duration = Duration::from_millis(5);
const LONGEST_WAIT: Duration = Duration::from_millis(500);

/// A chat with the person at the terminal, or with a script on a pipe.
///
/// Each line that is typed is a message; empty lines are none. What the bot says is printed behind
/// `bot> `, its buttons as numbered choices: the number or the label of one presses it. The end of
/// the input, `/quit` and Ctrl-C end [`run`](crate::provider::Provider::run) without an error, so that a bot whose
/// only provider this is stops when everything is answered.
///
/// A line that is not UTF-8 or longer than [`MAX_LINE_BYTES`] is reported on standard error with
/// its number and skipped. Nothing but the chat goes to standard output. Colour is used where a
/// person watches, unless the environment has `NO_COLOR`.
///
/// ```
/// use botmesh_core::message::Sender;
/// use botmesh_core::provider::Provider;
/// use botmesh_core::terminal::Terminal;
///
/// let terminal = Terminal::new().chat("ana")?.user(Sender::new("ana").named("Ana"));
/// assert_eq!(terminal.id().as_str(), "terminal");
/// # Ok::<(), botmesh_core::IdError>(())
/// ```
pub struct Terminal {
    id: ProviderId,
    chat: ChatKey,
    user: Option<Sender>,
    language: Option<Language>,
    style: Style,
    input: tokio::sync::Mutex<Input>,
    output: tokio::sync::Mutex<Output>,
    reports: Mutex<Box<dyn Write + Send>>,
    choices: Mutex<Choices>,
    /// Part of every message id, so that a restarted process repeats none.
    start: String,
    messages: AtomicU64,
    output_gone: CancellationToken,
}

impl Default for Terminal {
    fn default() -> Self {
        Self::new()
    }
}

impl Terminal {
    /// The terminal of this process: standard input and output. Nothing is read before the bot
    /// runs.
    #[must_use]
    pub fn new() -> Self {
        let live = io::stdout().is_terminal();
        let colour = live && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        let output = Output::new(tokio::io::stdout());
        Self::with(Input::standard(), output, Style { live, colour })
    }

    /// A terminal over any reader and writer, such as a socket, or a pipe in a test.
    #[must_use]
    pub fn over(
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
    ) -> Self {
        Self::with(Input::reader(reader), Output::new(writer), Style::default())
    }

    fn with(input: Input, output: Output, style: Style) -> Self {
        #[expect(clippy::expect_used, reason = "constants that a test builds from")]
        let (id, chat) = ProviderId::new(DEFAULT_ID)
            .and_then(|id| ChatKey::new(&id, DEFAULT_CHAT).map(|chat| (id, chat)))
            .expect("the default ids are valid");
        Self {
            id,
            chat,
            user: None,
            language: None,
            style,
            input: input.into(),
            output: output.into(),
            reports: Mutex::new(Box::new(io::stderr())),
            choices: Mutex::default(),
            start: uuid::Uuid::new_v4().simple().to_string(),
            messages: AtomicU64::new(0),
            output_gone: CancellationToken::new(),
        }
    }

    /// Sets the provider's id; it is `terminal` otherwise.
    ///
    /// # Errors
    /// [`IdError`] when the key of the chat gets too long.
    pub fn with_id(mut self, id: ProviderId) -> Result<Self, IdError> {
        self.chat = ChatKey::new(&id, &self.chat.chat())?;
        self.id = id;
        Ok(self)
    }

    /// Sets the id of the chat; it is `local` otherwise. A conversation goes on in the chat in
    /// which it began, so two people at one store need two chats.
    ///
    /// # Errors
    /// [`IdError`] when it is empty or too long.
    pub fn chat(mut self, chat: &str) -> Result<Self, IdError> {
        self.chat = ChatKey::new(&self.id, chat)?;
        Ok(self)
    }

    /// Sets who types; otherwise it is the user with the id of the chat.
    #[must_use]
    pub fn user(mut self, user: Sender) -> Self {
        self.user = Some(user);
        self
    }

    /// Sets the language of the person; otherwise the bot's default language is spoken.
    #[must_use]
    pub fn language(mut self, language: Language) -> Self {
        self.language = Some(language);
        self
    }

    /// Sets whether a person watches the output: then typing is shown, and control characters are
    /// not. It is found out for standard output, and is false for other writers.
    #[must_use]
    pub const fn live(mut self, live: bool) -> Self {
        self.style.live = live;
        self
    }

    /// Sets where skipped lines are reported; it is standard error otherwise.
    #[must_use]
    pub fn reports_to(mut self, reports: impl Write + Send + 'static) -> Self {
        self.reports = Mutex::new(Box::new(reports));
        self
    }

    /// The key of the one chat.
    #[must_use]
    pub const fn chat_key(&self) -> &ChatKey {
        &self.chat
    }

    fn next_id(&self, kind: char) -> Result<MessageId, ProviderError> {
        let number = self.messages.fetch_add(1, Ordering::Relaxed);
        MessageId::new(format!("{}-{kind}{number}", self.start))
            .map_err(|error| self.rejected(error.to_string()))
    }

    fn rejected(&self, reason: impl Into<String>) -> ProviderError {
        ProviderError::Rejected { provider: self.id.clone(), reason: reason.into() }
    }

    fn closed(&self, reason: &str) -> ProviderError {
        ProviderError::Closed { provider: self.id.clone(), reason: reason.into() }
    }

    fn check_chat(&self, chat: &ChatKey) -> Result<(), ProviderError> {
        if *chat == self.chat {
            return Ok(());
        }
        let reason = format!("the terminal has only the chat {}", self.chat);
        Err(ProviderError::ChatGone { provider: self.id.clone(), reason })
    }

    fn check_content(&self, message: &Outgoing) -> Result<(), ProviderError> {
        let Outgoing { text, attachments, buttons, location, .. } = message;
        if text.is_empty() && attachments.is_empty() && buttons.is_empty() && location.is_none() {
            return Err(self.rejected("the message is empty"));
        }
        Ok(())
    }

    /// Notes the choices and writes the text, both in the order of the sends.
    async fn print(
        &self,
        text: &str,
        choices: impl FnOnce(&mut Choices) + Send,
    ) -> Result<(), ProviderError> {
        let mut output = self.output.lock().await;
        choices(&mut self.choices.lock());
        output.write(text).await.map_err(|source| {
            if source.kind() == io::ErrorKind::BrokenPipe {
                self.output_gone.cancel();
                return self.closed("nobody reads the output any more");
            }
            ProviderError::Unreachable { provider: self.id.clone(), source: source.into() }
        })
    }

    async fn read(&self, input: &mut Input, session: &Session) -> Result<(), ProviderError> {
        loop {
            if input.held.is_none() && !self.take_line(input).await? {
                return Ok(());
            }
            if !self.deliver(input, session).await {
                return Ok(());
            }
        }
    }

    /// Reads up to the next message; false at the end of the chat.
    async fn take_line(&self, input: &mut Input) -> Result<bool, ProviderError> {
        loop {
            let line = input.next().await.map_err(|source| ProviderError::Unreachable {
                provider: self.id.clone(),
                source: source.into(),
            })?;
            let Some(line) = line else { return Ok(false) };
            let text = match line.text {
                Ok(text) => text,
                Err(error) => {
                    self.report(format_args!("line {} {error}", line.number));
                    continue;
                }
            };
            if text.trim() == QUIT {
                return Ok(false);
            }
            let press = self.choices.lock().typed(&text);
            let content = press.map_or(Content::Text(text), Content::Button);
            let mut message = Message::new(self.chat.clone(), content)
                .with_id(self.next_id('u')?)
                .with_sent_at(SystemTime::now().into());
            message.sender.clone_from(&self.user);
            message.language.clone_from(&self.language);
            input.held = Some((line.number, message));
            return Ok(true);
        }
    }

    /// Delivers the held message, waiting while the chat is full; false when the bot stops.
    async fn deliver(&self, input: &mut Input, session: &Session) -> bool {
        let mut wait = FIRST_WAIT;
        while let Some((number, message)) = &input.held {
            match session.inbound().deliver(message.clone()).await {
                Ok(_) => {}
                Err(DeliverError::Stopping) => return false,
                Err(DeliverError::ChatFull { .. }) => {
                    tokio::time::sleep(wait).await;
                    wait = (wait * 2).min(LONGEST_WAIT);
                    continue;
                }
                Err(error) => self.report(format_args!("line {number} was not taken: {error}")),
            }
            input.held = None;
        }
        true
    }

    fn report(&self, report: fmt::Arguments<'_>) {
        // Where standard error is closed there is nobody to tell.
        let _ = writeln!(self.reports.lock(), "{}: {report}", self.id);
    }
}

impl fmt::Debug for Terminal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Terminal")
            .field("id", &self.id)
            .field("chat", &self.chat)
            .field("style", &self.style)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
