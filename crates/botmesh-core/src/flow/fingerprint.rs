//! The fingerprint of a flow: 64-bit FNV-1a over its shape.
//!
//! In it are the names of the flow, its labels and form fields, the kinds of its steps in their
//! order, where they lead, the values of offered answers, sub-flows, and the version. Not in it
//! are wordings, durations, triggers and settings: changing those disturbs no stored run. What
//! closures do cannot be seen; for that there is [`version`](super::Flow::version).
//!
//! Each text is hashed with its length before it and each list with its count, so that no two
//! shapes run together. The result is part of stored checkpoints and must not change between
//! releases.

use super::plan::{Ask, Plan, Prompt, Step, Target, Then};
use crate::id::StableHash;

pub(super) fn of(plan: &Plan) -> u64 {
    let mut hash = Shape(StableHash::new());
    hash.text(&plan.name);
    hash.number(u64::from(plan.version));
    hash.count(plan.labels.len());
    for (name, step) in &plan.labels {
        hash.text(name);
        hash.count(*step);
    }
    hash.count(plan.steps.len());
    for step in &plan.steps {
        hash.step(step);
    }
    hash.0.get()
}

struct Shape(StableHash);

impl Shape {
    fn number(&mut self, number: u64) {
        self.0.bytes(&number.to_le_bytes());
    }

    fn count(&mut self, count: usize) {
        self.number(count as u64);
    }

    fn text(&mut self, text: &str) {
        self.count(text.len());
        self.0.bytes(text.as_bytes());
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Say(_) => self.text("say"),
            Step::Ask(ask) => self.ask(ask),
            Step::Script(_) => self.text("do"),
            Step::Branch { when, to, .. } => {
                self.text(if *when { "branch" } else { "when" });
                self.target(to);
            }
            Step::Jump(to) => {
                self.text("goto");
                self.target(to);
            }
            Step::Call { sub, .. } => {
                self.text("call");
                self.number(sub.fingerprint);
            }
            Step::Sleep(_) => self.text("sleep"),
            Step::ResumeAfter(_) => self.text("resume-after"),
            Step::End(_) => self.text("end"),
        }
    }

    fn ask(&mut self, ask: &Ask) {
        self.text("ask");
        self.text(ask.field.as_deref().unwrap_or_default());
        match &ask.prompt {
            Prompt::Fixed(question) => {
                self.count(question.options().len());
                for option in question.options() {
                    self.text(option.value());
                }
            }
            Prompt::Computed(_) => self.text("computed"),
        }
        match &ask.then {
            Then::Take(_) => self.text("take"),
            Then::Go(targets) => {
                self.count(targets.len());
                for target in targets {
                    self.target(target);
                }
            }
        }
    }

    fn target(&mut self, target: &Target) {
        match target {
            Target::Label(label) => {
                self.text("label");
                self.text(label);
            }
            Target::Step(step) => {
                self.text("step");
                self.count(*step);
            }
            Target::Next => self.text("next"),
            Target::Cancel => self.text("cancel"),
        }
    }
}
