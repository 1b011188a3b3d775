use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use super::{Context, Runtime};
use crate::error::BotError;
use crate::matcher::{Matched, Matcher};
use crate::message::Message;

pub(crate) type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;
pub(crate) type BoxHandler = Arc<dyn Fn(Context) -> BoxFuture<Result<(), BotError>> + Send + Sync>;
pub(crate) type Hook =
    Arc<dyn Fn(Message) -> BoxFuture<Result<Option<Message>, BotError>> + Send + Sync>;
pub(crate) type Layer = Arc<dyn Fn(Context, Next) -> BoxFuture<Result<(), BotError>> + Send + Sync>;

/// What is done with a message that no conversation took: the first route that matches, in the
/// order of registration.
#[derive(Default)]
pub(crate) struct Router {
    pub(crate) hooks: Vec<Hook>,
    pub(crate) layers: Vec<Layer>,
    pub(crate) routes: Vec<Route>,
    pub(crate) fallback: Option<BoxHandler>,
}

pub(crate) struct Route {
    pub(crate) matcher: Matcher,
    pub(crate) action: Action,
}

/// What a route leads to.
#[derive(Clone)]
pub(crate) enum Action {
    Handle(BoxHandler),
    /// Enter the conversation with this number.
    Enter(usize),
}

impl Router {
    pub(super) fn has_commands(&self) -> bool {
        self.routes.iter().any(|route| route.matcher.is_command())
    }

    /// The first route that matches.
    pub(super) fn find(&self, message: &Message) -> Option<(&Action, Matched)> {
        self.routes.iter().find_map(|route| {
            route.matcher.matches(message).map(|matched| (&route.action, matched))
        })
    }
}

/// The rest of the way of a message, as a layer sees it.
pub struct Next {
    runtime: Arc<Runtime>,
    layer: usize,
}

impl Next {
    pub(super) const fn first(runtime: Arc<Runtime>) -> Self {
        Self { runtime, layer: 0 }
    }

    /// Goes on: through the layers that are left, then the conversation or the handler.
    ///
    /// # Errors
    /// What the handler failed with.
    pub async fn run(self, context: Context) -> Result<(), BotError> {
        match self.runtime.router.layers.get(self.layer).map(Arc::clone) {
            Some(layer) => layer(context, Self { layer: self.layer + 1, ..self }).await,
            None => {
                let message = Box::new(context.message().clone());
                self.runtime.route(context.whole_turn(), message).await
            }
        }
    }
}

impl fmt::Debug for Next {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Next").field("layer", &self.layer).finish_non_exhaustive()
    }
}

pub(crate) fn box_handler<F, R, T>(handler: F) -> BoxHandler
where
    F: Fn(Context) -> R + Send + Sync + 'static,
    R: Future<Output = Result<T, BotError>> + Send + 'static,
{
    let handler = Arc::new(handler);
    Arc::new(move |context| {
        let handler = Arc::clone(&handler);
        // Called within: what a block is given and awaits has its room there twice.
        Box::pin(async move { handler(context).await.map(drop) })
    })
}

pub(crate) fn box_hook<F, R>(hook: F) -> Hook
where
    F: Fn(Message) -> R + Send + Sync + 'static,
    R: Future<Output = Result<Option<Message>, BotError>> + Send + 'static,
{
    Arc::new(move |message| Box::pin(hook(message)))
}

pub(crate) fn box_layer<F, R>(layer: F) -> Layer
where
    F: Fn(Context, Next) -> R + Send + Sync + 'static,
    R: Future<Output = Result<(), BotError>> + Send + 'static,
{
    Arc::new(move |context, next| Box::pin(layer(context, next)))
}
