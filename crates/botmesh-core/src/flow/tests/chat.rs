//! A user and a runtime of the simplest kind.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;

use crate::conversation::{Next, Request, Response, Script};
use crate::flow::{Effect, End, FlowDefinition, Input, Outcome, Persistence, Run, Wait};
use crate::id::{ChatKey, ProviderId};
use crate::message::{ButtonPress, Content, Message, Reply};
use crate::provider::Receipt;
use crate::text::Text;

/// One chat in which one flow runs. Every step is checked with [`hears`](Self::hears).
pub(super) struct Chat {
    flow: Arc<dyn FlowDefinition>,
    pub(super) run: Run,
    script: Option<Script>,
    /// Replaces the process after every step.
    dies_all_the_time: bool,
    said: Vec<String>,
    pub(super) buttons: Vec<(String, String)>,
    /// What the run wants at last.
    pub(super) outcome: Option<Outcome>,
}

pub(super) fn key() -> ChatKey {
    ChatKey::new(&ProviderId::new("test").unwrap(), "ana").unwrap()
}

pub(super) fn text(words: &str) -> Message {
    Message::text(key(), words)
}

/// English, of a kind.
pub(super) fn shown(text: &Text) -> Cow<'_, str> {
    match text {
        Text::Plain(text) => Cow::Borrowed(text),
        Text::Formatted(_) => text.outline(),
        Text::Localized(text) => Cow::Borrowed(match text.key() {
            "core.cancel.words" => "cancel, stop it",
            "core.choice.yes" => "Yes",
            "core.form.change" => "Change",
            "core.form.cancel" => "Cancel",
            key => key.strip_prefix("core.").unwrap_or(key),
        }),
    }
}

impl Chat {
    /// A chat that has just entered the flow.
    pub(super) fn enter(flow: impl Into<Arc<dyn FlowDefinition>>) -> Self {
        Self::new(flow, false).give(Input::Enter)
    }

    /// A chat that has not entered the flow yet; `dies_all_the_time` goes on from a saved run
    /// after every step.
    pub(super) fn new(flow: impl Into<Arc<dyn FlowDefinition>>, dies_all_the_time: bool) -> Self {
        let flow = flow.into();
        let run = flow.start(0xabc).unwrap();
        Self {
            flow,
            run,
            script: None,
            dies_all_the_time,
            said: Vec::new(),
            buttons: Vec::new(),
            outcome: None,
        }
    }

    pub(super) fn says(self, words: &str) -> Self {
        self.sends(text(words))
    }

    pub(super) fn sends(self, message: Message) -> Self {
        self.give(Input::Message(message))
    }

    /// Presses the youngest button that says this.
    pub(super) fn presses(self, label: &str) -> Self {
        let payload = self.payload_of(label);
        self.presses_payload(&payload, label)
    }

    pub(super) fn presses_payload(self, payload: &str, label: &str) -> Self {
        let press = ButtonPress::new(payload).with_label(label);
        self.sends(Message::new(key(), Content::Button(press)))
    }

    pub(super) fn payload_of(&self, label: &str) -> String {
        let found = self.buttons.iter().rev().find(|(shown, _)| shown == label);
        found.unwrap_or_else(|| panic!("no button says {label:?}")).1.clone()
    }

    pub(super) fn give(mut self, input: Input) -> Self {
        let outcome = self.advance(input);
        let outcome = self.drive(outcome);
        self.outcome = Some(outcome);
        if self.dies_all_the_time && !self.run.is_ended() {
            return self.restarts();
        }
        self
    }

    /// The process dies and another one goes on from what was saved.
    pub(super) fn restarts(mut self) -> Self {
        let body = self.saved();
        self.script = None;
        self.run = self.flow.restore(&body).unwrap();
        // What is restored can be saved again, and is the same.
        assert_eq!(self.saved(), body);
        self
    }

    pub(super) fn restored(&self, body: &str) -> Run {
        self.flow.restore(body).unwrap()
    }

    pub(super) fn saved(&self) -> String {
        self.flow.save(&self.run, 16 * 1024).unwrap()
    }

    /// Everything that was said since the last look, with buttons in brackets.
    pub(super) fn hears<const N: usize>(mut self, expected: [&str; N]) -> Self {
        assert_eq!(self.said, expected);
        self.said.clear();
        self
    }

    pub(super) fn heard(&mut self) -> Vec<String> {
        std::mem::take(&mut self.said)
    }

    pub(super) fn wait(&self) -> &Wait {
        match &self.outcome {
            Some(Outcome::Wait(wait)) => wait,
            other => panic!("the run does not wait: {other:?}"),
        }
    }

    pub(super) fn waits(self, timeout: Option<u64>, idle: Option<u64>, fresh: bool) -> Self {
        let wait = self.wait();
        assert_eq!(wait.timeout, timeout.map(Duration::from_secs));
        assert_eq!(wait.idle, idle.map(Duration::from_secs));
        assert_eq!(wait.fresh, fresh);
        self
    }

    /// How the run ended, in a word, with the error.
    pub(super) fn end(&self) -> String {
        match &self.outcome {
            Some(Outcome::Finished(End::Failed(error))) => format!("failed: {error}"),
            Some(Outcome::Finished(end)) => format!("{end:?}"),
            other => format!("not ended: {other:?}"),
        }
    }

    #[track_caller]
    pub(super) fn ends(self, how: &str) -> Self {
        assert_eq!(self.end(), how);
        self
    }

    #[track_caller]
    pub(super) fn leaves_it_to_others(self) -> Self {
        assert!(matches!(self.outcome, Some(Outcome::NotMine(_))), "{:?}", self.outcome);
        self
    }

    fn advance(&mut self, input: Input) -> Outcome {
        let mut effects = Vec::new();
        let outcome = self.flow.advance(&mut self.run, input, &shown, &mut effects);
        for Effect::Say(reply) in effects {
            self.say(&reply);
        }
        outcome
    }

    fn drive(&mut self, mut outcome: Outcome) -> Outcome {
        loop {
            let response = match outcome {
                Outcome::Script(script) => {
                    self.script = Some(script);
                    None
                }
                Outcome::Answer(answer) => Some(Response::Answered(Box::new(answer))),
                Outcome::Interrupt(why) => Some(Response::Failed(why.into())),
                Outcome::Resume => Some(Response::Done),
                other => return other,
            };
            let input = self.run_script(response);
            outcome = self.advance(input);
        }
    }

    /// Runs the script until it wants something of the flow.
    fn run_script(&mut self, mut response: Option<Response>) -> Input {
        let mut script = self.script.take().expect("a script is being driven");
        loop {
            if let Some(response) = response.take() {
                script.supply(response);
            }
            let next = script.next().now_or_never().expect("scripts of tests never wait");
            let input = match next {
                Next::Finished(result) => return Input::ScriptFinished(result),
                Next::Request(Request::Ask(question)) => Input::Asked(question, None),
                Next::Request(Request::AskAgain(question, why)) => {
                    Input::Asked(question, Some(why))
                }
                Next::Request(Request::ResumeAfter(time)) => Input::Pausing(time),
                Next::Request(Request::Say(reply)) => {
                    if !self.run.is_replaying() {
                        self.say(&reply);
                    }
                    response = Some(Response::Sent(Receipt::default()));
                    continue;
                }
                Next::Request(_) => {
                    response = Some(Response::Done);
                    continue;
                }
            };
            self.script = Some(script);
            return input;
        }
    }

    fn say(&mut self, reply: &Reply) {
        let mut line = shown(&reply.text).into_owned();
        for button in &reply.buttons {
            let label = shown(&button.label).into_owned();
            write!(line, " [{label}]").unwrap();
            self.buttons.push((label, button.payload.to_string()));
        }
        self.said.push(line);
    }
}

/// What is wrong with a flow, in the words that a user reads.
pub(super) fn problems(flow: impl Into<Arc<dyn FlowDefinition>>) -> Vec<String> {
    let problems = flow.into().problems(&Default::default());
    problems.iter().map(ToString::to_string).collect()
}

pub(super) fn is_persistent(flow: &Arc<dyn FlowDefinition>) -> bool {
    flow.persistence() == Persistence::Persistent
}
