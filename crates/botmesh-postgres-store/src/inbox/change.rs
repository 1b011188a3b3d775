//! The end of a record as the function `inbox_commit` reads it and answers it.

use botmesh_core::Revision;
use botmesh_core::store::{CheckpointChange, Commit, Committed, StoreError};
use botmesh_sql::{DriverError, Fault, Row, SqlStore, Value};

use crate::driver::PostgresDriver;

/// The values: chat, position, fence, which change, body, time to wake, time to expire, expected
/// revision.
pub(crate) fn values(
    store: &SqlStore<PostgresDriver>,
    commit: &Commit<'_>,
) -> Result<Vec<Value>, StoreError> {
    let Commit { chat, position, fence, checkpoint } = *commit;
    let place = i64::try_from(position.get()).unwrap_or(-1);
    let expects = |revision: Option<Revision>| {
        revision.map_or(Value::Null, SqlStore::<PostgresDriver>::revision)
    };
    let (change, write, expected) = match checkpoint {
        CheckpointChange::Nothing => (0, None, None),
        CheckpointChange::Set { write, expected: None } => (1, Some(write), None),
        CheckpointChange::Set { write, expected } => (2, Some(write), expected),
        CheckpointChange::Clear { expected } => (3, None, Some(expected)),
    };
    Ok(vec![
        chat.as_str().into(),
        Value::Integer(place),
        store.fence(fence)?,
        Value::Integer(change),
        write.map_or("", |write| write.body).into(),
        write.and_then(|write| write.wake_in).into(),
        write.and_then(|write| write.expires_in).into(),
        expects(expected),
    ])
}

/// What it answers.
pub(crate) fn committed(row: &mut Row, commit: &Commit<'_>) -> Result<Committed, DriverError> {
    let Some(written) = row.optional_integer()? else { return Ok(Committed::Refused) };
    let written =
        u64::try_from(written).map_err(|error| DriverError::new(Fault::Corrupt, error))?;
    let is_set = matches!(commit.checkpoint, CheckpointChange::Set { .. });
    Ok(Committed::Applied(is_set.then(|| Revision::new(written))))
}
