use super::*;

fn receipt(id: &str) -> Receipt {
    Receipt::of(MessageId::new(id).unwrap())
}

/// Goes through the sends of an attempt that ends after these many, and returns the steps that it
/// met and the last notes that it wrote.
async fn attempt(outbox: &Outbox, policy: &Uncertain, ends: usize) -> (Vec<Step>, Option<String>) {
    let (mut steps, mut noted) = (Vec::new(), None);
    for _ in 0..ends {
        let mut sends = outbox.next().await;
        let step = sends.step(policy);
        if !matches!(step, Step::Sent(_)) {
            if let Some(notes) = sends.unnoted(policy) {
                noted = Some(notes);
                sends.noted();
            }
            let id = format!("m{}", sends.index());
            sends.sent(&receipt(&id));
        }
        steps.push(step);
    }
    (steps, noted)
}

/// G4: of the sends of an attempt that was cut off, those that were noted are not sent again, and
/// only the one behind them is uncertain.
#[tokio::test]
async fn after_a_crash_one_send_is_uncertain_and_none_before_it_is_sent_again() {
    let policy = Uncertain::Resend;
    let first = Outbox::new(None, 1, false);
    let (steps, noted) = attempt(&first, &policy, 3).await;
    assert_eq!(steps, [Step::New, Step::New, Step::New]);
    let second = Outbox::new(noted.as_deref(), 2, false);
    let (steps, _) = attempt(&second, &policy, 4).await;
    let sent = |id| Step::Sent(receipt(id));
    assert_eq!(steps, [sent("m0"), sent("m1"), Step::Uncertain, Step::New]);
}

/// G10: where each send is noted first, one that was never begun is not taken for uncertain.
#[tokio::test]
async fn a_send_that_was_never_begun_is_not_skipped() {
    let policy = Uncertain::Skip;
    let first = Outbox::new(None, 1, false);
    let (_, noted) = attempt(&first, &policy, 1).await;
    // The note says that it was begun; what became of it is not noted.
    let second = Outbox::new(noted.as_deref(), 2, false);
    assert_eq!(attempt(&second, &policy, 2).await.0, [Step::Uncertain, Step::New]);
    let nothing = Outbox::new(None, 2, false);
    assert_eq!(attempt(&nothing, &policy, 1).await.0, [Step::New]);
}

/// G4: an attempt that has failed in an orderly way leaves no doubt about its sends.
#[tokio::test]
async fn after_a_failure_that_was_noted_nothing_is_uncertain() {
    let policy = Uncertain::Resend;
    let first = Outbox::new(None, 1, false);
    attempt(&first, &policy, 2).await;
    let notes = first.complete(1).await;
    let second = Outbox::new(Some(&notes), 2, false);
    let (steps, _) = attempt(&second, &policy, 3).await;
    assert_eq!(steps[2], Step::New);
    assert!(matches!(steps[1], Step::Sent(_)));
    // The second one crashed, so that the third has the notes of the first.
    let third = Outbox::new(Some(&notes), 3, false);
    assert_eq!(attempt(&third, &policy, 3).await.0[2], Step::Uncertain);
}

/// G4: a send that failed for certain is sent again, and those behind it keep their places.
#[tokio::test]
async fn a_send_that_failed_is_sent_again_and_the_next_one_is_not() {
    let policy = Uncertain::Resend;
    let first = Outbox::new(None, 1, false);
    first.next().await.failed(false);
    first.next().await.sent(&receipt("m1"));
    first.next().await.failed(true);
    let notes = first.complete(1).await;
    let second = Outbox::new(Some(&notes), 2, false);
    let (steps, _) = attempt(&second, &policy, 3).await;
    assert_eq!(steps, [Step::New, Step::Sent(receipt("m1")), Step::Uncertain]);
}

/// G4: keys are the same in each attempt and process, and differ by chat, record and index.
#[test]
fn idempotency_keys_are_stable_and_distinct() {
    let chat = |text| ChatKey::decode(text).unwrap();
    let key = |text, position, index| idempotency_key(&chat(text), Position::new(position), index);
    assert_eq!(key("telegram:42", 1_700_000_000_000_000, 3), "d0cb169e46c97a46-60a24181e4000-3");
    let keys = [key("t:1", 1, 0), key("t:1", 1, 1), key("t:1", 2, 0), key("t:2", 1, 0)];
    let mut distinct = keys.to_vec();
    distinct.sort();
    distinct.dedup();
    assert_eq!(distinct.len(), keys.len());
}
