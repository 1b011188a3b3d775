//! A row of questions that is confirmed at its end.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use super::Flow;
use super::erase;
use super::plan::{Ask, Prompt, Step, Target, Then};
use super::steps::{ask_step, computed};
use crate::message::Reply;
use crate::question::{Answer, Invalid, Question, question};
use crate::text::t;

/// A row of questions, made by [`form`] and put into a flow by [`Flow::form`].
pub struct Form<S> {
    fields: Vec<Step>,
    summary: Option<erase::PromptFn>,
    state: PhantomData<fn(S)>,
}

/// Begins a form.
///
/// ```
/// use botmesh_core::{flow, form};
/// #[derive(Default)]
/// struct Address { street: String, town: String }
/// let address = flow::<Address>("address").form(
///     form()
///         .field("street", "Which street?", |s: &mut Address, a| { s.street = a.text()?; Ok(()) })
///         .field("town", "Which town?", |s, a| { s.town = a.text()?; Ok(()) })
///         .confirm(|s| format!("{}, {}: is that right?", s.street, s.town)),
/// );
/// ```
#[must_use]
pub const fn form<S: Send + 'static>() -> Form<S> {
    Form { fields: Vec::new(), summary: None, state: PhantomData }
}

impl<S: Send + 'static> Form<S> {
    /// Asks for the field `name`, whose name is unique within the form; otherwise like
    /// [`Flow::ask`]. Each field is a step of its own, so that no answer is lost when the flow
    /// goes on elsewhere.
    #[must_use]
    pub fn field(
        mut self,
        name: impl Into<Cow<'static, str>>,
        question: impl Into<Question>,
        take: impl Fn(&mut S, Answer) -> Result<(), Invalid> + Send + Sync + 'static,
    ) -> Self {
        let prompt = Prompt::Fixed(Arc::new(question.into()));
        self.fields.push(ask_step(Some(name.into()), prompt, take));
        self
    }

    /// As [`field`](Self::field), with a question made from the state.
    #[must_use]
    pub fn field_with<Q: Into<Question>>(
        mut self,
        name: impl Into<Cow<'static, str>>,
        question: impl Fn(&S) -> Q + Send + Sync + 'static,
        take: impl Fn(&mut S, Answer) -> Result<(), Invalid> + Send + Sync + 'static,
    ) -> Self {
        self.fields.push(ask_step(Some(name.into()), computed(question), take));
        self
    }

    /// Says at the end what `summary` makes of the state and offers to accept it, to change it,
    /// which begins again with the first field, or to cancel the flow.
    #[must_use]
    pub fn confirm<R: Into<Reply>>(
        mut self,
        summary: impl Fn(&S) -> R + Send + Sync + 'static,
    ) -> Self {
        self.summary = Some(Box::new(move |state| {
            erase::read(state, |state: &S| {
                question(summary(state))
                    .option(t("core.choice.yes"), "yes")
                    .option(t("core.form.change"), "change")
                    .option(t("core.form.cancel"), "cancel")
                    .only_buttons()
            })
        }));
        self
    }
}

impl<S: Send + 'static> Flow<S> {
    /// Asks the questions of a form.
    #[must_use]
    pub fn form(mut self, form: Form<S>) -> Self {
        let first = self.plan.steps.len();
        self.plan.steps.extend(form.fields);
        let Some(summary) = form.summary else { return self };
        let targets = vec![Target::Next, Target::Step(first), Target::Cancel];
        let prompt = Prompt::Computed(summary);
        self.step(Step::Ask(Ask { field: None, prompt, then: Then::Go(targets) }))
    }
}

impl<S> fmt::Debug for Form<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Form").field("fields", &self.fields.len()).finish_non_exhaustive()
    }
}
