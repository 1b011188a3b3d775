//! The plain steps: saying, asking, jumping, pausing, ending.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use super::erase::{self, SayFn};
use super::plan::{Ask, Prompt, Step, Target, Then};
use super::{Flow, Problem};
use crate::message::Reply;
use crate::question::{Answer, Invalid, Question};

impl<S: Send + 'static> Flow<S> {
    /// Says what is made from the state.
    #[must_use]
    pub fn say<R: Into<Reply>>(self, reply: impl Fn(&S) -> R + Send + Sync + 'static) -> Self {
        self.step(Step::Say(Box::new(move |state| {
            erase::read(state, |state: &S| reply(state).into())
        })))
    }

    /// Says always the same.
    #[must_use]
    pub fn say_text(self, reply: impl Into<Reply>) -> Self {
        self.step(Step::Say(always(reply.into())))
    }

    /// Asks, waits for an answer and hands it to `take`, which puts it into the state or says why
    /// it does not do; then the user is told and asked again, as often as the question's
    /// [`retry`](Question::retry) allows.
    ///
    /// `take` should change the state only when it accepts the answer.
    #[must_use]
    pub fn ask(
        self,
        question: impl Into<Question>,
        take: impl Fn(&mut S, Answer) -> Result<(), Invalid> + Send + Sync + 'static,
    ) -> Self {
        let prompt = Prompt::Fixed(Arc::new(question.into()));
        self.step(ask_step(None, prompt, take))
    }

    /// As [`ask`](Self::ask), with a question made from the state. It has to come out the same
    /// whenever the state is the same.
    #[must_use]
    pub fn ask_with<Q: Into<Question>>(
        self,
        question: impl Fn(&S) -> Q + Send + Sync + 'static,
        take: impl Fn(&mut S, Answer) -> Result<(), Invalid> + Send + Sync + 'static,
    ) -> Self {
        self.step(ask_step(None, computed(question), take))
    }

    /// Names the place before the next step, so that other steps can lead to it.
    #[must_use]
    pub fn label(mut self, name: impl Into<Cow<'static, str>>) -> Self {
        let next = self.plan.steps.len();
        self.plan.labels.push((name.into(), next));
        self
    }

    /// Goes on at a label.
    #[must_use]
    pub fn goto(self, label: impl Into<Cow<'static, str>>) -> Self {
        self.step(Step::Jump(Target::Label(label.into())))
    }

    /// Goes on at a label if `test` is true, else at the next step.
    #[must_use]
    pub fn branch(
        self,
        test: impl Fn(&S) -> bool + Send + Sync + 'static,
        label: impl Into<Cow<'static, str>>,
    ) -> Self {
        self.branch_step(test, true, Target::Label(label.into()))
    }

    /// Goes through the steps that `steps` adds only if `test` is true.
    ///
    /// ```
    /// use botmesh_core::flow;
    /// let order = flow::<u32>("order")
    ///     .ask("How many?", |count, answer| { *count = answer.parse()?; Ok(()) })
    ///     .when(|count| *count > 10, |f| f.say_text("That is a lot!"))
    ///     .say(|count| format!("{count} it is."));
    /// ```
    #[must_use]
    pub fn when(
        self,
        test: impl Fn(&S) -> bool + Send + Sync + 'static,
        steps: impl FnOnce(Self) -> Self,
    ) -> Self {
        let at = self.plan.steps.len();
        let name = self.plan.name.clone();
        // Where it leads is known once the steps are there.
        let mut flow = steps(self.branch_step(test, false, Target::Next));
        let after = flow.plan.steps.len();
        match flow.plan.steps.get_mut(at) {
            Some(Step::Branch { to, when: false, .. }) => *to = Target::Step(after),
            _ => flow.plan.mistakes.push(Problem::StrayedWhen { flow: name.into_owned() }),
        }
        flow
    }

    /// Pauses while holding the chat: messages that arrive meanwhile wait. For seconds, to give
    /// the user time to read; for longer pauses there is [`resume_after`](Self::resume_after).
    #[must_use]
    pub fn sleep(self, time: Duration) -> Self {
        self.step(Step::Sleep(time))
    }

    /// Stands still without holding the chat: messages that arrive meanwhile are handled as if
    /// there were no flow, but for its cancel words. A persistent flow goes on in time after a
    /// restart, too.
    #[must_use]
    pub fn resume_after(self, time: Duration) -> Self {
        self.step(Step::ResumeAfter(time))
    }

    /// Ends the flow; a sub-flow returns to its caller.
    #[must_use]
    pub fn end(self) -> Self {
        self.step(Step::End(None))
    }

    /// Says a last word and ends the flow; a sub-flow returns to its caller.
    #[must_use]
    pub fn end_with(self, reply: impl Into<Reply>) -> Self {
        self.step(Step::End(Some(always(reply.into()))))
    }

    fn branch_step(
        self,
        test: impl Fn(&S) -> bool + Send + Sync + 'static,
        when: bool,
        to: Target,
    ) -> Self {
        let test = Box::new(move |state: &erase::StateRef| erase::read(state, &test));
        self.step(Step::Branch { test, when, to })
    }
}

fn always(reply: Reply) -> SayFn {
    Box::new(move |_| Ok(reply.clone()))
}

pub(super) fn computed<S: 'static, Q: Into<Question>>(
    question: impl Fn(&S) -> Q + Send + Sync + 'static,
) -> Prompt {
    Prompt::Computed(Box::new(move |state| erase::read(state, |state: &S| question(state).into())))
}

pub(super) fn ask_step<S: 'static>(
    field: Option<Cow<'static, str>>,
    prompt: Prompt,
    take: impl Fn(&mut S, Answer) -> Result<(), Invalid> + Send + Sync + 'static,
) -> Step {
    let take = Box::new(move |state: &mut erase::StateRef, answer: Answer| {
        erase::change(state, |state: &mut S| take(state, answer))
    });
    Step::Ask(Ask { field, prompt, then: Then::Take(take) })
}
