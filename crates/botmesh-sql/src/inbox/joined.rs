//! Steps of the inbox in statements of somebody else.

use botmesh_core::store::{Admission, Begun, Commit, Committed, NewRecord, StoreError};

use super::{admit, begin, committed};
use crate::DriverError;
use crate::driver::Driver;
use crate::store::SqlStore;
use crate::value::{Row, Value};

/// What steps send and tell, for who executes them in statements of their own.
#[derive(Debug)]
pub enum Joined {}

impl Joined {
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
