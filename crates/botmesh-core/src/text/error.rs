use fluent_bundle::FluentError;
use thiserror::Error;

use super::{Language, LanguageError};

/// Why texts could not be added.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TextsError {
    /// The language is no language tag.
    #[error(transparent)]
    Language(#[from] LanguageError),
    /// The texts are not in the format of Project Fluent.
    #[error("the texts for {language} are broken in line {line}: {problem}")]
    Syntax {
        /// The language they were to be added to.
        language: Language,
        /// The first line with a problem, counted from 1.
        line: usize,
        /// What is wrong there and what to do.
        problem: String,
    },
    /// One key has two texts.
    #[error("the texts for {language} have {key} a second time in line {line}: keep one of them")]
    Repeated {
        /// The language they were to be added to.
        language: Language,
        /// The key as it is written there.
        key: String,
        /// The line of the second one, counted from 1.
        line: usize,
    },
}

impl TextsError {
    pub(super) fn syntax(language: &Language, ftl: &str, errors: &[FluentError]) -> Self {
        let problems = errors.iter().filter_map(|error| match error {
            FluentError::ParserError(error) => Some((error.pos.start, error.to_string())),
            _ => None,
        });
        let (start, problem) = problems.min_by_key(|(start, _)| *start).unwrap_or_default();
        let mut problem = lower_first(&problem);
        let line = ftl.bytes().take(start).filter(|byte| *byte == b'\n').count() + 1;
        let text = ftl.lines().nth(line - 1).unwrap_or_default();
        if text.split('=').next().is_some_and(|key| key.contains('.')) {
            problem.push_str(" (a key has \"-\" where its name has a dot)");
        } else if text.starts_with([' ', '\t']) {
            problem.push_str(" (a key starts at the beginning of its line)");
        }
        Self::Syntax { language: language.clone(), line, problem }
    }

    pub(super) fn repeated(language: &Language, ftl: &str, errors: &[FluentError]) -> Self {
        let key = errors.iter().find_map(|error| match error {
            FluentError::Overriding { id, .. } => Some(id.clone()),
            _ => None,
        });
        let key = key.unwrap_or_default();
        let defines = |line: &str| {
            let line = line.strip_prefix('-').unwrap_or(line);
            line.strip_prefix(&*key).is_some_and(|rest| rest.trim_start().starts_with('='))
        };
        let mut lines = ftl.lines().enumerate().filter(|(_, line)| defines(line));
        let line = lines.nth(1).map_or(1, |(index, _)| index + 1);
        Self::Repeated { language: language.clone(), key, line }
    }
}

fn lower_first(text: &str) -> String {
    let mut characters = text.chars();
    characters
        .next()
        .map(|first| first.to_lowercase().chain(characters).collect())
        .unwrap_or_default()
}
