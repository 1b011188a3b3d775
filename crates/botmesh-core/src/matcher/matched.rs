use std::sync::Arc;

use regex::Regex;

/// What was read from a message that a [`Matcher`](super::Matcher) matched.
#[derive(Debug, Clone, Default)]
pub struct Matched {
    arguments: Option<Arc<str>>,
    groups: Option<Arc<Groups>>,
}

#[derive(Debug)]
struct Groups {
    regex: Regex,
    found: Box<[Option<Box<str>>]>,
}

impl Matched {
    pub(super) const NOTHING: Self = Self { arguments: None, groups: None };

    pub(super) fn with_arguments(arguments: &str) -> Self {
        Self { arguments: (!arguments.is_empty()).then(|| arguments.into()), groups: None }
    }

    pub(super) fn by_pattern(regex: &Regex, words: &str) -> Option<Self> {
        // The search for groups allocates before it has found anything.
        if !regex.is_match(words) {
            return None;
        }
        if regex.captures_len() == 1 {
            return Some(Self::NOTHING);
        }
        let captures = regex.captures(words)?;
        let found = captures.iter().map(|group| group.map(|group| group.as_str().into())).collect();
        let groups = Groups { regex: regex.clone(), found };
        Some(Self { arguments: None, groups: Some(Arc::new(groups)) })
    }

    /// What followed a command, without white space around it; empty when nothing did.
    #[must_use]
    pub fn arguments(&self) -> &str {
        self.arguments.as_deref().unwrap_or_default()
    }

    /// What the group with this number of a pattern found; the first group has the number 1, and
    /// 0 is all that was found by a pattern with groups.
    #[must_use]
    pub fn group(&self, number: usize) -> Option<&str> {
        self.groups.as_ref()?.found.get(number)?.as_deref()
    }

    /// What the group with this name of a pattern found.
    #[must_use]
    pub fn named(&self, name: &str) -> Option<&str> {
        let names = self.groups.as_ref()?.regex.capture_names();
        self.group(names.into_iter().position(|known| known == Some(name))?)
    }
}
