//! The suite on the providers of this crate, and on providers that are wrong on purpose.

mod flawed;
mod scripted;
#[cfg(feature = "terminal")]
mod terminal;

use std::collections::BTreeSet;

use self::flawed::Flaw;
use self::scripted::ScriptedFixture;
use super::PROVIDER_CASES;
use crate::conformance::CaseError;
use crate::provider::Capabilities;

mod able {
    use super::scripted::{ScriptedFixture, everything};

    crate::provider_conformance!(ScriptedFixture::new(everything()));
}

mod bare {
    use super::scripted::ScriptedFixture;
    use crate::provider::Capabilities;

    crate::provider_conformance!(ScriptedFixture::new(Capabilities::default()));
}

/// The names of the cases that a provider with this flaw fails.
async fn failed_by(flaw: Flaw) -> BTreeSet<&'static str> {
    let able = if flaw.needs_bare() { Capabilities::default() } else { scripted::everything() };
    let mut failed = BTreeSet::new();
    for case in PROVIDER_CASES {
        let fixture = ScriptedFixture::flawed(able, flaw);
        match (case.run)(&fixture).await {
            Ok(()) | Err(CaseError::NotRun(_)) => {}
            Err(CaseError::Violation(_)) => {
                failed.insert(case.name);
            }
        }
    }
    failed
}

/// The proof that it is the flaw, and not the way these providers are made, that is found.
#[tokio::test(start_paused = true)]
async fn the_same_provider_without_a_flaw_fails_no_case() {
    assert_eq!(failed_by(Flaw::None).await, BTreeSet::new());
}

/// I6: every case of the suite can fail: for each there is a provider that it catches.
#[tokio::test(start_paused = true)]
async fn every_case_catches_some_provider() {
    let mut caught = BTreeSet::new();
    for flaw in Flaw::ALL {
        caught.extend(failed_by(*flaw).await);
    }
    let all: BTreeSet<&str> = PROVIDER_CASES.iter().map(|case| case.name).collect();
    let harmless: Vec<_> = all.difference(&caught).collect();
    assert_eq!(harmless, Vec::<&&str>::new());
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
    /// I6: the order of a chat matters.
    a_provider_that_swaps_messages_is_caught: SwapsMessages by
        messages_of_a_chat_arrive_in_their_order;
    /// I6: chats must not be mixed up.
    a_provider_that_mixes_chats_is_caught: MixesChats by messages_of_two_chats_are_told_apart;
    /// I6: duplicates are told by ids.
    a_provider_without_ids_is_caught: HasNoIds by each_message_has_an_id_of_its_own;
    /// I6: a duplicate must be recognizable.
    a_provider_that_numbers_duplicates_anew_is_caught: NumbersAnew by
        a_repeated_message_has_the_id_it_had;
    /// I6: texts are not normalized on their way in.
    a_provider_that_changes_what_users_say_is_caught: ChangesInbound by
        strange_texts_arrive_as_they_were;
    /// I6: texts are not cut on their way in.
    a_provider_that_cuts_what_users_say_is_caught: CutsInbound by
        a_mebibyte_of_text_arrives_whole_or_not_at_all;
    /// I6: an acknowledgement before the bot has the message loses it in a crash.
    a_provider_that_acknowledges_early_is_caught: AcknowledgesEarly by
        nothing_is_acknowledged_before_the_bot_has_taken_it;
    /// I6: a refused message must come again.
    a_provider_that_swallows_refusals_is_caught: SwallowsRefusals by
        a_message_that_a_full_chat_refuses_comes_again,
        a_message_that_a_stopping_bot_refuses_is_not_acknowledged;
    /// I6: an older message that comes late is a message.
    a_provider_that_drops_what_is_older_is_caught: DropsOlder by
        messages_out_of_order_are_all_taken;
    /// I6: nobody's clock decides what is new.
    a_provider_that_believes_clocks_is_caught: BelievesClocks by a_wrong_clock_disturbs_nothing;
    /// I6: slow is not gone.
    a_provider_that_gives_up_early_is_caught: GivesUpEarly by a_slow_answer_is_waited_for;
    /// I6: texts are not cut on their way out.
    a_provider_that_cuts_what_bots_say_is_caught: CutsOutbound by
        a_mebibyte_of_text_is_received_whole_or_refused;
    /// A8: the payload is what the bot put in.
    a_provider_that_loses_payloads_is_caught: LosesPayloads by
        buttons_come_back_with_payload_and_label;
    /// A8: a text is more than its words.
    a_provider_that_drops_formatting_is_caught: DropsFormatting by
        formatting_is_received_at_its_words;
    /// A8: a choice that is not shown cannot be made.
    a_provider_that_cuts_menus_is_caught: CutsMenus by
        buttons_within_the_limits_are_received,
        more_buttons_than_there_is_room_for_become_a_list_or_lines;
    /// A8: what is declared must be done.
    a_provider_that_only_says_that_it_did_is_caught: PretendsActions by
        an_edit_is_received_or_unsupported,
        a_deletion_is_received_or_unsupported,
        a_reaction_is_received_or_unsupported,
        typing_is_received_or_unsupported;
    /// A8: what is not declared must be an error.
    a_provider_that_is_silent_about_what_it_lacks_is_caught: SilentlyLacks by
        media_is_received_with_its_caption_or_refused,
        an_edit_is_received_or_unsupported,
        typing_is_received_or_unsupported;
    /// I6: callers act on the kind of an error.
    a_provider_with_one_error_for_all_is_caught: HasOneError by
        a_broken_platform_is_unreachable_and_sends_go_on,
        an_answer_that_cannot_be_read_is_an_error_and_sends_go_on,
        a_rate_limit_tells_how_long_to_wait,
        a_chat_that_is_gone_is_told_apart,
        refused_credentials_are_told_apart;
    /// I6: a stop must not hang.
    a_provider_that_ignores_cancellation_is_caught: IgnoresCancellation by
        cancelling_ends_the_run;
    /// I6: a bot that is busy must not make a stop hang.
    a_provider_that_waits_for_the_bot_is_caught: WaitsForTheBot by
        cancelling_ends_the_run_while_a_message_is_being_taken;
    /// I6: what is malformed must not end the run.
    a_provider_that_ends_at_garbage_is_caught: EndsAtGarbage by garbage_ends_nothing;
    /// I7: a derived Debug shows the token.
    a_provider_that_shows_its_token_is_caught: ShowsSecrets by debug_shows_no_secrets;
}
