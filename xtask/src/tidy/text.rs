//! Text that has no place in the project, and the small hygiene of files.

use super::Finding;
use crate::source;

/// Files whose spaces and words are ours.
const CHECKED: &[&str] =
    &["rs", "md", "toml", "lua", "sql", "ftl", "sh", "yml", "yaml", "txt", "proto", "gitignore"];

/// Calls of these macros never reach the main branch.
const MACROS: &[(&str, &str)] = &[
    ("todo", "write it or leave it out"),
    ("unimplemented", "return a typed error"),
    ("dbg", "use tracing"),
];

/// Attributes of tests that hide a failure.
const ATTRIBUTES: &[(&str, &str)] = &[
    (
        "ignore",
        "a test that does not run proves nothing: let its fixture skip it where the backend is absent",
    ),
    ("should_panic", "it passes for any panic: assert the error instead"),
];

/// Words that no text contains. In two halves, so that this table does not name itself.
const WORDS: &[(&str, &str, &str)] = &[
    ("TO", "DO", "open an issue instead"),
    ("FIX", "ME", "fix it or open an issue"),
    ("HA", "CK", "say what it does and why"),
    ("XX", "X", "open an issue instead"),
];

/// Beginnings of paths that exist on one machine only, in two halves as above.
const PATHS: &[(&str, &str)] = &[("/wo", "rk/"), ("/ro", "ot/"), ("/ho", "me/"), ("/Use", "rs/")];

/// Names of files that say nothing about their subject.
const NAMES: &[&str] = &["util", "utils", "helper", "helpers", "manager", "misc", "common"];

pub(crate) fn check(file: &str, content: &str) -> Vec<Finding> {
    let name = file.rsplit('/').next().unwrap_or(file);
    let (stem, extension) = name.rsplit_once('.').unwrap_or((name, ""));
    if !CHECKED.contains(&extension) && !content.starts_with("#!") {
        return Vec::new();
    }
    let mut found = check_lines(content);
    if extension == "rs" {
        found.extend(check_code(content));
        if NAMES.contains(&stem) {
            found.push((
                1,
                format!("`{stem}` names no subject: name the file after what it is about"),
            ));
        }
    }
    found.into_iter().map(|(line, message)| Finding::new(file, line, message)).collect()
}

fn check_lines(content: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (index, line) in content.split('\n').enumerate() {
        if line.ends_with([' ', '\t', '\r']) {
            found.push((index + 1, "has space at its end".to_owned()));
        }
        for (first, second, remedy) in WORDS {
            let word = format!("{first}{second}");
            if source::words(line, &word).next().is_some() {
                found.push((index + 1, format!("contains `{word}`: {remedy}")));
            }
        }
        for (first, second) in PATHS {
            let path = format!("{first}{second}");
            if starts_a_path(line, &path) {
                found.push((index + 1, format!("names `{path}…`, a path of one machine")));
            }
        }
    }
    if !content.is_empty() && !content.ends_with('\n') {
        found.push((content.lines().count(), "the file does not end with a new line".to_owned()));
    }
    if content.ends_with("\n\n") {
        found.push((content.lines().count(), "the file ends with an empty line".to_owned()));
    }
    found
}

/// Whether a path begins here, and is not a part of a longer one or of an address.
fn starts_a_path(line: &str, path: &str) -> bool {
    line.match_indices(path).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        before.is_none_or(|before| !before.is_alphanumeric() && !"_-./}*".contains(before))
    })
}

fn check_code(content: &str) -> Vec<(usize, String)> {
    let code = source::code(content);
    let mut found = Vec::new();
    for (name, remedy) in MACROS {
        for at in source::words(&code, name) {
            let rest = &code[at + name.len()..];
            if rest.starts_with('!') && !rest.starts_with("!=") {
                found.push((source::line(&code, at), format!("calls `{name}!`: {remedy}")));
            }
        }
    }
    for (at, _, attribute) in source::attributes(&code) {
        let inner = attribute.strip_prefix("cfg_attr(").and_then(|rest| rest.split_once(','));
        let bare = inner.map_or(attribute.as_str(), |(_, rest)| rest);
        let name = bare.split(['(', '=', ')']).next().unwrap_or_default();
        if let Some((_, remedy)) = ATTRIBUTES.iter().find(|(banned, _)| *banned == name) {
            found.push((source::line(&code, at), format!("has `#[{name}]`: {remedy}")));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(file: &str, content: &str) -> Vec<String> {
        check(file, content).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn clean_text_passes() {
        for (file, content) in [
            ("a.rs", "fn f() { g(\"todo!()\"); } // dbg!() hides #[ignore]\n"),
            ("a.rs", "#[derive(Debug)]\nstruct Todo;\nfn todo() {}\n"),
            ("a.md", "Los pasos: todo listo. See tests/work/ and https://example.org/home/page.\n"),
            ("a.rs", ""),
            ("a.png", "x  \nTO-DO"),
        ] {
            assert_eq!(found(file, content), Vec::<String>::new(), "{content}");
        }
    }

    #[test]
    fn each_breach_is_found_once_and_at_its_line() {
        let word = ["FIX", "ME"].concat();
        let path = ["/ho", "me/ana"].concat();
        for (file, content, line, says) in [
            ("a.rs", "fn f() {\n    todo!()\n}\n".to_owned(), 2, "todo!"),
            ("a.rs", "fn f() { dbg!(1); }\n".to_owned(), 1, "dbg!"),
            ("a.rs", "fn f() { unimplemented!(\"x\") }\n".to_owned(), 1, "unimplemented!"),
            ("a.rs", "#[test]\n#[ignore = \"slow\"]\nfn f() {}\n".to_owned(), 2, "ignore"),
            ("a.rs", "#[cfg_attr(unix, ignore)]\nfn f() {}\n".to_owned(), 1, "ignore"),
            (
                "a.rs",
                "#[should_panic(expected = \"x\")]\nfn f() {}\n".to_owned(),
                1,
                "should_panic",
            ),
            ("a.md", "a\nb \n".to_owned(), 2, "space"),
            ("a.md", "a\nb".to_owned(), 2, "new line"),
            ("a.md", "a\n\n".to_owned(), 2, "empty line"),
            ("a.toml", format!("# {word}: x\n"), 1, &word),
            ("a.md", format!("see `{path}`\n"), 1, "one machine"),
            ("src/utils.rs", "fn f() {}\n".to_owned(), 1, "utils"),
            ("run", "#!/bin/sh\nx \n".to_owned(), 2, "space"),
        ] {
            let found = found(file, &content);
            assert_eq!(found.len(), 1, "{content}: {found:?}");
            assert!(found[0].starts_with(&format!("{file}:{line}: ")), "{found:?}");
            assert!(found[0].contains(says), "{found:?}");
        }
    }
}
