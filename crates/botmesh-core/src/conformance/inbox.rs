//! Cases about the inbox: what is admitted, begun and known again.

use std::time::Duration;

use tokio::time::Instant;

use super::case::{GRAIN, ensure, ensure_eq, eventually};
use super::samples::strange_texts;
use super::store::{Space, at_once, chat, inbox};
use super::{CaseError, StoreFixture};
use crate::id::{ChatKey, Fence, MessageId, Position};
use crate::store::{
    Admission, Begun, CheckpointChange, Commit, Committed, InboxRecord, InboxStore, NewRecord,
    Postponement, StoreError,
};

pub(super) const MINUTE: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(300);

pub(super) fn message(id: &str) -> Result<MessageId, CaseError> {
    MessageId::new(id).map_err(|error| CaseError::Violation(error.to_string()))
}

/// A record that is leased for a minute.
pub(super) const fn record<'a>(chat: &'a ChatKey, message: &'a MessageId) -> NewRecord<'a> {
    NewRecord { chat, message: Some(message), body: Some("{}"), lease: MINUTE, most: 1000 }
}

/// The position of a record that must be new.
pub(super) fn admitted(admission: Admission) -> Result<Position, CaseError> {
    match admission {
        Admission::New { position, .. } => Ok(position),
        other => Err(CaseError::Violation(format!("a new message was answered {other:?}"))),
    }
}

/// The record that must be there to begin.
pub(super) async fn begun(
    inbox: &dyn InboxStore,
    chat: &ChatKey,
    fence: u64,
) -> Result<InboxRecord, CaseError> {
    match inbox.begin(chat, Fence::new(fence), MINUTE).await? {
        Begun::Record(record) => Ok(record),
        other => Err(CaseError::Violation(format!("beginning was answered {other:?}"))),
    }
}

/// Ends a record that changes no checkpoint.
pub(super) async fn end(
    inbox: &dyn InboxStore,
    chat: &ChatKey,
    position: Position,
    fence: u64,
) -> Result<Committed, StoreError> {
    let checkpoint = CheckpointChange::Nothing;
    inbox.commit(Commit { chat, position, fence: Fence::new(fence), checkpoint }).await
}

/// G1: of many who admit one message at once, through several handles, exactly one is told that
/// it is new.
pub async fn of_many_who_admit_a_message_exactly_one_is_told_that_it_is_new(
    fixture: &dyn StoreFixture,
) -> Result<(), CaseError> {
    let space = Space::new(fixture);
    let handles = [space.open().await?, space.open().await?, space.open().await?];
    for round in 0..4 {
        let admissions = at_once(&handles, 12, |store, _| async move {
            let (Ok(chat), Ok(id)) = (chat("a"), message(&format!("m{round}"))) else {
                return Ok(Admission::Known);
            };
            match store.inbox() {
                Some(inbox) => inbox.admit(record(&chat, &id)).await,
                None => Ok(Admission::New { position: Position::new(0), is_behind: false }),
            }
        });
        if handles[0].inbox().is_none() {
            return Err(CaseError::NotRun("no inbox"));
        }
        let admissions = admissions.await?;
        let new = admissions.iter().filter(|one| matches!(one, Admission::New { .. })).count();
        let known = admissions.iter().filter(|one| **one == Admission::Known).count();
        ensure_eq!((new, known), (1, 11), "new and known in round {round}");
    }
    Ok(())
}

/// G1: messages that many admit to one chat at once get positions of their own, and each is begun
/// once, in the order of the positions.
pub async fn messages_that_are_admitted_at_once_are_each_begun_once_in_order(
    fixture: &dyn StoreFixture,
) -> Result<(), CaseError> {
    let space = Space::new(fixture);
    let handles = [space.open().await?, space.open().await?, space.open().await?];
    let first = inbox(&*handles[0])?;
    let admissions = at_once(&handles, 24, |store, task| async move {
        let (Ok(chat), Ok(id)) = (chat("a"), message(&format!("m{task}"))) else {
            return Ok(Admission::Known);
        };
        match store.inbox() {
            Some(inbox) => inbox.admit(record(&chat, &id)).await,
            None => Ok(Admission::Known),
        }
    });
    let mut wanted = Vec::new();
    for admission in admissions.await? {
        wanted.push(admitted(admission)?);
    }
    wanted.sort_unstable();
    let chat = chat("a")?;
    let mut found = Vec::new();
    for fence in 1..=24 {
        let record = begun(first, &chat, fence).await?;
        ensure_eq!(record.has_more, fence < 24, "more behind record {fence}");
        found.push(record.position);
        let committed = end(first, &chat, record.position, fence).await?;
        ensure_eq!(committed, Committed::Applied(None), "the end of record {fence}");
    }
    ensure_eq!(found, wanted, "positions in the order in which they were begun");
    ensure_eq!(first.begin(&chat, Fence::new(99), MINUTE).await?, Begun::Nothing, "at the end");
    Ok(())
}

/// G1: a message is known while it is pending, when it is done and when it is dead; only within
/// its chat; and one without an id is always new.
pub async fn a_message_is_known_in_every_state_and_only_in_its_chat(
    fixture: &dyn StoreFixture,
) -> Result<(), CaseError> {
    let store = Space::new(fixture).open().await?;
    let inbox = inbox(&*store)?;
    let (a, b, id) = (chat("a")?, chat("b")?, message("1")?);
    let position = admitted(inbox.admit(record(&a, &id)).await?)?;
    ensure_eq!(inbox.admit(record(&a, &id)).await?, Admission::Known, "while it is pending");
    begun(inbox, &a, 1).await?;
    ensure_eq!(inbox.admit(record(&a, &id)).await?, Admission::Known, "while it is processed");
    ensure_eq!(end(inbox, &a, position, 1).await?, Committed::Applied(None), "its end");
    ensure_eq!(inbox.admit(record(&a, &id)).await?, Admission::Known, "when it is done");
    let other = admitted(inbox.admit(record(&b, &id)).await?)?;
    begun(inbox, &b, 1).await?;
    ensure!(inbox.bury(&b, other, Fence::new(1), "no").await?, "burying was refused");
    ensure_eq!(inbox.admit(record(&b, &id)).await?, Admission::Known, "when it is dead");
    let nameless = NewRecord { message: None, ..record(&a, &id) };
    let first = admitted(inbox.admit(nameless).await?)?;
    let second = admitted(inbox.admit(nameless).await?)?;
    ensure!(first < second && position < first, "positions {position}, {first}, {second}");
    Ok(())
}

/// B4: ids and chats that look alike are different, and bodies come back as they were.
pub async fn messages_of_ids_and_chats_that_look_alike_do_not_meet(
    fixture: &dyn StoreFixture,
) -> Result<(), CaseError> {
    let store = Space::new(fixture).open().await?;
    let inbox = inbox(&*store)?;
    let same = chat("same")?;
    let mut positions = Vec::new();
    for text in strange_texts() {
        let Ok(id) = MessageId::new(&*text) else { continue };
        let body = format!("of {text}");
        let new = NewRecord { body: Some(&body), ..record(&same, &id) };
        positions.push((admitted(inbox.admit(new).await?)?, body));
        let alone = chat(&text)?;
        admitted(inbox.admit(record(&alone, &id)).await?)?;
    }
    for (position, body) in positions {
        let record = begun(inbox, &same, 1).await?;
        ensure_eq!((record.position, record.body), (position, body), "a record");
        ensure_eq!(end(inbox, &same, position, 1).await?, Committed::Applied(None), "its end");
    }
    Ok(())
}

/// B4, G11: what was admitted comes back whole, a mebibyte of it and any Unicode.
pub async fn bodies_of_records_come_back_as_they_were(
    fixture: &dyn StoreFixture,
) -> Result<(), CaseError> {
    let store = Space::new(fixture).open().await?;
    let inbox = inbox(&*store)?;
    let (key, id) = (chat("a")?, message("1")?);
    let body = "é🎉\u{202e}\\\"'\u{7f}".repeat(1 << 16);
    let new = NewRecord { body: Some(&body), ..record(&key, &id) };
    let position = admitted(inbox.admit(new).await?)?;
    let sends = "ü".repeat(1 << 17);
    begun(inbox, &key, 3).await?;
    ensure!(inbox.note_sends(&key, position, Fence::new(3), &sends).await?, "not noted");
    let again = begun(inbox, &key, 4).await?;
    ensure!(again.body == body, "the body came back changed");
    ensure!(again.sends.as_deref() == Some(&*sends), "the note of sends came back changed");
    ensure_eq!(again.attempts, 2, "attempts");
    Ok(())
}

/// G3: whoever had the turn before cannot begin, note, postpone, bury or end a record any more.
pub async fn a_lower_fence_cannot_touch_a_record_that_a_higher_one_has_begun(
    fixture: &dyn StoreFixture,
) -> Result<(), CaseError> {
    let store = Space::new(fixture).open().await?;
    let inbox = inbox(&*store)?;
    let (key, id, low) = (chat("a")?, message("1")?, Fence::new(6));
    let position = admitted(inbox.admit(record(&key, &id)).await?)?;
    ensure_eq!(begun(inbox, &key, 6).await?.attempts, 1, "attempts");
    ensure_eq!(begun(inbox, &key, 7).await?.attempts, 2, "attempts");
    let refused = Begun::Refused(Fence::new(7));
    ensure_eq!(inbox.begin(&key, low, MINUTE).await?, refused, "beginning");
    ensure!(!inbox.note_sends(&key, position, low, "x").await?, "noted by a former holder");
    let later = Postponement { attempts: 0, error: "e", sends: None, retry_in: MINUTE };
    ensure!(!inbox.postpone(&key, position, low, later).await?, "postponed by a former holder");
    ensure!(!inbox.bury(&key, position, low, "e").await?, "buried by a former holder");
    ensure_eq!(end(inbox, &key, position, 6).await?, Committed::Refused, "the end");
    let record = begun(inbox, &key, 7).await?;
    ensure_eq!((record.attempts, record.sends, record.error), (3, None, None), "the record");
    ensure_eq!(end(inbox, &key, position, 7).await?, Committed::Applied(None), "the end");
    ensure_eq!(end(inbox, &key, position, 8).await?, Committed::Refused, "a second end");
    ensure!(!inbox.bury(&key, position, Fence::new(9), "e").await?, "buried what is done");
    Ok(())
}

/// G9: a record need not be begun to be ended, for whoever admitted it knows that it is the first.
pub async fn a_record_can_be_ended_without_being_begun(
    fixture: &dyn StoreFixture,
) -> Result<(), CaseError> {
    let store = Space::new(fixture).open().await?;
    let inbox = inbox(&*store)?;
    let (key, one, two) = (chat("a")?, message("1")?, message("2")?);
    let first = inbox.admit(record(&key, &one)).await?;
    ensure!(matches!(first, Admission::New { is_behind: false, .. }), "the first: {first:?}");
    let second = inbox.admit(record(&key, &two)).await?;
    ensure!(matches!(second, Admission::New { is_behind: true, .. }), "the second: {second:?}");
    let first = admitted(first)?;
    ensure_eq!(end(inbox, &key, first, 5).await?, Committed::Applied(None), "the end");
    ensure_eq!(begun(inbox, &key, 5).await?.position, admitted(second)?, "the next");
    Ok(())
}

/// G6: a chat has no more pending records than it may have.
pub async fn a_full_chat_takes_no_more_and_says_how_many_wait(
    fixture: &dyn StoreFixture,
) -> Result<(), CaseError> {
    let store = Space::new(fixture).open().await?;
    let inbox = inbox(&*store)?;
    let key = chat("a")?;
    let ids = [message("1")?, message("2")?, message("3")?];
    let few = |id| NewRecord { most: 2, ..record(&key, id) };
    let first = admitted(inbox.admit(few(&ids[0])).await?)?;
    admitted(inbox.admit(few(&ids[1])).await?)?;
    ensure_eq!(inbox.admit(few(&ids[2])).await?, Admission::Full { waiting: 2 }, "the third");
    ensure_eq!(inbox.admit(few(&ids[0])).await?, Admission::Known, "the first again");
    ensure_eq!(end(inbox, &key, first, 1).await?, Committed::Applied(None), "the end");
    admitted(inbox.admit(few(&ids[2])).await?)?;
    Ok(())
}

/// G5: a postponed record keeps its chat waiting until it is due, and remembers why.
pub async fn a_postponed_record_is_begun_again_when_it_is_due(
    fixture: &dyn StoreFixture,
) -> Result<(), CaseError> {
    let store = Space::new(fixture).open().await?;
    let inbox = inbox(&*store)?;
    let (key, one, two) = (chat("a")?, message("1")?, message("2")?);
    let first = admitted(inbox.admit(record(&key, &one)).await?)?;
    admitted(inbox.admit(record(&key, &two)).await?)?;
    begun(inbox, &key, 2).await?;
    let later = Postponement { attempts: 1, error: "no luck", sends: Some("[1]"), retry_in: SHORT };
    let began = Instant::now();
    ensure!(inbox.postpone(&key, first, Fence::new(2), later).await?, "postponing was refused");
    match inbox.begin(&key, Fence::new(3), MINUTE).await? {
        Begun::NotYet(left) => ensure!(left <= SHORT + GRAIN, "due in {left:?}"),
        // A slow machine: it is due already.
        Begun::Record(_) if began.elapsed() + GRAIN >= SHORT => return Ok(()),
        other => return Err(CaseError::Violation(format!("before it is due: {other:?}"))),
    }
    let mut found = None;
    eventually(fixture, "the record is due", async || {
        match inbox.begin(&key, Fence::new(3), MINUTE).await? {
            Begun::NotYet(_) => Ok(false),
            other => {
                found = Some(other);
                Ok(true)
            }
        }
    })
    .await?;
    let Some(Begun::Record(again)) = found else {
        return Err(CaseError::Violation(format!("when it is due: {found:?}")));
    };
    ensure_eq!((again.position, again.attempts, again.has_more), (first, 2, true), "the record");
    let noted = (again.error.as_deref(), again.sends.as_deref());
    ensure_eq!(noted, (Some("no luck"), Some("[1]")), "what the attempt before left");
    Ok(())
}

/// G8: a claim keeps others from a message until it is done, released or over; it is never begun.
pub async fn a_claim_is_done_or_given_up_and_never_begun(
    fixture: &dyn StoreFixture,
) -> Result<(), CaseError> {
    let store = Space::new(fixture).open().await?;
    let inbox = inbox(&*store)?;
    let (key, id) = (chat("a")?, message("1")?);
    let claim = |lease| NewRecord { body: None, lease, ..record(&key, &id) };
    let first = admitted(inbox.admit(claim(MINUTE)).await?)?;
    ensure_eq!(inbox.admit(claim(MINUTE)).await?, Admission::Known, "a claimed message");
    ensure_eq!(inbox.begin(&key, Fence::new(1), MINUTE).await?, Begun::Nothing, "beginning");
    ensure!(!inbox.bury(&key, first, Fence::new(1), "e").await?, "a claim was buried");
    ensure!(!inbox.note_sends(&key, first, Fence::new(1), "e").await?, "sends of a claim");
    let later = Postponement { attempts: 1, error: "e", sends: None, retry_in: Duration::ZERO };
    ensure!(!inbox.postpone(&key, first, Fence::new(1), later).await?, "a claim was postponed");
    inbox.release(&key, first).await?;
    let second = admitted(inbox.admit(claim(SHORT)).await?)?;
    ensure!(second > first, "position {second} after {first}");
    ensure_eq!(
        end(inbox, &key, first, 1).await?,
        Committed::Refused,
        "the end of a claim given up"
    );
    let mut third = None;
    eventually(fixture, "the claim is over", async || {
        if let Admission::New { position, .. } = inbox.admit(claim(MINUTE)).await? {
            third = Some(position);
        }
        Ok(third.is_some())
    })
    .await?;
    ensure_eq!(end(inbox, &key, second, 1).await?, Committed::Refused, "the end of a claim over");
    let Some(third) = third else { return Ok(()) };
    ensure_eq!(end(inbox, &key, third, 1).await?, Committed::Applied(None), "the end");
    inbox.release(&key, third).await?;
    ensure_eq!(inbox.admit(claim(MINUTE)).await?, Admission::Known, "a message that is done");
    Ok(())
}
