//! What users write: the definition of a bot, its checks, and the running bot.

mod coordination;
mod dead_letters;
mod durability;
mod health;
#[cfg(feature = "scheduler")]
mod jobs;
mod problem;
mod running;
mod settings;
mod webhooks;

#[cfg(any(test, feature = "testing"))]
pub use crate::runtime::BrokenRule;
pub use crate::runtime::{
    Fallback, FallbackFunction, Handover, HandoverInfo, HandoverReason, ProviderSession,
    ReconcileFunction, Role, Uncertain, UncertainOutcome, UncertainSend,
};
pub use coordination::Coordination;
pub use dead_letters::DeadLetter;
pub use durability::Durability;
pub use health::{Health, HealthStatus, ProviderHealth};
pub use problem::{BuildError, Problem, Severity};
pub use running::RunningBot;
pub use webhooks::Webhooks;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::conversation::Conversation;
use crate::error::BotError;
use crate::flow::FlowDefinition;
use crate::matcher::Matcher;
use crate::message::Message;
use crate::provider::Provider;
use crate::runtime::{
    Action, Context, Conversations, Coordinated, Next, Route, Router, Runtime, Sender, Supervisor,
    box_handler, box_hook, box_layer,
};
use crate::store::{MemoryStore, Store};
use crate::text::Texts;
use settings::{PendingConversation, Settings};

/// The definition of a bot: where it is connected, what it keeps, what it answers.
///
/// Nothing happens before [`start`](Self::start) or [`run`](Self::run), which check the definition
/// first and report everything that is wrong with it at once.
///
/// ```no_run
/// use botmesh_core::prelude::*;
///
/// #[tokio::main]
/// async fn main() -> Result<(), BotError> {
///     Bot::new(Terminal::new())
///         .when("hi", |ctx| async move { ctx.reply("Hello!").await })
///         .run()
///         .await
/// }
/// ```
#[must_use = "a bot does nothing before it is started"]
pub struct Bot {
    providers: Vec<Arc<dyn Provider>>,
    store: Option<Arc<dyn Store>>,
    texts: Option<Texts>,
    router: Router,
    conversations: Vec<PendingConversation>,
    coordination: Option<Coordination>,
    durability: Option<Durability>,
    #[cfg(feature = "scheduler")]
    jobs: jobs::PendingJobs,
    settings: Settings,
}

/// A definition that has been checked and can be started.
#[must_use = "a bot does nothing before it is started"]
pub struct BuiltBot {
    runtime: Arc<Runtime>,
    warnings: Vec<Problem>,
    settings: Settings,
}

impl Bot {
    /// A bot that is connected to `provider`.
    pub fn new(provider: impl Provider) -> Self {
        Self {
            providers: vec![Arc::new(provider)],
            store: None,
            texts: None,
            router: Router::default(),
            conversations: Vec::new(),
            coordination: None,
            durability: None,
            #[cfg(feature = "scheduler")]
            jobs: jobs::PendingJobs::default(),
            settings: Settings::default(),
        }
    }

    /// Connects the bot to another platform as well.
    pub fn provider(mut self, provider: impl Provider) -> Self {
        self.providers.push(Arc::new(provider));
        self
    }

    /// Where the bot keeps its state; without it, in memory.
    pub fn store(mut self, store: impl Store) -> Self {
        self.store = Some(Arc::new(store));
        self
    }

    /// The texts of the bot and its default language; without it, the built-in ones.
    pub fn texts(mut self, texts: Texts) -> Self {
        self.texts = Some(texts);
        self
    }

    /// Handles the messages that `matcher` matches and that no conversation waits for. The first
    /// route that matches is taken, in the order in which they are added.
    pub fn when<F, R, T>(mut self, matcher: impl Into<Matcher>, handler: F) -> Self
    where
        F: Fn(Context) -> R + Send + Sync + 'static,
        R: Future<Output = Result<T, BotError>> + Send + 'static,
    {
        let action = Action::Handle(box_handler(handler));
        self.router.routes.push(Route { matcher: matcher.into(), action });
        self
    }

    /// Handles the messages that no route matches. Events and reactions, which nobody expects an
    /// answer to, are handled by routes alone.
    pub fn fallback<F, R, T>(mut self, handler: F) -> Self
    where
        F: Fn(Context) -> R + Send + Sync + 'static,
        R: Future<Output = Result<T, BotError>> + Send + 'static,
    {
        self.router.fallback = Some(box_handler(handler));
        self
    }

    /// Runs before anything else with each message, and may change it or drop it (`None`).
    ///
    /// ```
    /// # use botmesh_core::{Bot, Content, testing::TestProvider};
    /// let bot = Bot::new(TestProvider::new()).before(|mut message| async move {
    ///     if let Content::Text(text) = &mut message.content {
    ///         *text = text.replace('’', "'");
    ///     }
    ///     Ok(Some(message))
    /// });
    /// ```
    pub fn before<F, R>(mut self, hook: F) -> Self
    where
        F: Fn(Message) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Option<Message>, BotError>> + Send + 'static,
    {
        self.router.hooks.push(box_hook(hook));
        self
    }

    /// Wraps the handling of each message: what comes before and after
    /// [`next.run(ctx)`](Next::run), or instead of it. The first layer that is added is the
    /// outermost.
    ///
    /// ```
    /// # use botmesh_core::{Bot, testing::TestProvider};
    /// let bot = Bot::new(TestProvider::new()).layer(|ctx, next| async move {
    ///     let begun = std::time::Instant::now();
    ///     let result = next.run(ctx).await;
    ///     println!("took {:?}", begun.elapsed());
    ///     result
    /// });
    /// ```
    pub fn layer<F, R>(mut self, layer: F) -> Self
    where
        F: Fn(Context, Next) -> R + Send + Sync + 'static,
        R: Future<Output = Result<(), BotError>> + Send + 'static,
    {
        self.router.layers.push(box_layer(layer));
        self
    }

    /// Adds a conversation: an asynchronous function that asks and awaits answers. It is entered
    /// by name, with [`enter`] as a handler or [`Context::enter`] from one.
    ///
    /// ```
    /// # use botmesh_core::{Bot, bot::enter, command, testing::TestProvider};
    /// let bot = Bot::new(TestProvider::new())
    ///     .when(command("order"), enter("order"))
    ///     .conversation("order", |c| async move {
    ///         let item = c.ask("What would you like?").await?.text()?;
    ///         c.say(format!("One {item}, coming up.")).await
    ///     });
    /// ```
    pub fn conversation<F, R, T>(mut self, name: &'static str, function: F) -> Self
    where
        F: Fn(Conversation) -> R + Send + Sync + 'static,
        R: Future<Output = Result<T, BotError>> + Send + 'static,
    {
        self.conversations.push(PendingConversation::function(name, function));
        self
    }

    /// Adds a flow. The messages that [enter](crate::Flow::enter_on) it are routes like others: they
    /// come in the order in which flows and handlers are added.
    pub fn flow(mut self, flow: impl Into<Arc<dyn FlowDefinition>>) -> Self {
        let flow = flow.into();
        let number = self.conversations.len();
        self.router.routes.extend(
            flow.triggers()
                .iter()
                .map(|matcher| Route { matcher: matcher.clone(), action: Action::Enter(number) }),
        );
        self.conversations.push(PendingConversation::Flow(flow));
        self
    }

    /// Runs the bot as one of several replicas that share a backend. All run the same bot on the
    /// same store. Without it nothing of the kind happens, and the bot is a process of its own.
    pub fn coordination(mut self, coordination: Coordination) -> Self {
        self.coordination = Some(coordination);
        self
    }

    /// Keeps what the bot accepts until it was processed, in the inbox of the store.
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = Some(durability);
        self
    }

    /// How long a question without a timeout of its own waits; without it, for ever.
    pub const fn conversation_timeout(mut self, timeout: Duration) -> Self {
        self.settings.conversation_timeout = Some(timeout);
        self
    }

    /// Lets users end any asynchronous conversation with the words of the text
    /// `core.cancel.words`, in their language.
    pub const fn cancellable(mut self) -> Self {
        self.settings.cancellable = true;
        self
    }

    /// How many accepted messages may be in work in all; beyond that providers wait. Default
    /// 10,000.
    pub const fn max_in_work(mut self, messages: usize) -> Self {
        self.settings.max_in_work = messages;
        self
    }

    /// How many messages of one chat may wait; beyond that they are refused. Default 1,000.
    pub const fn max_waiting_per_chat(mut self, messages: usize) -> Self {
        self.settings.max_waiting_per_chat = messages;
        self
    }

    /// How many message ids are remembered to tell duplicates, of all chats. Default 100,000, of
    /// which the younger half at least is always known.
    pub const fn remembered_ids(mut self, ids: usize) -> Self {
        self.settings.remembered_ids = ids;
        self
    }

    /// How long a stop waits for handlers, and then for transports. Default 30 s.
    pub const fn stop_timeout(mut self, timeout: Duration) -> Self {
        self.settings.stop_timeout = timeout;
        self
    }

    /// Checks the definition.
    ///
    /// # Errors
    /// [`BuildError`] with everything that is wrong, if anything is.
    pub fn build(self) -> Result<BuiltBot, BuildError> {
        let Self {
            providers,
            store,
            texts,
            router,
            conversations,
            coordination,
            durability,
            settings,
            ..
        } = self;
        let mut problems = settings.problems();
        let limits = settings.flow_limits(coordination.as_ref());
        problems.extend(coordination.iter().flat_map(|it| it.problems(store.as_deref())));
        problems.extend(durability.iter().flat_map(|it| it.problems(store.as_deref())));
        problems.extend(settings::provider_problems(&providers));
        problems.extend(settings::route_problems(&router, &providers));
        let mut definitions = Vec::new();
        for pending in conversations {
            definitions.extend(pending.define(&limits, &mut problems));
        }
        problems.extend(settings::name_problems(&definitions));
        #[cfg(feature = "scheduler")]
        let jobs =
            self.jobs.define(store.as_deref(), &providers, coordination.as_ref(), &mut problems);
        let (errors, warnings) = Problem::split(problems);
        if !errors.is_empty() {
            return Err(BuildError::new(errors));
        }
        for warning in &warnings {
            tracing::warn!("{warning}");
        }
        let store = store.unwrap_or_else(|| Arc::new(MemoryStore::new()));
        let broken = coordination.as_ref().and_then(Coordination::broken_rule);
        let texts = texts.unwrap_or_else(Texts::builtin);
        let sender = Sender::new(providers, texts).breaking(broken);
        let conversations = Conversations::new(definitions, settings.conversing());
        let coordinated = coordination.map(|coordination| {
            let (coordinator, settings) = coordination.into_parts();
            Coordinated::new(coordinator, settings)
        });
        let lanes = settings.limits();
        let durable = durability.map(|it| it.into_durable(coordinated.is_none()));
        let runtime = Runtime::new(sender, store, router, conversations, lanes, coordinated)
            .with_durability(durable);
        #[cfg(feature = "scheduler")]
        let runtime = runtime.with_jobs(jobs);
        Ok(BuiltBot { runtime: Arc::new(runtime), warnings, settings })
    }

    /// Checks the definition, prepares the store and connects.
    ///
    /// # Errors
    /// [`BuildError`], or [`StoreError`](crate::store::StoreError) when the store is not ready.
    pub async fn start(self) -> Result<RunningBot, BotError> {
        self.build()?.start().await
    }

    /// Starts, and runs until every provider has ended or the process is told to stop (Ctrl-C,
    /// SIGTERM); then stops in order.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub async fn run(self) -> Result<(), BotError> {
        self.start().await?.until_signal().await
    }
}

impl BuiltBot {
    /// What is unusual about the definition, though it works.
    #[must_use]
    pub fn warnings(&self) -> &[Problem] {
        &self.warnings
    }

    /// Prepares the store and connects.
    ///
    /// # Errors
    /// [`StoreError`](crate::store::StoreError) when the store is not ready.
    pub async fn start(self) -> Result<RunningBot, BotError> {
        let store = self.runtime.store();
        store.prepare().await?;
        tracing::info!(
            version = env!("CARGO_PKG_VERSION"),
            store = store.name(),
            providers = ?self.runtime.sender().ids(),
            "the bot starts"
        );
        let supervisor = Supervisor::start(Arc::clone(&self.runtime)).await?;
        Ok(RunningBot::new(self.runtime, supervisor, self.settings.stop_timeout))
    }
}

/// A handler that enters the flow or conversation `name`.
pub fn enter(
    name: &'static str,
) -> impl Fn(Context) -> std::future::Ready<Result<(), BotError>> + Send + Sync {
    move |context| std::future::ready(context.enter(name))
}

impl fmt::Debug for Bot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bot")
            .field("providers", &self.providers)
            .field("store", &self.store)
            .field("routes", &self.router.routes.len())
            .field("conversations", &self.conversations.len())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for BuiltBot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BuiltBot").field("warnings", &self.warnings).finish_non_exhaustive()
    }
}
