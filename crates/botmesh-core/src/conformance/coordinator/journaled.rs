//! Cases about turns that take the steps of an inbox along: one request before a message and one
//! after it.

use std::sync::Arc;
use std::time::Duration;

use super::{Cluster, CoordinatorFixture, LEASE, Replica, chat, take, within};
use crate::conformance::CaseError;
use crate::conformance::case::{ensure, ensure_eq};
use crate::conformance::crash::{Ground, Setting, crash_everywhere};
use crate::conformance::inbox::{MINUTE, message, record};
use crate::conformance::likeness::{self, Held};
use crate::conformance::store::body;
use crate::coordination::{AcquireTurn, Begins, ChatTurn, Ingested, JournaledTurns, Ticket};
use crate::id::{ChatKey, Fence, MessageId, Position};
use crate::store::{
    Admission, Begun, CheckpointChange, Commit, Committed, InboxStore, NewRecord, Store,
};

/// Each step is made once here, so it may take longer than one that is repeated.
const PATIENT: Duration = Duration::from_millis(4500);

/// A replica whose coordinator takes the steps of a store along.
struct Both<'a> {
    turns: &'a dyn JournaledTurns,
    store: Arc<dyn Store>,
}

impl Both<'_> {
    fn inbox(&self) -> Result<&dyn InboxStore, CaseError> {
        self.store.inbox().ok_or_else(absent)
    }
}

const fn absent() -> CaseError {
    CaseError::NotRun("turns do not take an inbox along")
}

fn both(replica: &dyn Replica) -> Result<Both<'_>, CaseError> {
    let turns = replica.coordinator().journaled().ok_or_else(absent)?;
    let store = replica.store().ok_or_else(absent)?;
    let both = Both { turns, store };
    let realm = both.inbox()?.realm().ok_or_else(absent)?;
    ensure!(turns.is_in(realm), "the realm of the store is another one");
    Ok(both)
}

/// Takes a message in that must be new.
async fn arrived(
    turns: &dyn JournaledTurns,
    new: NewRecord<'_>,
) -> Result<(Position, bool, Ticket, Begins), CaseError> {
    let Ingested { admission, place, begins } = ingest(turns, new).await?;
    match (admission, place) {
        (Admission::New { position, is_behind }, Some(place)) => {
            Ok((position, is_behind, place?, begins))
        }
        other => Err(CaseError::Violation(format!("a new message was answered {other:?}"))),
    }
}

async fn ingest(turns: &dyn JournaledTurns, new: NewRecord<'_>) -> Result<Ingested, CaseError> {
    turns.ingest(new).await.map_err(|error| CaseError::Violation(format!("{error:?}")))
}

async fn turn(replica: &dyn Replica, ticket: Ticket) -> Result<ChatTurn, CaseError> {
    let turn = replica.coordinator().acquire_turn(ticket, AcquireTurn::new());
    Ok(within(LEASE, "the turn of a message", turn).await??)
}

fn set(text: &str) -> CheckpointChange<'_> {
    CheckpointChange::Set { write: body(text), expected: None }
}

/// What ends the record of a turn.
fn ends<'a>(
    key: &'a ChatKey,
    position: Position,
    turn: &ChatTurn,
    checkpoint: CheckpointChange<'a>,
) -> Commit<'a> {
    Commit { chat: key, position, fence: turn.fence(), checkpoint }
}

/// G9: a message whose chat is free is admitted, granted its turn and begun in one step, and ends
/// together with its turn and its checkpoint in another.
pub async fn a_message_is_taken_in_and_ended_by_one_step_each(
    fixture: &dyn CoordinatorFixture,
) -> Result<(), CaseError> {
    let cluster = Cluster::new(fixture);
    let [a, b] = cluster.replicas_with(["a", "b"], PATIENT).await?;
    let both = both(&*a)?;
    let (turns, store, inbox) = (both.turns, &both.store, both.inbox()?);
    let (key, one) = (chat("k")?, message("1")?);
    let before = fixture.operations(&cluster.prefix).await;
    let (position, is_behind, ticket, begins) = arrived(turns, record(&key, &one)).await?;
    let held = turn(&*a, ticket).await?;
    ensure!(!is_behind, "the first message is behind another one");
    ensure_eq!(begins, Begins::Under(held.fence()), "the fence under which it was begun");
    held.check().map_err(|lost| CaseError::Violation(lost.to_string()))?;
    // It is begun: nobody with a lower fence can do anything to it, and an attempt was counted.
    let lower = Fence::new(held.fence().get() - 1);
    let begun = inbox.begin(&key, lower, MINUTE).await?;
    ensure_eq!(begun, Begun::Refused(held.fence()), "a beginning below its fence");
    let committed = turns.commit(&held.guard(), ends(&key, position, &held, set("done"))).await?;
    ensure!(matches!(committed, Committed::Applied(Some(_))), "the end: {committed:?}");
    if let (Some(before), Some(after)) = (before, fixture.operations(&cluster.prefix).await) {
        // Heartbeats of two replicas may have come in between.
        ensure!(after - before <= 2 + 4, "{} operations for one message", after - before);
    }
    let row = store.load_checkpoint(&key).await?.map(|row| (row.fence, row.body));
    ensure_eq!(row, Some((held.fence(), "done".to_owned())), "the checkpoint");
    ensure_eq!(inbox.begin(&key, held.fence(), MINUTE).await?, Begun::Nothing, "what is pending");
    // The chat is free, though the turn was not released.
    let next = within(Duration::ZERO, "the turn behind one that ended", take(&*b, &key)).await??;
    ensure_eq!(next.previous_fence(), Some(held.fence()), "the fence of the turn before");
    drop(held);
    next.check().map_err(|lost| CaseError::Violation(lost.to_string()))
}

/// G1, G9: a message that is known, or one too many, reserves no place.
pub async fn a_message_that_is_not_new_reserves_nothing(
    fixture: &dyn CoordinatorFixture,
) -> Result<(), CaseError> {
    let cluster = Cluster::new(fixture);
    let [a, b] = cluster.replicas_with(["a", "b"], PATIENT).await?;
    let turns = both(&*a)?.turns;
    let (key, one, two) = (chat("k")?, message("1")?, message("2")?);
    let (_, _, ticket, _) = arrived(turns, record(&key, &one)).await?;
    turn(&*a, ticket).await?.release().await?;
    let full = NewRecord { most: 1, ..record(&key, &two) };
    for (new, wanted) in
        [(record(&key, &one), Admission::Known), (full, Admission::Full { waiting: 1 })]
    {
        let Ingested { admission, place, begins } = ingest(turns, new).await?;
        ensure_eq!(admission, wanted, "the admission");
        ensure!(place.is_none() && begins == Begins::Later, "{place:?}, {begins:?}");
        let free = within(Duration::ZERO, "the turn of a free chat", take(&*b, &key)).await??;
        free.release().await?;
    }
    Ok(())
}

/// G2, G9: a message behind others, or in a chat that somebody has, waits for its turn and is begun
/// under it.
pub async fn a_message_of_a_busy_chat_waits_for_its_turn(
    fixture: &dyn CoordinatorFixture,
) -> Result<(), CaseError> {
    let cluster = Cluster::new(fixture);
    let [a, b] = cluster.replicas_with(["a", "b"], PATIENT).await?;
    let both = both(&*a)?;
    let (turns, inbox) = (both.turns, both.inbox()?);
    let (key, one, two) = (chat("k")?, message("1")?, message("2")?);
    let other = take(&*b, &key).await?;
    let (first, _, ticket, begins) = arrived(turns, record(&key, &one)).await?;
    ensure_eq!(begins, Begins::Later, "a message of a chat that another has");
    let early = tokio::time::timeout(Duration::from_millis(30), turn(&*a, ticket)).await;
    ensure!(early.is_err(), "granted beside the holder: {early:?}");
    other.release().await?;
    // The turn is free, but something is before it.
    let (second, is_behind, ticket, begins) = arrived(turns, record(&key, &two)).await?;
    ensure!(is_behind && begins == Begins::Later, "{is_behind}, {begins:?}");
    let held = turn(&*a, ticket).await?;
    for position in [first, second] {
        match inbox.begin(&key, held.fence(), MINUTE).await? {
            Begun::Record(record) => {
                ensure_eq!((record.position, record.attempts), (position, 1), "the first record");
            }
            other => return Err(CaseError::Violation(format!("{other:?}"))),
        }
        let commit = ends(&key, position, &held, CheckpointChange::Nothing);
        ensure_eq!(inbox.commit(commit).await?, Committed::Applied(None), "its end");
    }
    Ok(())
}

/// G3, G9: an end that is refused leaves the turn with its holder, and the record pending.
pub async fn a_refused_end_leaves_the_turn_with_its_holder(
    fixture: &dyn CoordinatorFixture,
) -> Result<(), CaseError> {
    let cluster = Cluster::new(fixture);
    let [a, b] = cluster.replicas_with(["a", "b"], PATIENT).await?;
    let both = both(&*a)?;
    let (turns, inbox) = (both.turns, both.inbox()?);
    let (key, one) = (chat("k")?, message("1")?);
    let (position, _, ticket, _) = arrived(turns, record(&key, &one)).await?;
    let held = turn(&*a, ticket).await?;
    // There is no such checkpoint.
    let clear = CheckpointChange::Clear { expected: crate::id::Revision::new(1) };
    let committed = turns.commit(&held.guard(), ends(&key, position, &held, clear)).await?;
    ensure_eq!(committed, Committed::Refused, "an end without its checkpoint");
    held.check().map_err(|lost| CaseError::Violation(lost.to_string()))?;
    let ticket = b.coordinator().reserve(&key).await?;
    let next = b.coordinator().acquire_turn(ticket, AcquireTurn::new());
    let mut next = Box::pin(next);
    let early = tokio::time::timeout(Duration::from_millis(30), &mut next).await;
    ensure!(early.is_err(), "granted beside the holder: {early:?}");
    // Ended, it goes to whoever waits.
    let commit = ends(&key, position, &held, CheckpointChange::Nothing);
    ensure_eq!(turns.commit(&held.guard(), commit).await?, Committed::Applied(None), "the end");
    let next = within(Duration::ZERO, "the turn of whoever waited", next).await??;
    ensure_eq!(next.previous_fence(), Some(held.fence()), "the fence of the turn before");
    ensure_eq!(inbox.begin(&key, next.fence(), MINUTE).await?, Begun::Nothing, "what is pending");
    Ok(())
}

/// G9: what was reserved with a message and is dropped leaves nothing behind.
pub async fn a_dropped_message_gives_its_turn_up_and_stays_pending(
    fixture: &dyn CoordinatorFixture,
) -> Result<(), CaseError> {
    let cluster = Cluster::new(fixture);
    let [a, b] = cluster.replicas_with(["a", "b"], PATIENT).await?;
    let both = both(&*a)?;
    let (turns, inbox) = (both.turns, both.inbox()?);
    let key = chat("k")?;
    let mut ids: Vec<MessageId> = Vec::new();
    for number in 0..3 {
        ids.push(message(&number.to_string())?);
    }
    drop(arrived(turns, record(&key, &ids[0])).await?);
    // A call whose future is dropped before or after it was sent.
    drop(turns.ingest(record(&key, &ids[1])));
    let _ = tokio::time::timeout(Duration::ZERO, turns.ingest(record(&key, &ids[2]))).await;
    let free = within(LEASE, "the turn of a message that was dropped", take(&*b, &key)).await??;
    match inbox.begin(&key, free.fence(), MINUTE).await? {
        Begun::Record(record) => ensure_eq!(record.attempts, 2, "attempts"),
        other => return Err(CaseError::Violation(format!("{other:?}"))),
    }
    Ok(())
}

/// G9: a session that is gone reserves nothing, and the message is admitted all the same or surely
/// was not.
pub async fn a_message_without_a_session_is_admitted_or_surely_not(
    fixture: &dyn CoordinatorFixture,
) -> Result<(), CaseError> {
    let cluster = Cluster::new(fixture);
    let [a, b] = cluster.replicas_with(["a", "b"], PATIENT).await?;
    let (turns, other) = (both(&*a)?.turns, both(&*b)?);
    let inbox = other.inbox()?;
    let (key, one) = (chat("k")?, message("1")?);
    a.coordinator().stop().await?;
    let admitted = match turns.ingest(record(&key, &one)).await {
        Ok(Ingested { place: Some(Err(_)), .. }) => true,
        Ok(other) => return Err(CaseError::Violation(format!("{other:?}"))),
        Err(_) => false,
    };
    let free = within(LEASE, "the turn of a free chat", take(&*b, &key)).await??;
    let begun = inbox.begin(&key, free.fence(), MINUTE).await?;
    ensure_eq!(matches!(begun, Begun::Record(_)), admitted, "whether the message was admitted");
    Ok(())
}

/// G2, G7, G9: wherever one of two replicas dies, before or after a step that its turns take along or
/// one of its own, the other one processes what was accepted, in order, and sends nothing again.
pub async fn wherever_a_replica_dies_the_other_one_goes_on(
    fixture: &dyn CoordinatorFixture,
) -> Result<(), CaseError> {
    let ground = || async {
        let cluster = Cluster::new(fixture);
        let mut replicas = Vec::new();
        for name in ["a", "b"] {
            replicas.push(insisting(&cluster, name).await?);
        }
        let store = both(&*replicas[0])?.store;
        Ok(Ground { store, replicas })
    };
    // Each opens connections of its own.
    let at_once = 12;
    crash_everywhere(ground, Setting { knows_keys: true, replicas: 2 }, at_once).await
}

/// A replica that is started again when that took the backend too long: many start at once.
async fn insisting(cluster: &Cluster<'_>, name: &str) -> Result<Arc<dyn Replica>, CaseError> {
    let mut started = cluster.replica(name).await;
    for _ in 0..5 {
        if started.is_ok() {
            break;
        }
        started = cluster.replica(name).await;
    }
    started
}

/// G1, G3, G9: whatever is called in whatever order, with messages that are taken in and ended under
/// turns, the answers are those of the store in memory.
pub async fn any_sequence_of_steps_is_answered_as_by_the_store_in_memory(
    fixture: &dyn CoordinatorFixture,
) -> Result<(), CaseError> {
    let cluster = Cluster::new(fixture);
    let [a] = cluster.replicas_with(["a"], PATIENT).await?;
    let Both { store, .. } = both(&*a)?;
    let held = Held::new(a.coordinator());
    likeness::compare(&*store, Some(&held), async |time| fixture.pass(time).await).await
}
