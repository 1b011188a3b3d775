//! Who is measured.

use std::path::Path;

use anyhow::{Context as _, Result, bail};

use crate::meter::Measured;
use crate::{ours, teloxide_peer};

/// A framework, and how it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Contender {
    /// A bot of ours, alone.
    Ours,
    /// A bot of ours whose turns come from a Redis.
    Coordinated,
    /// A bot of ours whose turns and durable messages are in a Redis.
    Durable,
    /// teloxide's dispatcher.
    Teloxide,
    /// grammY, in node.
    Grammy,
    /// aiogram, in Python.
    Aiogram,
}

impl Contender {
    /// All of them, in the order in which they are measured.
    pub const ALL: [Self; 6] =
        [Self::Ours, Self::Coordinated, Self::Durable, Self::Teloxide, Self::Grammy, Self::Aiogram];

    /// Its name in the table, and on the command line of the process that measures it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ours => "botmesh",
            Self::Coordinated => "botmesh-redis",
            Self::Durable => "botmesh-durable",
            Self::Teloxide => "teloxide",
            Self::Grammy => "grammY",
            Self::Aiogram => "aiogram",
        }
    }

    /// Whether it takes so long that a rate is known after fewer updates.
    #[must_use]
    pub const fn is_slow(self) -> bool {
        matches!(self, Self::Durable | Self::Aiogram)
    }

    /// Whether it is another framework.
    #[must_use]
    pub const fn is_peer(self) -> bool {
        matches!(self, Self::Teloxide | Self::Grammy | Self::Aiogram)
    }

    /// Measures one that is written in Rust, in this process and on this thread.
    ///
    /// # Errors
    /// When an update is not answered.
    pub fn measure(name: &str, file: &Path, warm: u64, redis: &str) -> Result<Measured> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let found = Self::ALL.into_iter().find(|contender| contender.name() == name);
        match found.with_context(|| format!("{name} is not known"))? {
            Self::Ours => runtime.block_on(ours::run(file, warm, None, false)),
            Self::Coordinated => runtime.block_on(ours::run(file, warm, Some(redis), false)),
            Self::Durable => runtime.block_on(ours::run(file, warm, Some(redis), true)),
            Self::Teloxide => runtime.block_on(teloxide_peer::run(file, warm)),
            Self::Grammy | Self::Aiogram => bail!("{name} is not written in Rust"),
        }
    }
}
