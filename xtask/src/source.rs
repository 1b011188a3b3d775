//! Rust source as the checks see it: code apart from comments and literals, and tests apart from the rest.

#[cfg(test)]
mod tests;

/// The code of a file: comments and the contents of literals are spaces, so that a search finds code only. Lines
/// and columns stay where they were.
pub(crate) fn code(text: &str) -> String {
    let mut blank = vec![false; text.len()];
    let mut at = 0;
    while at < text.len() {
        match literal_or_comment(text, at) {
            Some((from, to)) => {
                blank[from..to].fill(true);
                at = to;
            }
            None => at += 1,
        }
    }
    blanked(text, &blank)
}

/// The code without the items that only tests compile: those under `#[cfg(test)]` or a test attribute.
pub(crate) fn without_tests(code: &str) -> String {
    let mut blank = vec![false; code.len()];
    for (from, to) in test_regions(code) {
        blank[from..to].fill(true);
    }
    blanked(code, &blank)
}

/// The line of an offset, counted from one.
pub(crate) fn line(text: &str, offset: usize) -> usize {
    text.as_bytes()[..offset].iter().filter(|byte| **byte == b'\n').count() + 1
}

/// Whether a byte can be part of an identifier.
pub(crate) fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

/// The identifier that starts at an offset.
pub(crate) fn word_at(code: &str, at: usize) -> &str {
    let rest = &code[at..];
    let length = rest.bytes().take_while(|byte| is_word(*byte)).count();
    &rest[..length]
}

/// Where each whole-word occurrence of a text starts.
pub(crate) fn words<'a>(code: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    code.match_indices(word).map(|(at, _)| at).filter(move |at| {
        let bytes = code.as_bytes();
        let begins = *at == 0 || !is_word(bytes[at - 1]);
        let ends = bytes.get(at + word.len()).is_none_or(|byte| !is_word(*byte));
        begins && ends
    })
}

/// The attributes of code: where `#[` starts, where its `]` ends, and what stands between, without spaces.
pub(crate) fn attributes(code: &str) -> Vec<(usize, usize, String)> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices("#[") {
        if let Some(end) = closing(code, at + 1) {
            let content = &code[at + 2..end - 1];
            found.push((at, end, content.split_whitespace().collect()));
        }
    }
    found
}

/// Whether an attribute without spaces marks something that only tests compile.
pub(crate) fn is_test_attribute(attribute: &str) -> bool {
    attribute == "cfg(test)" || attribute.starts_with("cfg(all(test") || is_test_function(attribute)
}

/// Whether an attribute without spaces makes a function a test.
pub(crate) fn is_test_function(attribute: &str) -> bool {
    let name = attribute.split('(').next().unwrap_or_default();
    name == "test" || name.ends_with("::test")
}

/// Where the bracket that opens at an offset is closed: the offset after the closing one.
pub(crate) fn closing(code: &str, at: usize) -> Option<usize> {
    let mut depth = 0usize;
    for (offset, byte) in code.bytes().enumerate().skip(at) {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(offset + 1);
                }
            }
            _ => {}
        }
    }
    None
}

fn test_regions(code: &str) -> Vec<(usize, usize)> {
    attributes(code)
        .into_iter()
        .filter(|(_, _, content)| is_test_attribute(content))
        .map(|(from, end, _)| (from, item_end(code, end)))
        .collect()
}

/// Where the item after an attribute ends: at its semicolon or the brace that closes its body.
fn item_end(code: &str, from: usize) -> usize {
    let bytes = code.as_bytes();
    let mut at = from;
    while at < bytes.len() {
        match bytes[at] {
            b'(' | b'[' => match closing(code, at) {
                Some(end) => at = end,
                None => return bytes.len(),
            },
            b'{' => return closing(code, at).unwrap_or(bytes.len()),
            b';' => return at + 1,
            b'}' => return at,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// The span to blank of the comment or literal that begins at an offset, if one does.
fn literal_or_comment(text: &str, at: usize) -> Option<(usize, usize)> {
    let bytes = text.as_bytes();
    let rest = &bytes[at..];
    if rest.starts_with(b"//") {
        let length = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
        return Some((at, at + length));
    }
    if rest.starts_with(b"/*") {
        return Some((at, block_comment_end(bytes, at)));
    }
    let in_word = at > 0 && is_word(bytes[at - 1]);
    match bytes[at] {
        b'"' => Some((at + 1, string_end(bytes, at + 1))),
        b'r' if !in_word => raw_string(bytes, at + 1),
        b'b' | b'c' if !in_word && bytes.get(at + 1) == Some(&b'r') => raw_string(bytes, at + 2),
        b'\'' => char_literal(text, at),
        _ => None,
    }
}

fn block_comment_end(bytes: &[u8], from: usize) -> usize {
    let mut depth = 0usize;
    let mut at = from;
    while at < bytes.len() {
        if bytes[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if bytes[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    bytes.len()
}

/// The offset after the closing quote, from the offset after the opening one.
fn string_end(bytes: &[u8], from: usize) -> usize {
    let mut at = from;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// A raw string whose hashes or quote begin at an offset.
fn raw_string(bytes: &[u8], from: usize) -> Option<(usize, usize)> {
    let hashes = bytes[from..].iter().take_while(|byte| **byte == b'#').count();
    let open = from + hashes;
    if bytes.get(open) != Some(&b'"') {
        return None;
    }
    let mut close = vec![b'"'];
    close.resize(hashes + 1, b'#');
    let length = bytes[open + 1..].windows(close.len()).position(|window| window == close);
    let end = length.map_or(bytes.len(), |length| open + 1 + length + close.len());
    Some((open + 1, end))
}

/// A character literal, as opposed to a lifetime.
fn char_literal(text: &str, at: usize) -> Option<(usize, usize)> {
    let mut characters = text[at + 1..].char_indices();
    let (_, first) = characters.next()?;
    if first == '\\' {
        let rest = text.as_bytes().get(at + 3..)?;
        let length = rest.iter().position(|byte| *byte == b'\'')?;
        return Some((at + 1, at + 3 + length + 1));
    }
    let (offset, second) = characters.next()?;
    (second == '\'' && first != '\'').then_some((at + 1, at + 1 + offset + 1))
}

fn blanked(text: &str, blank: &[bool]) -> String {
    let bytes = text.bytes().zip(blank);
    let kept = bytes.map(|(byte, blank)| if *blank && byte != b'\n' { b' ' } else { byte });
    // Whole tokens are blanked, so no character is ever cut.
    String::from_utf8_lossy(&kept.collect::<Vec<u8>>()).into_owned()
}
