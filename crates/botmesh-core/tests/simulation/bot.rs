//! The bot whose replicas are simulated. Its texts tell what they are: a question is `Q FLOW N`, an
//! answer `a-FLOW-N-COUNT`, a summary `S FLOW ANSWER...`.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use botmesh_core::prelude::*;
use botmesh_core::{Doing, question};

use crate::replica::Replica;
use botmesh_core::testing::Dice;

type Answers = Vec<String>;

/// The words that begin a conversation; `later` does not, but keeps what it was given.
pub const CONVERSATIONS: [&str; 6] = ["three", "work", "two", "order", "rest", "later"];

/// Longer than a turn may last.
const TOO_LONG: Duration = Duration::from_secs(90);

fn take(answers: &mut Answers, answer: Answer) -> Result<(), Invalid> {
    answers.push(answer.text()?);
    Ok(())
}

fn summary(flow: &str, answers: &[String]) -> String {
    format!("S {flow} {}", answers.join(" "))
}

pub fn define(bot: Bot, replica: &Arc<Replica>) -> Bot {
    let (hears, life) = (Arc::clone(replica), replica.life.load(Ordering::Relaxed));
    let (slow, works, keeps) = (Arc::clone(replica), Arc::clone(replica), Arc::clone(replica));
    bot.before(move |message| {
        let number = message.id.as_ref().and_then(|id| id.as_str()[1..].parse().ok());
        hears.history.handles(hears.number, life, &message.chat, number.unwrap_or_default());
        async move { Ok(Some(message)) }
    })
    .flow(
        flow::<Answers>("three")
            .enter_on("three")
            .ask("Q three 1", take)
            .ask("Q three 2", take)
            .ask("Q three 3", take)
            .choose("Q three 4", [("Red", "a-three-4-red"), ("Blue", "a-three-4-blue")], |s, it| {
                s.push((*it).to_owned());
            })
            .say(|s| summary("three", s))
            .persistent(),
    )
    .flow(
        flow::<Answers>("work")
            .enter_on("work")
            .do_(move |c: Doing<Answers>| {
                let replica = Arc::clone(&slow);
                async move {
                    let first = c.ask("Q work 1").await?.text()?;
                    pause(&replica).await;
                    let second = c.ask("Q work 2").await?.text()?;
                    c.update(|s| s.extend([first, second]));
                    Ok(())
                }
            })
            .say(|s| summary("work", s))
            .persistent(),
    )
    .flow(
        flow::<Answers>("two")
            .enter_on("two")
            .ask("Q two 1", take)
            .ask("Q two 2", take)
            .say(|s| summary("two", s))
            .forwardable(),
    )
    .flow(
        flow::<Answers>("rest")
            .enter_on("rest")
            .timeout(Duration::from_secs(170))
            .ask("Q rest 1", take)
            .resume_after(Duration::from_secs(15))
            .say(|s| summary("rest", s))
            .persistent(),
    )
    .when("order", enter("order"))
    .when("later", move |ctx| {
        let replica = Arc::clone(&keeps);
        async move {
            ctx.reply("new later").await?;
            // What is kept of a turn is worth nothing after it.
            tokio::spawn(async move {
                let later = Dice::millis(&mut replica.dice.lock(), 1, 5_000);
                tokio::time::sleep(later).await;
                if ctx.reply("too late").await.is_ok() {
                    replica.history.violation("a context that was kept has sent something");
                }
            });
            Ok(())
        }
    })
    .conversation("order", move |c| {
        let replica = Arc::clone(&works);
        async move {
            let first =
                c.ask(question("Q order 1").timeout(Duration::from_secs(90))).await?.text()?;
            pause(&replica).await;
            let second = c.ask("Q order 2").await?.text()?;
            c.say(summary("order", &[first, second])).await
        }
    })
    .fallback(|ctx| async move { ctx.reply(format!("new {}", ctx.text())).await })
}

/// Sometimes a step takes longer than it may.
async fn pause(replica: &Replica) {
    let rate = if replica.is_healed() { 0 } else { replica.plan.slow_steps };
    let is_slow = Dice::happens(&mut replica.dice.lock(), rate);
    if is_slow {
        replica.history.count("slow steps");
        // Whose chat it is, a step does not know.
        replica.history.disturb(None, TOO_LONG + Duration::from_secs(20));
        tokio::time::sleep(TOO_LONG).await;
    }
}
