//! Cases about the order in which records become visible, and about what is in them.

use std::time::{Duration, Instant};

use super::case::{ensure, ensure_eq};
use super::inbox::{MINUTE, admitted, begun, end, message, record};
use super::store::{Space, at_once, chat, inbox};
use super::{CaseError, StoreFixture};
use crate::id::Fence;
use crate::store::{Admission, Begun, Committed, NewRecord, StoreError};

/// How many tasks admit, and how many messages each of them.
const TASKS: usize = 12;
const EACH: usize = 6;

/// How long the records may take altogether.
const PATIENCE: Duration = Duration::from_secs(60);

/// G2: while many admit to one chat, whoever begins and ends its records meets them in the order
/// of their positions: none becomes visible before one that is behind it in the order.
pub async fn records_are_begun_in_order_while_others_are_admitted(
    fixture: &dyn StoreFixture,
) -> Result<(), CaseError> {
    let space = Space::new(fixture);
    let handles = [space.open().await?, space.open().await?, space.open().await?];
    let first = inbox(&*handles[0])?;
    let key = chat("a")?;
    let admitting = at_once(&handles, TASKS, |store, task| async move {
        let Ok(chat) = chat("a") else { return Ok(0) };
        let mut new = 0;
        for number in 0..EACH {
            let (Ok(id), Some(inbox)) = (message(&format!("{task}/{number}")), store.inbox())
            else {
                return Ok(new);
            };
            let admission = inbox.admit(record(&chat, &id)).await?;
            new += usize::from(matches!(admission, Admission::New { .. }));
        }
        Ok(new)
    });
    let processing = async {
        let (started, mut found) = (Instant::now(), Vec::new());
        while found.len() < TASKS * EACH {
            let in_time = started.elapsed() < PATIENCE;
            ensure!(in_time, "{} records after {PATIENCE:?}", found.len());
            match first.begin(&key, Fence::new(1), MINUTE).await? {
                Begun::Record(record) => {
                    let committed = end(first, &key, record.position, 1).await?;
                    ensure_eq!(committed, Committed::Applied(None), "the end of a record");
                    found.push(record.position);
                }
                Begun::Nothing => tokio::task::yield_now().await,
                other => return Err(CaseError::Violation(format!("begun: {other:?}"))),
            }
        }
        Ok(found)
    };
    let (new, found) = tokio::join!(admitting, processing);
    let new: usize = new?.into_iter().sum();
    let found = found?;
    ensure_eq!(new, TASKS * EACH, "messages that were new");
    ensure!(found.is_sorted_by(|one, next| one < next), "in the order {found:?}");
    Ok(())
}

/// G2: of those who admit to an empty chat at once, exactly one is told that nothing is before it,
/// and it is the first indeed, for it may end its record without beginning it.
pub async fn of_many_who_admit_at_once_only_the_first_is_told_that_it_is(
    fixture: &dyn StoreFixture,
) -> Result<(), CaseError> {
    let space = Space::new(fixture);
    let handles = [space.open().await?, space.open().await?, space.open().await?];
    inbox(&*handles[0])?;
    for round in 0..4 {
        let key = chat(&format!("{round}"))?;
        let admissions = at_once(&handles, 12, |store, task| {
            let key = key.clone();
            async move {
                match (message(&format!("{task}")), store.inbox()) {
                    (Ok(id), Some(inbox)) => inbox.admit(record(&key, &id)).await,
                    _ => Ok(Admission::Known),
                }
            }
        });
        let admissions = admissions.await?;
        let mut positions = Vec::new();
        let mut first = Vec::new();
        for admission in admissions {
            let position = admitted(admission)?;
            positions.push(position);
            if matches!(admission, Admission::New { is_behind: false, .. }) {
                first.push(position);
            }
        }
        let lowest: Vec<_> = positions.into_iter().min().into_iter().collect();
        ensure_eq!(first, lowest, "those with nothing before them in round {round}");
    }
    Ok(())
}

/// B4: a NUL in what a record holds is kept or refused, and nothing is cut.
pub async fn a_nul_in_a_record_is_kept_or_refused_and_nothing_is_cut(
    fixture: &dyn StoreFixture,
) -> Result<(), CaseError> {
    let store = Space::new(fixture).open().await?;
    let inbox = inbox(&*store)?;
    let (key, id) = (chat("a")?, message("1")?);
    let nul = "one\0two";
    let new = NewRecord { body: Some(nul), ..record(&key, &id) };
    match inbox.admit(new).await {
        Err(StoreError::Unfit { .. }) => {
            ensure_eq!(inbox.begin(&key, Fence::new(1), MINUTE).await?, Begun::Nothing, "begun");
            admitted(inbox.admit(record(&key, &id)).await?)?;
        }
        admission => {
            admitted(admission?)?;
            ensure_eq!(begun(inbox, &key, 1).await?.body, nul, "the body");
        }
    }
    let position = begun(inbox, &key, 1).await?.position;
    match inbox.note_sends(&key, position, Fence::new(1), nul).await {
        Err(StoreError::Unfit { .. }) => {
            ensure_eq!(begun(inbox, &key, 1).await?.sends, None, "the note of sends");
        }
        noted => {
            ensure!(noted?, "not noted");
            let sends = begun(inbox, &key, 1).await?.sends;
            ensure_eq!(sends.as_deref(), Some(nul), "the note of sends");
        }
    }
    Ok(())
}
