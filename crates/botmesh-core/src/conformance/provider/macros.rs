/// Makes one `#[tokio::test]` of each case of the suite of providers, with the fixture that the
/// expression gives to each of them.
///
/// Put it into a module of its own. It needs tokio with the features `macros`, `rt` and `time` as
/// a dev-dependency. See [`ProviderFixture`](crate::conformance::ProviderFixture).
#[macro_export]
macro_rules! provider_conformance {
    ($fixture:expr) => {
        $crate::__provider_cases!(@each test [$fixture]);
    };
}

/// The table of the cases of the suite of providers.
#[doc(hidden)]
#[macro_export]
macro_rules! __provider_cases {
    (@each $mode:ident $context:tt) => {
        $crate::__provider_cases! { @$mode $context
            inbound messages_of_a_chat_arrive_in_their_order
                "I6: what a user says arrives in order, in the chat and from the provider it says";
            inbound messages_of_two_chats_are_told_apart
                "I6: messages of two chats carry two chat keys";
            inbound each_message_has_an_id_of_its_own
                "I6: each message has an id, and no two have the same";
            inbound a_repeated_message_has_the_id_it_had
                "I6: a message that the platform repeats has the id by which it is known";
            inbound strange_texts_arrive_as_they_were
                "I6: any text of a user arrives as it was written";
            inbound a_mebibyte_of_text_arrives_whole_or_not_at_all
                "I6: a text of one mebibyte is never cut, and what follows it arrives";
            inbound media_arrives_with_its_caption
                "I6: media arrives with its kind, its caption and a handle";
            inbound what_users_send_is_downloaded_whole_or_not_at_all
                "A8: what a user sent is downloaded whole, or that is unsupported";
            inbound a_place_arrives
                "I6: a place arrives";
            inbound garbage_ends_nothing
                "I6: what is not in the platform's format disturbs nothing else";
            inbound a_lost_connection_comes_back
                "I6: after a lost connection messages arrive again";

            taking nothing_is_acknowledged_before_the_bot_has_taken_it
                "I6: the platform is told that a message is taken only when it is";
            taking a_message_that_a_full_chat_refuses_comes_again
                "I6: a message that the bot had no room for is not acknowledged, and comes again";
            taking a_message_that_a_stopping_bot_refuses_is_not_acknowledged
                "I6: a message that a stopping bot refuses is not acknowledged";

            outbound messages_are_received_in_their_order
                "I6: what a bot sends is received in order, in its chat";
            outbound strange_texts_are_received_as_they_were
                "I6: any text of a bot is received as it was sent";
            outbound a_mebibyte_of_text_is_received_whole_or_refused
                "I6: a text of one mebibyte is received whole, perhaps in parts, or refused";
            outbound an_empty_message_is_refused
                "I6: a message with nothing in it is refused and not dropped in silence";
            outbound receipts_name_different_messages
                "I6: a receipt names the message, and no two name the same";
            outbound buttons_come_back_with_payload_and_label
                "A8: a pressed button brings back its payload, or buttons are numbered lines";
            outbound media_is_received_with_its_caption_or_refused
                "A8: media is received with its caption, or is unsupported";
            outbound a_place_is_received
                "A8: a place is received, or its address";
            outbound an_edit_is_received_or_unsupported
                "A8: an edit is received, or is unsupported";
            outbound a_deletion_is_received_or_unsupported
                "A8: a deletion is received, or is unsupported";
            outbound a_reaction_is_received_or_unsupported
                "A8: a reaction is received and taken back, or is unsupported";
            outbound typing_is_received_or_unsupported
                "A8: typing is received, or is unsupported";
            outbound a_repeated_key_is_received_once
                "I6: an idempotency key is honoured where it is declared";

            showing formatting_is_received_at_its_words
                "A8: what stands out in a text is received at its words, or the words are with the address";
            showing buttons_within_the_limits_are_received
                "A8: as many buttons as the provider declares, as long as it declares, are received";
            showing more_buttons_than_there_is_room_for_become_a_list_or_lines
                "A8: more buttons than there is room for become the rows of a list, else numbered lines";

            failing a_broken_platform_is_unreachable_and_sends_go_on
                "I6: a failure of the platform is an error that may pass";
            failing an_answer_that_cannot_be_read_is_an_error_and_sends_go_on
                "I6: an answer that is cut off, or that has no end, is an error after which sends go on";
            failing a_rate_limit_tells_how_long_to_wait
                "I6: a rate limit is an error that tells how long to wait, or is waited for";
            failing a_chat_that_is_gone_is_told_apart
                "I6: a chat that cannot be reached any more is an error of its own";
            failing refused_credentials_are_told_apart
                "I6: refused credentials are an error of their own";
            failing a_chat_of_another_provider_is_an_error
                "I6: a send to a chat of another provider is an error";

            disorder messages_out_of_order_are_all_taken
                "I6: messages that the platform delivers out of order are each taken, and told apart";
            disorder a_wrong_clock_disturbs_nothing
                "I6: what a platform believes about the time holds no message back";
            disorder a_slow_answer_is_waited_for
                "I6: a slow answer is waited for; meanwhile messages arrive, and nothing is sent twice";

            ending cancelling_ends_the_run
                "I6: a cancelled run ends in time, without an error";
            ending cancelling_ends_the_run_while_a_message_is_being_taken
                "I6: a bot that is busy with a message does not keep a cancelled run alive";
            ending a_provider_runs_again
                "I6: a provider whose run has ended can run again";
            ending debug_shows_no_secrets
                "I7: secrets appear in no Debug output";
        }
    };
    (@test [$fixture:expr] $($module:ident $case:ident $promise:literal;)*) => {$(
        #[doc = $promise]
        #[tokio::test(flavor = "current_thread")]
        async fn $case() -> ::std::result::Result<(), $crate::conformance::CaseError> {
            let fixture = $fixture;
            let outcome = $crate::conformance::provider::$module::$case(&fixture).await;
            $crate::conformance::finish(outcome)
        }
    )*};
    (@list [] $($module:ident $case:ident $promise:literal;)*) => {
        &[$($crate::conformance::ProviderCase {
            name: stringify!($case),
            promise: $promise,
            run: |fixture| {
                ::std::boxed::Box::pin($crate::conformance::provider::$module::$case(fixture))
            },
        }),*]
    };
}
