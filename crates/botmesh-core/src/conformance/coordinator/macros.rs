/// Makes one `#[tokio::test]` of each case of the suite of coordinators, with the fixture that the
/// expression gives to each of them.
///
/// Put it into a module of its own. It needs tokio with the features `macros`, `rt` and `time` as
/// a dev-dependency.
#[macro_export]
macro_rules! coordinator_conformance {
    ($fixture:expr) => {
        $crate::__coordinator_cases!(@each test [$fixture]);
    };
}

/// The table of the cases of the suite of coordinators.
#[doc(hidden)]
#[macro_export]
macro_rules! __coordinator_cases {
    (@each $mode:ident $context:tt) => {
        $crate::__coordinator_cases! { @$mode $context
            turns turns_are_granted_in_the_order_of_reservation
                "C3: turns are granted in reservation order, whichever replica reserved";
            turns a_chat_has_one_holder_at_a_time
                "C3: at most one replica holds a chat's turn, and C9: fences grow";
            turns different_chats_do_not_wait_for_each_other
                "C3: turns of different chats are independent, whatever their names look like";
            turns a_turn_that_is_renewed_is_kept_for_many_leases
                "C5: heartbeats keep what is held";
            turns a_grant_tells_the_previous_holder
                "C8: a grant carries the previous holder and its fence";
            turns a_forgotten_chat_has_no_previous_holder_and_a_higher_fence
                "C9: fences grow after idle state was forgotten, which C8 reports as unknown";
            turns a_lost_wake_up_costs_one_poll
                "C14: a lost wake-up costs at most one poll";
            turns a_free_turn_costs_two_round_trips
                "C15: an uncontended message costs two round trips";
            turns a_full_queue_is_an_error
                "C4: a queue that is full is told as such";

            giving_up a_cancelled_wait_leaves_no_ticket
                "C4: a cancelled wait leaves no ticket behind";
            giving_up a_wait_that_times_out_leaves_no_ticket
                "C4: a wait that times out is told as such";
            giving_up a_dropped_ticket_gives_up_its_place
                "C4: a dropped ticket leaves nothing behind";
            giving_up a_dropped_turn_is_released
                "C7: a turn whose guard is dropped goes to the next";
            giving_up a_release_that_failed_is_repaired
                "C7: a release that fails on the network is repaired within a third of the lease";
            giving_up a_stop_releases_everything_at_once
                "C1: start and stop are idempotent, and a stop releases all";
            giving_up a_ticket_of_another_coordinator_is_refused
                "C1: a ticket is acquired where it was reserved";

            death tickets_of_a_dead_replica_are_skipped
                "C4: tickets of dead replicas are skipped";
            death a_dead_holder_is_replaced_when_its_lease_has_run_out
                "C3: the next in line takes over from a dead holder, and not before its lease ends";
            death a_replica_that_was_presumed_dead_is_told_so
                "C4: a replica whose ticket was skipped gets a lost lease";
            death a_frozen_replica_drops_its_turn_before_another_has_it
                "C6: a replica that cannot renew drops its rights before they expire elsewhere";
            death the_same_replica_id_inherits_nothing
                "C2: a restarted replica with the same id never inherits rights";
            death each_lease_is_its_owners
                "C5: leases that differ between replicas are each respected";

            leading one_replica_leads_at_a_time
                "C10: one attempt gives none while another replica leads";
            leading candidates_are_elected_in_their_order
                "C10: standbys are elected in the order in which they began";
            leading a_cancelled_campaign_leaves_no_candidate
                "C10: a cancelled campaign leaves nothing behind";
            leading a_dead_leader_is_replaced
                "C10: a standby leads when the lease of a dead leader has run out";
            leading leaders_and_losses_are_reported
                "C11: leader, follower and lost leases are events";

            journaled a_message_is_taken_in_and_ended_by_one_step_each
                "G9: a durable message costs one step before it and one after it";
            journaled a_message_that_is_not_new_reserves_nothing
                "G1, G9: a message that is known, or one too many, reserves no place";
            journaled a_message_of_a_busy_chat_waits_for_its_turn
                "G2, G9: a message behind others is begun under a turn of its own";
            journaled a_refused_end_leaves_the_turn_with_its_holder
                "G3, G9: an end that is refused changes nothing, the turn included";
            journaled a_dropped_message_gives_its_turn_up_and_stays_pending
                "G7, G9: what was reserved with a message and is dropped leaves nothing behind";
            journaled a_message_without_a_session_is_admitted_or_surely_not
                "G7, G9: without a session nothing is reserved and nothing is lost";
            journaled wherever_a_replica_dies_the_other_one_goes_on
                "G2, G7, G9: a replica that dies before or after any step leaves its messages to others";
            journaled any_sequence_of_steps_is_answered_as_by_the_store_in_memory
                "G1, G3, G9: the answers to any steps are those of the store in memory";
        }
    };
    (@test [$fixture:expr] $($module:ident $case:ident $promise:literal;)*) => {
        $(
            #[doc = $promise]
            #[tokio::test(flavor = "current_thread")]
            async fn $case() -> ::std::result::Result<(), $crate::conformance::CaseError> {
                let fixture = $fixture;
                $crate::conformance::finish(
                    $crate::conformance::coordinator::$module::$case(&fixture).await,
                )
            }
        )*
    };
    (@list [] $($module:ident $case:ident $promise:literal;)*) => {
        &[$($crate::conformance::CoordinatorCase {
            name: stringify!($case),
            promise: $promise,
            run: |fixture| {
                ::std::boxed::Box::pin($crate::conformance::coordinator::$module::$case(fixture))
            },
        }),*]
    };
}
