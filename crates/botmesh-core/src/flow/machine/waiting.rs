//! What happens while a run waits: answers, wrong answers, cancel words, silence.

use std::sync::LazyLock;
use std::time::Duration;

use super::{Machine, Stuck};
use crate::conversation::ConversationEnded;
use crate::error::BotError;
use crate::flow::definition::{Effect, End, Outcome, Wait};
use crate::flow::plan::{Settings, Step, Target, Then};
use crate::flow::run::{Kept, Phase};
use crate::matcher::words;
use crate::message::{Message, Reply};
use crate::question::{Answer, Question, Reading};
use crate::text::{Text, t};

static CANCEL_WORDS: LazyLock<Text> = LazyLock::new(|| t("core.cancel.words").into());

impl Machine<'_> {
    /// Asks, with buttons that only this wait understands.
    pub(super) fn say_question(&mut self, question: &Question) {
        self.run.waits = self.run.waits.wrapping_add(1);
        self.run.just_asked = true;
        self.effects.push(Effect::Say(question.to_reply(&self.run.token())));
    }

    /// Says why an answer does not do, with the buttons of the question again.
    pub(super) fn say_again(&mut self, question: &Question, why: Text) {
        let mut reply = Reply::text(why);
        if !question.options().is_empty() {
            reply.buttons = question.to_reply(&self.run.token()).buttons;
        }
        self.effects.push(Effect::Say(reply));
    }

    /// Waits for the answer to the present question; deals first with what woke the run.
    pub(super) fn wait(&mut self, fresh: bool) -> Result<Outcome, BotError> {
        self.run.phase = Phase::Waiting;
        match self.run.kept.take() {
            Some(Kept::Message(message)) => return self.read(*message),
            Some(Kept::TimedOut) => return self.timed_out(),
            Some(Kept::Idle) => return self.idle(),
            None => {}
        }
        let Some(question) = self.run.question.clone() else {
            return Err(Stuck::NoQuestion(self.plan.name.to_string()).into());
        };
        let of_flow = |setting: fn(&Settings) -> Option<Duration>| {
            self.plans().find_map(|(_, plan)| setting(&plan.settings))
        };
        let timeout = question.waits().or_else(|| of_flow(|settings| settings.timeout));
        let idle = of_flow(|settings| settings.idle.as_ref().map(|(after, _)| *after));
        let idle = idle.filter(|_| !self.run.idle_said);
        Ok(Outcome::Wait(Wait { question, token: self.run.token(), timeout, idle, fresh }))
    }

    /// Reads a message as the answer to the present question.
    pub(super) fn read(&mut self, message: Message) -> Result<Outcome, BotError> {
        let Some(question) = self.run.question.clone() else {
            return Err(Stuck::NoQuestion(self.plan.name.to_string()).into());
        };
        match question.read(message, &self.run.token(), |text| (self.shown)(text)) {
            Reading::Expired => {
                self.effects.push(Effect::Say(t("core.button.expired").into()));
                self.wait(false)
            }
            Reading::NotOffered(message) if self.is_cancel(&message) => self.cancel(),
            Reading::NotOffered(_) => self.refuse(&question, question.why_not_offered()),
            Reading::Answer(answer)
                if answer.choice().is_none() && self.is_cancel(answer.message()) =>
            {
                self.cancel()
            }
            Reading::Answer(answer) if self.run.script.is_some() => {
                Ok(self.script_answered(answer))
            }
            Reading::Answer(answer) => self.accept(&question, answer),
        }
    }

    /// Hands the answer to the step that asked.
    fn accept(&mut self, question: &Question, answer: Answer) -> Result<Outcome, BotError> {
        let index = self.frame().step;
        let plan = self.innermost();
        let Some(Step::Ask(ask)) = plan.steps.get(index) else {
            return Err(Stuck::NoQuestion(plan.name.to_string()).into());
        };
        match &ask.then {
            Then::Take(take) => match take(self.state_mut()?, answer)? {
                Ok(()) => self.next_step(),
                Err(invalid) => {
                    return self.refuse(question, question.why_invalid(&invalid));
                }
            },
            Then::Go(targets) => {
                let Some(target) = answer.choice().and_then(|choice| targets.get(choice)) else {
                    return self.refuse(question, t("core.answer.not-offered").into());
                };
                if let Some(outcome) = self.jump(&plan, target)? {
                    return Ok(outcome);
                }
            }
        }
        self.go_on()
    }

    /// The answer does not do.
    fn refuse(&mut self, question: &Question, why: Text) -> Result<Outcome, BotError> {
        self.run.attempts = self.run.attempts.saturating_add(1);
        if question.attempts().is_some_and(|most| self.run.attempts >= most) {
            return self.interrupt_or(ConversationEnded::TooManyAttempts);
        }
        self.say_again(question, why);
        self.run.idle_said = false;
        self.wait(true)
    }

    pub(super) fn timed_out(&mut self) -> Result<Outcome, BotError> {
        self.interrupt_or(ConversationEnded::TimedOut)
    }

    fn cancel(&mut self) -> Result<Outcome, BotError> {
        self.interrupt_or(ConversationEnded::Cancelled)
    }

    /// Lets a script that waits know first.
    fn interrupt_or(&mut self, why: ConversationEnded) -> Result<Outcome, BotError> {
        if self.run.script.is_some() {
            self.run.phase = Phase::Driving;
            return Ok(Outcome::Interrupt(why));
        }
        self.ended_early(why)
    }

    pub(super) fn ended_early(&mut self, why: ConversationEnded) -> Result<Outcome, BotError> {
        match why {
            ConversationEnded::Cancelled => Ok(self.cancelled()),
            ConversationEnded::TimedOut => {
                self.escape(|settings| settings.on_timeout.as_ref(), why, End::TimedOut)
            }
            ConversationEnded::TooManyAttempts => {
                self.escape(|settings| settings.on_failure.as_ref(), why, End::TooManyAttempts)
            }
        }
    }

    /// Goes where the innermost flow that has this setting wants, out of the flows that it has
    /// called; or says the built-in text and ends.
    fn escape(
        &mut self,
        setting: fn(&Settings) -> Option<&Target>,
        why: ConversationEnded,
        end: End,
    ) -> Result<Outcome, BotError> {
        let found = self
            .plans()
            .find_map(|(depth, plan)| setting(&plan.settings).map(|to| (depth, to.clone())));
        let Some((depth, to)) = found else {
            self.effects.push(Effect::Say(t(why.text_key()).into()));
            return Ok(self.finish(end));
        };
        self.run.frames.truncate(depth + 1);
        let plan = self.innermost();
        match self.jump(&plan, &to)? {
            Some(outcome) => Ok(outcome),
            None => self.go_on(),
        }
    }

    pub(super) fn cancelled(&mut self) -> Outcome {
        let key = ConversationEnded::Cancelled.text_key();
        self.effects.push(Effect::Say(t(key).into()));
        self.finish(End::Cancelled)
    }

    /// Says once in each wait that the user is still waited for.
    pub(super) fn idle(&mut self) -> Result<Outcome, BotError> {
        let reply = self.plans().find_map(|(_, plan)| plan.settings.idle.as_ref());
        let reply = reply.map(|(_, reply)| reply.clone());
        if let Some(reply) = reply.filter(|_| !self.run.idle_said) {
            self.run.idle_said = true;
            self.effects.push(Effect::Say(reply));
        }
        self.wait(false)
    }

    /// Whether a flow that the run is in takes these words for a wish to stop.
    pub(super) fn is_cancel(&self, message: &Message) -> bool {
        let Some(typed) = message.body() else { return false };
        let mut localized = false;
        for (_, plan) in self.plans() {
            if plan.settings.cancel_words.iter().any(|word| words::same(typed, word)) {
                return true;
            }
            localized |= plan.settings.cancellable;
        }
        localized
            && (self.shown)(&CANCEL_WORDS)
                .split(',')
                .any(|word| words::same(typed, &words::folded(word)))
    }
}
