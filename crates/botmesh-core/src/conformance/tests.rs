//! The suite on the memory store, and on stores that are wrong on purpose.

mod flawed;
mod memory;

use std::collections::BTreeSet;

use self::flawed::{Flaw, FlawedFixture};
use super::{CaseError, STORE_CASES};

/// The names of the cases that a store with this flaw fails.
async fn failed_by(flaw: Flaw) -> BTreeSet<&'static str> {
    let mut failed = BTreeSet::new();
    for case in STORE_CASES {
        let fixture = FlawedFixture::new(flaw);
        match (case.run)(&fixture).await {
            Ok(()) | Err(CaseError::NotRun(_)) => {}
            Err(CaseError::Violation(_)) => {
                failed.insert(case.name);
            }
        }
    }
    failed
}

/// The proof that it is the flaw, and not the way these stores are made, that is found.
#[tokio::test(start_paused = true)]
async fn the_same_store_without_a_flaw_fails_no_case() {
    assert_eq!(failed_by(Flaw::None).await, BTreeSet::new());
}

macro_rules! caught {
    ($($(#[$doc:meta])* $test:ident: $flaw:ident by $($case:ident),+;)+) => {$(
        $(#[$doc])*
        #[tokio::test(start_paused = true)]
        async fn $test() {
            let failed = failed_by(Flaw::$flaw).await;
            $(assert!(failed.contains(stringify!($case)), "only {failed:?} failed");)+
        }
    )+};
}

caught! {
    /// B2: a store that checks and then writes is not taken for one that compares and sets.
    a_store_that_loses_updates_is_caught: LosesUpdates by
        of_many_writers_of_a_document_exactly_one_wins,
        of_many_writers_of_a_checkpoint_exactly_one_wins;
    /// B2: revisions must not begin anew with a new row.
    a_store_that_uses_revisions_again_is_caught: ReusesRevisions by
        an_old_revision_never_fits_a_document_made_anew,
        an_old_revision_never_fits_a_checkpoint_made_anew;
    /// B2: the condition must be looked at.
    a_store_that_ignores_revisions_is_caught: IgnoresRevisions by
        a_document_is_written_only_by_who_names_its_revision,
        a_checkpoint_is_written_only_by_who_names_its_revision;
    /// B2: the right revision is not enough.
    a_store_that_ignores_fences_is_caught: IgnoresFences by
        a_lower_fence_is_refused_after_a_write;
    /// B2: the holder of a turn writes more than once.
    a_store_that_refuses_an_equal_fence_is_caught: RefusesEqualFences by
        a_checkpoint_is_written_only_by_who_names_its_revision;
    /// B2: a refused write must change nothing.
    a_store_that_raises_the_fence_of_a_refused_write_is_caught: RaisesFencesOnRefusal by
        a_checkpoint_is_written_only_by_who_names_its_revision;
    /// B2: fences never fall.
    a_store_that_lowers_fences_is_caught: LowersFences by a_lower_fence_is_refused_after_a_write;
    /// B2: a row that was cleared leaves its fence.
    a_store_without_tombstones_is_caught: ForgetsFences by
        a_stale_writer_cannot_make_a_cleared_row_anew,
        a_stale_writer_cannot_make_an_expired_row_anew;
    /// B2: adopting fences off the former holder.
    a_store_that_adopts_without_raising_is_caught: AdoptsWithoutRaising by
        a_lower_fence_is_refused_after_adoption,
        a_lower_fence_is_refused_after_adoption_of_no_row;
    /// B2: adopting is one step.
    a_store_that_adopts_in_two_steps_is_caught: AdoptsInTwoSteps by
        a_write_never_slips_past_an_adoption;
    /// B3: fences must not begin anew with a lock that was released.
    a_store_whose_lock_fences_restart_is_caught: RestartsFences by
        the_fence_of_a_lock_grows_over_release_and_expiry;
    /// B3: one holder at a time.
    a_store_that_gives_a_lock_twice_is_caught: GivesLocksTwice by
        of_many_who_take_a_lock_exactly_one_gets_it;
    /// B3: releasing needs the token.
    a_store_that_releases_for_anyone_is_caught: ReleasesForAnyone by
        only_the_token_of_the_holder_renews_and_releases;
    /// B3: renewing needs the token.
    a_store_that_renews_for_anyone_is_caught: RenewsForAnyone by
        only_the_token_of_the_holder_renews_and_releases;
    /// B3: a lock that has expired is not renewed.
    a_store_that_renews_expired_locks_is_caught: RenewsExpired by
        a_lock_is_held_for_its_time_and_no_longer;
    /// B3: renewing has an effect.
    a_store_that_only_says_that_it_renewed_is_caught: RenewsNothing by a_renewed_lock_is_kept;
    /// B4: times are kept.
    a_store_whose_rows_never_expire_is_caught: NeverExpires by
        a_checkpoint_lasts_as_long_as_it_was_told, a_lock_is_held_for_its_time_and_no_longer;
    /// B4: times are kept to the end.
    a_store_whose_rows_expire_early_is_caught: ExpiresEarly by
        a_checkpoint_lasts_as_long_as_it_was_told, a_lock_is_held_for_its_time_and_no_longer;
    /// B4: what is left runs down.
    a_store_whose_time_to_wake_stands_still_is_caught: StopsTheClock by
        the_time_until_waking_runs_down_to_zero;
    /// B1: the earliest first.
    a_store_that_wakes_in_any_order_is_caught: WakesInAnyOrder by
        chats_to_wake_come_the_earliest_first;
    /// B4: `A` and `a` are two keys.
    a_store_that_folds_case_is_caught: FoldsCase by
        documents_of_keys_that_look_alike_do_not_meet,
        checkpoints_of_chats_that_look_alike_do_not_meet,
        locks_of_keys_that_look_alike_do_not_meet;
    /// B4: accents matter.
    a_store_that_ignores_accents_is_caught: IgnoresAccents by
        documents_of_keys_that_look_alike_do_not_meet;
    /// B4: spaces at the end matter.
    a_store_that_trims_keys_is_caught: TrimsKeys by
        documents_of_keys_that_look_alike_do_not_meet,
        locks_of_keys_that_look_alike_do_not_meet;
    /// B4: a key of a kibibyte is whole.
    a_store_that_cuts_keys_is_caught: CutsKeys by
        documents_of_keys_that_look_alike_do_not_meet,
        checkpoints_of_chats_that_look_alike_do_not_meet;
    /// B4: a body of a mebibyte is whole.
    a_store_that_cuts_bodies_is_caught: CutsBodies by
        document_bodies_come_back_as_they_were, checkpoint_bodies_come_back_as_they_were;
    /// B4: a text ends where it ends.
    a_store_that_cuts_at_a_nul_is_caught: CutsAtNul by
        a_nul_is_kept_or_refused_and_nothing_is_cut;
    /// B1: collections are apart.
    a_store_that_mixes_collections_is_caught: MixesCollections by
        documents_of_different_collections_do_not_meet;
    /// B6: prefixes are apart.
    a_store_that_mixes_prefixes_is_caught: MixesPrefixes by
        data_of_different_prefixes_do_not_meet;
    /// B5: preparing is safe to repeat.
    a_store_that_prepares_only_once_is_caught: PreparesOnce by
        many_handles_prepare_the_same_data_at_once_and_again;
    /// B5: preparing keeps what is there.
    a_store_that_prepares_by_beginning_anew_is_caught: PreparesAnew by
        many_handles_prepare_the_same_data_at_once_and_again;
    /// B1: handles see the same.
    a_store_whose_handles_keep_copies_is_caught: KeepsCopies by all_handles_see_the_same_data;
    /// B1: durable means durable.
    a_store_that_is_durable_in_name_only_is_caught: LosesAllWhenClosed by
        a_durable_store_keeps_everything_when_opened_again;
}
