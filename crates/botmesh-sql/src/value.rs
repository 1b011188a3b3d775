use std::time::Duration;

use crate::error::{DriverError, Fault};

/// A value that goes into a statement or comes out of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// No value.
    Null,
    /// A `BIGINT`.
    Integer(i64),
    /// A text in its binary collation.
    Text(String),
}

impl Value {
    /// A duration in microseconds, small enough that adding it to a moment does not overflow.
    pub(crate) fn micros(duration: Duration) -> Self {
        // More than 60,000 years.
        const LONGEST: i64 = i64::MAX / 4;
        Self::Integer(i64::try_from(duration.as_micros()).map_or(LONGEST, |us| us.min(LONGEST)))
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<Option<Duration>> for Value {
    fn from(duration: Option<Duration>) -> Self {
        duration.map_or(Self::Null, Self::micros)
    }
}

/// One row of a result; its columns are taken from left to right.
#[derive(Debug, Clone)]
pub struct Row(std::vec::IntoIter<Value>);

impl Row {
    /// A row of these columns.
    #[must_use]
    pub fn new(columns: Vec<Value>) -> Self {
        Self(columns.into_iter())
    }

    fn unexpected(found: &Value, wanted: &'static str) -> DriverError {
        let kind = match found {
            Value::Null => "null",
            Value::Integer(_) => "an integer",
            Value::Text(_) => "a text",
        };
        DriverError::new(Fault::Corrupt, format!("a column holds {kind}, expected was {wanted}"))
    }

    fn next(&mut self) -> Value {
        self.0.next().unwrap_or(Value::Null)
    }

    /// The next column, an integer or nothing.
    ///
    /// # Errors
    /// [`DriverError`] when it is something else.
    pub fn optional_integer(&mut self) -> Result<Option<i64>, DriverError> {
        match self.next() {
            Value::Null => Ok(None),
            Value::Integer(integer) => Ok(Some(integer)),
            other => Err(Self::unexpected(&other, "an integer")),
        }
    }

    /// The next column, an integer.
    ///
    /// # Errors
    /// [`DriverError`] when it is something else.
    pub fn integer(&mut self) -> Result<i64, DriverError> {
        self.optional_integer()?.ok_or_else(|| Self::unexpected(&Value::Null, "an integer"))
    }

    /// The next column, a number of ours: a revision or a fence.
    ///
    /// # Errors
    /// [`DriverError`] when it is something else.
    pub fn number(&mut self) -> Result<u64, DriverError> {
        let integer = self.integer()?;
        u64::try_from(integer).map_err(|_| {
            DriverError::new(Fault::Corrupt, format!("{integer} where a number from zero was kept"))
        })
    }

    /// The next column, a text or nothing.
    ///
    /// # Errors
    /// [`DriverError`] when it is something else.
    pub fn optional_text(&mut self) -> Result<Option<String>, DriverError> {
        match self.next() {
            Value::Null => Ok(None),
            Value::Text(text) => Ok(Some(text)),
            other => Err(Self::unexpected(&other, "a text")),
        }
    }

    /// The next column, a text.
    ///
    /// # Errors
    /// [`DriverError`] when it is something else.
    pub fn text(&mut self) -> Result<String, DriverError> {
        self.optional_text()?.ok_or_else(|| Self::unexpected(&Value::Null, "a text"))
    }
}
