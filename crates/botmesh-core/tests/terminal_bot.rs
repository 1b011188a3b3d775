//! Whole bots that a script on a pipe talks to.
#![cfg(feature = "terminal")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::time::Duration;

use botmesh_core::prelude::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Pipes `script` through the bot and returns what it printed, once it has ended by itself.
async fn talk(script: &[u8], define: impl FnOnce(Bot) -> Bot) -> String {
    talk_in(script, None, define).await
}

async fn talk_in(script: &[u8], language: Option<&str>, define: impl FnOnce(Bot) -> Bot) -> String {
    let (mut keyboard, reader) = tokio::io::duplex(4 << 20);
    let (writer, mut screen) = tokio::io::duplex(4 << 20);
    keyboard.write_all(script).await.unwrap();
    drop(keyboard);
    let mut terminal = Terminal::over(reader, writer).reports_to(std::io::sink());
    if let Some(language) = language {
        terminal = terminal.language(Language::new(language).unwrap());
    }
    define(Bot::new(terminal)).run().await.unwrap();
    let mut shown = String::new();
    screen.read_to_string(&mut shown).await.unwrap();
    shown
}

fn signup(bot: Bot) -> Bot {
    bot.when(command("signup"), enter("signup")).conversation("signup", |c| async move {
        let name = c.ask("What is your name?").await?.text()?;
        let size = c.ask(question("Which size?").buttons(["Small", "Large"])).await?.text()?;
        c.say(format!("Thank you, {name}, one in {size}.")).await
    })
}

/// A11: a whole conversation goes through a pipe, and its end answers everything first.
#[tokio::test(start_paused = true)]
async fn a_script_on_a_pipe_is_answered_to_its_last_line() {
    let shown = talk(b"/signup\nAna\n2\n", signup).await;
    assert_eq!(
        shown,
        "bot> What is your name?\nbot> Which size?\n  [1] Small\n  [2] Large\n\
         bot> Thank you, Ana, one in Large.\n"
    );
}

/// A9: handlers that are still at work when the input ends finish before the process does.
#[tokio::test(start_paused = true)]
async fn slow_handlers_finish_after_the_end_of_the_input() {
    let shown = talk(b"one\ntwo\nthree\n", |bot| {
        bot.fallback(|ctx| async move {
            tokio::time::sleep(Duration::from_secs(1)).await;
            let text = format!("{} is done", ctx.message().body().unwrap_or_default());
            ctx.reply(text).await
        })
    })
    .await;
    assert_eq!(shown, "bot> one is done\nbot> two is done\nbot> three is done\n");
}

/// A11: bad bytes, an unknown command and a mebibyte of text disturb nothing that follows.
#[tokio::test(start_paused = true)]
async fn bad_input_disturbs_nothing_that_follows() {
    let mut script = b"\xff\xfe\n/unknown\n".to_vec();
    script.extend(vec![b'x'; 1 << 20]);
    script.push(b'\n');
    script.extend(vec![b'y'; (1 << 20) + 1]);
    script.extend(b"\n/signup\n\xc3\x28\nAna\nLarge\n");
    let shown = talk(&script, |bot| {
        signup(bot).fallback(|ctx| async move {
            let length = ctx.message().body().unwrap_or_default().len();
            ctx.reply(format!("{length} bytes")).await
        })
    })
    .await;
    assert_eq!(
        shown,
        "bot> 8 bytes\nbot> 1048576 bytes\nbot> What is your name?\nbot> Which size?\n  \
         [1] Small\n  [2] Large\nbot> Thank you, Ana, one in Large.\n"
    );
}

/// A10: the framework's own texts come in the language of the person, or as the user wrote them.
#[tokio::test(start_paused = true)]
async fn the_frameworks_texts_come_in_the_language_of_the_person() {
    let answer =
        |bot: Bot| bot.fallback(|ctx| async move { ctx.reply(t("core.command.unknown")).await });
    let english = talk(b"/what\n", answer).await;
    assert_eq!(english, "bot> I do not know that command.\n");
    let spanish = talk_in(b"/what\n", Some("es-CO"), answer).await;
    assert_eq!(spanish, "bot> No conozco ese comando.\n");
    let own = talk_in(b"/what\n", Some("es-CO"), |bot| {
        let texts = Texts::builtin().add("es", "core-command-unknown = ¿Cómo?").unwrap();
        answer(bot.texts(texts))
    })
    .await;
    assert_eq!(own, "bot> ¿Cómo?\n");
}
