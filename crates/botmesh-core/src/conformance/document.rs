//! Cases about documents.

use super::case::{ensure, ensure_eq};
use super::samples::{bodies, long_keys, strange_texts};
use super::store::{Space, applied, at_once};
use super::{CaseError, StoreFixture};
use crate::id::Revision;
use crate::store::{Collection, StoreError, Swap};

const CHATS: Collection = Collection::Chats;
const USERS: Collection = Collection::Users;

/// B2: N concurrent writers from one revision, through several handles: exactly one wins.
pub async fn of_many_writers_of_a_document_exactly_one_wins(
    fixture: &dyn StoreFixture,
) -> Result<(), CaseError> {
    let space = Space::new(fixture);
    let handles = [space.open().await?, space.open().await?, space.open().await?];
    let mut expected = None;
    for round in 0..5 {
        let writes = at_once(&handles, 12, move |store, task| async move {
            let body = format!("{round} of {task}");
            Ok((store.save_document_if(CHATS, "k", &body, expected).await?, body))
        });
        let mut winners: Vec<_> = writes.await?;
        winners.retain(|(swap, _)| *swap != Swap::Refused);
        ensure_eq!(winners.len(), 1, "writers that won from revision {expected:?}");
        let read = handles[round % 3].load_document(CHATS, "k").await?;
        for (swap, body) in winners {
            let revision = applied(swap, "the winner")?;
            let read = read.clone().map(|read| (read.revision, read.body));
            ensure_eq!(read, Some((revision, body)), "after the race");
            expected = Some(revision);
        }
    }
    Ok(())
}

/// B2: a document is written and removed only by who names its present revision.
pub async fn a_document_is_written_only_by_who_names_its_revision(
    fixture: &dyn StoreFixture,
) -> Result<(), CaseError> {
    let store = Space::new(fixture).open().await?;
    let guess = Revision::new(1);
    let swap = store.save_document_if(USERS, "k", "0", Some(guess)).await?;
    ensure_eq!(swap, Swap::Refused, "a write to a revision of a document that is not there");
    let swap = store.remove_document_if(USERS, "k", guess).await?;
    ensure_eq!(swap, Swap::Refused, "the removal of a document that is not there");
    ensure_eq!(store.load_document(USERS, "k").await?, None, "after refused writes");

    let first = applied(store.save_document_if(USERS, "k", "1", None).await?, "the first write")?;
    let swap = store.save_document_if(USERS, "k", "2", None).await?;
    ensure_eq!(swap, Swap::Refused, "a first write where there is a document");
    let second = store.save_document_if(USERS, "k", "2", Some(first)).await?;
    let second = applied(second, "the second write")?;
    ensure!(second != first, "two writes gave the same revision {first}");
    for stale in [None, Some(first)] {
        let swap = store.save_document_if(USERS, "k", "3", stale).await?;
        ensure_eq!(swap, Swap::Refused, "a write from {stale:?}");
    }
    let swap = store.remove_document_if(USERS, "k", first).await?;
    ensure_eq!(swap, Swap::Refused, "the removal of an old revision");
    let read = store.load_document(USERS, "k").await?.map(|read| (read.revision, read.body));
    ensure_eq!(read, Some((second, "2".to_owned())), "after refused writes");
    applied(store.remove_document_if(USERS, "k", second).await?, "the removal")?;
    ensure_eq!(store.load_document(USERS, "k").await?, None, "after the removal");
    Ok(())
}

/// B2: the repeated-revision attack: no old revision fits a document that was made anew.
pub async fn an_old_revision_never_fits_a_document_made_anew(
    fixture: &dyn StoreFixture,
) -> Result<(), CaseError> {
    let store = Space::new(fixture).open().await?;
    let mut old: Vec<Revision> = Vec::new();
    for life in 0..4 {
        let mut revision = None;
        for write in 0..=life {
            let swap = store.save_document_if(USERS, "k", "text", revision).await?;
            let now = applied(swap, "an honest write")?;
            ensure!(!old.contains(&now), "revision {now} came again in life {life}, write {write}");
            for stale in &old {
                let swap = store.save_document_if(USERS, "k", "attack", Some(*stale)).await?;
                ensure_eq!(swap, Swap::Refused, "a write from revision {stale} of a former life");
                let swap = store.remove_document_if(USERS, "k", *stale).await?;
                ensure_eq!(swap, Swap::Refused, "a removal of revision {stale}");
            }
            old.push(now);
            revision = Some(now);
        }
        if let Some(revision) = revision {
            applied(store.remove_document_if(USERS, "k", revision).await?, "an honest removal")?;
        }
    }
    Ok(())
}

/// B4: keys that differ are different keys, however alike they look.
pub async fn documents_of_keys_that_look_alike_do_not_meet(
    fixture: &dyn StoreFixture,
) -> Result<(), CaseError> {
    let store = Space::new(fixture).open().await?;
    let keys: Vec<_> = strange_texts().into_iter().chain(long_keys()).collect();
    let mut revisions = Vec::new();
    for (number, key) in keys.iter().enumerate() {
        let swap = store.save_document_if(CHATS, key, &number.to_string(), None).await?;
        revisions.push(applied(swap, &format!("the first write of key {key:?}"))?);
    }
    for (number, key) in keys.iter().enumerate() {
        let read = store.load_document(CHATS, key).await?.map(|read| read.body);
        ensure_eq!(read, Some(number.to_string()), "the document of key {key:?}");
    }
    for (key, revision) in keys.iter().zip(revisions) {
        let swap = store.remove_document_if(CHATS, key, revision).await?;
        applied(swap, &format!("the removal of key {key:?}"))?;
    }
    Ok(())
}

/// B4: a body comes back as it was written: empty, a mebibyte, any Unicode.
pub async fn document_bodies_come_back_as_they_were(
    fixture: &dyn StoreFixture,
) -> Result<(), CaseError> {
    let store = Space::new(fixture).open().await?;
    let mut revision = None;
    for (name, body) in bodies() {
        let swap = store.save_document_if(CHATS, "k", &body, revision).await?;
        revision = Some(applied(swap, name)?);
        let read = store.load_document(CHATS, "k").await?;
        ensure!(read.is_some_and(|read| read.body == body), "{name} came back changed");
    }
    Ok(())
}

/// B4: a NUL, which not every backend can hold, is kept or refused, and nothing is cut.
pub async fn a_nul_is_kept_or_refused_and_nothing_is_cut(
    fixture: &dyn StoreFixture,
) -> Result<(), CaseError> {
    let store = Space::new(fixture).open().await?;
    for (key, body) in [("a\0b", "body"), ("key", "one\0two")] {
        match store.save_document_if(CHATS, key, body, None).await {
            Err(StoreError::Unfit { .. }) => {}
            Err(other) => return Err(other.into()),
            Ok(_) => {
                let read = store.load_document(CHATS, key).await?.map(|read| read.body);
                ensure_eq!(read, Some(body.to_owned()), "the document of {key:?}");
            }
        }
        let cut = store.load_document(CHATS, "a").await?;
        ensure_eq!(cut, None, "the document of a key that is cut at its NUL");
    }
    Ok(())
}

/// B1: chats and users are collections of their own.
pub async fn documents_of_different_collections_do_not_meet(
    fixture: &dyn StoreFixture,
) -> Result<(), CaseError> {
    let store = Space::new(fixture).open().await?;
    let chat = applied(store.save_document_if(CHATS, "k", "chat", None).await?, "a chat")?;
    ensure_eq!(store.load_document(USERS, "k").await?, None, "the user of a chat's key");
    applied(store.save_document_if(USERS, "k", "user", None).await?, "a user")?;
    applied(store.remove_document_if(CHATS, "k", chat).await?, "the removal of the chat")?;
    let read = store.load_document(USERS, "k").await?.map(|read| read.body);
    ensure_eq!(read, Some("user".to_owned()), "the user after the chat was removed");
    Ok(())
}
