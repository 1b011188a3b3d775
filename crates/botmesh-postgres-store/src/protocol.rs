//! Sends one statement and reads its rows.

use std::fmt::Write as _;

use botmesh_sql::{Row, Statement, Value};
use sqlx::postgres::{PgArguments, PgRow};
use sqlx::{
    Arguments as _, AssertSqlSafe, Decode, Executor as _, PgConnection, Postgres, Row as _,
    TypeInfo as _, ValueRef as _,
};

/// How statements reach the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// Prepared once on each connection, then sent by name with their values.
    Prepared,
    /// As a text that contains its values: nothing has to be remembered by the connection, which
    /// may be another one at each statement.
    Plain,
}

/// A value as it is sent.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Argument<'a> {
    Null,
    Integer(i64),
    Text(&'a str),
    #[cfg(feature = "coordination")]
    Integers(&'a [i64]),
    #[cfg(any(feature = "coordination", feature = "durability"))]
    Texts(&'a [&'a [u8]]),
    #[cfg(feature = "durability")]
    Optional(&'a [Option<i64>]),
}

/// What can be sent as a value.
pub(crate) trait Bind: Sync {
    /// How it is sent.
    fn argument(&self) -> Argument<'_>;
}

impl Bind for Value {
    fn argument(&self) -> Argument<'_> {
        match self {
            Self::Null => Argument::Null,
            Self::Integer(integer) => Argument::Integer(*integer),
            Self::Text(text) => Argument::Text(text),
        }
    }
}

impl Bind for Argument<'_> {
    fn argument(&self) -> Argument<'_> {
        *self
    }
}

/// Runs one statement.
pub(crate) async fn run<V: Bind>(
    connection: &mut PgConnection,
    protocol: Protocol,
    statement: &Statement,
    values: &[V],
) -> Result<Vec<Row>, sqlx::Error> {
    let rows = match protocol {
        Protocol::Prepared => {
            let mut arguments = PgArguments::default();
            for value in values {
                let added = match value.argument() {
                    Argument::Null => arguments.add(None::<i64>),
                    Argument::Integer(integer) => arguments.add(integer),
                    Argument::Text(text) => arguments.add(text.as_bytes()),
                    #[cfg(feature = "coordination")]
                    Argument::Integers(integers) => arguments.add(integers),
                    #[cfg(any(feature = "coordination", feature = "durability"))]
                    Argument::Texts(texts) => arguments.add(texts),
                    #[cfg(feature = "durability")]
                    Argument::Optional(integers) => arguments.add(integers),
                };
                added.map_err(sqlx::Error::Encode)?;
            }
            let text = AssertSqlSafe(statement.text().clone());
            sqlx::query_with(text, arguments).fetch_all(connection).await?
        }
        Protocol::Plain => {
            let text = with_values(statement.text(), values);
            connection.fetch_all(sqlx::raw_sql(AssertSqlSafe(text))).await?
        }
    };
    rows.iter().map(read).collect()
}

/// The statement with its values in place of `$1`, `$2`. Texts are written in hexadecimal digits,
/// so there is nothing in them that could be taken for SQL.
fn with_values<V: Bind>(statement: &str, values: &[V]) -> String {
    let mut text = String::with_capacity(statement.len() + 64);
    let mut rest = statement;
    while let Some((before, after)) = rest.split_once('$') {
        text.push_str(before);
        let digits = after.len() - after.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let number: Option<usize> = after[..digits].parse().ok();
        match number.and_then(|number| values.get(number.wrapping_sub(1))) {
            Some(value) => write_literal(&mut text, value.argument()),
            None => text.extend(["$", &after[..digits]]),
        }
        rest = &after[digits..];
    }
    text.push_str(rest);
    text
}

fn write_literal(text: &mut String, value: Argument<'_>) {
    match value {
        Argument::Null => text.push_str("NULL"),
        // In parentheses, for `- -1` would be something else without blanks.
        Argument::Integer(integer) => {
            let _ = write!(text, "CAST('{integer}' AS BIGINT)");
        }
        Argument::Text(value) => write_text(text, value.as_bytes()),
        #[cfg(feature = "coordination")]
        Argument::Integers(integers) => {
            write_array(text, "BIGINT", integers, |text, integer| {
                let _ = write!(text, "{integer}");
            });
        }
        #[cfg(any(feature = "coordination", feature = "durability"))]
        Argument::Texts(texts) => write_array(text, "BYTEA", texts, |text, one| {
            write_text(text, one);
        }),
        #[cfg(feature = "durability")]
        Argument::Optional(integers) => write_array(text, "BIGINT", integers, |text, one| {
            let _ = match one {
                Some(integer) => write!(text, "{integer}"),
                None => write!(text, "NULL"),
            };
        }),
    }
}

fn write_text(text: &mut String, value: &[u8]) {
    text.reserve(value.len() * 2 + 20);
    text.push_str("decode('");
    for byte in value {
        const DIGITS: [char; 16] =
            ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'];
        text.push(DIGITS[usize::from(byte >> 4)]);
        text.push(DIGITS[usize::from(byte & 15)]);
    }
    text.push_str("', 'hex')");
}

#[cfg(any(feature = "coordination", feature = "durability"))]
fn write_array<T>(text: &mut String, kind: &str, items: &[T], write: impl Fn(&mut String, &T)) {
    text.push_str("CAST(ARRAY[");
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            text.push(',');
        }
        write(text, item);
    }
    let _ = write!(text, "] AS {kind}[])");
}

fn read(row: &PgRow) -> Result<Row, sqlx::Error> {
    let column = |index: usize| {
        let value = row.try_get_raw(index)?;
        if value.is_null() {
            return Ok(Value::Null);
        }
        let decoded = match value.type_info().name() {
            "BYTEA" => <Vec<u8> as Decode<'_, Postgres>>::decode(value)
                .and_then(|bytes| Ok(Value::Text(String::from_utf8(bytes)?))),
            "INT4" => <i32 as Decode<'_, Postgres>>::decode(value)
                .map(|integer| Value::Integer(integer.into())),
            "INT8" => <i64 as Decode<'_, Postgres>>::decode(value).map(Value::Integer),
            _ => <String as Decode<'_, Postgres>>::decode(value).map(Value::Text),
        };
        decoded.map_err(|source| sqlx::Error::ColumnDecode { index: index.to_string(), source })
    };
    Ok(Row::new((0..row.len()).map(column).collect::<Result<_, sqlx::Error>>()?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn values_take_the_place_of_their_numbers() {
        let values = [Value::Integer(-7), Value::Null, Value::Text("ü'\0".to_owned())];
        assert_eq!(
            with_values("SELECT $3, x - $1 FROM t WHERE a = $2 AND b = $1", &values),
            "SELECT decode('c3bc2700', 'hex'), x - CAST('-7' AS BIGINT) FROM t \
             WHERE a = NULL AND b = CAST('-7' AS BIGINT)"
        );
        let body = "CREATE FUNCTION f() AS $body$ SELECT 1 $body$";
        assert_eq!(with_values::<Value>(body, &[]), body);
    }

    #[cfg(feature = "coordination")]
    #[test]
    fn lists_take_the_place_of_their_numbers() {
        let values = [Argument::Texts(&[b"a", b"'"]), Argument::Integers(&[-7, 8])];
        assert_eq!(
            with_values("SELECT unnest($1, $2)", &values),
            "SELECT unnest(CAST(ARRAY[decode('61', 'hex'),decode('27', 'hex')] AS BYTEA[]), \
             CAST(ARRAY[-7,8] AS BIGINT[]))"
        );
    }

    #[cfg(feature = "durability")]
    #[test]
    fn what_is_missing_in_a_list_is_null() {
        let values = [Argument::Optional(&[None, Some(-7)])];
        assert_eq!(with_values("SELECT $1", &values), "SELECT CAST(ARRAY[NULL,-7] AS BIGINT[])");
    }

    proptest! {
        /// B4: whatever is in a text, what is sent has nothing of it but hexadecimal digits.
        #[test]
        fn no_text_can_become_a_piece_of_sql(text in ".{0,60}") {
            let sent = with_values("$1", &[Value::Text(text)]);
            let digits = sent.strip_prefix("decode('").and_then(|s| s.strip_suffix("', 'hex')"));
            prop_assert!(digits.unwrap().chars().all(|c| c.is_ascii_hexdigit()));
        }
    }
}
