//! What the runtime sees of a flow: no state types, no user closures, no I/O.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::{Problem, RestoreError, Run, SaveError};
use crate::conversation::{ConversationEnded, Script};
use crate::error::BotError;
use crate::matcher::Matcher;
use crate::message::{Message, Reply};
use crate::question::{Answer, Question, WaitToken};
use crate::text::Text;

/// Gives a text as the user of the chat sees it, in the language of the chat.
pub type Shown<'s> = dyn for<'a> Fn(&'a Text) -> Cow<'a, str> + 's;

/// A flow as the runtime drives it: a pure machine over [`Run`]s, without clock, chance or I/O.
///
/// A run begins with [`start`](Self::start) and [`Input::Enter`]; each further [`Input`] moves it
/// on by [`advance`](Self::advance), which says what is to be sent and what the run wants next.
pub trait FlowDefinition: fmt::Debug + Send + Sync + 'static {
    /// The name; unique within a bot.
    fn name(&self) -> &str;

    /// The messages that enter the flow.
    fn triggers(&self) -> &[Matcher];

    /// Whether and how runs are kept outside this process.
    fn persistence(&self) -> Persistence;

    /// Changes whenever the steps change in a way that a stored run could stumble over.
    fn fingerprint(&self) -> u64;

    /// What is wrong with the flow; told when the bot is built.
    fn problems(&self, limits: &Limits) -> Vec<Problem>;

    /// A new run, before its first step. `run_id` has to be random: it tells the buttons of
    /// different runs apart.
    ///
    /// # Errors
    /// [`Panicked`](crate::conversation::Panicked) when the initial state cannot be made.
    fn start(&self, run_id: u64) -> Result<Run, BotError>;

    /// Moves `run` on by `input`. What is to be said is appended to `effects`, in order.
    /// An error or a panic in user code ends the run.
    fn advance(
        &self,
        run: &mut Run,
        input: Input,
        shown: &Shown<'_>,
        effects: &mut Vec<Effect>,
    ) -> Outcome;

    /// Writes where `run` stands as JSON. While a `do_` step is under way that is the step's
    /// start with the first answer it was given, if that is not longer than `max_answer_bytes`.
    ///
    /// # Errors
    /// [`SaveError`].
    fn save(&self, run: &Run, max_answer_bytes: usize) -> Result<String, SaveError>;

    /// As [`save`](Self::save), but as if the question that the last
    /// [`advance`](Self::advance) asked had not been asked yet: what may be written before its
    /// effects are carried out. A run restored from it asks.
    ///
    /// # Errors
    /// [`SaveError`].
    fn save_unasked(&self, run: &Run, max_answer_bytes: usize) -> Result<String, SaveError>;

    /// Reads what [`save`](Self::save) wrote. Give the run [`Input::Enter`] to go on where it
    /// stood, or at once the message, the timeout or the wake-up for which it was read.
    ///
    /// # Errors
    /// [`RestoreError`].
    fn restore(&self, body: &str) -> Result<Run, RestoreError>;
}

/// Whether and how the runs of a flow are kept outside the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Persistence {
    /// In memory only.
    #[default]
    Memory,
    /// In memory, but able to be handed over to another replica.
    Forwardable,
    /// In the store, so that they survive a restart.
    Persistent,
}

/// What moves a run on.
#[derive(Debug)]
#[non_exhaustive]
#[allow(clippy::large_enum_variant, reason = "one lives at a time, on the stack")]
pub enum Input {
    /// Begin; or go on after a restore, without a message.
    Enter,
    /// The user wrote this.
    Message(Message),
    /// The wait has lasted as long as it may.
    TimedOut,
    /// Nobody has written for the time of the wait's `idle`.
    Idle,
    /// The time of a [`Outcome::Sleep`] or [`Outcome::ResumeAfter`] has passed.
    Woken,
    /// The script of a step asks; the text is what a wrong answer is told when it asks again.
    Asked(Arc<Question>, Option<Text>),
    /// The script of a step wants to stand still without holding the chat.
    Pausing(Duration),
    /// The script of a step has ended.
    ScriptFinished(Result<(), BotError>),
}

/// What a run does to the outside.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Effect {
    /// Say this in the chat.
    Say(Reply),
}

/// What a run wants next.
#[derive(Debug)]
#[non_exhaustive]
pub enum Outcome {
    /// The next message of the chat.
    Wait(Wait),
    /// That this script is driven: its questions come back as [`Input::Asked`], its pauses as
    /// [`Input::Pausing`], its end as [`Input::ScriptFinished`]; all else it requests is the
    /// runtime's business, but see [`Run::is_replaying`].
    Script(Script),
    /// That the script, which asked, is given this answer and driven on.
    Answer(Answer),
    /// That the request of the script fails with this, and it is driven on.
    Interrupt(ConversationEnded),
    /// That the script, which paused, is told that the time has passed, and is driven on.
    Resume,
    /// To be woken after this time, with the chat held meanwhile.
    Sleep(Duration),
    /// To be woken after this time; the chat is free meanwhile. (When the run was read from a
    /// store, the deadline that was stored with it holds.)
    ResumeAfter(Duration),
    /// Nothing: the message is not for the flow, and the run stands where it stood.
    NotMine(Message),
    /// Nothing: the input does not fit where the run stands, such as a timer that came late.
    Nothing,
    /// Nothing more. A message that the run had taken and not read is in [`Run::take_unread`].
    Finished(End),
}

/// A wait for the user.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Wait {
    /// What was asked.
    pub question: Arc<Question>,
    /// Marks its buttons.
    pub token: WaitToken,
    /// How long to wait before [`Input::TimedOut`].
    pub timeout: Option<Duration>,
    /// How long to wait in silence before [`Input::Idle`].
    pub idle: Option<Duration>,
    /// Whether the wait begins anew: timers are armed and the run is worth a checkpoint.
    /// Otherwise it is the wait from before: the timers that run, or the deadline that was
    /// stored, hold.
    pub fresh: bool,
}

/// How a run ended. What the user is told about it, such as that nobody answered in time, is
/// among the effects already.
#[derive(Debug)]
#[non_exhaustive]
pub enum End {
    /// It came to its end.
    Done,
    /// The user said a cancel word.
    Cancelled,
    /// Nobody answered in time.
    TimedOut,
    /// A question was answered wrongly too often.
    TooManyAttempts,
    /// User code failed or panicked.
    Failed(BotError),
}

/// What a flow is checked against when the bot is built.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// The longest that a step may hold a chat.
    pub settle: Duration,
    /// How long the bot lets a question wait that does not say so itself; none for ever.
    pub timeout: Option<Duration>,
}

impl Default for Limits {
    fn default() -> Self {
        Self { settle: Duration::from_secs(60), timeout: None }
    }
}

impl Limits {
    /// Sets the longest that a step may hold a chat.
    #[must_use]
    pub const fn settle(mut self, settle: Duration) -> Self {
        self.settle = settle;
        self
    }

    /// Sets how long the bot lets a question wait that does not say so itself.
    #[must_use]
    pub const fn timeout(mut self, timeout: Option<Duration>) -> Self {
        self.timeout = timeout;
        self
    }
}
