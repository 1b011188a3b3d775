//! Reads what scripts answer.

use std::time::Duration;

use botmesh_core::id::Revision;
use botmesh_core::store::{StoreError, Swap};
use redis::Value;

use crate::error::corrupt;

/// An array of exactly `N`.
pub(crate) fn array<const N: usize>(
    value: Value,
    what: &'static str,
) -> Result<[Value; N], StoreError> {
    match value {
        Value::Array(values) => values
            .try_into()
            .map_err(|values: Vec<Value>| corrupt(what, format!("{} parts", values.len()))),
        other => Err(corrupt(what, kind(&other))),
    }
}

/// A text.
pub(crate) fn text(value: Value, what: &'static str) -> Result<String, StoreError> {
    match value {
        Value::BulkString(bytes) => {
            String::from_utf8(bytes).map_err(|error| corrupt(what, error.to_string()))
        }
        Value::SimpleString(text) => Ok(text),
        Value::Int(number) => Ok(number.to_string()),
        other => Err(corrupt(what, kind(&other))),
    }
}

/// A number that is not negative.
pub(crate) fn number(value: Value, what: &'static str) -> Result<u64, StoreError> {
    let text = text(value, what)?;
    text.parse().map_err(|_| corrupt(what, format!("{text:?} is no number")))
}

/// None for what Lua calls false.
pub(crate) fn optional(value: Value) -> Option<Value> {
    match value {
        Value::Nil | Value::Boolean(false) => None,
        other => Some(other),
    }
}

/// A time in microseconds.
pub(crate) fn time(value: Value, what: &'static str) -> Result<Duration, StoreError> {
    Ok(Duration::from_micros(number(value, what)?))
}

/// The outcome of a conditional write: a revision, or false.
pub(crate) fn swap(value: Value) -> Result<Swap, StoreError> {
    match optional(value) {
        Some(value) => Ok(Swap::Applied(Revision::new(number(value, "a revision")?))),
        None => Ok(Swap::Refused),
    }
}

/// Whether a script answered 1.
pub(crate) fn flag(value: Value, what: &'static str) -> Result<bool, StoreError> {
    Ok(number(value, what)? == 1)
}

/// What a value is, without its content.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Nil => "nothing",
        Value::Array(_) => "a list",
        Value::Map(_) => "a map",
        Value::ServerError(_) => "an error",
        _ => "another kind of value",
    }
}
