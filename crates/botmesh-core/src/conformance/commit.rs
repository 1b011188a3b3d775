//! Cases about the end of a record together with the checkpoint that holds its effect.

use super::case::{ensure, ensure_eq};
use super::inbox::{admitted, begun, message, record};
use super::store::{Space, applied, body, chat, conditional, inbox};
use super::{CaseError, StoreFixture};
use crate::id::{ChatKey, Fence, Position, Revision};
use crate::store::{CheckpointChange, Commit, Committed, InboxStore, Swap};

async fn commit(
    inbox: &dyn InboxStore,
    chat: &ChatKey,
    position: Position,
    fence: u64,
    checkpoint: CheckpointChange<'_>,
) -> Result<Committed, CaseError> {
    Ok(inbox.commit(Commit { chat, position, fence: Fence::new(fence), checkpoint }).await?)
}

fn set(text: &str, expected: Option<Revision>) -> CheckpointChange<'_> {
    CheckpointChange::Set { write: body(text), expected }
}

fn revision(committed: Committed) -> Result<Revision, CaseError> {
    match committed {
        Committed::Applied(Some(revision)) => Ok(revision),
        other => Err(CaseError::Violation(format!("a set checkpoint was answered {other:?}"))),
    }
}

/// G3: a record ends together with its checkpoint, which is as one that was set alone.
pub async fn a_record_ends_together_with_its_checkpoint(
    fixture: &dyn StoreFixture,
) -> Result<(), CaseError> {
    let store = Space::new(fixture).open().await?;
    let (inbox, checkpoints) = (inbox(&*store)?, conditional(&*store)?);
    let key = chat("a")?;
    let ids = [message("1")?, message("2")?, message("3")?, message("4")?];
    for id in &ids {
        admitted(inbox.admit(record(&key, id)).await?)?;
    }
    let position = begun(inbox, &key, 5).await?.position;
    let first = revision(commit(inbox, &key, position, 5, set("one", None)).await?)?;
    let row = store.load_checkpoint(&key).await?;
    let row = row.map(|row| (row.revision, row.fence, row.body));
    ensure_eq!(row, Some((first, Fence::new(5), "one".to_owned())), "the checkpoint");
    let position = begun(inbox, &key, 6).await?.position;
    let second = revision(commit(inbox, &key, position, 6, set("two", Some(first))).await?)?;
    let stale = checkpoints.set_checkpoint_if(&key, body("late"), Some(second), Fence::new(5));
    ensure_eq!(stale.await?, Swap::Refused, "a write below the fence of a commit");
    let position = begun(inbox, &key, 7).await?.position;
    let clear = CheckpointChange::Clear { expected: second };
    ensure_eq!(commit(inbox, &key, position, 7, clear).await?, Committed::Applied(None), "clear");
    ensure_eq!(store.load_checkpoint(&key).await?, None, "the cleared checkpoint");
    let stale = checkpoints.set_checkpoint_if(&key, body("late"), None, Fence::new(6));
    ensure_eq!(stale.await?, Swap::Refused, "a write below the fence of a cleared row");
    let position = begun(inbox, &key, 8).await?.position;
    let third = revision(commit(inbox, &key, position, 8, set("three", None)).await?)?;
    ensure!(![first, second].contains(&third), "the revision {third} was used before");
    Ok(())
}

/// G3: when the checkpoint's condition does not hold the record does not end either.
pub async fn a_record_does_not_end_without_its_checkpoint(
    fixture: &dyn StoreFixture,
) -> Result<(), CaseError> {
    let store = Space::new(fixture).open().await?;
    let (inbox, checkpoints) = (inbox(&*store)?, conditional(&*store)?);
    let (key, id) = (chat("a")?, message("1")?);
    let position = admitted(inbox.admit(record(&key, &id)).await?)?;
    begun(inbox, &key, 5).await?;
    let never = Revision::new(1);
    for change in [set("x", Some(never)), CheckpointChange::Clear { expected: never }] {
        let refused = commit(inbox, &key, position, 5, change).await?;
        ensure_eq!(refused, Committed::Refused, "{change:?} where there is no row");
    }
    let swap = checkpoints.set_checkpoint_if(&key, body("present"), None, Fence::new(5)).await?;
    let present = applied(swap, "the first checkpoint")?;
    let refused = commit(inbox, &key, position, 5, set("x", None)).await?;
    ensure_eq!(refused, Committed::Refused, "a new row where there is one");
    checkpoints.adopt_checkpoint(&key, Fence::new(6)).await?;
    for change in [set("x", Some(present)), CheckpointChange::Clear { expected: present }] {
        let refused = commit(inbox, &key, position, 5, change).await?;
        ensure_eq!(refused, Committed::Refused, "{change:?} below the fence of the row");
    }
    let again = begun(inbox, &key, 6).await?;
    ensure_eq!((again.position, again.attempts), (position, 2), "the record is still pending");
    let row = store.load_checkpoint(&key).await?.map(|row| row.body);
    ensure_eq!(row.as_deref(), Some("present"), "the checkpoint");
    let done = commit(inbox, &key, position, 6, CheckpointChange::Clear { expected: present });
    ensure_eq!(done.await?, Committed::Applied(None), "the right commit");
    Ok(())
}

/// G3: when the record has ended already, or a later holder has begun it, the checkpoint is not
/// written either.
pub async fn a_checkpoint_is_not_written_without_its_record(
    fixture: &dyn StoreFixture,
) -> Result<(), CaseError> {
    let store = Space::new(fixture).open().await?;
    let inbox = inbox(&*store)?;
    let (key, id) = (chat("a")?, message("1")?);
    let position = admitted(inbox.admit(record(&key, &id)).await?)?;
    begun(inbox, &key, 6).await?;
    let stale = commit(inbox, &key, position, 5, set("x", None)).await?;
    ensure_eq!(stale, Committed::Refused, "a commit of a former holder");
    let none = commit(inbox, &key, Position::new(1), 6, set("x", None)).await?;
    ensure_eq!(none, Committed::Refused, "a commit of no record");
    ensure_eq!(store.load_checkpoint(&key).await?, None, "the checkpoint");
    revision(commit(inbox, &key, position, 6, set("one", None)).await?)?;
    let row = store.load_checkpoint(&key).await?;
    let stored = row.as_ref().map(|row| row.revision);
    let again = commit(inbox, &key, position, 6, set("two", stored)).await?;
    ensure_eq!(again, Committed::Refused, "a commit of what is done");
    ensure_eq!(store.load_checkpoint(&key).await?, row, "the checkpoint");
    Ok(())
}
