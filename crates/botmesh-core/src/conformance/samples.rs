//! Keys and bodies that careless backends confuse, cut or change.

/// Texts that differ, however alike some of them look.
pub(super) fn strange_texts() -> Vec<String> {
    let mut texts: Vec<String> = [
        "A",
        "a",
        "á",
        "a\u{301}",
        "Á",
        "ä",
        "ae",
        "æ",
        "ß",
        "ss",
        "SS",
        "ı",
        "i",
        "I",
        "İ",
        "K",
        "\u{212a}",
        "k",
        "ﬁ",
        "fi",
        "é",
        "e\u{301}",
        "가",
        "\u{1100}\u{1161}",
        "Å",
        "A\u{30a}",
        " ",
        "  ",
        "a ",
        " a",
        "a\t",
        "a\n",
        "a\r\n",
        "%",
        "_",
        "%25",
        "\\",
        "\\\\",
        "a%",
        "a_",
        "a\\_",
        "*",
        "?",
        "[a]",
        "'",
        "''",
        "\"",
        "`",
        "a'b",
        "'; --",
        "$1",
        "?1",
        ":a",
        "{a}",
        "{",
        "}",
        "#",
        "a#b",
        "/",
        "..",
        "a/b",
        "a:b",
        "a::b",
        "a|b",
        "a,b",
        "0",
        "00",
        "0.0",
        "1e3",
        "1000",
        "-0",
        "null",
        "NULL",
        "true",
        "😀",
        "👩\u{200d}👩\u{200d}👧",
        "👩👩👧",
        "🇪🇸",
        "שלום",
        "\u{202e}abc",
        "مرحبا",
        "你好",
        "\u{feff}a",
        "a\u{200b}",
        "a\u{ad}",
        "\u{1}",
        "\u{7f}",
        "\u{ffff}",
        "\u{10ffff}",
        "\u{fffd}",
    ]
    .map(str::to_owned)
    .into();
    // As long as an id may be once it has its provider in front, and alike to the last byte.
    for last in ["x", "y"] {
        texts.push(format!("{}{last}", "x".repeat(899)));
        texts.push(format!("{}{last}", "😀".repeat(224)));
    }
    texts
}

/// Keys of a full kibibyte that differ in the last byte.
pub(super) fn long_keys() -> Vec<String> {
    ["a", "b"].iter().map(|last| format!("{}{last}", "k".repeat(1023))).collect()
}

/// Bodies of all kinds, with a name for messages.
pub(super) fn bodies() -> Vec<(&'static str, String)> {
    let planes = (1..=0x10_u32).filter_map(|plane| char::from_u32(plane * 0x1_0000 + 0x41));
    let low = (1..0xd7ff_u32).step_by(7).filter_map(char::from_u32);
    vec![
        ("an empty body", String::new()),
        ("a space", " ".into()),
        ("trailing line ends", "a\n\r\n ".into()),
        ("json", r#"{"a":"\u0000\\","b":[1,2.50,null]}"#.into()),
        ("a number", "00123.4500".into()),
        ("every plane of Unicode", low.chain(planes).collect()),
        ("a mebibyte", "x".repeat(1 << 20)),
        ("a mebibyte of emoji", "😀".repeat((1 << 20) / 4)),
    ]
}
