/// Makes one `#[tokio::test]` of each case of the suite of stores, with the fixture that the
/// expression gives to each of them.
///
/// Put it into a module of its own. It needs tokio with the features `macros`, `rt-multi-thread`
/// and `time` as a dev-dependency. See [`conformance`](crate::conformance) for an example.
#[macro_export]
macro_rules! store_conformance {
    ($fixture:expr) => {
        $crate::__store_cases!(@each test [$fixture]);
    };
}

/// The table of the cases of the suite of stores.
///
/// A case in `threads` runs on several threads. One in `time` runs on a single one, so that a
/// fixture can move tokio's clock.
#[doc(hidden)]
#[macro_export]
macro_rules! __store_cases {
    (@each $mode:ident $context:tt) => {
        $crate::__store_cases! { @$mode $context
            threads store many_handles_prepare_the_same_data_at_once_and_again
                "B5: the schema is made by the store itself, safely when many start at once";
            threads store data_of_different_prefixes_do_not_meet
                "B6: bots with different prefixes share a server and never meet";
            threads store all_handles_see_the_same_data
                "B1: what one handle has written, another one reads at once";
            threads store a_durable_store_keeps_everything_when_opened_again
                "B1: a durable store keeps everything when it is opened again";

            threads document of_many_writers_of_a_document_exactly_one_wins
                "B2: of N concurrent writers from one revision exactly one wins";
            threads document a_document_is_written_only_by_who_names_its_revision
                "B2: a document is written only by who names its present revision";
            threads document an_old_revision_never_fits_a_document_made_anew
                "B2: a revision never repeats";
            threads document documents_of_keys_that_look_alike_do_not_meet
                "B4: keys that differ are different keys";
            threads document document_bodies_come_back_as_they_were
                "B4: any Unicode and a mebibyte survive";
            threads document a_nul_is_kept_or_refused_and_nothing_is_cut
                "B4: a NUL is kept or refused, and nothing is cut";
            threads document documents_of_different_collections_do_not_meet
                "B1: chats and users are collections of their own";

            threads checkpoint a_checkpoint_is_read_as_it_was_written
                "B1: a checkpoint is read as it was written";
            threads checkpoint checkpoints_of_chats_that_look_alike_do_not_meet
                "B4: chats whose ids differ have different checkpoints";
            threads checkpoint checkpoint_bodies_come_back_as_they_were
                "B4: any Unicode and a mebibyte survive";
            threads checkpoint of_many_writers_of_a_checkpoint_exactly_one_wins
                "B2: of N concurrent writers from one revision exactly one wins";
            threads checkpoint of_many_who_clear_a_checkpoint_exactly_one_wins
                "B2: of many who clear one revision exactly one is told that it did";
            threads checkpoint a_checkpoint_is_written_only_by_who_names_its_revision
                "B2: a checkpoint is written only by who names its present revision";
            threads checkpoint an_old_revision_never_fits_a_checkpoint_made_anew
                "B2: a revision never repeats";

            threads fence a_lower_fence_is_refused_after_a_write
                "B2: a lower fence is refused even if it names the revision";
            threads fence a_lower_fence_is_refused_after_adoption
                "B2: adopting a row fences off all former holders";
            threads fence a_lower_fence_is_refused_after_adoption_of_no_row
                "B2: adopting where there is no row fences off former holders too";
            threads fence a_stale_writer_cannot_make_a_cleared_row_anew
                "B2: a stale writer that expects no row cannot make it anew";
            time fence a_stale_writer_cannot_make_an_expired_row_anew
                "B2: the fence of an expired row is remembered";
            threads fence a_write_never_slips_past_an_adoption
                "B2: the one who adopted has seen a stale write, or it was refused";

            time wake a_checkpoint_lasts_as_long_as_it_was_told
                "B4: the backend's clock decides how long a checkpoint lasts";
            time wake a_later_write_decides_how_long_a_checkpoint_lasts
                "B4: a new write gives a checkpoint a new time";
            time wake the_time_until_waking_runs_down_to_zero
                "B4: the backend's clock decides when a conversation is woken";
            threads wake chats_to_wake_come_the_earliest_first
                "B1: the chats to be woken come the earliest first";

            threads lock of_many_who_take_a_lock_exactly_one_gets_it
                "B3: of many who take one lock at once exactly one gets it";
            time lock the_fence_of_a_lock_grows_over_release_and_expiry
                "B3: the fence grows with each acquisition, also after expiry and deletion";
            threads lock only_the_token_of_the_holder_renews_and_releases
                "B3: renewing and releasing need the token";
            time lock a_lock_is_held_for_its_time_and_no_longer
                "B3, B4: the backend's clock decides how long a lock is held";
            time lock a_renewed_lock_is_kept
                "B3: a lock that is renewed stays with its holder";
            threads lock locks_of_keys_that_look_alike_do_not_meet
                "B4: locks of keys that differ are different locks";

            threads inbox of_many_who_admit_a_message_exactly_one_is_told_that_it_is_new
                "G1: of many who admit one message at once exactly one is told that it is new";
            threads inbox messages_that_are_admitted_at_once_are_each_begun_once_in_order
                "G1, G2: positions are distinct and records are begun in their order";
            threads inbox a_message_is_known_in_every_state_and_only_in_its_chat
                "G1: a message is known while it is pending, done or dead";
            threads inbox messages_of_ids_and_chats_that_look_alike_do_not_meet
                "B4: messages whose ids or chats differ are different messages";
            threads inbox bodies_of_records_come_back_as_they_were
                "B4, G11: what was admitted comes back whole";
            threads inbox a_lower_fence_cannot_touch_a_record_that_a_higher_one_has_begun
                "G3: a former holder of the turn can do nothing to a record";
            threads inbox a_record_can_be_ended_without_being_begun
                "G9: the first record of a chat need not be begun";
            threads inbox a_full_chat_takes_no_more_and_says_how_many_wait
                "G6: the pending records of a chat are bounded";
            time inbox a_postponed_record_is_begun_again_when_it_is_due
                "G5: a failed record is tried again when it is due";
            time inbox a_claim_is_done_or_given_up_and_never_begun
                "G8: a claim is done, or released so that a retry is new";

            threads order records_are_begun_in_order_while_others_are_admitted
                "G2: records become visible in the order of their positions";
            threads order of_many_who_admit_at_once_only_the_first_is_told_that_it_is
                "G9: only the first record of a chat need not be begun";
            threads order a_nul_in_a_record_is_kept_or_refused_and_nothing_is_cut
                "B4: a NUL is kept or refused, and nothing is cut";

            time likeness any_sequence_of_calls_is_answered_as_by_the_store_in_memory
                "G1–G8: the answers to any calls are those of the store in memory";

            threads commit a_record_ends_together_with_its_checkpoint
                "G3: a record ends together with the checkpoint that holds its effect";
            threads commit a_record_does_not_end_without_its_checkpoint
                "G3: a record whose checkpoint was refused stays pending";
            threads commit a_checkpoint_is_not_written_without_its_record
                "G3: a former holder writes no checkpoint either";

            time recovery records_wait_when_their_lease_has_ended
                "G2: a record is looked after by others when its lease has ended";
            time recovery beginning_a_record_renews_its_lease
                "G2: a record is leased while it is processed";
            time recovery chats_that_wait_come_page_by_page
                "G2: chats that wait come page by page";
            threads recovery a_buried_record_is_listed_and_its_chat_goes_on
                "G5: a dead letter is listed with its error, and its chat goes on";
            time recovery a_revived_record_is_begun_again_at_its_place
                "G5: a dead letter can be replayed";
            time recovery what_has_ended_is_forgotten_after_its_time_and_nothing_else
                "G6: what has ended is forgotten after its time";
            threads recovery a_durable_inbox_keeps_everything_when_opened_again
                "G7: what was admitted survives the end of the process";

            threads crash wherever_a_process_dies_nothing_is_lost_and_one_send_repeated_at_most
                "G4, G7: killed at any call to the store, a bot loses nothing";
            threads crash wherever_a_process_dies_a_platform_that_knows_keys_sees_each_send_once
                "G4, G7: a platform that knows keys sees each send once";
            threads crash wherever_a_replica_dies_the_other_one_goes_on
                "G2, G7: killed at any call to the store, a replica is replaced by another";
        }
    };
    (@test [$fixture:expr] $($kind:ident $module:ident $case:ident $promise:literal;)*) => {
        $($crate::__store_cases!(@$kind [$fixture] $module $case $promise);)*
    };
    (@threads [$fixture:expr] $module:ident $case:ident $promise:literal) => {
        #[doc = $promise]
        #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
        async fn $case() -> ::std::result::Result<(), $crate::conformance::CaseError> {
            let fixture = $fixture;
            $crate::conformance::finish($crate::conformance::$module::$case(&fixture).await)
        }
    };
    (@time [$fixture:expr] $module:ident $case:ident $promise:literal) => {
        #[doc = $promise]
        #[tokio::test(flavor = "current_thread")]
        async fn $case() -> ::std::result::Result<(), $crate::conformance::CaseError> {
            let fixture = $fixture;
            $crate::conformance::finish($crate::conformance::$module::$case(&fixture).await)
        }
    };
    (@list [] $($kind:ident $module:ident $case:ident $promise:literal;)*) => {
        &[$($crate::conformance::StoreCase {
            name: stringify!($case),
            promise: $promise,
            run: |fixture| {
                ::std::boxed::Box::pin($crate::conformance::$module::$case(fixture))
            },
        }),*]
    };
}
