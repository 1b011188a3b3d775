//! What `build()` tells about flows.

use std::time::Duration;

use super::chat::problems;
use crate::flow::{Limits, Problem};
use crate::{Answer, Flow, Invalid, flow, form, question};

fn take<S>(_: &mut S, _: Answer) -> Result<(), Invalid> {
    Ok(())
}

fn base() -> Flow<()> {
    flow::<()>("f").ask("Well?", take)
}

/// A14: each mistake in a flow is told with its remedy.
#[test]
fn each_mistake_is_told_with_its_remedy() {
    const SECOND: Duration = Duration::from_secs(1);
    let table: Vec<(Flow<()>, &str)> = vec![
        (base(), ""),
        (flow("").ask("x", take), "the flow \"\" cannot have this name"),
        (flow("f"), "has no steps"),
        (base().enter_on(crate::pattern("(")), "cannot be entered as it says"),
        (base().label("a").say_text("x").label("a").end(), "has the label \"a\" twice"),
        (base().form(form().field("n", "?", take).field("n", "?", take)), "form field \"n\" twice"),
        (base().goto("nowhere"), "label \"nowhere\", which it does not have"),
        (base().branch(|()| true, "nowhere"), "label \"nowhere\", which it does not have"),
        (base().menu("?", [("A", "nowhere")]), "label \"nowhere\", which it does not have"),
        (base().on_timeout("nowhere").timeout(SECOND), "label \"nowhere\""),
        (base().end().say_text("x"), "step 3 of the flow \"f\" is never reached"),
        (base().menu("?", [("A", "a")]).say_text("x").label("a"), "step 3 of the flow"),
        (flow("f").label("a").say_text("x").goto("a"), "goes round for ever from step 1"),
        (
            flow("f").label("a").branch(|()| true, "b").goto("a").label("b").goto("a"),
            "goes round for ever",
        ),
        (flow("f").say_text("x").cancellable(), "never waits, so its cancellable"),
        (flow("f").say_text("x").timeout(SECOND), "never waits, so its timeout"),
        (base().on_timeout("a").label("a"), "no wait of the flow \"f\" has a timeout"),
        (base().on_failure("a").label("a"), "no question of the flow \"f\" has a limit"),
        (base().timeout(SECOND).idle(SECOND, "?"), "before its idle"),
        (base().timeout(Duration::ZERO), "timeout of no length"),
        (base().sleep(61 * SECOND), "sleeps 61s, but a step may hold a chat for 60s"),
        (base().ask(question("?").only_buttons(), take), "step 2 of the flow \"f\" takes only"),
        (base().ask(question("?").retry(0, "x"), take), "step 2 of the flow \"f\" may be asked 0"),
        (base().ask(question("?").buttons(["A", "A"]), take), "offers \"A\" twice"),
        (
            base().call(base(), |()| (), |(), ()| ()).persistent(),
            "calls \"f\", which lives in memory only",
        ),
        (base().call(base().goto("x"), |()| (), |(), ()| ()), "label \"x\""),
        (base().when(|()| true, |_| base()), "a .when(...) of the flow \"f\" returns another"),
    ];
    for (flow, expected) in table {
        let found = problems(flow);
        if expected.is_empty() {
            assert_eq!(found, Vec::<String>::new());
        } else {
            assert_eq!(found.len(), 1, "{expected}: {found:?}");
            assert!(found[0].contains(expected), "{expected}: {found:?}");
        }
    }
}

/// A14: what merely has no effect is a warning, what goes wrong is an error.
#[test]
fn what_has_no_effect_is_a_warning() {
    let useless = flow::<()>("f").say_text("x").cancellable().compile();
    assert!(useless.problems(&Limits::default())[0].is_warning());
    let unreachable = base().end().say_text("x").compile().problems(&Limits::default());
    assert!(!unreachable[0].is_warning());
    let unknown = base().goto("x").compile().problems(&Limits::default());
    assert!(!unknown[0].is_warning());
}

/// A14: how long a flow may sleep is the bot's settle.
#[test]
fn the_longest_sleep_is_the_limit_given() {
    let flow = base().sleep(Duration::from_secs(30)).compile();
    assert_eq!(flow.problems(&Limits::default()), []);
    let found = flow.problems(&Limits::default().settle(Duration::from_secs(10)));
    assert!(matches!(found[..], [Problem::SleepTooLong { .. }]));
}

/// A14: a loop that asks, works or pauses is none to complain of.
#[test]
fn a_loop_that_waits_is_fine() {
    let asks = flow::<()>("f").label("a").ask("?", take).goto("a");
    let works = flow::<()>("f").label("a").do_(|_| async { Ok(()) }).goto("a");
    let pauses = flow::<()>("f").label("a").resume_after(Duration::from_secs(9)).goto("a");
    for flow in [asks, works, pauses] {
        assert_eq!(problems(flow), Vec::<String>::new());
    }
}

/// A14: a timeout may come from the question, the flow, what it calls, what calls it, or the bot.
#[test]
fn a_way_out_of_timeouts_is_used_wherever_the_timeout_comes_from() {
    const SECOND: Duration = Duration::from_secs(1);
    let late = |flow: Flow<()>| flow.end().label("late").end().on_timeout("late");
    let asked = |sub: Flow<()>| flow::<()>("g").call(sub, |()| (), |(), ()| ());
    for fine in [
        late(base().timeout(SECOND)),
        late(base().ask(question("?").timeout(SECOND), take)),
        late(base().ask_with(|()| "?", take)),
        late(asked(base().timeout(SECOND))),
        asked(late(base())).timeout(SECOND),
    ] {
        assert_eq!(problems(fine), Vec::<String>::new());
    }
    let by_bot = Limits::default().timeout(Some(SECOND));
    assert_eq!(late(base()).compile().problems(&by_bot), []);
    assert!(problems(late(asked(base())))[0].contains("no wait of the flow"));
}
