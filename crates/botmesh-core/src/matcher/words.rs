//! Comparing words as people type them, without allocating.

/// Without white space around it and in lower case, letter by letter.
pub(crate) fn folded(text: &str) -> Box<str> {
    text.trim().chars().flat_map(char::to_lowercase).collect::<String>().into()
}

/// Whether `typed` is `folded` but for case and white space around it.
pub(crate) fn same(typed: &str, folded: &str) -> bool {
    let typed = typed.trim();
    !folded.is_empty() && typed.chars().flat_map(char::to_lowercase).eq(folded.chars())
}

/// What follows the command `/name` in `typed`; none when it is another command or none.
pub(super) fn command_arguments<'a>(typed: &'a str, name: &str) -> Option<&'a str> {
    let typed = typed.trim_start().strip_prefix('/')?;
    let end = typed.find(char::is_whitespace).unwrap_or(typed.len());
    let (head, rest) = typed.split_at(end);
    let called = head.split_once('@').map_or(head, |(called, _bot)| called);
    same(called, name).then(|| rest.trim())
}

/// Whether a command of this name can be typed.
pub(super) fn is_command_name(name: &str) -> bool {
    !name.is_empty() && !name.contains(|c: char| c.is_whitespace() || c == '@' || c == '/')
}
