//! Finds the mistakes in a flow before anybody meets them.

use std::collections::HashSet;
use std::time::Duration;

use super::plan::{Ask, Plan, Prompt, Step, Target, Then};
use super::{Limits, Persistence, Problem};
use crate::id::ConversationName;
use crate::question::Question;

pub(super) fn problems(plan: &Plan, limits: &Limits) -> Vec<Problem> {
    let mut found = Vec::new();
    for matcher in &plan.triggers {
        let problems = matcher.problems().into_iter();
        found.extend(problems.map(|source| Problem::Trigger { flow: name(plan), source }));
    }
    check_flow(plan, limits, limits.timeout.is_some(), &mut found);
    found
}

/// A flow or a sub-flow. `timed` is whether what is around it limits its waits.
fn check_flow(plan: &Plan, limits: &Limits, timed: bool, found: &mut Vec<Problem>) {
    let timed = timed || plan.settings.timeout.is_some();
    found.extend(plan.mistakes.iter().cloned());
    if let Err(source) = ConversationName::new(&*plan.name) {
        found.push(Problem::Name { flow: name(plan), source });
    }
    if plan.steps.is_empty() {
        found.push(Problem::Empty { flow: name(plan) });
    }
    names(plan, found);
    ways(plan, found);
    settings(plan, timed, found);
    for (index, step) in plan.steps.iter().enumerate() {
        check_step(plan, index, step, limits, timed, found);
    }
}

fn name(plan: &Plan) -> String {
    plan.name.to_string()
}

fn names(plan: &Plan, found: &mut Vec<Problem>) {
    let mut labels = HashSet::new();
    for (label, _) in &plan.labels {
        if !labels.insert(label) {
            let label = label.to_string();
            found.push(Problem::DuplicateLabel { flow: name(plan), label });
        }
    }
    let mut fields = HashSet::new();
    for step in &plan.steps {
        if let Step::Ask(Ask { field: Some(field), .. }) = step
            && !fields.insert(field)
        {
            let field = field.to_string();
            found.push(Problem::DuplicateField { flow: name(plan), field });
        }
    }
    let mut unknown = HashSet::new();
    for (_, target) in plan.jumps() {
        if let Target::Label(label) = target
            && !labels.contains(label)
            && unknown.insert(label)
        {
            let label = label.to_string();
            found.push(Problem::UnknownLabel { flow: name(plan), label });
        }
    }
}

/// Looks for steps that no way leads to, and for ways that never end.
fn ways(plan: &Plan, found: &mut Vec<Problem>) {
    let mut reached = vec![false; plan.steps.len()];
    let mut open: Vec<usize> = vec![0];
    let escapes = [&plan.settings.on_timeout, &plan.settings.on_failure];
    open.extend(escapes.into_iter().flatten().filter_map(|target| leads_to(plan, 0, target)));
    while let Some(step) = open.pop() {
        if step < reached.len() && !reached[step] {
            reached[step] = true;
            open.extend(next_steps(plan, step));
        }
    }
    // The first step of each piece that is not reached stands for the others.
    for step in 0..reached.len() {
        if !reached[step] && (step == 0 || reached[step - 1]) {
            found.push(Problem::Unreachable { flow: name(plan), step: step + 1 });
        }
    }
    if let Some(step) = endless(plan, &reached) {
        found.push(Problem::EndlessLoop { flow: name(plan), step: step + 1 });
    }
}

/// A step of a loop in which nothing can change: only a wait, a pause or work can do that.
fn endless(plan: &Plan, reached: &[bool]) -> Option<usize> {
    // Takes away the steps that lead out of such loops, until only loops are left.
    let idle = |step: usize| {
        reached[step]
            && matches!(plan.steps[step], Step::Say(_) | Step::Branch { .. } | Step::Jump(_))
    };
    let mut looping: Vec<bool> = (0..plan.steps.len()).map(idle).collect();
    loop {
        let ends = |step: &usize| {
            looping[*step] && !next_steps(plan, *step).into_iter().any(|next| is(&looping, next))
        };
        let ended: Vec<usize> = (0..looping.len()).filter(ends).collect();
        if ended.is_empty() {
            return looping.iter().position(|looping| *looping);
        }
        for step in ended {
            looping[step] = false;
        }
    }
}

fn is(looping: &[bool], step: usize) -> bool {
    looping.get(step).copied().unwrap_or(false)
}

/// Where the run can be after this step.
fn next_steps(plan: &Plan, step: usize) -> Vec<usize> {
    match &plan.steps[step] {
        Step::Jump(to) => leads_to(plan, step, to).into_iter().collect(),
        Step::Branch { to, .. } => leads_to(plan, step, to).into_iter().chain([step + 1]).collect(),
        Step::Ask(Ask { then: Then::Go(targets), .. }) => {
            targets.iter().filter_map(|target| leads_to(plan, step, target)).collect()
        }
        Step::End(_) => Vec::new(),
        _ => vec![step + 1],
    }
}

fn leads_to(plan: &Plan, from: usize, target: &Target) -> Option<usize> {
    match target {
        Target::Label(label) => plan.step_of(label),
        Target::Step(step) => Some(*step),
        Target::Next => Some(from + 1),
        Target::Cancel => None,
    }
}

fn settings(plan: &Plan, timed: bool, found: &mut Vec<Problem>) {
    let settings = &plan.settings;
    let idle = settings.idle.as_ref().map(|(after, _)| *after);
    let times = [("timeout", settings.timeout), ("idle", idle)];
    for (setting, time) in times {
        if time == Some(Duration::ZERO) {
            found.push(Problem::NoTime { flow: name(plan), setting });
        }
    }
    if let (Some(idle), Some(timeout)) = (idle, settings.timeout)
        && idle >= timeout
    {
        found.push(Problem::IdleAfterTimeout { flow: name(plan), idle, timeout });
    }
    let set = [
        ("timeout", settings.timeout.is_some()),
        ("on_timeout", settings.on_timeout.is_some()),
        ("on_failure", settings.on_failure.is_some()),
        ("idle", settings.idle.is_some()),
        ("cancel_on", !settings.cancel_words.is_empty()),
        ("cancellable", settings.cancellable),
    ];
    if !waits(plan) {
        let useless = set.into_iter().filter(|(_, set)| *set);
        found.extend(useless.map(|(setting, _)| Problem::NeverWaits { flow: name(plan), setting }));
        return;
    }
    if settings.on_timeout.is_some() && !timed && !times_out(plan) {
        found.push(Problem::NeverTimesOut { flow: name(plan) });
    }
    if settings.on_failure.is_some() && !any_question(plan, &|asked| asked.attempts().is_some()) {
        found.push(Problem::NeverFails { flow: name(plan) });
    }
}

/// Whether some wait of the flow, or of one that it calls, is limited by itself.
fn times_out(plan: &Plan) -> bool {
    any_question(plan, &|question| question.waits().is_some())
        || plan.steps.iter().any(|step| match step {
            Step::Call { sub, .. } => sub.settings.timeout.is_some() || times_out(sub),
            _ => false,
        })
}

/// Whether the flow, or one that it calls, can wait for the user.
fn waits(plan: &Plan) -> bool {
    plan.steps.iter().any(|step| match step {
        Step::Ask(_) | Step::Script(_) | Step::ResumeAfter(_) => true,
        Step::Call { sub, .. } => waits(sub),
        _ => false,
    })
}

/// Whether `test` is true for some question, or may be for one that is not known yet.
fn any_question(plan: &Plan, test: &impl Fn(&Question) -> bool) -> bool {
    plan.steps.iter().any(|step| match step {
        Step::Ask(Ask { prompt: Prompt::Fixed(question), .. }) => test(question),
        Step::Ask(_) | Step::Script(_) => true,
        Step::Call { sub, .. } => any_question(sub, test),
        _ => false,
    })
}

fn check_step(
    plan: &Plan,
    index: usize,
    step: &Step,
    limits: &Limits,
    timed: bool,
    found: &mut Vec<Problem>,
) {
    match step {
        Step::Ask(Ask { prompt: Prompt::Fixed(question), .. }) => {
            check_question(plan, index + 1, question, found);
        }
        Step::Sleep(sleep) if *sleep > limits.settle => {
            let (sleep, settle) = (*sleep, limits.settle);
            found.push(Problem::SleepTooLong { flow: name(plan), sleep, settle });
        }
        Step::Call { sub, .. } => {
            if plan.persistence != Persistence::Memory && sub.codec.is_none() {
                let sub = name(sub);
                found.push(Problem::SubFlowInMemory { flow: name(plan), sub });
            }
            check_flow(sub, limits, timed, found);
        }
        _ => {}
    }
}

fn check_question(plan: &Plan, step: usize, question: &Question, found: &mut Vec<Problem>) {
    if question.takes_only_options() && question.options().is_empty() {
        found.push(Problem::NothingOffered { flow: name(plan), step });
    }
    if question.attempts() == Some(0) {
        found.push(Problem::NoAttempts { flow: name(plan), step });
    }
    if question.waits() == Some(Duration::ZERO) {
        found.push(Problem::NoTime { flow: name(plan), setting: "question timeout" });
    }
    let mut values = HashSet::new();
    for option in question.options() {
        if !values.insert(option.value()) {
            let value = option.value().to_owned();
            found.push(Problem::DuplicateOption { flow: name(plan), step, value });
        }
    }
}
