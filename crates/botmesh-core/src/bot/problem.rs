use std::fmt;

use thiserror::Error;

/// Something about a bot's definition that is wrong or unusual, with what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Problem {
    /// How bad it is.
    pub severity: Severity,
    /// The setting as it is written in code, such as `Bot::max_in_work`.
    pub setting: String,
    /// One sentence of fact, one of remedy.
    pub text: String,
}

/// How bad a problem is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Severity {
    /// The bot starts, and a warning is logged.
    Warning,
    /// The bot does not start.
    Error,
}

impl Problem {
    pub(crate) fn error(setting: impl Into<String>, text: impl Into<String>) -> Self {
        Self { severity: Severity::Error, setting: setting.into(), text: text.into() }
    }

    pub(crate) fn warning(setting: impl Into<String>, text: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, setting: setting.into(), text: text.into() }
    }

    /// Errors and warnings apart.
    pub(super) fn split(problems: Vec<Self>) -> (Vec<Self>, Vec<Self>) {
        problems.into_iter().partition(|problem| problem.severity == Severity::Error)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.setting, self.text)
    }
}

/// The definition of a bot is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub struct BuildError {
    problems: Vec<Problem>,
}

impl BuildError {
    pub(super) const fn new(problems: Vec<Problem>) -> Self {
        Self { problems }
    }

    /// Everything that is wrong.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the bot cannot start")?;
        for problem in &self.problems {
            write!(f, "\n- {problem}")?;
        }
        Ok(())
    }
}
