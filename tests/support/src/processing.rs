//! One who processes the messages of a chat while its store is harmed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use botmesh_core::id::{Fence, MessageId, ProviderId, Revision};
use botmesh_core::store::{
    Admission, Begun, CheckpointChange, CheckpointWrite, Commit, Committed, InboxStore, NewRecord,
    Postponement, Retention, Store, StoreError,
};

use crate::replica::chat;

const MINUTE: Duration = Duration::from_secs(60);

/// Admits one message after the other, each with its number, and ends it together with a
/// checkpoint that holds that number. Whenever the outcome of an end is not known it begins under
/// a higher fence, as whoever takes over would, and looks: both are there or neither.
#[derive(Debug)]
pub struct Processor {
    store: Arc<dyn Store>,
    chat: String,
    fence: u64,
    /// The last message that was ended.
    ended: u64,
    /// How often the outcome was not known.
    pub unknown: u64,
    revision: Option<Revision>,
}

impl Processor {
    /// One for this chat, to which nobody else may do anything.
    #[must_use]
    pub fn new(store: Arc<dyn Store>, chat: &str) -> Self {
        Self { store, chat: chat.to_owned(), fence: 1, ended: 0, unknown: 0, revision: None }
    }

    fn inbox(&self) -> &dyn InboxStore {
        self.store.inbox().expect("the store has an inbox")
    }

    /// Processes the next message to its end.
    ///
    /// # Panics
    /// When a record and its checkpoint are not as they have to be.
    pub async fn process(&mut self) {
        let chat = chat(&self.chat);
        let number = self.ended + 1;
        let text = number.to_string();
        let message = MessageId::new(&*text).unwrap();
        let most = 9;
        let (message, body) = (Some(&message), Some(&*text));
        let record = NewRecord { chat: &chat, message, body, lease: MINUTE, most };
        let admission = insist(|| self.inbox().admit(record)).await;
        // Known if an admission before was not answered.
        assert!(!matches!(admission, Admission::Full { .. }), "{admission:?}");
        loop {
            let fence = Fence::new(self.fence);
            let begun = insist(|| self.inbox().begin(&chat, fence, MINUTE)).await;
            let loaded = insist(|| self.store.load_checkpoint(&chat)).await;
            let stored = loaded.as_ref().map_or("0", |row| &row.body);
            self.revision = loaded.as_ref().map(|row| row.revision);
            let record = match begun {
                Begun::Nothing => {
                    assert_eq!(stored, text, "the checkpoint of a record that has ended");
                    self.ended = number;
                    return;
                }
                Begun::Record(record) => record,
                other => panic!("{other:?}"),
            };
            assert_eq!(record.body, text, "the record");
            assert_eq!(stored, self.ended.to_string(), "the checkpoint of one that has not");
            let write = CheckpointWrite { body: &text, wake_in: None, expires_in: None };
            let checkpoint = CheckpointChange::Set { write, expected: self.revision };
            let position = record.position;
            let commit = Commit { chat: &chat, position, fence, checkpoint };
            match self.inbox().commit(commit).await {
                Ok(Committed::Applied(Some(_))) => {
                    self.ended = number;
                    return;
                }
                Ok(other) => panic!("{other:?}"),
                Err(error) if error.is_transient() => {
                    self.unknown += 1;
                    self.fence += 1;
                }
                Err(error) => panic!("{error:?}"),
            }
        }
    }
}

/// Calls everything that an inbox can do so many times, on a chat of which a lot is done already.
///
/// # Panics
/// When something does not do what it should.
pub async fn try_everything(store: &dyn Store, rounds: u64) {
    let inbox = store.inbox().expect("the store has an inbox");
    let chat = chat("a");
    let provider = ProviderId::new(chat.provider()).unwrap();
    let fence = Fence::new(1);
    for round in 0..rounds {
        let mut positions = Vec::new();
        for number in 0..3 {
            let message = MessageId::new(format!("new {round} {number}")).unwrap();
            let (message, body, most) = (Some(&message), Some("{}"), 9);
            let record = NewRecord { chat: &chat, message, body, lease: Duration::ZERO, most };
            let admission = inbox.admit(record).await.unwrap();
            let Admission::New { position, .. } = admission else { panic!("{admission:?}") };
            assert_eq!(inbox.admit(record).await.unwrap(), Admission::Known);
            positions.push(position);
        }
        let [one, two, three] = positions[..] else { return };
        let begun = inbox.begin(&chat, fence, MINUTE).await.unwrap();
        assert!(matches!(begun, Begun::Record(ref first) if first.position == one), "{begun:?}");
        assert!(inbox.note_sends(&chat, one, fence, "[]").await.unwrap());
        let retry_in = Duration::ZERO;
        let later = Postponement { attempts: 1, error: "e", sends: None, retry_in };
        assert!(inbox.postpone(&chat, one, fence, later).await.unwrap());
        assert!(inbox.bury(&chat, one, fence, "e").await.unwrap());
        assert!(inbox.revive(&chat, one).await.unwrap());
        inbox.release(&chat, two).await.unwrap();
        let waiting = inbox.take_waiting(&provider, MINUTE, 10).await.unwrap();
        assert_eq!(waiting, std::slice::from_ref(&chat));
        let write = CheckpointWrite { body: "{}", wake_in: None, expires_in: None };
        let row = store.load_checkpoint(&chat).await.unwrap();
        let expected = row.map(|row| row.revision);
        let set = CheckpointChange::Set { write, expected };
        let commit = |position, checkpoint| Commit { chat: &chat, position, fence, checkpoint };
        let committed = inbox.commit(commit(one, set)).await.unwrap();
        let Committed::Applied(Some(expected)) = committed else { panic!("{committed:?}") };
        let ended = inbox.commit(commit(two, CheckpointChange::Nothing)).await.unwrap();
        assert_eq!(ended, Committed::Applied(None));
        let clear = CheckpointChange::Clear { expected };
        assert_eq!(inbox.commit(commit(three, clear)).await.unwrap(), Committed::Applied(None));
        assert_eq!(inbox.begin(&chat, fence, MINUTE).await.unwrap(), Begun::Nothing);
        assert_eq!(inbox.dead_letters(None, 10).await.unwrap().len(), 10);
        let retention = Retention { done: MINUTE, dead: MINUTE };
        inbox.forget(retention, 2).await.unwrap();
    }
}

/// Repeats a call until it is answered.
async fn insist<T, F>(call: impl Fn() -> F) -> T
where
    F: Future<Output = Result<T, StoreError>>,
{
    loop {
        match call().await {
            Ok(answer) => return answer,
            Err(error) if error.is_transient() => {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            Err(error) => panic!("{error:?}"),
        }
    }
}

/// Processes messages of four chats while harm is done, which is told how many were processed.
/// Answers that number at the end, and of how many ends the outcome was not known.
///
/// # Panics
/// As [`Processor::process`].
pub async fn process_while(
    store: Arc<dyn Store>,
    harm: impl AsyncFnOnce(&AtomicU64),
) -> (u64, u64) {
    let shared = Arc::new((AtomicBool::new(false), AtomicU64::new(0)));
    let workers: Vec<_> = (0..4)
        .map(|number| {
            let (store, shared) = (Arc::clone(&store), Arc::clone(&shared));
            tokio::spawn(async move {
                let mut processor = Processor::new(store, &number.to_string());
                while !shared.0.load(Ordering::Relaxed) {
                    processor.process().await;
                    shared.1.fetch_add(1, Ordering::Relaxed);
                }
                processor.unknown
            })
        })
        .collect();
    harm(&shared.1).await;
    shared.0.store(true, Ordering::Relaxed);
    let mut unknown = 0;
    for worker in workers {
        unknown += worker.await.unwrap();
    }
    (shared.1.load(Ordering::Relaxed), unknown)
}
