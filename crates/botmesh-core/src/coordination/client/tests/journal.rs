//! Turns that take the steps of an inbox along, where a step stays behind.

use async_trait::async_trait;

use super::*;
use crate::coordination::{Begins, Ingested, JournaledTurns as _};
use crate::id::Position;
use crate::store::{Admission, CheckpointChange, Commit, Committed, NewRecord, Realm};

/// A hub whose releases behind the ends of records are never heard of.
#[derive(Debug)]
struct LeftBehind {
    turns: MemoryBackend,
    realm: Realm,
}

#[async_trait]
impl Backend for LeftBehind {
    fn name(&self) -> &'static str {
        "left behind"
    }

    async fn send(&self, operation: &Operation) -> Result<Reply, BackendError> {
        self.turns.send(operation).await
    }

    async fn listen(&self, own: &IncarnationId, pushes: PushSink) -> Result<(), BackendError> {
        self.turns.listen(own, pushes).await
    }

    fn journal(&self) -> Option<&dyn JournalBackend> {
        Some(self)
    }
}

#[async_trait]
impl JournalBackend for LeftBehind {
    fn realm(&self) -> &Realm {
        &self.realm
    }

    async fn ingest(&self, _: NewRecord<'_>, reserve: &Operation) -> Result<Arrival, BackendError> {
        let admission = Admission::New { position: Position::new(1), is_behind: false };
        let reply = Some(self.turns.send(reserve).await?);
        Ok(Arrival { admission, reply, is_begun: true })
    }

    async fn commit(&self, _: Commit<'_>, _: &Operation) -> Result<Departure, BackendError> {
        Ok(Departure { committed: Committed::Applied(None), reply: None })
    }
}

/// C7, G9: a turn whose record has ended is released, though the release behind it was lost.
#[tokio::test(start_paused = true)]
async fn a_release_that_stayed_behind_its_record_is_repeated() {
    let hub = MemoryCoordinationHub::new();
    let turns = MemoryBackend::new(&hub, Limits::from(&CoordinatorSettings::default()));
    let backend = LeftBehind { turns, realm: Realm::new() };
    let client = CoordinatorClient::builder(backend).clock(LeaseClock::tokio()).build();
    client.start().await.unwrap();
    let (chat, lease) = (chat(), LEASE);
    let record = NewRecord { chat: &chat, message: None, body: Some("hi"), lease, most: 9 };
    let Ingested { place, begins, .. } = client.ingest(record).await.unwrap();
    let ticket = place.unwrap().unwrap();
    let turn = client.acquire_turn(ticket, AcquireTurn::new()).await.unwrap();
    assert_eq!(begins, Begins::Under(turn.fence()));
    let checkpoint = CheckpointChange::Nothing;
    let commit =
        Commit { chat: &chat, position: Position::new(1), fence: turn.fence(), checkpoint };
    let guard = turn.guard();
    guard.close();
    assert_eq!(client.commit(&guard, commit).await.unwrap(), Committed::Applied(None));
    turn.end_if_closed();
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert!(hub.record(&chat).unwrap().is_idle(), "nobody can have the chat");
    assert_eq!(client.open_tickets(), 0);
}
