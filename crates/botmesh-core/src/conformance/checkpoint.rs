//! Cases about checkpoints and their revisions.

use super::case::{ensure, ensure_eq};
use super::samples::{bodies, strange_texts};
use super::store::{Space, applied, at_once, body, chat, conditional};
use super::{CaseError, StoreFixture};
use crate::id::{Fence, Revision};
use crate::store::{StoredCheckpoint, Swap};

/// B1: a checkpoint is read as it was written, replaced, and gone when it was cleared.
pub async fn a_checkpoint_is_read_as_it_was_written(
    fixture: &dyn StoreFixture,
) -> Result<(), CaseError> {
    let store = Space::new(fixture).open().await?;
    let key = chat("a")?;
    ensure_eq!(store.load_checkpoint(&key).await?, None, "before the first write");
    store.clear_checkpoint(&key).await?;
    let mut revisions = Vec::new();
    for (text, fence) in [("1", 3), ("2", 3), ("3", 8)] {
        let fence = Fence::new(fence);
        let revision = store.set_checkpoint(&key, body(text), fence).await?;
        ensure!(!revisions.contains(&revision), "revision {revision} came again");
        revisions.push(revision);
        let wanted = StoredCheckpoint { revision, fence, body: text.into(), wake_in: None };
        ensure_eq!(store.load_checkpoint(&key).await?, Some(wanted), "after a write");
    }
    ensure_eq!(store.load_checkpoint(&chat("b")?).await?, None, "another chat");
    store.clear_checkpoint(&key).await?;
    ensure_eq!(store.load_checkpoint(&key).await?, None, "after clearing");
    Ok(())
}

/// B4: chats whose ids differ have different checkpoints, however alike the ids look.
pub async fn checkpoints_of_chats_that_look_alike_do_not_meet(
    fixture: &dyn StoreFixture,
) -> Result<(), CaseError> {
    let store = Space::new(fixture).open().await?;
    let chats = strange_texts();
    for (number, id) in chats.iter().enumerate() {
        store.set_checkpoint(&chat(id)?, body(&number.to_string()), Fence::new(1)).await?;
    }
    for (number, id) in chats.iter().enumerate() {
        let read = store.load_checkpoint(&chat(id)?).await?.map(|row| row.body);
        ensure_eq!(read, Some(number.to_string()), "the checkpoint of chat {id:?}");
    }
    Ok(())
}

/// B4: a checkpoint's body comes back as it was written: empty, a mebibyte, any Unicode.
pub async fn checkpoint_bodies_come_back_as_they_were(
    fixture: &dyn StoreFixture,
) -> Result<(), CaseError> {
    let store = Space::new(fixture).open().await?;
    let key = chat("a")?;
    for (name, text) in bodies() {
        store.set_checkpoint(&key, body(&text), Fence::new(1)).await?;
        let read = store.load_checkpoint(&key).await?;
        ensure!(read.is_some_and(|row| row.body == text), "{name} came back changed");
    }
    Ok(())
}

/// B2: N concurrent writers from one revision, through several handles: exactly one wins.
pub async fn of_many_writers_of_a_checkpoint_exactly_one_wins(
    fixture: &dyn StoreFixture,
) -> Result<(), CaseError> {
    let space = Space::new(fixture);
    let handles = [space.open().await?, space.open().await?, space.open().await?];
    conditional(&*handles[0])?;
    let key = chat("a")?;
    let mut expected = None;
    for round in 0..5 {
        let writes = at_once(&handles, 12, |store, task| {
            let key = key.clone();
            async move {
                let text = format!("{round} of {task}");
                let Some(conditional) = store.conditional_checkpoints() else {
                    return Ok((Swap::Refused, text));
                };
                let fence = Fence::new(5);
                Ok((conditional.set_checkpoint_if(&key, body(&text), expected, fence).await?, text))
            }
        });
        let mut winners: Vec<_> = writes.await?;
        winners.retain(|(swap, _)| *swap != Swap::Refused);
        ensure_eq!(winners.len(), 1, "writers that won from revision {expected:?}");
        let read = handles[round % 3].load_checkpoint(&key).await?;
        for (swap, text) in winners {
            let revision = applied(swap, "the winner")?;
            let read = read.clone().map(|row| (row.revision, row.body));
            ensure_eq!(read, Some((revision, text)), "after the race");
            expected = Some(revision);
        }
    }
    Ok(())
}

/// B2: of many who clear one revision exactly one is told that it did.
pub async fn of_many_who_clear_a_checkpoint_exactly_one_wins(
    fixture: &dyn StoreFixture,
) -> Result<(), CaseError> {
    let space = Space::new(fixture);
    let handles = [space.open().await?, space.open().await?];
    conditional(&*handles[0])?;
    let key = chat("a")?;
    let revision = handles[0].set_checkpoint(&key, body("1"), Fence::new(5)).await?;
    let cleared = at_once(&handles, 8, |store, _| {
        let key = key.clone();
        async move {
            match store.conditional_checkpoints() {
                Some(store) => store.clear_checkpoint_if(&key, revision, Fence::new(5)).await,
                None => Ok(Swap::Refused),
            }
        }
    });
    let winners = cleared.await?.into_iter().filter(|swap| *swap != Swap::Refused).count();
    ensure_eq!(winners, 1, "those who cleared revision {revision}");
    ensure_eq!(handles[1].load_checkpoint(&key).await?, None, "after clearing");
    Ok(())
}

/// B2: a checkpoint is written and cleared only by who names its present revision.
pub async fn a_checkpoint_is_written_only_by_who_names_its_revision(
    fixture: &dyn StoreFixture,
) -> Result<(), CaseError> {
    let store = Space::new(fixture).open().await?;
    let conditional = conditional(&*store)?;
    let (key, fence) = (chat("a")?, Fence::new(5));
    let guess = Revision::new(1);
    let swap = conditional.set_checkpoint_if(&key, body("0"), Some(guess), fence).await?;
    ensure_eq!(swap, Swap::Refused, "a write to a revision of a row that is not there");
    let swap = conditional.clear_checkpoint_if(&key, guess, fence).await?;
    ensure_eq!(swap, Swap::Refused, "clearing a row that is not there");
    ensure_eq!(store.load_checkpoint(&key).await?, None, "after refused writes");

    let swap = conditional.set_checkpoint_if(&key, body("1"), None, fence).await?;
    let first = applied(swap, "the first write")?;
    let swap = conditional.set_checkpoint_if(&key, body("2"), Some(first), fence).await?;
    let second = applied(swap, "a write with an equal fence")?;
    for stale in [None, Some(first), Some(guess)] {
        // Even the highest fence does not help who names the wrong revision, nor does it stay.
        let high = Fence::new(1_000);
        let swap = conditional.set_checkpoint_if(&key, body("3"), stale, high).await?;
        ensure_eq!(swap, Swap::Refused, "a write from {stale:?}");
    }
    let swap = conditional.clear_checkpoint_if(&key, first, Fence::new(1_000)).await?;
    ensure_eq!(swap, Swap::Refused, "clearing an old revision");
    let wanted = StoredCheckpoint { revision: second, fence, body: "2".into(), wake_in: None };
    ensure_eq!(store.load_checkpoint(&key).await?, Some(wanted), "after refused writes");
    let swap = conditional.clear_checkpoint_if(&key, second, fence).await?;
    applied(swap, "clearing the present revision")?;
    ensure_eq!(store.load_checkpoint(&key).await?, None, "after clearing");
    Ok(())
}

/// B2: the repeated-revision attack: no old revision fits a row that was cleared and made anew.
pub async fn an_old_revision_never_fits_a_checkpoint_made_anew(
    fixture: &dyn StoreFixture,
) -> Result<(), CaseError> {
    let store = Space::new(fixture).open().await?;
    let conditional = conditional(&*store)?;
    let (key, fence) = (chat("a")?, Fence::new(5));
    let mut old: Vec<Revision> = Vec::new();
    for life in 0..5 {
        let mut revision = None;
        for _ in 0..=life {
            let swap = conditional.set_checkpoint_if(&key, body("text"), revision, fence).await?;
            let now = applied(swap, "an honest write")?;
            ensure!(!old.contains(&now), "revision {now} came again in life {life}");
            for stale in &old {
                let write = body("attack");
                let swap = conditional.set_checkpoint_if(&key, write, Some(*stale), fence).await?;
                ensure_eq!(swap, Swap::Refused, "a write from revision {stale} of a former life");
                let swap = conditional.clear_checkpoint_if(&key, *stale, fence).await?;
                ensure_eq!(swap, Swap::Refused, "clearing revision {stale} of a former life");
            }
            old.push(now);
            revision = Some(now);
        }
        match revision {
            Some(revision) if life % 2 == 0 => {
                let swap = conditional.clear_checkpoint_if(&key, revision, fence).await?;
                applied(swap, "honest clearing")?;
            }
            _ => store.clear_checkpoint(&key).await?,
        }
    }
    Ok(())
}
