//! A flow that asks, checks what it hears, and survives the death of its process.
//!
//! `cargo run --example signup`, then type `/signup`. End the process at any question, however
//! rudely, and start it again: it goes on at the same question. What it knows lies in the file
//! that `BOTMESH_DB` names, or in `signup.db`.

use std::env;
use std::time::Duration;

use botmesh_core::prelude::*;
use botmesh_core::{Flow, flow};
use botmesh_sqlite_store::SqliteStore;
use serde::{Deserialize, Serialize};

/// What the flow has learned so far.
#[derive(Default, Serialize, Deserialize)]
struct Signup {
    name: String,
    age: u8,
}

fn signup_flow() -> Flow<Signup> {
    flow("signup")
        .enter_on(command("signup"))
        .ask("What is your name?", |signup: &mut Signup, answer| {
            signup.name = name(&answer.text()?)?;
            Ok(())
        })
        .ask(
            question("How old are you?")
                .retry(3, "Please give your age as a number.")
                .timeout(Duration::from_secs(3600)),
            |signup, answer| {
                signup.age = answer.parse()?;
                Ok(())
            },
        )
        .branch(|signup| signup.age < 18, "minor")
        .say(|signup| format!("Nice to meet you, {} ({}).", signup.name, signup.age))
        .end()
        .label("minor")
        .say(|signup| format!("See you when you are 18, {}.", signup.name))
        .cancellable()
        .persistent()
}

/// A name as it is kept, or what the user is told about it.
fn name(text: &str) -> Result<String, Invalid> {
    if text.starts_with('/') {
        return Err(Invalid::because("Your name first, please; or say: cancel."));
    }
    if text.chars().count() > 60 {
        return Err(Invalid::because("That is long. What do your friends call you?"));
    }
    Ok(text.to_owned())
}

/// The bot, for whichever provider and store `bot` has.
pub(crate) fn signup(bot: Bot) -> Bot {
    bot.flow(signup_flow()).fallback(|ctx| async move { ctx.reply("Say /signup to begin.").await })
}

#[tokio::main]
async fn main() -> Result<(), BotError> {
    let path = env::var_os("BOTMESH_DB").unwrap_or_else(|| "signup.db".into());
    let store = SqliteStore::open(path).await?;
    let running = signup(Bot::new(Terminal::new()).store(store)).start().await?;
    running.on(|event| {
        if let Event::Error(failed) = event {
            eprintln!("{} failed: {}", failed.during, failed.error);
        }
    });
    running.until_signal().await
}
