//! Cutting long texts where a reader would.

use std::ops::Range;

/// The length of a text as Telegram counts it: in UTF-16 code units.
pub(super) fn length(text: &str) -> usize {
    text.encode_utf16().count()
}

/// Where the text is cut into parts of at most `most` units, each with something in it. Together
/// they are the text, but for white space at the cuts, which Telegram does not show.
pub(super) fn parts(text: &str, most: usize) -> impl Iterator<Item = Range<usize>> {
    let mut from = 0;
    std::iter::from_fn(move || {
        loop {
            let rest = &text[from..];
            if rest.trim_start().is_empty() {
                return None;
            }
            let end = fitting(rest, most);
            let cut =
                if end == rest.len() { end } else { place_to_cut(&rest[..end], &rest[end..]) };
            let part = from..from + cut;
            from = part.end;
            if !rest[..cut].trim_start().is_empty() {
                return Some(part);
            }
        }
    })
}

/// How many bytes of the text fit; at least one character.
fn fitting(text: &str, most: usize) -> usize {
    // No character has more units than bytes.
    if text.len() <= most {
        return text.len();
    }
    let mut units = 0;
    for (at, character) in text.char_indices() {
        units += character.len_utf16();
        if units > most && at > 0 {
            return at;
        }
    }
    text.len()
}

/// Where to cut `part`, which `rest` follows: behind a paragraph, a line, a sentence or a word, if
/// one ends in the second half of it, else where no sign is torn apart.
fn place_to_cut(part: &str, rest: &str) -> usize {
    let second_half = part.len() / 2;
    for ending in ["\n\n", "\n", ". ", "! ", "? ", " "] {
        if let Some(at) = part.rfind(ending)
            && at + ending.len() > second_half
        {
            return at + ending.len();
        }
    }
    let mut next = rest.chars().next();
    // A family of emoji, a flag or a letter with its accents is one sign to a reader.
    for (at, character) in part.char_indices().rev().take(64) {
        if !next.is_some_and(belongs_to_the_one_before) && character != '\u{200d}' {
            return at + character.len_utf8();
        }
        next = Some(character);
    }
    part.len()
}

const fn belongs_to_the_one_before(character: char) -> bool {
    matches!(character,
        '\u{200d}'
        | '\u{fe00}'..='\u{fe0f}'
        | '\u{300}'..='\u{36f}'
        | '\u{20d0}'..='\u{20ff}'
        | '\u{1f3fb}'..='\u{1f3ff}'
        | '\u{e0020}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parts(text: &str, most: usize) -> Vec<&str> {
        super::parts(text, most).map(|part| &text[part]).collect()
    }

    /// I1: a long text is cut behind a paragraph, a sentence or a word.
    #[test]
    fn a_long_text_is_cut_where_a_reader_would() {
        assert_eq!(parts("One. Two. Three.", 10), ["One. Two. ", "Three."]);
        assert_eq!(parts("First line\nsecond", 12), ["First line\n", "second"]);
        assert_eq!(parts("a b\n\nc d e f", 8), ["a b\n\n", "c d e f"]);
        assert_eq!(parts("one two three", 8), ["one two ", "three"]);
        assert_eq!(parts("abcdefgh", 3), ["abc", "def", "gh"]);
        assert_eq!(parts("short", 4096), ["short"]);
    }

    /// I1: what a reader sees as one sign stays one.
    #[test]
    fn no_sign_is_torn_apart() {
        let family = "👩\u{200d}👧";
        assert_eq!(parts(&format!("abc{family}"), 6), ["abc", family]);
        assert_eq!(parts("abce\u{301}", 4), ["abc", "e\u{301}"]);
        assert_eq!(parts("ab🦀", 3), ["ab", "🦀"]);
    }

    #[test]
    fn nothing_is_made_of_white_space() {
        assert!(parts("", 10).is_empty());
        assert!(parts(" \n\t ", 2).is_empty());
        assert_eq!(parts("a           b", 4), ["a   ", "b"]);
    }

    proptest! {
        /// I1: nothing but white space is lost, and every part fits.
        #[test]
        fn the_parts_are_the_text(text in "[a-z \n.👩\u{200d}é]{0,200}", most in 4usize..40) {
            let parts = parts(&text, most);
            let bare = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
            prop_assert_eq!(bare(&parts.concat()), bare(&text));
            for part in parts {
                prop_assert!(length(part) <= most, "{:?}", part);
                prop_assert!(!part.trim().is_empty());
            }
        }
    }
}
