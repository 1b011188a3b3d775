use thiserror::Error;

use crate::id::IdError;

/// What is wrong with a [`Matcher`](super::Matcher).
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum MatcherProblem {
    /// No regular expression.
    #[error("the pattern {expression:?} cannot be read: correct the regular expression")]
    Pattern {
        /// The expression.
        expression: String,
        /// What is wrong with it.
        #[source]
        source: regex::Error,
    },
    /// The text to match is empty.
    #[error("an empty text matches nothing: give it words, or use a predicate")]
    EmptyText,
    /// A command that cannot be typed.
    #[error("nobody can type the command {name:?}: give it one word without '/' and '@'")]
    Command {
        /// The name.
        name: String,
    },
    /// No provider can have this id.
    #[error("only_on names no provider: use the id of a provider of the bot")]
    Provider {
        /// What is wrong with the id.
        #[source]
        source: IdError,
    },
}
