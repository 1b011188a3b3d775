//! What a server says of itself, and whether it fits.

use botmesh_core::store::StoreError;
use redis::{ErrorKind, RedisResult};

use crate::error::{IS_A_CLUSTER, IS_A_REPLICA, refused};
use crate::keys::Layout;

/// Names the run of a server, from the answer of `INFO server`.
pub(crate) fn run_of(information: &str) -> RedisResult<String> {
    match field(information, "run_id") {
        Some(run) => Ok(run.to_owned()),
        None => Err((ErrorKind::UnexpectedReturnType, "INFO names no run_id").into()),
    }
}

fn field<'a>(information: &'a str, name: &str) -> Option<&'a str> {
    information.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
}

/// The oldest version whose scripts say beforehand whether they write, and which has shard channels.
const OLDEST: (u32, u32) = (7, 0);

/// The parts of `INFO` that matter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServerInfo {
    version: (u32, u32),
    version_text: String,
    is_cluster: bool,
    is_replica: bool,
    /// Whether each write is appended to a file.
    pub(crate) appends: bool,
    eviction: Option<String>,
    /// Whether it stops to take writes when its replicas are gone.
    stops_without_replicas: bool,
}

impl ServerInfo {
    /// Reads the answer of `INFO`.
    pub(crate) fn read(text: &str) -> Self {
        let field = |name: &str| field(text, name);
        let version_text = field("redis_version").unwrap_or("unknown").to_owned();
        let mut numbers = version_text.split('.').map(|part| part.parse().unwrap_or(0));
        let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
        let bounded = field("maxmemory").is_some_and(|bytes| bytes != "0");
        let policy = field("maxmemory_policy").filter(|policy| *policy != "noeviction");
        Self {
            version,
            version_text,
            is_cluster: field("redis_mode") == Some("cluster")
                || field("cluster_enabled") == Some("1"),
            is_replica: field("role") == Some("slave"),
            appends: field("aof_enabled") == Some("1"),
            eviction: policy.filter(|_| bounded).map(str::to_owned),
            // Told only where `min-replicas-to-write` is set.
            stops_without_replicas: field("min_slaves_good_slaves").is_some(),
        }
    }

    /// Refuses a server that cannot do what is needed.
    pub(crate) fn check(&self, layout: Layout) -> Result<(), StoreError> {
        const SERVER: &str = "the server";
        if self.version < OLDEST {
            let (major, minor) = OLDEST;
            let reason = format!(
                "its version is {}: upgrade it to Redis {major}.{minor} or newer",
                self.version_text
            );
            return Err(refused(SERVER, reason));
        }
        match (layout, self.is_cluster) {
            (Layout::Single, true) => return Err(refused(SERVER, IS_A_CLUSTER)),
            (Layout::Cluster, false) => {
                let reason = "it is no node of a cluster: open the store by `RedisStore::connect`";
                return Err(refused(SERVER, reason));
            }
            _ => {}
        }
        if self.is_replica {
            return Err(refused(SERVER, IS_A_REPLICA));
        }
        Ok(())
    }

    /// That it throws keys away, if it does.
    pub(crate) fn evicts(&self) -> Option<String> {
        let policy = self.eviction.as_ref()?;
        Some(format!(
            "the server throws keys away when its memory is full (maxmemory-policy {policy}), and \
             with them what was accepted, checkpoints, locks and turns: set maxmemory-policy to \
             noeviction"
        ))
    }

    /// What works, but not as it should.
    pub(crate) fn warnings(&self, has_sentinel: bool) -> Vec<String> {
        let mut warnings = Vec::from_iter(self.evicts());
        if has_sentinel && !self.stops_without_replicas {
            warnings.push(
                "the master goes on to take writes after Sentinel has promoted another one, and \
                 two replicas of a bot may then hold one chat: set min-replicas-to-write to 1 and \
                 min-replicas-max-lag to a few seconds, and `grace` to a lease and that lag"
                    .to_owned(),
            );
        }
        warnings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(lines: &[&str]) -> ServerInfo {
        ServerInfo::read(&format!("# Server\r\n{}\r\n", lines.join("\r\n")))
    }

    fn reason(info: &ServerInfo, layout: Layout) -> String {
        info.check(layout).unwrap_err().to_string()
    }

    /// B5: a server that is too old is refused with what to do.
    #[test]
    fn versions_are_compared_as_numbers() {
        let old = info(&["redis_version:6.2.14", "redis_mode:standalone", "role:master"]);
        assert!(reason(&old, Layout::Single).contains("6.2.14: upgrade it to Redis 7.0"));
        for fit in ["7.0.0", "7.2.4", "8.0.1", "10.1.0"] {
            let fit = format!("redis_version:{fit}");
            info(&[&fit, "redis_mode:standalone", "role:master"]).check(Layout::Single).unwrap();
        }
        assert!(reason(&info(&["redis_version:strange"]), Layout::Single).contains("strange"));
    }

    /// C12: the layout must fit the server.
    #[test]
    fn a_layout_that_does_not_fit_is_refused() {
        let cluster = info(&["redis_version:7.0.15", "redis_mode:cluster", "role:master"]);
        cluster.check(Layout::Cluster).unwrap();
        assert!(reason(&cluster, Layout::Single).contains("`RedisStore::cluster`"));
        let single = info(&["redis_version:7.0.15", "redis_mode:standalone", "role:master"]);
        assert!(reason(&single, Layout::Cluster).contains("`RedisStore::connect`"));
    }

    #[test]
    fn eviction_matters_only_where_memory_is_bounded() {
        let of = |bytes: &str, policy: &str| {
            info(&[&format!("maxmemory:{bytes}"), &format!("maxmemory_policy:{policy}")])
                .warnings(false)
                .pop()
        };
        assert_eq!(of("0", "allkeys-lru"), None);
        assert_eq!(of("1000", "noeviction"), None);
        assert!(of("1000", "volatile-lru").is_some_and(|text| text.contains("volatile-lru")));
    }

    /// C6: a master that Sentinel may replace must stop to take writes then.
    #[test]
    fn a_master_under_sentinel_must_stop_without_replicas() {
        let [warning] = &info(&["role:master"]).warnings(true)[..] else { panic!("no warning") };
        assert!(warning.contains("min-replicas-to-write to 1"), "{warning}");
        assert!(info(&["min_slaves_good_slaves:2"]).warnings(true).is_empty());
        assert!(info(&["role:master"]).warnings(false).is_empty());
    }
}
