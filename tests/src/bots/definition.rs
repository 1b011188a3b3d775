//! The bot that the replicas run. Its texts tell what they are: a question is `Q FLOW N`, an
//! answer `a-FLOW-N-COUNT`, a last word `S FLOW ANSWER...`. Flows of which there are two versions
//! have it in their name: `changing.v1`.

use std::sync::Arc;
use std::time::Duration;

use botmesh_core::bot::{Fallback, HandoverReason};
use botmesh_core::prelude::*;
use botmesh_core::{Doing, Flow};
use serde::{Deserialize, Serialize};

use super::notes::{Decision, Event, Notebook};

/// The words that begin a conversation.
pub const TOPICS: [&str; 8] =
    ["three", "work", "two", "order", "changing", "passing", "rest", "late"];

/// How many answers the last word of a conversation has.
#[must_use]
pub fn answers(flow: &str) -> usize {
    match flow {
        "three" | "changing.v2" | "passing.v2" => 3,
        "rest" => 1,
        "late" => 0,
        _ => 2,
    }
}

/// How long a question waits that the user does not answer, and how long a flow pauses.
const SHORT: Duration = Duration::from_millis(400);

#[derive(Debug, Default, Serialize, Deserialize)]
struct Answers {
    /// The version that took the first one.
    version: u32,
    said: Vec<String>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Count(u64);

fn take(answers: &mut Answers, answer: Answer) -> Result<(), Invalid> {
    answers.said.push(answer.text()?);
    Ok(())
}

fn last_word(flow: &str, said: &[String]) -> String {
    format!("S {flow} {}", said.join(" ")).trim_end().to_owned()
}

/// Defines one version of the bot.
pub fn define(bot: Bot, version: u32, notes: &Arc<Notebook>) -> Bot {
    let notes = Arc::clone(notes);
    bot.layer(move |ctx, next| {
        let message = ctx.message().id.as_ref().and_then(|id| id.as_str().parse().ok());
        if let Some(message) = message {
            let (chat, fence) = (ctx.chat().as_str().to_owned(), ctx.turn().fence().get());
            notes.note(Event::Handled { chat, message, fence });
        }
        next.run(ctx)
    })
    .flow(
        flow::<Answers>("three")
            .enter_on("three")
            .ask("Q three 1", take)
            .ask("Q three 2", take)
            .ask("Q three 3", take)
            .say(|s| last_word("three", &s.said))
            .persistent(),
    )
    .flow(
        flow::<Answers>("work")
            .enter_on("work")
            .do_(|c: Doing<Answers>| async move {
                let first = c.ask("Q work 1").await?.text()?;
                tokio::time::sleep(SHORT / 20).await;
                let second = c.ask("Q work 2").await?.text()?;
                c.update(|s| s.said.extend([first, second]));
                Ok(())
            })
            .say(|s| last_word("work", &s.said))
            .persistent(),
    )
    .flow(
        flow::<Answers>("two")
            .enter_on("two")
            .ask("Q two 1", take)
            .ask("Q two 2", take)
            .say(|s| last_word("two", &s.said))
            .forwardable(),
    )
    .flow(changed("changing", version).persistent())
    .flow(changed("passing", version).forwardable())
    .flow(
        flow::<Answers>("rest")
            .enter_on("rest")
            .ask("Q rest 1", take)
            .resume_after(SHORT)
            .say(|s| last_word("rest", &s.said))
            .persistent(),
    )
    .flow(
        flow::<Answers>("late")
            .enter_on("late")
            .timeout(SHORT)
            .on_timeout("over")
            .ask("Q late 1", take)
            .label("over")
            .say(|_| "S late")
            .persistent(),
    )
    .when("order", enter("order"))
    .conversation("order", |c| async move {
        let first = c.ask("Q order 1").await?.text()?;
        let second = c.ask("Q order 2").await?.text()?;
        c.say(last_word("order", &[first, second])).await
    })
    .when("count", |ctx| async move {
        let count = ctx.update_user(|count: &mut Count| count.0 += 1).await?;
        ctx.reply(format!("count {}", count.0)).await
    })
    .fallback(|ctx| async move { ctx.reply(format!("new {}", ctx.text())).await })
}

/// A flow with two questions in the first version and three in the second.
fn changed(name: &'static str, version: u32) -> Flow<Answers> {
    let label = format!("{name}.v{version}");
    let ask = |number: u32| format!("Q {label} {number}");
    let first = move |answers: &mut Answers, answer: Answer| {
        answers.version = version;
        take(answers, answer)
    };
    let mut flow = flow::<Answers>(name).enter_on(name).ask(ask(1), first).ask(ask(2), take);
    if version > 1 {
        flow = flow.ask(ask(3), take);
    }
    flow.say(move |s| {
        let stranger = if s.version == version { "" } else { " from another version" };
        last_word(&label, &s.said) + stranger
    })
}

/// What a replica does about conversations that cannot go on.
#[must_use]
pub fn fallback(decision: Decision) -> Fallback {
    match decision {
        Decision::Notify => Fallback::Notify,
        Decision::Restart => Fallback::Restart,
        Decision::Drop => Fallback::Drop,
        Decision::Function => Fallback::call(|info, ctx| async move {
            if info.reason == HandoverReason::Changed && ctx.text().len() % 2 == 0 {
                return Ok(false);
            }
            ctx.reply(format!("cut {} {:?}", info.name, info.reason)).await?;
            Ok(true)
        }),
    }
}
