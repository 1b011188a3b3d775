//! Steps of the inbox as parts of a statement of somebody else.

use botmesh_core::store::{Admission, Begun, Commit, Committed, NewRecord, StoreError};

use super::commit::{self, Follow};
use super::{admit, begin, committed};
use crate::DriverError;
use crate::driver::Driver;
use crate::statement::Statement;
use crate::store::SqlStore;
use crate::value::{Row, Value};

/// The ends of records, followed by something in the same statement, where the backend combines
/// statements.
#[derive(Debug)]
pub struct Joined(commit::Statements);

impl Joined {
    /// An end that is followed by a selection `from` something, which has `values` values of its
    /// own: `{+1}` and so on. Its `columns` stand behind what an end tells.
    #[must_use]
    pub fn new<D: Driver>(store: &SqlStore<D>, columns: &str, from: &str, values: u8) -> Self {
        let follow = Some(Follow { columns, from, values });
        Self(commit::Statements::followed(&store.driver.dialect(), store.prefix(), follow))
    }

    /// The statement of an end, and the values that come first in it.
    ///
    /// # Errors
    /// [`StoreError`] for what the backend cannot hold.
    pub fn end<D: Driver>(
        &self,
        store: &SqlStore<D>,
        commit: &Commit<'_>,
    ) -> Result<(&Statement, Vec<Value>), StoreError> {
        store.ending(&self.0, commit)
    }

    /// What an end tells that was applied: its row has that first.
    ///
    /// # Errors
    /// [`DriverError`] for a row of another kind.
    pub fn committed(row: &mut Row, commit: &Commit<'_>) -> Result<Committed, DriverError> {
        committed(row, commit)
    }

    /// The values of the function that admits.
    ///
    /// # Errors
    /// [`StoreError`] for what the backend cannot hold.
    pub fn admission<D: Driver>(
        store: &SqlStore<D>,
        record: &NewRecord<'_>,
    ) -> Result<Vec<Value>, StoreError> {
        store.admission(record)
    }

    /// What the function that admits tells: its row has that first.
    ///
    /// # Errors
    /// [`DriverError`] for a row of another kind.
    pub fn admitted(row: &mut Row) -> Result<Admission, DriverError> {
        admit::admission(row)
    }

    /// What the function that begins tells; none when it is to be asked again.
    ///
    /// # Errors
    /// [`DriverError`] for a row of another kind.
    pub fn begun(row: Row) -> Result<Option<Begun>, DriverError> {
        begin::begun(row)
    }
}
