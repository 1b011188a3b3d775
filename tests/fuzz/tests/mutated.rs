//! Every target with its seeds and what a generator makes of them.

#![allow(clippy::expect_used)]

use botmesh_fuzz::mutation::Mutation;
use botmesh_fuzz::{TARGETS, Target};

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

fn fuzz(name: &str) {
    fuzz_for(name, number("BOTMESH_FUZZ_ROUNDS", 2_000));
}

/// For a target that starts a bot for each input.
fn fuzz_less(name: &str) {
    fuzz_for(name, number("BOTMESH_FUZZ_ROUNDS", 200));
}

fn fuzz_for(name: &str, rounds: u64) {
    let target = Target::named(name).expect("a target");
    let mut mutation = Mutation::new(number("BOTMESH_FUZZ_SEED", 1));
    let seeds = (target.seeds)();
    assert!(!seeds.is_empty(), "{name} has nothing to begin from");
    (target.run)(b"");
    for seed in &seeds {
        (target.run)(seed);
    }
    for _ in 0..rounds {
        let input = mutation.next(&seeds);
        let shown = || println!("the input is {:?}", String::from_utf8_lossy(&input));
        // Shown before the panic of the target ends the test.
        let guard = OnPanic(shown);
        (target.run)(&input);
        drop(guard);
    }
}

/// Says something when it is dropped by a panic.
struct OnPanic<F: Fn()>(F);

impl<F: Fn()> Drop for OnPanic<F> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            (self.0)();
        }
    }
}

/// I1: no bytes from Telegram make the parser panic or take more memory than a multiple of theirs.
#[test]
fn any_update_of_telegram_is_read_or_refused_in_bounded_memory() {
    fuzz("telegram-update");
}

/// I1: nothing that a server answers makes polling panic or take more memory than a multiple of it.
#[test]
fn any_answer_to_polling_is_read_or_refused_in_bounded_memory() {
    fuzz("telegram-answer");
}

/// I6: no request makes the webhook server panic or take more memory than a multiple of its body.
#[test]
fn any_request_to_a_webhook_is_answered_in_bounded_memory() {
    fuzz("webhook");
}

/// A11: no bytes on a pipe make the terminal panic.
#[test]
fn any_bytes_on_a_pipe_are_lines_or_reported() {
    fuzz("terminal");
}

#[test]
fn any_text_is_an_answer_or_none() {
    fuzz("answer");
}

#[test]
fn any_text_is_one_chat_key_or_none() {
    fuzz("chat-key");
}

#[test]
fn any_text_is_a_schedule_or_refused() {
    fuzz("cron");
}

/// What one replica writes another reads, and what is no message is refused.
#[test]
fn any_bytes_are_a_message_that_travels_or_refused() {
    fuzz("message");
}

/// G11: whatever a platform tells comes to another replica as it was.
#[test]
fn any_text_is_a_payload_that_travels() {
    fuzz("raw-payload");
}

/// G3: a record that cannot be read is given up, and what comes behind it is answered.
#[test]
fn any_text_in_the_inbox_leaves_its_chat_able_to_go_on() {
    fuzz_less("record-body");
}

/// G4: notes of sends that cannot be read tell nothing, and stop nothing.
#[test]
fn any_notes_of_sends_leave_their_chat_able_to_go_on() {
    fuzz_less("record-sends");
}

/// A7: a chat with a checkpoint that cannot be read goes on without it.
#[test]
fn any_checkpoint_leaves_its_chat_able_to_go_on() {
    fuzz_less("checkpoint");
}

/// H1: a bot whose job has a record that cannot be read goes on.
#[test]
fn any_record_of_a_job_leaves_the_bot_able_to_go_on() {
    fuzz_less("job");
}

/// A7: a checkpoint that cannot be read is an error and nothing worse.
#[test]
fn any_text_is_a_run_of_a_flow_or_refused() {
    fuzz("saved-flow");
}

/// What failed once: a number or a language that was read otherwise than it was written, at another
/// replica.
#[test]
fn what_failed_once_does_not_fail_again() {
    for input in [
        r#"{"update_id":1,"my_chat_member":{"from":{"id":33333300000000000000000000728149311}}}"#,
        r#"{"update_id":1,"message":{"location":{"latitude":3.33333e34,"longitude":1e-300}}}"#,
        r#"{"update_id":1,"message":{"from":{"id":1,"language_code":"update_total_ames"}}}"#,
    ] {
        let target = Target::named("telegram-update").expect("a target");
        (target.run)(input.as_bytes());
    }
}

#[test]
fn every_target_is_run_here() {
    let here = include_str!("mutated.rs");
    for target in TARGETS {
        let run = ["fuzz", "fuzz_less"].map(|how| format!("{how}(\"{}\")", target.name));
        assert!(run.iter().any(|run| here.contains(run)), "{}", target.name);
    }
}
