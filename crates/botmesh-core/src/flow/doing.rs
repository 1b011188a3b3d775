//! The step that is an asynchronous function.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use parking_lot::Mutex;
use thiserror::Error;

use super::Flow;
use super::erase::{self, ReturnFn, State};
use super::plan::Step;
use crate::conversation::{Conversation, Script};
use crate::error::BotError;

/// What a [`do_`](Flow::do_) step works with: a [`Conversation`], and the state of its flow.
///
/// It must not outlive the step; a step that has ended while its `Doing` is still kept
/// somewhere, such as in a task, fails with [`DoingKept`].
pub struct Doing<S> {
    conversation: Conversation,
    state: Arc<Mutex<S>>,
}

/// A `do_` step has ended while something still has its [`Doing`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("a step has ended but its Doing is still kept: give it to no task that outlives the step")]
pub struct DoingKept;

impl<S> Doing<S> {
    /// Lets `look` see the state. `look` must not call this `Doing`.
    pub fn read<R>(&self, look: impl FnOnce(&S) -> R) -> R {
        look(&self.state.lock())
    }

    /// Lets `change` change the state. `change` must not call this `Doing`.
    pub fn update<R>(&self, change: impl FnOnce(&mut S) -> R) -> R {
        change(&mut self.state.lock())
    }
}

impl<S> Deref for Doing<S> {
    type Target = Conversation;

    fn deref(&self) -> &Conversation {
        &self.conversation
    }
}

impl<S> fmt::Debug for Doing<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Doing")
    }
}

impl<S: Send + 'static> Flow<S> {
    /// Runs an asynchronous function, which may say and ask as often as it likes. An error ends
    /// the flow, but for a [`ConversationEnded`](crate::conversation::ConversationEnded), which
    /// does what the settings of the flow say.
    ///
    /// The function is one step: when a process dies in it, it runs again from its start, with
    /// the state as it was then.
    ///
    /// ```
    /// use botmesh_core::{BotError, flow};
    /// # async fn place_order(count: u32) -> Result<u32, BotError> { Ok(count) }
    /// let order = flow::<u32>("order").do_(|c| async move {
    ///     let count = c.ask("How many?").await?.parse()?;
    ///     let number = c.run("place the order", || place_order(count)).await?;
    ///     c.update(|state| *state = number);
    ///     c.say(format!("Your order has the number {number}.")).await
    /// });
    /// ```
    #[must_use]
    pub fn do_<F, T>(self, function: impl Fn(Doing<S>) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<T, BotError>> + Send + 'static,
    {
        self.step(Step::Script(Box::new(move |state| {
            let state = Arc::new(Mutex::new(erase::own::<S>(state)?));
            let lent = Arc::clone(&state);
            let script = erase::guard(|| {
                Script::new(|conversation| function(Doing { conversation, state: lent }))
            })?;
            let take_back: ReturnFn = Box::new(move || match Arc::try_unwrap(state) {
                Ok(state) => Ok(Box::new(state.into_inner()) as State),
                Err(_) => Err(DoingKept.into()),
            });
            Ok((script, take_back))
        })))
    }
}
