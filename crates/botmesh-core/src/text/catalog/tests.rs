use std::sync::Arc;

use super::*;
use crate::message::Button;
use crate::text::t;

fn language(tag: &str) -> Language {
    Language::new(tag).unwrap()
}

fn keys(ftl: &str) -> Vec<&str> {
    let keys = ftl.lines().filter_map(|line| line.split_once(" =")).map(|(key, _)| key);
    keys.filter(|key| key.starts_with("core-")).collect()
}

/// A10: every built-in text exists in English and in Spanish, and no text is there in one only.
#[test]
fn every_builtin_text_exists_in_english_and_spanish() {
    let texts = Texts::builtin();
    assert!(keys(ENGLISH).len() > 15);
    assert_eq!(keys(ENGLISH), keys(SPANISH));
    for ftl in [ENGLISH, SPANISH] {
        assert!(FluentResource::try_new(ftl.to_owned()).is_ok());
    }
    for key in keys(ENGLISH) {
        let english = texts.resolve(t(key), &language("en"));
        let spanish = texts.resolve(t(key), &language("es"));
        assert!(!english.is_empty() && english != key, "{key}");
        assert!(!spanish.is_empty() && spanish != key, "{key}");
        assert!(english != spanish || key == "core-choice-no", "{key} is not translated");
    }
}

/// A10: the keys that the runtime speaks with are there.
#[test]
fn the_keys_of_the_runtime_are_there() {
    let texts = Texts::builtin();
    for key in [
        "core.conversation.interrupted",
        "core.conversation.timeout",
        "core.conversation.cancelled",
        "core.answer.invalid",
        "core.answer.not-offered",
        "core.answer.too-many",
        "core.answer.text-needed",
        "core.answer.number-needed",
        "core.button.expired",
        "core.command.unknown",
        "core.choice.yes",
        "core.choice.no",
        "core.form.confirm",
        "core.form.which",
        "core.form.change",
        "core.form.cancel",
        "core.cancel.words",
    ] {
        assert_ne!(texts.resolve(t(key), &language("es-CO")), key);
    }
}

/// A10: a user's texts extend a language, replace built-in ones and open new languages.
#[test]
fn users_override_and_extend_texts() {
    let texts = Texts::builtin()
        .add("es", "core-button-expired = Ese botón caducó.\nshop-welcome = Hola, { $name }.")
        .and_then(|texts| texts.add("fr", "core-button-expired = Ce bouton a expiré."))
        .unwrap();
    let expired = || t("core.button.expired");
    assert_eq!(texts.resolve(expired(), &language("es")), "Ese botón caducó.");
    assert_eq!(texts.resolve(expired(), &language("fr-CA")), "Ce bouton a expiré.");
    assert_eq!(texts.resolve(expired(), &language("en")), "This button no longer works.");
    let welcome = t("shop.welcome").with("name", "Ana");
    assert_eq!(texts.resolve(welcome, &language("es-419")), "Hola, Ana.");
    assert_eq!(texts.languages().collect::<Vec<_>>(), ["en", "es", "fr"]);
}

/// A10: the chain is region, language, default language, English, the key itself.
#[test]
fn a_missing_text_falls_back_step_by_step() {
    let texts = Texts::builtin()
        .add("en", "a = en\nb = en\nc = en\nd = en")
        .and_then(|texts| texts.add("pt", "a = pt\nb = pt\nc = pt"))
        .and_then(|texts| texts.add("es", "a = es\nb = es"))
        .and_then(|texts| texts.add("es-CO", "a = es-CO"))
        .unwrap()
        .with_default_language(language("pt-BR"));
    let shown = ["a", "b", "c", "d", "e.f"].map(|key| texts.resolve(t(key), &language("es_CO")));
    assert_eq!(shown, ["es-CO", "es", "pt", "en", "e.f"]);
    assert_eq!(texts.resolve(t("a"), &language("ja")), "pt");
}

#[test]
fn the_warning_for_a_missing_text_comes_once() {
    let texts = Texts::builtin();
    assert!(texts.warns_first_time("shop.nothing"));
    assert!(!texts.warns_first_time("shop.nothing"));
    let _ = texts.resolve(t("shop.other"), &language("en"));
    assert!(!texts.warns_first_time("shop.other"));
    for number in 0..2 * MAX_WARNED {
        let _ = texts.resolve(t(format!("key.{number}")), &language("en"));
    }
    assert_eq!(texts.warned.lock().len(), MAX_WARNED);
}

/// A10: numbers choose the plural form of their language, and nothing but the text is shown.
#[test]
fn plurals_and_arguments_are_put_in_without_marks() {
    let ftl = "cart = { $name }: { $count ->\n    [0] nada\n    [one] un artículo\n   *[other] { $count } artículos\n }";
    let texts = Texts::builtin().add("es", ftl).unwrap();
    let shown = [0.0, 1.0, 2.0, 2.5].map(|count| {
        let text = t("cart").with("name", String::from("Ana {\u{2066}")).with("count", count);
        texts.resolve(text, &language("es")).into_owned()
    });
    assert_eq!(
        shown,
        [
            "Ana {\u{2066}: nada",
            "Ana {\u{2066}: un artículo",
            "Ana {\u{2066}: 2 artículos",
            "Ana {\u{2066}: 2.5 artículos"
        ]
    );
}

#[test]
fn a_missing_argument_leaves_a_visible_gap() {
    let texts = Texts::builtin().add("en", "hello = Hello, { $name }!").unwrap();
    assert_eq!(texts.resolve(t("hello"), &language("en")), "Hello, {$name}!");
}

#[test]
fn a_plain_text_is_handed_through_without_a_copy() {
    let texts = Texts::builtin();
    let text = String::from("as it stands {$x}");
    let address = text.as_ptr();
    let shown = texts.resolve(text, &language("es"));
    assert_eq!(shown, "as it stands {$x}");
    assert_eq!(shown.as_ptr(), address);
    assert!(matches!(texts.resolve("static", &language("es")), Cow::Borrowed("static")));
}

/// A10: every text of a reply, also on its buttons, is shown in the language of the chat.
#[test]
fn a_reply_is_localized_with_its_buttons() {
    let reply = Reply::text(t("core.form.confirm"))
        .button(Button::new(t("core.choice.yes"), "y"))
        .button(Button::new("No!", "n"));
    let outgoing = Texts::builtin().localize(reply, &language("es-CO"));
    assert_eq!(outgoing.text, "¿Está todo bien?");
    assert_eq!(outgoing.buttons, [OutgoingButton::new("Sí", "y"), OutgoingButton::new("No!", "n")]);
}

/// A10: the words that cancel are those of the language, and can be replaced.
#[test]
fn cancel_words_are_listed_in_lower_case() {
    let texts = Texts::builtin().add("es", "core-cancel-words = Basta ,, ÉCHALO").unwrap();
    assert_eq!(texts.words("core.cancel.words", &language("en"))[..2], ["cancel", "stop"]);
    assert_eq!(texts.words("core.cancel.words", &language("es")), ["basta", "échalo"]);
}

#[test]
fn broken_texts_are_refused_with_line_and_problem() {
    let refused = |ftl: &str| Texts::builtin().add("es", ftl).unwrap_err().to_string();
    assert_eq!(
        refused("a = 1\n\nb = { $x\nc = 2\n"),
        "the texts for es are broken in line 4: expected a token starting with \"}\""
    );
    assert_eq!(
        refused("# one\nshop.welcome = Hola"),
        "the texts for es are broken in line 2: expected a token starting with \"=\" \
         (a key has \"-\" where its name has a dot)"
    );
    let indented = refused("a = 1\n?\n    b = 2");
    assert!(indented.starts_with("the texts for es are broken in line 2: "), "{indented}");
    assert_eq!(
        refused("a = 1\nb = 2\na = 3"),
        "the texts for es have a a second time in line 3: keep one of them"
    );
    assert_eq!(
        Texts::builtin().add("no language", "a = 1").unwrap_err().to_string(),
        "\"no language\" is not a language tag: write it as in \"en\" or \"es-CO\""
    );
}

#[test]
fn many_threads_share_the_texts() {
    let ftl = "n = { $n ->\n    [one] one\n   *[other] { $n }\n }";
    let texts = Arc::new(Texts::builtin().add("en", ftl).unwrap());
    let threads = [1, 2, 3, 4].map(|n| {
        let texts = Arc::clone(&texts);
        std::thread::spawn(move || texts.resolve(t("n").with("n", n), &Language::english()))
    });
    let shown = threads.map(|thread| thread.join().unwrap());
    assert_eq!(shown, ["one", "2", "3", "4"]);
}

proptest::proptest! {
    #[test]
    fn any_input_is_taken_or_refused_with_a_line_that_exists(ftl in "([a-z]{1,3}|[ .=-]|[{}$\\[\\]*\n\r\"]|.){0,40}") {
        if let Err(TextsError::Syntax { line, .. }) = Texts::builtin().add("en", &ftl) {
            proptest::prop_assert!(line <= ftl.matches('\n').count() + 1);
        }
    }
}
