//! Sends one statement and reads its rows.

use std::fmt::Write as _;

use botmesh_sql::{Answer, Row, Statement, Value};
#[cfg(feature = "coordination")]
use futures_util::TryStreamExt as _;
#[cfg(feature = "coordination")]
use sqlx::Either;
use sqlx::mysql::{MySqlArguments, MySqlRow};
use sqlx::{
    Arguments as _, AssertSqlSafe, Decode, Executor as _, MySql, MySqlConnection, Row as _,
    TypeInfo as _, ValueRef as _,
};

/// Runs one statement: prepared once on each connection, then sent by its number with its values.
/// One that follows others, in one transaction, is sent with them as a text with the values in it,
/// so that it costs one round trip too.
pub(crate) async fn run(
    connection: &mut MySqlConnection,
    statement: &Statement,
    values: &[Value],
) -> Result<Vec<Row>, sqlx::Error> {
    if !statement.before().is_empty() {
        let text = transaction(statement, values);
        let rows = connection.fetch_all(sqlx::raw_sql(AssertSqlSafe(text))).await?;
        return rows.iter().map(read).collect();
    }
    let query = prepared(statement, values)?;
    if *statement.answer() == Answer::InsertId {
        let told = query.execute(connection).await?.last_insert_id();
        let told = i64::try_from(told).map_err(|error| decode_error(error.into()))?;
        let row = (told > 0).then(|| Row::new(vec![Value::Integer(told)]));
        return Ok(Vec::from_iter(row));
    }
    let rows = query.fetch_all(connection).await?;
    rows.iter().map(read).collect()
}

/// A statement and those before it. Each sees what others have committed before it began, so that
/// one that waited for a lock is followed by one that sees what was done under it; whatever the
/// default is on connections that are not ours.
fn transaction(statement: &Statement, values: &[Value]) -> String {
    let mut text = "SET TRANSACTION ISOLATION LEVEL READ COMMITTED; START TRANSACTION; ".to_owned();
    for statement in statement.before().iter().chain([statement]) {
        write_with_values(&mut text, statement, values);
        text.push_str("; ");
    }
    text.push_str("COMMIT");
    text
}

/// How many bytes a request has for the texts among these values.
pub(crate) fn size(statement: &Statement, values: &[Value]) -> usize {
    let size = |statement: &Statement, factor: usize| {
        let lengths = statement.in_places(values).map(|value| match value {
            Value::Text(text) => text.len() * factor,
            _ => 0,
        });
        lengths.sum::<usize>()
    };
    if statement.before().is_empty() {
        return size(statement, 1);
    }
    // In hexadecimal digits.
    statement.before().iter().chain([statement]).map(|statement| size(statement, 2)).sum()
}

/// What one statement of several has told.
#[cfg(feature = "coordination")]
#[derive(Debug, Default)]
pub(crate) struct Told {
    pub(crate) rows: Vec<Row>,
    pub(crate) insert_id: u64,
    pub(crate) affected: u64,
}

/// Several statements with their values, as one text.
#[cfg(feature = "coordination")]
pub(crate) fn script(statements: &[(&Statement, &[Value])]) -> String {
    let mut text = String::new();
    for (statement, values) in statements {
        write_with_values(&mut text, statement, values);
        text.push(';');
    }
    text
}

/// Runs the statements of a script one after the other, in one round trip. After one that fails no
/// other is run.
#[cfg(feature = "coordination")]
pub(crate) async fn run_script(
    connection: &mut MySqlConnection,
    script: String,
) -> Result<Vec<Told>, sqlx::Error> {
    let (mut told, mut rows) = (Vec::new(), Vec::new());
    let mut answers = connection.fetch_many(sqlx::raw_sql(AssertSqlSafe(script)));
    while let Some(answer) = answers.try_next().await? {
        match answer {
            Either::Right(row) => rows.push(read(&row)?),
            Either::Left(end) => told.push(Told {
                rows: std::mem::take(&mut rows),
                insert_id: end.last_insert_id(),
                affected: end.rows_affected(),
            }),
        }
    }
    Ok(told)
}

/// Runs a statement as a text with the values in it; not all that define tables can be prepared.
pub(crate) async fn run_plain(
    connection: &mut MySqlConnection,
    statement: &Statement,
    values: &[Value],
) -> Result<Vec<Row>, sqlx::Error> {
    let mut text = String::new();
    write_with_values(&mut text, statement, values);
    let rows = connection.fetch_all(sqlx::raw_sql(AssertSqlSafe(text))).await?;
    rows.iter().map(read).collect()
}

fn prepared(
    statement: &Statement,
    values: &[Value],
) -> Result<sqlx::query::Query<'static, MySql, MySqlArguments>, sqlx::Error> {
    let mut arguments = MySqlArguments::default();
    for value in statement.in_places(values) {
        let added = match value {
            Value::Null => arguments.add(None::<i64>),
            Value::Integer(integer) => arguments.add(*integer),
            Value::Text(text) => arguments.add(text.as_bytes()),
        };
        added.map_err(sqlx::Error::Encode)?;
    }
    Ok(sqlx::query_with(AssertSqlSafe(statement.text().clone()), arguments))
}

/// Writes a statement with its values in place of each `?`. Texts are written in hexadecimal
/// digits, so there is nothing in them that could be taken for SQL.
fn write_with_values(text: &mut String, statement: &Statement, values: &[Value]) {
    let mut values = statement.in_places(values);
    let mut rest: &str = statement.text();
    while let Some((before, after)) = rest.split_once('?') {
        text.push_str(before);
        match values.next() {
            Some(value) => write_literal(text, value),
            None => text.push('?'),
        }
        rest = after;
    }
    text.push_str(rest);
}

fn write_literal(text: &mut String, value: &Value) {
    match value {
        Value::Null => text.push_str("NULL"),
        // A blank before a sign, for `--` begins a comment.
        Value::Integer(integer) if *integer < 0 => {
            let _ = write!(text, " {integer}");
        }
        Value::Integer(integer) => {
            let _ = write!(text, "{integer}");
        }
        Value::Text(value) => {
            text.reserve(value.len() * 2 + 3);
            text.push_str("x'");
            for byte in value.bytes() {
                const DIGITS: [char; 16] = [
                    '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f',
                ];
                text.push(DIGITS[usize::from(byte >> 4)]);
                text.push(DIGITS[usize::from(byte & 15)]);
            }
            text.push('\'');
        }
    }
}

fn read(row: &MySqlRow) -> Result<Row, sqlx::Error> {
    let column = |index: usize| {
        let value = row.try_get_raw(index)?;
        if value.is_null() {
            return Ok(Value::Null);
        }
        let decoded = match value.type_info().name() {
            "TINYINT" | "BOOLEAN" | "SMALLINT" | "MEDIUMINT" | "INT" | "BIGINT" => {
                <i64 as Decode<'_, MySql>>::decode(value).map(Value::Integer)
            }
            _ => <&[u8] as Decode<'_, MySql>>::decode(value)
                .and_then(|bytes| Ok(Value::Text(String::from_utf8(bytes.to_vec())?))),
        };
        decoded.map_err(|source| sqlx::Error::ColumnDecode { index: index.to_string(), source })
    };
    Ok(Row::new((0..row.len()).map(column).collect::<Result<_, sqlx::Error>>()?))
}

fn decode_error(source: botmesh_core::error::BoxError) -> sqlx::Error {
    sqlx::Error::Decode(source)
}

#[cfg(test)]
mod tests {
    use botmesh_sql::{Dialect, TablePrefix};
    use proptest::prelude::*;

    use super::*;

    fn with_values(template: &str, values: &[Value]) -> String {
        let statement = Dialect::MYSQL.statement(template, &TablePrefix::default());
        let mut text = String::new();
        write_with_values(&mut text, &statement, values);
        text
    }

    #[test]
    fn values_take_the_places_of_their_numbers() {
        let values = [Value::Integer(-7), Value::Null, Value::Text("ü'\0".to_owned())];
        assert_eq!(
            with_values("SELECT {3}, x -{1} FROM t WHERE a = {2} AND b = {1}", &values),
            "SELECT x'c3bc2700', x - -7 FROM t WHERE a = NULL AND b =  -7"
        );
    }

    proptest! {
        /// B4: whatever is in a text, what is sent has nothing of it but hexadecimal digits.
        #[test]
        fn no_text_can_become_a_piece_of_sql(text in ".{0,60}") {
            let sent = with_values("{1}", &[Value::Text(text)]);
            let digits = sent.strip_prefix("x'").and_then(|sent| sent.strip_suffix('\''));
            prop_assert!(digits.unwrap().chars().all(|c| c.is_ascii_hexdigit()));
        }
    }
}
