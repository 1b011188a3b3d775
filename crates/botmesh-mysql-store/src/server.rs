//! What a server says of itself, and whether it fits.

use std::collections::BTreeMap;

use botmesh_core::store::StoreError;
use botmesh_sql::{DriverError, Row};

use crate::driver::NAME;
use crate::failure::IS_READ_ONLY;

/// The oldest releases that have what is needed.
const OLDEST_MYSQL: (u32, u32) = (8, 0);
const OLDEST_MARIADB: (u32, u32) = (10, 6);

/// Asks for what [`ServerInfo`] holds. Neither product has all of these.
pub(crate) const EXAMINE: &str = "SHOW VARIABLES WHERE Variable_name IN (
    'version', 'read_only', 'super_read_only', 'innodb_read_only', 'transaction_read_only',
    'tx_read_only', 'innodb_flush_log_at_trx_commit', 'autocommit', 'sql_mode', 'max_allowed_packet')";

/// What matters of a server, and of a connection to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServerInfo {
    variables: BTreeMap<String, String>,
}

impl ServerInfo {
    pub(crate) fn read(rows: Vec<Row>) -> Result<Self, DriverError> {
        let read = |mut row: Row| Ok((row.text()?, row.text()?));
        Ok(Self { variables: rows.into_iter().map(read).collect::<Result<_, DriverError>>()? })
    }

    fn variable(&self, name: &str) -> &str {
        self.variables.get(name).map_or("", String::as_str)
    }

    /// Whether what was written survives the machine's end.
    pub(crate) fn is_durable(&self) -> bool {
        // 3 is MariaDB's, and more than 1.
        matches!(self.variable("innodb_flush_log_at_trx_commit"), "1" | "3")
    }

    /// How many bytes one request may have; the server ends the connection of whoever sends more.
    pub(crate) fn largest_request(&self) -> Option<usize> {
        self.variable("max_allowed_packet").parse().ok()
    }

    /// Refuses a server that cannot do what is needed.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        let refused =
            |reason| Err(StoreError::Refused { store: NAME, operation: "the server", reason });
        // As in `8.0.36`, or `10.11.6-MariaDB-log`.
        let version = self.variable("version");
        let mut numbers = version.split(['.', '-']).map(|part| part.parse().unwrap_or(0));
        let found = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
        let (product, oldest) = match version.contains("MariaDB") {
            true => ("MariaDB", OLDEST_MARIADB),
            false => ("MySQL", OLDEST_MYSQL),
        };
        if found < oldest {
            return refused(format!(
                "its version is {version}: upgrade it to {product} {}.{} or newer",
                oldest.0, oldest.1
            ));
        }
        let read_only = ["read_only", "super_read_only", "innodb_read_only"];
        let read_only = read_only.into_iter().chain(["transaction_read_only", "tx_read_only"]);
        for name in read_only {
            if !matches!(self.variable(name), "" | "OFF" | "0") {
                return refused(format!("{IS_READ_ONLY} ({name} is {})", self.variable(name)));
            }
        }
        // Both are so on connections of our own.
        if !matches!(self.variable("autocommit"), "ON" | "1") {
            return refused(
                "autocommit is off on the connections of the shared pool: switch it on \
                            there, or give the URL instead of the pool"
                    .to_owned(),
            );
        }
        if !["STRICT_TRANS_TABLES", "STRICT_ALL_TABLES"]
            .iter()
            .any(|strict| self.variable("sql_mode").split(',').any(|mode| mode == *strict))
        {
            return refused(
                "sql_mode is not strict on the connections of the shared pool: add \
                            STRICT_ALL_TABLES to it, or give the URL instead of the pool"
                    .to_owned(),
            );
        }
        Ok(())
    }

    /// What works, but not as it should.
    pub(crate) fn warning(&self) -> Option<String> {
        (!self.is_durable()).then(|| {
            format!(
                "the server does not wait for its disk with each write \
                 (innodb_flush_log_at_trx_commit is {}): it may lose the last second when its \
                 machine stops",
                self.variable("innodb_flush_log_at_trx_commit")
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use botmesh_sql::Value;

    use super::*;

    fn info(changed: &[(&str, &str)]) -> ServerInfo {
        let usual = [
            ("version", "8.0.36"),
            ("read_only", "OFF"),
            ("innodb_flush_log_at_trx_commit", "1"),
            ("autocommit", "ON"),
            ("sql_mode", "ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES"),
        ];
        let rows = usual.iter().chain(changed);
        let rows = rows.map(|(name, value)| Row::new(vec![Value::from(*name), (*value).into()]));
        ServerInfo::read(rows.collect()).unwrap()
    }

    fn refusal(name: &str, value: &str) -> String {
        info(&[(name, value)]).check().unwrap_err().to_string()
    }

    /// B5: a server that is too old is refused with what to do.
    #[test]
    fn versions_are_compared_with_those_of_the_same_product() {
        for version in ["5.7.44-log", "5.5.5"] {
            let text = refusal("version", version);
            assert!(text.contains(version) && text.contains("upgrade it to MySQL 8.0"), "{text}");
        }
        let text = refusal("version", "10.5.23-MariaDB-1:10.5.23");
        assert!(text.contains("upgrade it to MariaDB 10.6"), "{text}");
        for fit in ["8.0.11", "8.4.0-commercial", "9.1.0", "10.6.0-MariaDB", "11.4.2-MariaDB-log"] {
            info(&[("version", fit)]).check().unwrap();
        }
    }

    #[test]
    fn what_takes_no_writes_is_refused() {
        for name in ["read_only", "super_read_only", "innodb_read_only", "tx_read_only"] {
            let text = refusal(name, "ON");
            assert!(text.contains("replica or read-only") && text.contains(name), "{text}");
        }
        assert!(refusal("read_only", "NO_LOCK").contains("read-only"));
    }

    /// B4: nothing is cut to fit.
    #[test]
    fn a_shared_pool_with_other_settings_is_refused() {
        assert!(refusal("sql_mode", "NO_ENGINE_SUBSTITUTION").contains("sql_mode is not strict"));
        assert!(refusal("autocommit", "OFF").contains("autocommit is off"));
    }

    #[test]
    fn a_server_that_does_not_wait_for_its_disk_is_warned_about() {
        assert_eq!(info(&[]).warning(), None);
        let text = info(&[("innodb_flush_log_at_trx_commit", "2")]).warning().unwrap();
        assert!(text.contains("lose the last second"), "{text}");
    }
}
