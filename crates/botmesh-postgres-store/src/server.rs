//! What a server says of itself, and whether it fits.

use botmesh_core::store::StoreError;
use botmesh_sql::{DriverError, Row};

use crate::driver::NAME;
use crate::failure::IS_READ_ONLY;

/// The oldest major version that is still maintained.
const OLDEST: i64 = 14;

/// Asks for what [`ServerInfo`] holds, in this order.
pub(crate) const EXAMINE: &str = "SELECT
    CAST(current_setting('server_version_num') AS BIGINT),
    CAST(pg_is_in_recovery() OR current_setting('transaction_read_only') = 'on' AS INTEGER),
    CAST(current_setting('fsync') = 'on' AND current_setting('full_page_writes') = 'on' AS INTEGER)";

/// What is wrong with a server that is not durable.
pub(crate) const NOT_DURABLE: &str = "the server does not wait for its disk (fsync or full_page_writes is \
    off): it may lose or damage everything when its machine stops";

/// Whether a write is confirmed only when it is on the disk, for this user and database.
pub(crate) const WAITS: &str =
    "SELECT CAST(current_setting('synchronous_commit') <> 'off' AS INTEGER)";

/// What it means if it is not.
pub(crate) const DOES_NOT_WAIT: &str = "writes are confirmed before they are on the disk \
    (synchronous_commit is off): the server may lose what was accepted in the last moments when it stops";

/// What matters of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ServerInfo {
    version: i64,
    is_read_only: bool,
    /// Whether what was written survives the machine's end.
    pub(crate) is_durable: bool,
}

impl ServerInfo {
    pub(crate) fn read(mut row: Row) -> Result<Self, DriverError> {
        Ok(Self {
            version: row.integer()?,
            is_read_only: row.integer()? != 0,
            is_durable: row.integer()? != 0,
        })
    }

    /// Refuses a server that cannot do what is needed.
    pub(crate) fn check(self) -> Result<(), StoreError> {
        let refused =
            |reason| Err(StoreError::Refused { store: NAME, operation: "the server", reason });
        // As in 150019 for 15.19.
        let major = self.version / 10_000;
        if major < OLDEST {
            return refused(format!(
                "its version is {major}: upgrade it to PostgreSQL {OLDEST} or newer"
            ));
        }
        if self.is_read_only {
            return refused(IS_READ_ONLY.to_owned());
        }
        Ok(())
    }

    /// What works, but not as it should.
    pub(crate) fn warning(self) -> Option<String> {
        (!self.is_durable).then(|| NOT_DURABLE.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use botmesh_sql::Value;

    use super::*;

    fn info(version: i64, is_read_only: i64, is_durable: i64) -> ServerInfo {
        let columns = [version, is_read_only, is_durable].map(Value::Integer);
        ServerInfo::read(Row::new(columns.into())).unwrap()
    }

    /// B5: a server that is too old is refused with what to do.
    #[test]
    fn versions_are_compared_by_their_first_number() {
        let text = info(130_022, 0, 1).check().unwrap_err().to_string();
        assert!(text.contains("its version is 13: upgrade it to PostgreSQL 14"), "{text}");
        let text = info(90_624, 0, 1).check().unwrap_err().to_string();
        assert!(text.contains("its version is 9"), "{text}");
        for fit in [140_000, 150_019, 180_001] {
            info(fit, 0, 1).check().unwrap();
        }
    }

    #[test]
    fn a_standby_is_refused_and_a_server_without_fsync_warned_about() {
        let text = info(150_019, 1, 1).check().unwrap_err().to_string();
        assert!(text.contains("standby"), "{text}");
        assert_eq!(info(150_019, 0, 1).warning(), None);
        assert!(info(150_019, 0, 0).warning().unwrap().contains("fsync"));
    }
}
