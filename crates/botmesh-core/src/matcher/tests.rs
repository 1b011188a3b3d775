use super::*;
use crate::id::ChatKey;
use crate::message::{ButtonPress, ChatEvent, Media, MediaKind};

fn chat() -> ChatKey {
    ChatKey::new(&ProviderId::new("test").unwrap(), "ana").unwrap()
}

fn text(words: &str) -> Message {
    Message::text(chat(), words)
}

fn matches(matcher: impl Into<Matcher>, message: &Message) -> bool {
    matcher.into().matches(message).is_some()
}

/// A4: an exact text matches as people type it.
#[test]
fn a_text_matches_without_regard_to_case_and_surrounding_space() {
    for typed in ["hi", "HI", "  Hi\n"] {
        assert!(matches("hi", &text(typed)), "{typed:?}");
    }
    assert!(matches("ÑANDÚ", &text("ñandú")));
    assert!(matches("ΟΔΟΣ", &text("οδοσ")));
    for typed in ["", "h", "hi!", "hi there", "h i"] {
        assert!(!matches("hi", &text(typed)), "{typed:?}");
    }
}

/// A4: a command matches with its arguments, in groups too.
#[test]
fn a_command_matches_with_its_arguments() {
    let table = [
        ("/start", Some("")),
        ("/START", Some("")),
        (" /start ", Some("")),
        ("/start@my_bot", Some("")),
        ("/start@my_bot  one two ", Some("one two")),
        ("/start\none", Some("one")),
        ("/started", None),
        ("/star", None),
        ("start", None),
        ("/", None),
        ("/ start", None),
        ("say /start", None),
        ("", None),
    ];
    for (typed, arguments) in table {
        for matcher in [command("start"), command("/Start")] {
            let matched = matcher.matches(&text(typed));
            assert_eq!(matched.as_ref().map(Matched::arguments), arguments, "{typed:?}");
        }
    }
}

/// A4: a regular expression hands over what its groups found.
#[test]
fn a_pattern_hands_over_its_groups() {
    let order = pattern(r"(?i)^order (?<count>\d+)(?: (urgent))?$");
    let matched = order.matches(&text("Order 3")).unwrap();
    assert_eq!(matched.group(0), Some("Order 3"));
    assert_eq!(matched.group(1), Some("3"));
    assert_eq!(matched.named("count"), Some("3"));
    assert_eq!((matched.group(2), matched.group(9), matched.named("other")), (None, None, None));
    assert!(order.matches(&text("order many")).is_none());
    let plain = pattern("help").matches(&text("I need help now")).unwrap();
    assert_eq!((plain.arguments(), plain.group(0)), ("", None));
}

/// A4: predicates, event kinds and buttons.
#[test]
fn predicates_events_and_buttons_match_what_they_are_for() {
    let long = predicate(|message| message.body().is_some_and(|words| words.len() > 3));
    assert!(matches(long.clone(), &text("hello")) && !matches(long, &text("hi")));

    let joined = Message::new(chat(), Content::Event(ChatEvent::new(EventKind::Joined)));
    assert!(matches(event(EventKind::Joined), &joined));
    assert!(!matches(event(EventKind::Left), &joined));
    assert!(!matches("joined", &joined));

    let press = ButtonPress::new("pay").with_label("Pay now");
    let press = Message::new(chat(), Content::Button(press));
    assert!(matches(button("pay"), &press) && !matches(button("pa"), &press));
    assert!(matches("pay now", &press));
    assert!(!matches(button("pay"), &text("pay")));
}

#[test]
fn a_caption_is_words_and_a_message_without_words_matches_no_words() {
    let picture = Media::new(MediaKind::Image, "file-1");
    let silent = Message::new(chat(), Content::Media(picture.clone()));
    let captioned = Message::new(chat(), Content::Media(picture.with_caption("/post now")));
    assert!(matches(command("post"), &captioned));
    for matcher in [Matcher::from("hi"), command("post"), pattern("")] {
        assert!(!matches(matcher, &silent));
    }
}

#[test]
fn the_button_of_a_question_matches_no_words() {
    let payload = WaitToken::new(7, 1).payload(0);
    let press = ButtonPress::new(payload).with_label("Yes");
    assert!(!matches("yes", &Message::new(chat(), Content::Button(press))));
}

/// A15: a matcher may be limited to one provider.
#[test]
fn a_matcher_is_limited_to_one_provider() {
    assert!(matches(command("start").only_on("test"), &text("/start")));
    assert!(!matches(command("start").only_on("other"), &text("/start")));
}

/// A14: what is wrong with a matcher is told, and it matches nothing.
#[test]
fn a_mistake_is_told_and_matches_nothing() {
    let bad = pattern("(");
    assert!(!matches(bad.clone(), &text("(")));
    assert!(matches!(bad.problems()[..], [MatcherProblem::Pattern { .. }]));
    let empty = Matcher::from("  ");
    assert!(!matches(empty.clone(), &text("")));
    assert_eq!(empty.problems(), [MatcherProblem::EmptyText]);
    for name in ["", "/", "two words", "a@b"] {
        assert!(
            matches!(command(name).problems()[..], [MatcherProblem::Command { .. }]),
            "{name:?}"
        );
    }
    let elsewhere = Matcher::from("hi").only_on("Not An Id");
    assert!(matches!(elsewhere.problems()[..], [MatcherProblem::Provider { .. }]));
    assert!(command("start").only_on("telegram").problems().is_empty());
}

#[test]
fn a_megabyte_of_text_is_compared_like_any_other() {
    let long = "a".repeat(1 << 20);
    assert!(!matches("a", &text(&long)));
    assert!(matches(long.clone(), &text(&long)));
    let arguments = command("a").matches(&text(&format!("/a {long}"))).unwrap();
    assert_eq!(arguments.arguments().len(), 1 << 20);
}
