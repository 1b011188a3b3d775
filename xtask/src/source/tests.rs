use super::*;

#[test]
fn comments_and_literals_are_not_code() {
    for (text, expected) in [
        ("a // b\nc", "a ....\nc"),
        ("a /* b /* c */ d */ e", "a ................. e"),
        ("f(\"x // y\") // z", "f(\".......) ...."),
        ("f(\"\\\"x\") + y", "f(\"....) + y"),
        ("r#\"a\"b\"# + c", "r#\"..... + c"),
        ("br\"x\" y", "br\".. y"),
        ("x = 'y'; z", "x = '..; z"),
        ("x = '\\''; z", "x = '...; z"),
        ("x = '\"'; \"y\"", "x = '..; \".."),
        ("fn f<'a>(x: &'a str)", "fn f<'a>(x: &'a str)"),
        ("/// doc crate::bot\nfn f() {}", "..................\nfn f() {}"),
        ("\"ñ\" x", "\"... x"),
        ("r#type + x", "r#type + x"),
    ] {
        let expected = expected.replace('.', " ");
        assert_eq!(code(text), expected, "{text}");
    }
}

#[test]
fn an_unfinished_literal_does_not_break_the_scan() {
    for text in ["\"abc", "\"abc\\", "r#\"abc", "'", "'\\", "/* abc", "#[", "#[cfg(test)]"] {
        assert_eq!(without_tests(&code(text)).len(), text.len(), "{text}");
    }
}

#[test]
fn items_under_a_test_attribute_are_left_out() {
    for kept in [
        "#[cfg(test)] mod tests { fn hidden() {} } fn shown() {}",
        "#[cfg(test)]\nmod hidden; fn shown() {}",
        "#[cfg(test)] use hidden::{a, b}; fn shown() {}",
        "#[cfg(all(test, unix))] fn hidden() -> [u8; 3] { [0; 3] } fn shown() {}",
        "#[test] fn hidden() {} fn shown() {}",
        "#[tokio::test(start_paused = true)] async fn hidden() {} fn shown() {}",
        "mod inner { #[cfg(test)] hidden } fn shown() {}",
    ] {
        let rest = without_tests(kept);
        assert!(!rest.contains("hidden"), "{rest}");
        assert!(rest.contains("shown"), "{rest}");
    }
    let compiled = "#[cfg(any(test, feature = \"testing\"))] mod testing { fn shown() {} }";
    assert_eq!(without_tests(compiled), compiled);
}

#[test]
fn words_are_found_whole() {
    let found: Vec<usize> = words("todo todos un_todo todo!", "todo").collect();
    assert_eq!(found, [0, 19]);
}

#[test]
fn lines_are_counted_from_one() {
    assert_eq!(line("a\nb\nc", 0), 1);
    assert_eq!(line("a\nb\nc", 4), 3);
}
