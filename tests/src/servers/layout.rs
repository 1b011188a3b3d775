//! Which servers a run has.

use std::fmt;

use anyhow::{Context as _, Result};

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
    /// The layout with one server that users call so.
    ///
    /// # Errors
    /// When they call none so.
    pub fn named(name: &str) -> Result<Self> {
        let all = [Self::Single, Self::Postgres, Self::Mysql, Self::Mongo];
        let found = all.into_iter().find(|layout| layout.backend() == name);
        found.with_context(|| format!("there is no backend {name} here: see `cargo xtask help`"))
    }

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

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Single => "Redis",
            Self::Sentinel => "Redis with sentinels",
            Self::Cluster => "a cluster of Redis",
            Self::Postgres => "PostgreSQL",
            Self::Mysql => "MariaDB",
            Self::Mongo => "what stands in for MongoDB",
        })
    }
}
