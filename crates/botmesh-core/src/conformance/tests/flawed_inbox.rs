//! The suite on inboxes that are wrong on purpose.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;

use crate::conformance::{CaseError, STORE_CASES, StoreFixture};
use crate::id::{ChatKey, Fence, Position, ProviderId, Revision};
use crate::store::{
    Admission, Begun, CheckpointChange, CheckpointStore, CheckpointWrite, Collection, Commit,
    Committed, ConditionalCheckpointStore, DeadLetter, Document, DocumentStore, InboxRecord,
    InboxStore, LockStore, MemoryStore, NewRecord, Postponement, Retention, Store, StoreError,
    StoredCheckpoint, Swap,
};

/// What is wrong with an inbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flaw {
    None,
    AdmitsTwice,
    CutsBodies,
    IsNeverFull,
    IsNeverBehind,
    LeasesNothing,
    LeasesForEver,
    BeginsForAnyone,
    CommitsForAnyone,
    EndsWithoutItsCheckpoint,
    WritesWithoutItsEnd,
    BeginsAtOnceAgain,
    ForgetsItsSends,
    HidesWhatComesNext,
    KeepsClaims,
    BuriesWithoutAWord,
    BuriesForGood,
    ForgetsNothing,
    ForgetsAtOnce,
}

/// Opens stores in memory whose inbox has one flaw.
#[derive(Debug)]
struct FlawedFixture {
    flaw: Flaw,
    kept: Mutex<BTreeMap<String, MemoryStore>>,
}

#[async_trait]
impl StoreFixture for FlawedFixture {
    async fn open(&self, prefix: &str) -> Option<Arc<dyn Store>> {
        let new = || MemoryStore::new().as_shared();
        let inner = self.kept.lock().entry(prefix.to_owned()).or_insert_with(new).clone();
        Some(Arc::new(Flawed { flaw: self.flaw, inner }))
    }
}

#[derive(Debug)]
struct Flawed {
    flaw: Flaw,
    inner: MemoryStore,
}

impl Flawed {
    /// The fence as the store takes it: one that nothing refuses, where it ignores fences.
    fn fence(&self, ignores: Flaw, fence: Fence) -> Fence {
        if self.flaw == ignores { Fence::new(u64::MAX >> 1) } else { fence }
    }

    /// Writes the checkpoint of a commit by itself.
    async fn write(&self, commit: &Commit<'_>) -> Result<(), StoreError> {
        let Commit { chat, fence, checkpoint, .. } = *commit;
        match checkpoint {
            CheckpointChange::Nothing => {}
            CheckpointChange::Set { write, expected } => {
                let _ = self.inner.set_checkpoint_if(chat, write, expected, fence).await?;
            }
            CheckpointChange::Clear { expected } => {
                let _ = self.inner.clear_checkpoint_if(chat, expected, fence).await?;
            }
        }
        Ok(())
    }
}

#[async_trait]
impl InboxStore for Flawed {
    async fn admit(&self, record: NewRecord<'_>) -> Result<Admission, StoreError> {
        let cut = record.body.map(|body| body.chars().take(65_535).collect::<String>());
        let record = match self.flaw {
            Flaw::AdmitsTwice => NewRecord { message: None, ..record },
            Flaw::CutsBodies => NewRecord { body: cut.as_deref(), ..record },
            Flaw::IsNeverFull => NewRecord { most: usize::MAX, ..record },
            Flaw::LeasesNothing => NewRecord { lease: Duration::ZERO, ..record },
            Flaw::LeasesForEver => NewRecord { lease: Duration::from_secs(1_000_000), ..record },
            _ => record,
        };
        Ok(match self.inner.admit(record).await? {
            Admission::New { position, .. } if self.flaw == Flaw::IsNeverBehind => {
                Admission::New { position, is_behind: false }
            }
            admission => admission,
        })
    }

    async fn begin(
        &self,
        chat: &ChatKey,
        fence: Fence,
        lease: Duration,
    ) -> Result<Begun, StoreError> {
        let fence = self.fence(Flaw::BeginsForAnyone, fence);
        Ok(match self.inner.begin(chat, fence, lease).await? {
            Begun::Record(record) if self.flaw == Flaw::HidesWhatComesNext => {
                Begun::Record(InboxRecord { has_more: false, ..record })
            }
            begun => begun,
        })
    }

    async fn commit(&self, commit: Commit<'_>) -> Result<Committed, StoreError> {
        let fence = self.fence(Flaw::CommitsForAnyone, commit.fence);
        let alone = Commit { checkpoint: CheckpointChange::Nothing, ..commit };
        match self.flaw {
            Flaw::EndsWithoutItsCheckpoint => {
                let ended = self.inner.commit(commit).await?;
                if ended == Committed::Refused {
                    let _ = self.inner.commit(alone).await?;
                }
                Ok(ended)
            }
            Flaw::WritesWithoutItsEnd => {
                let ended = self.inner.commit(commit).await?;
                if ended == Committed::Refused {
                    self.write(&commit).await?;
                }
                Ok(ended)
            }
            _ => self.inner.commit(Commit { fence, ..commit }).await,
        }
    }

    async fn note_sends(
        &self,
        chat: &ChatKey,
        position: Position,
        fence: Fence,
        sends: &str,
    ) -> Result<bool, StoreError> {
        if self.flaw == Flaw::ForgetsItsSends {
            return Ok(true);
        }
        self.inner.note_sends(chat, position, fence, sends).await
    }

    async fn postpone(
        &self,
        chat: &ChatKey,
        position: Position,
        fence: Fence,
        postponement: Postponement<'_>,
    ) -> Result<bool, StoreError> {
        let postponement = match self.flaw {
            Flaw::BeginsAtOnceAgain => Postponement { retry_in: Duration::ZERO, ..postponement },
            _ => postponement,
        };
        self.inner.postpone(chat, position, fence, postponement).await
    }

    async fn bury(
        &self,
        chat: &ChatKey,
        position: Position,
        fence: Fence,
        error: &str,
    ) -> Result<bool, StoreError> {
        let error = if self.flaw == Flaw::BuriesWithoutAWord { "" } else { error };
        self.inner.bury(chat, position, fence, error).await
    }

    async fn release(&self, chat: &ChatKey, position: Position) -> Result<(), StoreError> {
        match self.flaw {
            Flaw::KeepsClaims => Ok(()),
            _ => self.inner.release(chat, position).await,
        }
    }

    async fn take_waiting(
        &self,
        provider: &ProviderId,
        lease: Duration,
        limit: usize,
    ) -> Result<Vec<ChatKey>, StoreError> {
        self.inner.take_waiting(provider, lease, limit).await
    }

    async fn dead_letters(
        &self,
        after: Option<(&ChatKey, Position)>,
        limit: usize,
    ) -> Result<Vec<DeadLetter>, StoreError> {
        self.inner.dead_letters(after, limit).await
    }

    async fn revive(&self, chat: &ChatKey, position: Position) -> Result<bool, StoreError> {
        match self.flaw {
            Flaw::BuriesForGood => Ok(true),
            _ => self.inner.revive(chat, position).await,
        }
    }

    async fn forget(&self, retention: Retention, limit: usize) -> Result<usize, StoreError> {
        match self.flaw {
            Flaw::ForgetsNothing => Ok(0),
            Flaw::ForgetsAtOnce => {
                let (done, dead) = (Duration::ZERO, Duration::ZERO);
                self.inner.forget(Retention { done, dead }, limit).await
            }
            _ => self.inner.forget(retention, limit).await,
        }
    }

    async fn dangers(&self) -> Result<Vec<String>, StoreError> {
        self.inner.dangers().await
    }
}

#[async_trait]
impl Store for Flawed {
    fn name(&self) -> &'static str {
        "flawed"
    }

    fn is_shared(&self) -> bool {
        self.inner.is_shared()
    }

    fn is_durable(&self) -> bool {
        self.inner.is_durable()
    }

    async fn prepare(&self) -> Result<(), StoreError> {
        self.inner.prepare().await
    }

    fn conditional_checkpoints(&self) -> Option<&dyn ConditionalCheckpointStore> {
        self.inner.conditional_checkpoints()
    }

    fn locks(&self) -> Option<&dyn LockStore> {
        None
    }

    fn inbox(&self) -> Option<&dyn InboxStore> {
        Some(self)
    }
}

#[async_trait]
impl DocumentStore for Flawed {
    async fn load_document(
        &self,
        collection: Collection,
        key: &str,
    ) -> Result<Option<Document>, StoreError> {
        self.inner.load_document(collection, key).await
    }

    async fn save_document_if(
        &self,
        collection: Collection,
        key: &str,
        body: &str,
        expected: Option<Revision>,
    ) -> Result<Swap, StoreError> {
        self.inner.save_document_if(collection, key, body, expected).await
    }

    async fn remove_document_if(
        &self,
        collection: Collection,
        key: &str,
        expected: Revision,
    ) -> Result<Swap, StoreError> {
        self.inner.remove_document_if(collection, key, expected).await
    }
}

#[async_trait]
impl CheckpointStore for Flawed {
    async fn load_checkpoint(&self, key: &ChatKey) -> Result<Option<StoredCheckpoint>, StoreError> {
        self.inner.load_checkpoint(key).await
    }

    async fn set_checkpoint(
        &self,
        key: &ChatKey,
        write: CheckpointWrite<'_>,
        fence: Fence,
    ) -> Result<Revision, StoreError> {
        self.inner.set_checkpoint(key, write, fence).await
    }

    async fn clear_checkpoint(&self, key: &ChatKey) -> Result<(), StoreError> {
        self.inner.clear_checkpoint(key).await
    }

    async fn checkpoints_to_wake(
        &self,
        horizon: Duration,
        limit: usize,
    ) -> Result<Vec<(ChatKey, Duration)>, StoreError> {
        self.inner.checkpoints_to_wake(horizon, limit).await
    }
}

/// Whether a store with this flaw fails the case.
async fn fails(flaw: Flaw, name: &str) -> bool {
    let fixture = FlawedFixture { flaw, kept: Mutex::default() };
    let case = STORE_CASES.iter().find(|case| case.name == name);
    let case = case.unwrap_or_else(|| panic!("there is no case {name}"));
    matches!((case.run)(&fixture).await, Err(CaseError::Violation(_)))
}

/// G1, G2, G3, G5, G6, G8: each flaw of an inbox fails the case of the suite that is about it.
#[tokio::test(start_paused = true)]
async fn a_flawed_inbox_fails_the_suite() {
    for (flaw, case) in [
        (Flaw::AdmitsTwice, "of_many_who_admit_a_message_exactly_one_is_told_that_it_is_new"),
        (Flaw::CutsBodies, "bodies_of_records_come_back_as_they_were"),
        (Flaw::IsNeverFull, "a_full_chat_takes_no_more_and_says_how_many_wait"),
        (Flaw::IsNeverBehind, "of_many_who_admit_at_once_only_the_first_is_told_that_it_is"),
        (Flaw::LeasesNothing, "records_wait_when_their_lease_has_ended"),
        (Flaw::LeasesForEver, "records_wait_when_their_lease_has_ended"),
        (Flaw::BeginsForAnyone, "a_lower_fence_cannot_touch_a_record_that_a_higher_one_has_begun"),
        (Flaw::CommitsForAnyone, "a_lower_fence_cannot_touch_a_record_that_a_higher_one_has_begun"),
        (Flaw::EndsWithoutItsCheckpoint, "a_record_does_not_end_without_its_checkpoint"),
        (Flaw::WritesWithoutItsEnd, "a_checkpoint_is_not_written_without_its_record"),
        (Flaw::BeginsAtOnceAgain, "a_postponed_record_is_begun_again_when_it_is_due"),
        (Flaw::ForgetsItsSends, "any_sequence_of_calls_is_answered_as_by_the_store_in_memory"),
        (Flaw::HidesWhatComesNext, "any_sequence_of_calls_is_answered_as_by_the_store_in_memory"),
        (Flaw::KeepsClaims, "a_claim_is_done_or_given_up_and_never_begun"),
        (Flaw::BuriesWithoutAWord, "a_buried_record_is_listed_and_its_chat_goes_on"),
        (Flaw::BuriesForGood, "a_revived_record_is_begun_again_at_its_place"),
        (Flaw::ForgetsNothing, "what_has_ended_is_forgotten_after_its_time_and_nothing_else"),
        (Flaw::ForgetsAtOnce, "what_has_ended_is_forgotten_after_its_time_and_nothing_else"),
    ] {
        assert!(fails(flaw, case).await, "{flaw:?}: {case} passed");
        assert!(!fails(Flaw::None, case).await, "{case} failed without a flaw");
    }
}
