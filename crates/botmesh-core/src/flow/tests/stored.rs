//! Fingerprints, saved runs, and what can go wrong with them.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::chat::Chat;
use crate::flow::{FlowDefinition, Input, Persistence, RestoreError, SaveError, SavedFlow};
use crate::{Answer, Flow, Invalid, flow, form, question};

fn take<S>(_: &mut S, _: Answer) -> Result<(), Invalid> {
    Ok(())
}

fn base() -> Flow<u8> {
    flow::<u8>("f")
        .ask(question("Well?").buttons(["A", "B"]), take)
        .label("x")
        .goto("x")
        .persistent()
}

/// F2: the fingerprint of an unchanged flow is the same in every build and release.
#[test]
fn fingerprints_are_pinned() {
    let every_step = flow::<u8>("every")
        .label("x")
        .say_text("a")
        .ask("b", take)
        .choose("c", [("1", 1), ("2", 2)], |_, _| ())
        .menu("d", [("3", "x")])
        .form(form().field("e", "e", take).confirm(|_| "f"))
        .do_(|_| async { Ok(()) })
        .branch(|_| true, "x")
        .when(|_| true, |f| f.end())
        .call(base(), |_| 0, |_, _| ())
        .sleep(Duration::from_secs(1))
        .resume_after(Duration::from_secs(1))
        .version(3)
        .goto("x")
        .end_with("g");
    assert_eq!(base().compile().fingerprint(), PINNED_BASE);
    assert_eq!(every_step.compile().fingerprint(), PINNED_EVERY_STEP);
}

const PINNED_BASE: u64 = 5_976_445_925_852_300_552;
const PINNED_EVERY_STEP: u64 = 153_240_823_821_202_788;

/// F2: what a stored run could stumble over changes the fingerprint; words and times do not.
#[test]
fn what_moves_the_steps_changes_the_fingerprint_and_wording_does_not() {
    let present = base().compile().fingerprint();
    let asking = |name: &'static str, question: crate::Question| {
        flow::<u8>(name).ask(question, take).label("x").goto("x").persistent()
    };
    let options = || question("Well?").buttons(["A", "B"]);
    let same = [
        asking("f", question("Really?").buttons(["A", "B"])),
        asking("f", options().retry(3, "No!").timeout(Duration::from_secs(9))),
        asking("f", question("Well?").option("Eh", "A").option("Be", "B")),
        base().timeout(Duration::from_secs(9)).cancellable().enter_on("hi").version(0),
    ];
    for flow in same {
        assert_eq!(flow.compile().fingerprint(), present);
    }
    let other = [
        asking("g", options()),
        asking("f", question("Well?").buttons(["A", "C"])),
        asking("f", question("Well?").buttons(["B", "A"])),
        asking("f", question("Well?").buttons(["A"])),
        asking("f", question("Well?").buttons(["AB", ""])),
        base().version(1),
        base().say_text("more"),
        base().end(),
        base().label("y"),
        base().sleep(Duration::from_secs(1)),
        base().resume_after(Duration::from_secs(1)),
        base().do_(|_| async { Ok(()) }),
        base().branch(|_| true, "x"),
        base().when(|_| true, |f| f),
        base().form(form().field("n", "?", take)),
        base().form(form().field("m", "?", take)),
        base().ask("?", take),
        base().ask_with(|_| "?", take),
        base().menu("?", [("1", "x")]),
        base().choose("?", [("x", 1)], |_, _| ()),
        base().call(base(), |_| 0, |_, _| ()),
        base().call(base().version(1), |_| 0, |_, _| ()),
        flow::<u8>("f").ask(options(), take).label("z").goto("z").persistent(),
        flow::<u8>("f").label("x").ask(options(), take).goto("x").persistent(),
    ];
    let mut seen = vec![present];
    for (number, flow) in other.into_iter().enumerate() {
        let fingerprint = flow.compile().fingerprint();
        assert!(!seen.contains(&fingerprint), "change {number} is not seen");
        seen.push(fingerprint);
    }
}

/// A7: a saved run is small, and tells whose it is without its flow.
#[test]
fn a_saved_run_is_small_and_tells_whose_it_is() {
    let flow = base().compile();
    let body = flow.save(&Chat::enter(base()).run, 0).unwrap();
    assert!(body.len() < 150, "{}: {body}", body.len());
    let saved = SavedFlow::read(&body).unwrap();
    assert_eq!((saved.name.as_str(), saved.run), ("f", 0xabc));
    assert_eq!(saved.fingerprint, flow.fingerprint());
}

/// F2: a run of a changed flow, of another flow, or in pieces is told apart.
#[test]
fn a_run_that_cannot_be_restored_says_why() {
    let body = Chat::enter(base()).saved();
    let error = |flow: Flow<u8>, body: &str| flow.compile().restore(body).unwrap_err();
    assert!(matches!(error(base().version(1), &body), RestoreError::Changed { .. }));
    assert!(matches!(error(flow("g"), &body), RestoreError::OtherFlow { .. }));
    for broken in
        ["", "{}", "null", &body[..body.len() - 1], &body.replace("\"run\":\"", "\"run\":\"x")]
    {
        assert!(matches!(error(base(), broken), RestoreError::Unreadable(_)), "{broken}");
        assert!(matches!(SavedFlow::read(broken), Err(RestoreError::Unreadable(_))), "{broken}");
    }
    let state = body.replace("\"state\":0", "\"state\":\"zero\"");
    assert!(matches!(error(base(), &state), RestoreError::State { .. }), "{state}");
    let step = body.replace("\"step\":0", "\"step\":99");
    assert!(matches!(error(base(), &step), RestoreError::NoSuchStep { .. }), "{step}");
    let called = body.replace("\"frames\":[", "\"frames\":[{\"step\":0,\"state\":0},");
    assert!(matches!(error(base(), &called), RestoreError::NoSuchStep { .. }), "{called}");
    let none = format!("{}[]}}", &body[..body.find("[{").unwrap()]);
    assert!(matches!(error(base(), &none), RestoreError::NoSuchStep { .. }), "{none}");
}

/// A14: a flow in memory cannot be saved, a forwardable and a persistent one can.
#[test]
fn only_flows_that_may_leave_the_process_are_saved() {
    let asking = || flow::<u8>("f").ask("?", take);
    let table = [
        (asking(), Persistence::Memory),
        (asking().forwardable(), Persistence::Forwardable),
        (asking().persistent(), Persistence::Persistent),
        (asking().persistent().forwardable(), Persistence::Persistent),
    ];
    for (flow, persistence) in table {
        let flow = flow.compile();
        assert_eq!(flow.persistence(), persistence);
        let saved = flow.save(&Chat::enter(flow.clone()).run, 0);
        let is_refused = matches!(saved, Err(SaveError::InMemory { .. }));
        assert_eq!(is_refused, persistence == Persistence::Memory);
    }
    let done = flow::<u8>("f").end().persistent().compile();
    let saved = done.save(&Chat::enter(done.clone()).run, 0);
    assert!(matches!(saved, Err(SaveError::NoState { .. })));
}

/// F3: a state that is no JSON is refused when the run is saved, also within a function.
#[test]
fn a_state_that_is_no_json_is_refused() {
    #[derive(Default, Serialize, Deserialize)]
    struct Odd(BTreeMap<(u8, u8), u8>);
    let refused = |flow: Flow<Odd>| {
        let flow = flow.persistent().compile();
        let mut run = flow.start(1).unwrap();
        let outcome = flow.advance(&mut run, Input::Enter, &super::chat::shown, &mut Vec::new());
        let saved = flow.save(&run, 0);
        assert!(matches!(saved, Err(SaveError::State { .. })), "{saved:?} {outcome:?}");
    };
    let odd = || crate::flow_from("odd", || Odd(BTreeMap::from([((1, 2), 3)])));
    refused(odd().ask("?", take));
    refused(odd().do_(|c| async move { c.ask("?").await }));
}

/// A7: a state of any Unicode survives.
#[test]
fn any_text_survives_in_the_state() {
    let echo = flow::<String>("écho \"\\\u{1F600}")
        .ask("?", |said: &mut String, answer| {
            *said = answer.text()?;
            Ok(())
        })
        .ask("!", |_, answer| answer.text().map(drop))
        .say(String::clone)
        .persistent();
    let odd = "a\0b\u{1F600}\u{202E}\"\\\u{FFFD}\r\nz";
    Chat::enter(echo).says(odd).restarts().says("x").hears(["?", "!", odd]);
}

/// A trait object is what the runtime holds.
#[test]
fn definitions_are_object_safe_and_shared_between_threads() {
    fn shared<T: Send + Sync + ?Sized>() {}
    fn sent<T: Send>() {}
    shared::<dyn FlowDefinition>();
    sent::<crate::flow::Run>();
}
