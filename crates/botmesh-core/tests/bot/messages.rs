//! Messages, handlers, hooks and layers.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use botmesh_core::MessageId;
use botmesh_core::message::{EventKind, Location};
use botmesh_core::prelude::*;
use botmesh_core::provider::{Accepted, Capabilities};
use botmesh_core::testing::{TestProvider, World};
use tokio::sync::{Notify, mpsc};

/// A1: messages of one chat are handled one at a time and in order, other chats run meanwhile.
#[tokio::test(start_paused = true)]
async fn a_blocked_chat_keeps_its_order_and_delays_no_other_chat() {
    let gate = Arc::new(Notify::new());
    let held = Arc::clone(&gate);
    let world = World::new(move |bot| {
        let gate = Arc::clone(&held);
        bot.fallback(move |ctx| {
            let gate = Arc::clone(&gate);
            async move {
                if ctx.text() == "wait" {
                    gate.notified().await;
                }
                ctx.reply(format!("did {}", ctx.text())).await
            }
        })
    })
    .await;
    let platform = world.platform().clone();
    let (ana, bob) = (platform.chat("ana"), platform.chat("bob"));
    let mut ana_hears = platform.listen(&ana);
    let mut bob_hears = platform.listen(&bob);
    for text in ["wait", "two", "three"] {
        platform.says(&ana, text).await.unwrap();
    }
    platform.says(&bob, "hello").await.unwrap();
    assert_eq!(bob_hears.next_message().await.text, "did hello");
    assert!(ana_hears.try_next().is_none());
    gate.notify_one();
    for text in ["did wait", "did two", "did three"] {
        assert_eq!(ana_hears.next_message().await.text, text);
    }
}

/// A1: many chats at once, each in its order, on several threads.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn ten_thousand_messages_of_a_hundred_chats_keep_the_order_of_each_chat() {
    let (seen, mut order) = mpsc::unbounded_channel();
    let platform = TestProvider::new();
    let running = Bot::new(platform.clone())
        .fallback(move |ctx| {
            let seen = seen.clone();
            async move {
                tokio::task::yield_now().await;
                let number: usize = ctx.text().parse()?;
                Ok(seen.send((ctx.chat().clone(), number))?)
            }
        })
        .start()
        .await
        .unwrap();
    for number in 0..100 {
        for chat in 0..100 {
            let chat = platform.chat(&format!("chat-{chat}"));
            platform.deliver(Message::text(chat, number.to_string())).await.unwrap();
        }
    }
    running.idle().await;
    let mut last = std::collections::HashMap::new();
    for _ in 0..10_000 {
        let (chat, number) = order.try_recv().unwrap();
        let expected = last.entry(chat).or_insert(0_usize);
        assert_eq!(number, *expected);
        *expected += 1;
    }
}

/// A3: what the platform delivers twice is handled once.
#[tokio::test(start_paused = true)]
async fn a_message_with_an_id_already_seen_in_its_chat_is_dropped() {
    let world = World::new(|bot| bot.fallback(|ctx| async move { ctx.reply("once").await })).await;
    let mut ana = world.user("ana");
    ana.says("hi").await.hears("once");
    let again = world.platform().repeats(ana.chat()).await.unwrap();
    assert_eq!(again, Accepted::Duplicate);
    world.rests().await;
    ana.hears_nothing();
    // The same id in another chat is another message.
    let id = botmesh_core::MessageId::new("7").unwrap();
    for chat in ["carl", "dora"] {
        let message = Message::text(world.platform().chat(chat), "hi").with_id(id.clone());
        assert_eq!(world.platform().deliver(message).await.unwrap(), Accepted::New);
    }
}

/// A3: a message that was refused is no duplicate when the platform sends it again.
#[tokio::test(start_paused = true)]
async fn a_refused_message_is_taken_when_it_comes_again() {
    let gate = Arc::new(Notify::new());
    let held = Arc::clone(&gate);
    let world = World::new(move |bot| {
        let gate = Arc::clone(&held);
        bot.max_waiting_per_chat(1).fallback(move |ctx| {
            let gate = Arc::clone(&gate);
            async move {
                gate.notified().await;
                ctx.reply(ctx.text().to_owned()).await
            }
        })
    })
    .await;
    let platform = world.platform();
    let chat = platform.chat("ana");
    let numbered = |number: &str| {
        let id = botmesh_core::MessageId::new(number).unwrap();
        Message::text(chat.clone(), number).with_id(id)
    };
    let mut hears = platform.listen(&chat);
    platform.deliver(numbered("1")).await.unwrap();
    platform.deliver(numbered("2")).await.unwrap();
    let refused = platform.deliver(numbered("3")).await.unwrap_err();
    assert!(refused.to_string().contains("deliver this one again later"), "{refused}");
    gate.notify_one();
    assert_eq!(hears.next_message().await.text, "1");
    assert_eq!(platform.deliver(numbered("3")).await.unwrap(), Accepted::New);
    gate.notify_one();
    assert_eq!(hears.next_message().await.text, "2");
    gate.notify_one();
    assert_eq!(hears.next_message().await.text, "3");
}

/// A1: providers wait while the bot has as much in work as it may, and nothing is lost.
#[tokio::test(start_paused = true)]
async fn a_full_bot_lets_providers_wait() {
    let gate = Arc::new(tokio::sync::Semaphore::new(0));
    let held = Arc::clone(&gate);
    let world = World::new(move |bot| {
        let gate = Arc::clone(&held);
        bot.max_in_work(2).max_waiting_per_chat(2).fallback(move |ctx| {
            let gate = Arc::clone(&gate);
            async move {
                gate.acquire().await?.forget();
                ctx.reply("done").await
            }
        })
    })
    .await;
    let platform = world.platform().clone();
    platform.says(&platform.chat("a"), "x").await.unwrap();
    platform.says(&platform.chat("b"), "x").await.unwrap();
    let third = platform.chat("c");
    let mut hears = platform.listen(&third);
    let delivery = tokio::spawn(async move { platform.says(&third, "x").await.is_ok() });
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(!delivery.is_finished());
    gate.add_permits(3);
    assert!(delivery.await.unwrap());
    assert_eq!(hears.next_message().await.text, "done");
}

/// A4: exact text, pattern, command, event kind, predicate, button and fallback; the first match
/// in the order of registration wins.
#[tokio::test(start_paused = true)]
async fn the_first_route_that_matches_handles_the_message() {
    let world = World::new(|bot| {
        bot.when("hi", |ctx| async move { ctx.reply("exact").await })
            .when(pattern(r"^(\w+) plus (\w+)$"), |ctx| async move {
                let both = (ctx.capture(1), ctx.capture(2));
                ctx.reply(format!("pattern {both:?}")).await
            })
            .when(command("buy"), |ctx| async move {
                ctx.reply(format!("buy [{}]", ctx.arguments())).await
            })
            .when(event(EventKind::Joined), |ctx| async move { ctx.reply("welcome").await })
            .when(button("pay"), |ctx| async move { ctx.reply("paid").await })
            .when(predicate(|m| matches!(m.content, Content::Location(_))), |ctx| async move {
                ctx.reply("a place").await
            })
            .when(
                predicate(|m| m.body() == Some("hi")),
                |ctx| async move { ctx.reply("never").await },
            )
            .fallback(|ctx| async move { ctx.reply("fallback").await })
    })
    .await;
    let mut ana = world.user("ana");
    ana.says(" Hi ").await.hears("exact");
    ana.says("one plus two").await.hears(r#"pattern (Some("one"), Some("two"))"#);
    ana.says("/buy@shop 3 apples").await.hears("buy [3 apples]");
    let joined = botmesh_core::message::ChatEvent::new(EventKind::Joined);
    ana.sends(Content::Event(joined)).await.hears("welcome");
    let place = Location { latitude: 1.0, longitude: 2.0, name: None };
    ana.sends(Content::Location(place)).await.hears("a place");
    ana.sends(Content::Button(botmesh_core::message::ButtonPress::new("pay"))).await.hears("paid");
    ana.says("anything else").await.hears("fallback");
}

/// A4: who edits, reacts or joins expects no answer: no fallback is run for that.
#[tokio::test(start_paused = true)]
async fn events_and_reactions_do_not_reach_the_fallback() {
    let world =
        World::new(|bot| bot.fallback(|ctx| async move { ctx.reply("fallback").await })).await;
    let mut ana = world.user("ana");
    let edited = botmesh_core::message::ChatEvent::new(EventKind::Edited);
    ana.sends(Content::Event(edited)).await.hears_nothing();
    let message = MessageId::new("1").unwrap();
    let liked = botmesh_core::message::Reaction { message, emoji: Some("👍".into()) };
    ana.sends(Content::Reaction(liked)).await.hears_nothing();
    ana.says("anything").await.hears("fallback");
}

/// A4: an error and a panic are events; the chat and the process go on.
#[tokio::test(start_paused = true)]
async fn an_error_or_a_panic_in_a_handler_is_an_event_and_the_chat_goes_on() {
    let mut world = World::new(|bot| {
        bot.when("fail", |_| async move { Err::<(), _>(BotError::message("no stock")) })
            .when("panic", |ctx| async move {
                assert!(ctx.text().is_empty(), "not empty");
                Ok(())
            })
            .fallback(|ctx| async move { ctx.reply("still here").await })
    })
    .await;
    let mut ana = world.user("ana");
    ana.says_at_once(["fail", "panic", "hello?"]).await.hears("still here").hears_nothing();
    let errors = world.errors();
    assert_eq!(errors.len(), 2, "{errors:?}");
    assert_eq!(errors[0], "a handler: no stock");
    assert!(errors[1].contains("panicked") && errors[1].contains("not empty"), "{errors:?}");
}

/// A4: hooks run before everything else and may change body, kind and language, or drop it.
#[tokio::test(start_paused = true)]
async fn a_before_hook_changes_or_drops_a_message() {
    let world = World::new(|bot| {
        bot.before(|mut message| async move {
            if message.body() == Some("spam") {
                return Ok(None);
            }
            if let Content::Text(text) = &mut message.content {
                *text = text.replace("helo", "hello");
            }
            message.language = Some(Language::new("es")?);
            Ok(Some(message))
        })
        .when("hello", |ctx| async move { ctx.reply(t("core.choice.yes")).await })
        .fallback(|ctx| async move { ctx.reply("fallback").await })
    })
    .await;
    let mut ana = world.user("ana");
    ana.says("helo").await.hears("Sí");
    ana.says("spam").await.hears_nothing();
}

/// A4: layers wrap handlers, the first is the outermost, and one may answer instead.
#[tokio::test(start_paused = true)]
async fn layers_wrap_what_handles_the_message() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let world = World::new(move |bot| {
        let calls = Arc::clone(&counted);
        bot.layer(|ctx, next: Next| async move {
            ctx.reply("before").await?;
            next.run(ctx.clone()).await?;
            ctx.reply("after").await.map(drop)
        })
        .layer(move |ctx, next: Next| {
            let calls = Arc::clone(&calls);
            async move {
                calls.fetch_add(1, Ordering::Relaxed);
                if ctx.text() == "stop" {
                    return ctx.reply("stopped").await.map(drop);
                }
                next.run(ctx).await
            }
        })
        .fallback(|ctx| async move { ctx.reply("handled").await })
    })
    .await;
    let mut ana = world.user("ana");
    ana.says("go").await.hears("before").hears("handled").hears("after");
    ana.says("stop").await.hears("before").hears("stopped").hears("after");
    assert_eq!(calls.load(Ordering::Relaxed), 2);
}

/// A4: a command that nobody knows is answered, but not in a group, where it may be for others.
#[tokio::test(start_paused = true)]
async fn an_unknown_command_is_answered_in_a_chat_with_one_person() {
    let world =
        World::new(|bot| bot.when(command("help"), |ctx| async move { ctx.reply("help").await }))
            .await;
    let mut ana = world.user("ana");
    ana.says("/hlep").await.hears("I do not know that command.");
    ana.says("hlep").await.hears_nothing();
    let group = world.platform().chat("group").for_participant("ana").unwrap();
    let mut hears = world.platform().listen(&group);
    world.platform().says(&group, "/hlep").await.unwrap();
    world.rests().await;
    assert!(hears.try_next().is_none());
}

/// A4: the 1 MiB that somebody pastes, and a message without any text, are messages like others.
#[tokio::test(start_paused = true)]
async fn a_mebibyte_of_text_and_a_message_without_text_are_handled() {
    let world = World::new(|bot| {
        bot.fallback(|ctx| async move { ctx.reply(format!("{} bytes", ctx.text().len())).await })
    })
    .await;
    let mut ana = world.user("ana");
    ana.says("ñ".repeat(512 * 1024)).await.hears("1048576 bytes");
    let unknown = Content::Unsupported { kind: "poll".to_owned() };
    ana.sends(unknown).await.hears("0 bytes");
}

/// A8: per-user data is stored, and survives the process with the store.
#[tokio::test(start_paused = true)]
async fn user_data_is_kept_over_messages_and_restarts() {
    #[derive(Default, serde::Serialize, serde::Deserialize)]
    struct Visits {
        count: u32,
    }
    let mut world = World::new(|bot| {
        bot.fallback(|ctx| async move {
            let visits = ctx.update_user(|visits: &mut Visits| visits.count += 1).await?;
            ctx.reply(format!("visit {}", visits.count)).await
        })
    })
    .await;
    let mut ana = world.user("ana");
    ana.says("hi").await.hears("visit 1");
    ana.says("hi").await.hears("visit 2");
    world.user("bob").says("hi").await.hears("visit 1");
    world.crash();
    world.restart().await;
    ana.says("hi").await.hears("visit 3");
}

/// A8: many chats of one user change the user's data at once, and no change is lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn changes_of_user_data_from_many_chats_are_all_kept() {
    let platform = TestProvider::new();
    let running = Bot::new(platform.clone())
        .when(
            "how many?",
            |ctx| async move { ctx.reply(ctx.user::<u32>().await?.to_string()).await },
        )
        .fallback(|ctx| async move { ctx.update_user(|count: &mut u32| *count += 1).await })
        .start()
        .await
        .unwrap();
    for group in 0..200 {
        let chat = platform.chat(&format!("group-{group}")).for_participant("ana").unwrap();
        platform.deliver(Message::text(chat, "hi")).await.unwrap();
    }
    running.idle().await;
    let chat = platform.chat("ana");
    let mut hears = platform.listen(&chat);
    platform.says(&chat, "how many?").await.unwrap();
    assert_eq!(hears.next_message().await.text, "200");
}

/// A8: what a platform cannot do is a typed error, or the documented fall-back.
#[tokio::test(start_paused = true)]
async fn a_missing_capability_is_a_typed_error_or_a_fall_back_and_never_silence() {
    let mut bare = Capabilities::default();
    bare.exclusive_session = false;
    let platform = TestProvider::new().with_capabilities(bare);
    let world = World::on(platform, |bot| {
        bot.when("react", |ctx| async move {
            let error = ctx.react("👍").await.unwrap_err();
            ctx.typing().await?;
            ctx.reply(error.to_string()).await
        })
        .when("buttons", |ctx| async move {
            ctx.reply(Reply::text("Tea?").button(Button::new("Yes", "y"))).await
        })
    })
    .await;
    let mut ana = world.user("ana");
    ana.says("react")
        .await
        .hears("test cannot react to messages: ask `capabilities()` before, or leave it out");
    assert!(ana.says("buttons").await.hears_something().text.starts_with("Tea?\n1. Yes"));
}

/// A8: replies with media, buttons, places, reactions, edits, deletions and the typing sign reach
/// the platform.
#[tokio::test(start_paused = true)]
async fn all_that_a_context_can_do_reaches_the_platform() {
    use botmesh_core::message::{AttachmentSource, MediaKind};
    use botmesh_core::testing::provider::Happening;
    let world = World::new(|bot| {
        bot.fallback(|ctx| async move {
            ctx.typing().await?;
            ctx.react("👍").await?;
            let picture = AttachmentSource::Url("https://example.org/a.png".to_owned());
            ctx.reply(Reply::media(MediaKind::Image, picture).caption("look")).await?;
            ctx.reply(Reply::location(4.6, -74.1)).await?;
            let sent = ctx.reply("draft").await?.message.unwrap();
            ctx.edit(&sent, "final").await?;
            ctx.delete(&sent).await
        })
    })
    .await;
    let mut ana = world.user("ana");
    ana.says("go").await;
    let kinds: Vec<&str> = world
        .platform()
        .transcript_of(ana.chat())
        .iter()
        .map(|entry| match &entry.what {
            Happening::Typing => "typing",
            Happening::Reacted { .. } => "reacted",
            Happening::Edited { .. } => "edited",
            Happening::Deleted { .. } => "deleted",
            Happening::Sent { .. } => "sent",
            _ => "said",
        })
        .collect();
    assert_eq!(kinds, ["said", "typing", "reacted", "sent", "sent", "sent", "edited", "deleted"]);
}

/// A8: a context that is kept beyond its turn is refused, with an error that says so.
#[tokio::test(start_paused = true)]
async fn a_context_acts_only_during_its_turn() {
    let (keep, mut kept) = mpsc::unbounded_channel();
    let world = World::new(move |bot| {
        let keep = keep.clone();
        bot.fallback(move |ctx| {
            let kept = keep.send(ctx);
            async move { Ok(kept?) }
        })
    })
    .await;
    world.user("ana").says("hi").await.hears_nothing();
    let error = kept.recv().await.unwrap().reply("late").await.unwrap_err();
    assert!(error.is::<botmesh_core::provider::SendError>(), "{error}");
    assert!(error.to_string().contains("has ended"), "{error}");
}

/// A15: one bot on several platforms; chats do not meet, and a handler may be for one platform.
#[tokio::test(start_paused = true)]
async fn several_platforms_share_one_bot_and_handlers_can_be_for_one_of_them() {
    let second = TestProvider::with_id(botmesh_core::ProviderId::new("second").unwrap());
    let other = second.clone();
    let world = World::new(move |bot| {
        bot.provider(other.clone())
            .when(Into::<botmesh_core::Matcher>::into("hi").only_on("second"), |ctx| async move {
                ctx.reply("only on the second").await
            })
            .fallback(|ctx| async move { ctx.reply(format!("{}", ctx.chat())).await })
    })
    .await;
    let mut ana = world.user("ana");
    ana.says("hi").await.hears("test:ana");
    let chat = second.chat("ana");
    let mut hears = second.listen(&chat);
    second.says(&chat, "hi").await.unwrap();
    assert_eq!(hears.next_message().await.text, "only on the second");
}

/// A10: built-in texts come in the language of the chat, which can be set and is kept.
#[tokio::test(start_paused = true)]
async fn the_language_of_a_chat_can_be_set_and_is_kept() {
    let mut world = World::new(|bot| {
        bot.when(pattern("^lang (.+)$"), |ctx| async move {
            ctx.set_language(&Language::new(ctx.capture(1).unwrap_or_default())?).await
        })
        .fallback(|ctx| async move { ctx.reply(t("core.conversation.cancelled")).await })
    })
    .await;
    let mut ana = world.user("ana");
    ana.says("x").await.hears("All right, cancelled.");
    ana.says("lang es").await;
    world.restart().await;
    let heard = ana.says("x").await.hears_something().text;
    assert_ne!(heard, "All right, cancelled.");
}
