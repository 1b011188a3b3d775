//! Sub-flows.

use std::sync::Arc;

use super::Flow;
use super::erase;
use super::plan::Step;

impl<S: Send + 'static> Flow<S> {
    /// Goes through `sub`, which starts with the state that `enter` makes, and then gives its
    /// state to `leave`. The triggers of `sub` do not count here; its version and its settings
    /// do, and where it has none, those of its caller.
    ///
    /// ```
    /// use botmesh_core::{Flow, flow};
    /// fn name() -> Flow<String> {
    ///     flow("name").ask("What is your name?", |name: &mut String, answer| { *name = answer.text()?; Ok(()) })
    /// }
    /// #[derive(Default)]
    /// struct Order { customer: String }
    /// let order = flow::<Order>("order")
    ///     .call(name(), |_: &Order| String::new(), |order, name| order.customer = name)
    ///     .say(|order| format!("Thank you, {}.", order.customer));
    /// ```
    #[must_use]
    pub fn call<T: Send + 'static>(
        self,
        sub: Flow<T>,
        enter: impl Fn(&S) -> T + Send + Sync + 'static,
        leave: impl Fn(&mut S, T) + Send + Sync + 'static,
    ) -> Self {
        let enter = Box::new(move |state: &erase::StateRef| {
            let state = erase::read(state, |state: &S| enter(state))?;
            Ok(Box::new(state) as erase::State)
        });
        let leave = Box::new(move |state: &mut erase::StateRef, returned| {
            let returned = erase::own::<T>(returned)?;
            erase::change(state, |state: &mut S| leave(state, returned))
        });
        self.step(Step::Call { sub: Arc::new(sub.into_plan()), enter, leave })
    }
}
