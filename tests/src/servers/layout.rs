//! Which servers a run has.

use super::{mongo, mysql, postgres, redis};

/// Which servers a run has, and how they are laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// One Redis server.
    Single,
    /// A master of Redis with two replicas and three sentinels.
    Sentinel,
    /// Three masters of Redis with a replica each.
    Cluster,
    /// One PostgreSQL server.
    Postgres,
    /// One MariaDB server.
    Mysql,
    /// One server of what stands in for MongoDB.
    Mongo,
}

impl Layout {
    /// Whether there is one server, which nothing takes the place of.
    #[must_use]
    pub const fn is_single(self) -> bool {
        matches!(self, Self::Single | Self::Postgres | Self::Mysql | Self::Mongo)
    }

    /// The coordinator for it, as [`open`](crate::backend::open) calls it.
    #[must_use]
    pub const fn backend(self) -> &'static str {
        match self {
            Self::Single => "redis",
            Self::Sentinel => "redis-sentinel",
            Self::Cluster => "redis-cluster",
            Self::Postgres => "postgres",
            Self::Mysql => "mysql",
            Self::Mongo => "mongo",
        }
    }

    /// Where that coordinator finds servers at these ports of this machine.
    #[must_use]
    pub fn url(self, ports: &[u16]) -> String {
        let url = |port: &u16| match self {
            // Without encryption: the proxies pass on what they see.
            Self::Postgres => {
                format!("postgres://postgres@127.0.0.1:{port}/postgres?sslmode=disable")
            }
            Self::Mysql => format!("mysql://bot@127.0.0.1:{port}/bots?ssl-mode=DISABLED"),
            // Not where the server says that it is, which is behind the proxies.
            Self::Mongo => format!("mongodb://127.0.0.1:{port}/?directConnection=true"),
            _ => format!("redis://127.0.0.1:{port}"),
        };
        ports.iter().map(url).collect::<Vec<_>>().join(",")
    }

    /// Whether this machine has the program of its servers.
    #[must_use]
    pub fn is_installed(self) -> bool {
        match self {
            Self::Postgres => postgres::is_installed(),
            Self::Mysql => mysql::is_installed(),
            Self::Mongo => mongo::is_installed(),
            _ => redis::is_installed(),
        }
    }
}
