//! Cases about records that somebody has to look after: left behind, given up, or long done.

use std::time::Duration;

use super::case::{ensure, ensure_eq, eventually};
use super::inbox::{MINUTE, admitted, begun, end, message, record};
use super::store::{Space, chat, inbox};
use super::{CaseError, StoreFixture};
use crate::id::{ChatKey, Fence, ProviderId};
use crate::store::{
    Admission, Begun, Committed, DeadLetter, InboxStore, NewRecord, Postponement, Retention,
};

const SHORT: Duration = Duration::from_millis(300);
const NEVER: Retention = Retention { done: Duration::MAX, dead: Duration::MAX };

/// The provider of all chats of the suite.
fn provider() -> Result<ProviderId, CaseError> {
    let id = chat("any")?.provider().to_owned();
    ProviderId::new(id).map_err(|error| CaseError::Violation(error.to_string()))
}

/// Lets time pass until somebody is told exactly these chats.
async fn waits(
    fixture: &dyn StoreFixture,
    inbox: &dyn InboxStore,
    wanted: &[&ChatKey],
    what: &str,
) -> Result<(), CaseError> {
    let mut found = Vec::new();
    eventually(fixture, what, async || {
        found.extend(inbox.take_waiting(&provider()?, MINUTE, 10).await?);
        found.sort();
        found.dedup();
        Ok(found.len() >= wanted.len())
    })
    .await?;
    ensure_eq!(found.iter().collect::<Vec<_>>(), wanted, "{what}");
    Ok(())
}

/// G2: a record is looked after by others when its lease has ended, and not before.
pub async fn records_wait_when_their_lease_has_ended(
    fixture: &dyn StoreFixture,
) -> Result<(), CaseError> {
    let store = Space::new(fixture).open().await?;
    let inbox = inbox(&*store)?;
    let (a, b, c) = (chat("a")?, chat("b")?, chat("c")?);
    let (one, two) = (message("1")?, message("2")?);
    // Of other providers, one of which looks alike.
    let others = ["suite2", "suit"].map(|id| ProviderId::new(id).map_err(|e| e.to_string()));
    let [long, short] = others.map(|id| id.map_err(CaseError::Violation));
    let (long, short) = (long?, short?);
    let other = ChatKey::new(&long, "a").map_err(|e| CaseError::Violation(e.to_string()))?;
    let soon = NewRecord { lease: Duration::from_millis(1), ..record(&other, &one) };
    admitted(inbox.admit(soon).await?)?;
    let brief = |chat, id| NewRecord { lease: SHORT, ..record(chat, id) };
    admitted(inbox.admit(brief(&a, &one)).await?)?;
    admitted(inbox.admit(brief(&a, &two)).await?)?;
    admitted(inbox.admit(record(&b, &one)).await?)?;
    let claim = NewRecord { body: None, ..brief(&c, &one) };
    admitted(inbox.admit(claim).await?)?;
    // Both leases of the first chat, or it would be told twice.
    fixture.pass(SHORT * 2).await;
    waits(fixture, inbox, &[&a], "the leases of one chat end").await?;
    ensure_eq!(inbox.take_waiting(&provider()?, MINUTE, 10).await?, [], "leases that began anew");
    let position = begun(inbox, &b, 1).await?.position;
    inbox.release(&b, position).await?;
    waits(fixture, inbox, &[&b], "a lease was given back").await?;
    let later = Postponement { attempts: 1, error: "e", sends: None, retry_in: SHORT };
    ensure!(inbox.postpone(&b, position, Fence::new(1), later).await?, "not postponed");
    waits(fixture, inbox, &[&b], "a postponed record is due").await?;
    ensure_eq!(end(inbox, &b, position, 1).await?, Committed::Applied(None), "the end");
    inbox.release(&b, position).await?;
    ensure_eq!(inbox.take_waiting(&provider()?, MINUTE, 10).await?, [], "after the end");
    ensure_eq!(inbox.take_waiting(&short, MINUTE, 10).await?, [], "of a provider without chats");
    let found = inbox.take_waiting(&long, MINUTE, 10).await?;
    ensure_eq!(found, [other], "of another provider");
    Ok(())
}

/// G2: beginning a record lets its lease begin anew.
pub async fn beginning_a_record_renews_its_lease(
    fixture: &dyn StoreFixture,
) -> Result<(), CaseError> {
    let store = Space::new(fixture).open().await?;
    let inbox = inbox(&*store)?;
    let (a, b, id) = (chat("a")?, chat("b")?, message("1")?);
    for key in [&a, &b] {
        admitted(inbox.admit(NewRecord { lease: SHORT, ..record(key, &id) }).await?)?;
    }
    let begun = inbox.begin(&a, Fence::new(1), MINUTE).await?;
    ensure!(matches!(begun, Begun::Record(_)), "beginning was answered {begun:?}");
    waits(fixture, inbox, &[&b], "the lease that was not renewed ends").await
}

/// G2: of many chats that wait, no more are told at a time than were asked for, and all in the end.
pub async fn chats_that_wait_come_page_by_page(
    fixture: &dyn StoreFixture,
) -> Result<(), CaseError> {
    let store = Space::new(fixture).open().await?;
    let inbox = inbox(&*store)?;
    let id = message("1")?;
    let mut wanted = Vec::new();
    for number in 0..7 {
        let key = chat(&format!("c{number}"))?;
        let lease = Duration::from_millis(1);
        admitted(inbox.admit(NewRecord { lease, ..record(&key, &id) }).await?)?;
        wanted.push(key);
    }
    let mut found = Vec::new();
    eventually(fixture, "all chats are told", async || {
        let page = inbox.take_waiting(&provider()?, MINUTE, 3).await?;
        ensure!(page.len() <= 3, "{} chats were told, 3 were asked for", page.len());
        found.extend(page);
        Ok(found.len() >= wanted.len())
    })
    .await?;
    found.sort();
    ensure_eq!(found, wanted, "the chats");
    Ok(())
}

/// G5: a record that is given up is listed with its error and content, and its chat goes on.
pub async fn a_buried_record_is_listed_and_its_chat_goes_on(
    fixture: &dyn StoreFixture,
) -> Result<(), CaseError> {
    let store = Space::new(fixture).open().await?;
    let inbox = inbox(&*store)?;
    let (a, b) = (chat("a")?, chat("b")?);
    let (one, two) = (message("1")?, message("2")?);
    let new = NewRecord { body: Some("poison ☠"), ..record(&a, &one) };
    let first = admitted(inbox.admit(new).await?)?;
    let second = admitted(inbox.admit(record(&a, &two)).await?)?;
    let other = admitted(inbox.admit(record(&b, &one)).await?)?;
    for (key, position) in [(&a, first), (&b, other), (&a, second)] {
        ensure_eq!(begun(inbox, key, 4).await?.position, position, "the record to begin");
        ensure!(inbox.bury(key, position, Fence::new(4), "it broke").await?, "not buried");
    }
    let places = |page: &[DeadLetter]| -> Vec<_> {
        page.iter().map(|letter| (letter.chat.clone(), letter.position)).collect()
    };
    let page = inbox.dead_letters(None, 2).await?;
    ensure_eq!(places(&page), [(a.clone(), first), (a.clone(), second)], "the first page");
    let letter = &page[0];
    let found = (&*letter.body, &*letter.error, letter.attempts);
    ensure_eq!(found, ("poison ☠", "it broke", 1), "the letter");
    ensure!(letter.age < MINUTE, "it was given up {:?} ago", letter.age);
    let page = inbox.dead_letters(Some((&a, second)), 2).await?;
    ensure_eq!(places(&page), [(b, other)], "the second page");
    ensure_eq!(inbox.begin(&a, Fence::new(5), MINUTE).await?, Begun::Nothing, "after both");
    Ok(())
}

/// G5: a dead letter that is replayed is begun before what came after it, as if for the first
/// time, but knows what was sent.
pub async fn a_revived_record_is_begun_again_at_its_place(
    fixture: &dyn StoreFixture,
) -> Result<(), CaseError> {
    let store = Space::new(fixture).open().await?;
    let inbox = inbox(&*store)?;
    let (key, one, two) = (chat("a")?, message("1")?, message("2")?);
    let first = admitted(inbox.admit(record(&key, &one)).await?)?;
    admitted(inbox.admit(record(&key, &two)).await?)?;
    begun(inbox, &key, 1).await?;
    ensure!(inbox.note_sends(&key, first, Fence::new(1), "[sent]").await?, "not noted");
    ensure!(inbox.bury(&key, first, Fence::new(1), "e").await?, "not buried");
    ensure!(inbox.revive(&key, first).await?, "not revived");
    ensure!(!inbox.revive(&key, first).await?, "revived twice");
    ensure_eq!(inbox.dead_letters(None, 9).await?, [], "dead letters");
    waits(fixture, inbox, &[&key], "the revived record waits").await?;
    let again = begun(inbox, &key, 2).await?;
    let found = (again.position, again.attempts, again.sends.as_deref(), again.has_more);
    ensure_eq!(found, (first, 1, Some("[sent]"), true), "the revived record");
    ensure_eq!(inbox.admit(record(&key, &one)).await?, Admission::Known, "its message");
    Ok(())
}

/// G6: what is done or dead is forgotten after its time, bit by bit; what is pending stays.
pub async fn what_has_ended_is_forgotten_after_its_time_and_nothing_else(
    fixture: &dyn StoreFixture,
) -> Result<(), CaseError> {
    let store = Space::new(fixture).open().await?;
    let inbox = inbox(&*store)?;
    let key = chat("a")?;
    let ids = [message("1")?, message("2")?, message("3")?, message("4")?, message("5")?];
    for id in &ids[..2] {
        let position = admitted(inbox.admit(record(&key, id)).await?)?;
        ensure_eq!(end(inbox, &key, position, 1).await?, Committed::Applied(None), "an end");
    }
    let dead = admitted(inbox.admit(record(&key, &ids[2])).await?)?;
    begun(inbox, &key, 1).await?;
    ensure!(inbox.bury(&key, dead, Fence::new(1), "e").await?, "not buried");
    let claim = NewRecord { body: None, lease: SHORT, ..record(&key, &ids[3]) };
    admitted(inbox.admit(claim).await?)?;
    let pending = NewRecord { lease: SHORT, ..record(&key, &ids[4]) };
    let pending = admitted(inbox.admit(pending).await?)?;
    let mut claims = 0;
    eventually(fixture, "the claim is forgotten", async || {
        claims += inbox.forget(NEVER, 9).await?;
        Ok(claims > 0)
    })
    .await?;
    ensure_eq!(claims, 1, "forgotten while all else is kept");
    let done = Retention { done: SHORT, ..NEVER };
    let mut forgotten = 0;
    eventually(fixture, "what is done is forgotten", async || {
        let now = inbox.forget(done, 1).await?;
        ensure!(now <= 1, "{now} were forgotten where 1 was allowed");
        forgotten += now;
        Ok(forgotten == 2)
    })
    .await?;
    ensure_eq!(inbox.dead_letters(None, 9).await?.len(), 1, "dead letters");
    let dead = Retention { dead: SHORT, ..NEVER };
    eventually(fixture, "the dead letter is forgotten", async || {
        inbox.forget(dead, 9).await?;
        Ok(inbox.dead_letters(None, 9).await?.is_empty())
    })
    .await?;
    ensure_eq!(begun(inbox, &key, 2).await?.position, pending, "what is pending");
    let again = admitted(inbox.admit(record(&key, &ids[0])).await?)?;
    ensure!(again > pending, "position {again} after {pending}");
    Ok(())
}

/// G7: what was admitted is there when the store is closed and opened again, in every state.
pub async fn a_durable_inbox_keeps_everything_when_opened_again(
    fixture: &dyn StoreFixture,
) -> Result<(), CaseError> {
    let space = Space::new(fixture);
    let store = space.open().await?;
    if !store.is_durable() {
        return Err(CaseError::NotRun("not durable"));
    }
    let (key, dead) = (chat("a")?, chat("dead")?);
    let (one, two) = (message("1")?, message("2")?);
    let before = inbox(&*store)?;
    let done = admitted(before.admit(record(&key, &one)).await?)?;
    ensure_eq!(end(before, &key, done, 1).await?, Committed::Applied(None), "the end");
    let pending = NewRecord { body: Some("kept"), ..record(&key, &two) };
    let pending = admitted(before.admit(pending).await?)?;
    begun(before, &key, 7).await?;
    let buried = admitted(before.admit(record(&dead, &one)).await?)?;
    begun(before, &dead, 1).await?;
    ensure!(before.bury(&dead, buried, Fence::new(1), "e").await?, "not buried");
    drop(store);

    let store = space.open().await?;
    let inbox = inbox(&*store)?;
    ensure_eq!(inbox.admit(record(&key, &one)).await?, Admission::Known, "what was done");
    let lower = inbox.begin(&key, Fence::new(6), MINUTE).await?;
    ensure_eq!(lower, Begun::Refused(Fence::new(7)), "a lower fence");
    let again = begun(inbox, &key, 8).await?;
    let found = (again.position, again.attempts, &*again.body);
    ensure_eq!(found, (pending, 2, "kept"), "what was pending");
    ensure_eq!(inbox.dead_letters(None, 9).await?.len(), 1, "dead letters");
    Ok(())
}
