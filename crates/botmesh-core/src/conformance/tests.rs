//! The suite on the memory store, and on stores that are wrong on purpose.

mod flawed;
mod flawed_inbox;
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

/// Fails unless a store with this flaw fails these cases.
async fn assert_caught(flaw: Flaw, by: &[&str]) {
    let failed = failed_by(flaw).await;
    for case in by {
        assert!(failed.contains(case), "{case} passed, only {failed:?} failed");
    }
}

/// B2: a store that checks and then writes is not taken for one that compares and sets.
#[tokio::test(start_paused = true)]
async fn a_store_that_loses_updates_is_caught() {
    assert_caught(
        Flaw::LosesUpdates,
        &[
            "of_many_writers_of_a_document_exactly_one_wins",
            "of_many_writers_of_a_checkpoint_exactly_one_wins",
        ],
    )
    .await;
}

/// B2: revisions must not begin anew with a new row.
#[tokio::test(start_paused = true)]
async fn a_store_that_uses_revisions_again_is_caught() {
    assert_caught(
        Flaw::ReusesRevisions,
        &[
            "an_old_revision_never_fits_a_document_made_anew",
            "an_old_revision_never_fits_a_checkpoint_made_anew",
        ],
    )
    .await;
}

/// B2: the condition must be looked at.
#[tokio::test(start_paused = true)]
async fn a_store_that_ignores_revisions_is_caught() {
    assert_caught(
        Flaw::IgnoresRevisions,
        &[
            "a_document_is_written_only_by_who_names_its_revision",
            "a_checkpoint_is_written_only_by_who_names_its_revision",
        ],
    )
    .await;
}

/// B2: the right revision is not enough.
#[tokio::test(start_paused = true)]
async fn a_store_that_ignores_fences_is_caught() {
    assert_caught(Flaw::IgnoresFences, &["a_lower_fence_is_refused_after_a_write"]).await;
}

/// B2: the holder of a turn writes more than once.
#[tokio::test(start_paused = true)]
async fn a_store_that_refuses_an_equal_fence_is_caught() {
    assert_caught(
        Flaw::RefusesEqualFences,
        &["a_checkpoint_is_written_only_by_who_names_its_revision"],
    )
    .await;
}

/// B2: a refused write must change nothing.
#[tokio::test(start_paused = true)]
async fn a_store_that_raises_the_fence_of_a_refused_write_is_caught() {
    assert_caught(
        Flaw::RaisesFencesOnRefusal,
        &["a_checkpoint_is_written_only_by_who_names_its_revision"],
    )
    .await;
}

/// B2: fences never fall.
#[tokio::test(start_paused = true)]
async fn a_store_that_lowers_fences_is_caught() {
    assert_caught(Flaw::LowersFences, &["a_lower_fence_is_refused_after_a_write"]).await;
}

/// B2: a row that was cleared leaves its fence.
#[tokio::test(start_paused = true)]
async fn a_store_without_tombstones_is_caught() {
    assert_caught(
        Flaw::ForgetsFences,
        &[
            "a_stale_writer_cannot_make_a_cleared_row_anew",
            "a_stale_writer_cannot_make_an_expired_row_anew",
        ],
    )
    .await;
}

/// B2: adopting fences off the former holder.
#[tokio::test(start_paused = true)]
async fn a_store_that_adopts_without_raising_is_caught() {
    assert_caught(
        Flaw::AdoptsWithoutRaising,
        &[
            "a_lower_fence_is_refused_after_adoption",
            "a_lower_fence_is_refused_after_adoption_of_no_row",
        ],
    )
    .await;
}

/// B2: adopting is one step.
#[tokio::test(start_paused = true)]
async fn a_store_that_adopts_in_two_steps_is_caught() {
    assert_caught(Flaw::AdoptsInTwoSteps, &["a_write_never_slips_past_an_adoption"]).await;
}

/// B3: fences must not begin anew with a lock that was released.
#[tokio::test(start_paused = true)]
async fn a_store_whose_lock_fences_restart_is_caught() {
    assert_caught(Flaw::RestartsFences, &["the_fence_of_a_lock_grows_over_release_and_expiry"])
        .await;
}

/// B3: one holder at a time.
#[tokio::test(start_paused = true)]
async fn a_store_that_gives_a_lock_twice_is_caught() {
    assert_caught(Flaw::GivesLocksTwice, &["of_many_who_take_a_lock_exactly_one_gets_it"]).await;
}

/// B3: releasing needs the token.
#[tokio::test(start_paused = true)]
async fn a_store_that_releases_for_anyone_is_caught() {
    assert_caught(Flaw::ReleasesForAnyone, &["only_the_token_of_the_holder_renews_and_releases"])
        .await;
}

/// B3: renewing needs the token.
#[tokio::test(start_paused = true)]
async fn a_store_that_renews_for_anyone_is_caught() {
    assert_caught(Flaw::RenewsForAnyone, &["only_the_token_of_the_holder_renews_and_releases"])
        .await;
}

/// B3: a lock that has expired is not renewed.
#[tokio::test(start_paused = true)]
async fn a_store_that_renews_expired_locks_is_caught() {
    assert_caught(Flaw::RenewsExpired, &["a_lock_is_held_for_its_time_and_no_longer"]).await;
}

/// B3: renewing has an effect.
#[tokio::test(start_paused = true)]
async fn a_store_that_only_says_that_it_renewed_is_caught() {
    assert_caught(Flaw::RenewsNothing, &["a_renewed_lock_is_kept"]).await;
}

/// B4: times are kept.
#[tokio::test(start_paused = true)]
async fn a_store_whose_rows_never_expire_is_caught() {
    assert_caught(
        Flaw::NeverExpires,
        &["a_checkpoint_lasts_as_long_as_it_was_told", "a_lock_is_held_for_its_time_and_no_longer"],
    )
    .await;
}

/// B4: times are kept to the end.
#[tokio::test(start_paused = true)]
async fn a_store_whose_rows_expire_early_is_caught() {
    assert_caught(
        Flaw::ExpiresEarly,
        &["a_checkpoint_lasts_as_long_as_it_was_told", "a_lock_is_held_for_its_time_and_no_longer"],
    )
    .await;
}

/// B4: what is left runs down.
#[tokio::test(start_paused = true)]
async fn a_store_whose_time_to_wake_stands_still_is_caught() {
    assert_caught(Flaw::StopsTheClock, &["the_time_until_waking_runs_down_to_zero"]).await;
}

/// B1: the earliest first.
#[tokio::test(start_paused = true)]
async fn a_store_that_wakes_in_any_order_is_caught() {
    assert_caught(Flaw::WakesInAnyOrder, &["chats_to_wake_come_the_earliest_first"]).await;
}

/// B4: `A` and `a` are two keys.
#[tokio::test(start_paused = true)]
async fn a_store_that_folds_case_is_caught() {
    assert_caught(
        Flaw::FoldsCase,
        &[
            "documents_of_keys_that_look_alike_do_not_meet",
            "checkpoints_of_chats_that_look_alike_do_not_meet",
            "locks_of_keys_that_look_alike_do_not_meet",
        ],
    )
    .await;
}

/// B4: accents matter.
#[tokio::test(start_paused = true)]
async fn a_store_that_ignores_accents_is_caught() {
    assert_caught(Flaw::IgnoresAccents, &["documents_of_keys_that_look_alike_do_not_meet"]).await;
}

/// B4: spaces at the end matter.
#[tokio::test(start_paused = true)]
async fn a_store_that_trims_keys_is_caught() {
    assert_caught(
        Flaw::TrimsKeys,
        &[
            "documents_of_keys_that_look_alike_do_not_meet",
            "locks_of_keys_that_look_alike_do_not_meet",
        ],
    )
    .await;
}

/// B4: a key of a kibibyte is whole.
#[tokio::test(start_paused = true)]
async fn a_store_that_cuts_keys_is_caught() {
    assert_caught(
        Flaw::CutsKeys,
        &[
            "documents_of_keys_that_look_alike_do_not_meet",
            "checkpoints_of_chats_that_look_alike_do_not_meet",
        ],
    )
    .await;
}

/// B4: a body of a mebibyte is whole.
#[tokio::test(start_paused = true)]
async fn a_store_that_cuts_bodies_is_caught() {
    assert_caught(
        Flaw::CutsBodies,
        &["document_bodies_come_back_as_they_were", "checkpoint_bodies_come_back_as_they_were"],
    )
    .await;
}

/// B4: a text ends where it ends.
#[tokio::test(start_paused = true)]
async fn a_store_that_cuts_at_a_nul_is_caught() {
    assert_caught(Flaw::CutsAtNul, &["a_nul_is_kept_or_refused_and_nothing_is_cut"]).await;
}

/// B1: collections are apart.
#[tokio::test(start_paused = true)]
async fn a_store_that_mixes_collections_is_caught() {
    assert_caught(Flaw::MixesCollections, &["documents_of_different_collections_do_not_meet"])
        .await;
}

/// B6: prefixes are apart.
#[tokio::test(start_paused = true)]
async fn a_store_that_mixes_prefixes_is_caught() {
    assert_caught(Flaw::MixesPrefixes, &["data_of_different_prefixes_do_not_meet"]).await;
}

/// B5: preparing is safe to repeat.
#[tokio::test(start_paused = true)]
async fn a_store_that_prepares_only_once_is_caught() {
    assert_caught(Flaw::PreparesOnce, &["many_handles_prepare_the_same_data_at_once_and_again"])
        .await;
}

/// B5: preparing keeps what is there.
#[tokio::test(start_paused = true)]
async fn a_store_that_prepares_by_beginning_anew_is_caught() {
    assert_caught(Flaw::PreparesAnew, &["many_handles_prepare_the_same_data_at_once_and_again"])
        .await;
}

/// B1: handles see the same.
#[tokio::test(start_paused = true)]
async fn a_store_whose_handles_keep_copies_is_caught() {
    assert_caught(Flaw::KeepsCopies, &["all_handles_see_the_same_data"]).await;
}

/// B1: durable means durable.
#[tokio::test(start_paused = true)]
async fn a_store_that_is_durable_in_name_only_is_caught() {
    assert_caught(
        Flaw::LosesAllWhenClosed,
        &["a_durable_store_keeps_everything_when_opened_again"],
    )
    .await;
}
