//! What processors did, in nanoseconds, as Linux counts it.

use std::fs::read_to_string;

use anyhow::{Context as _, Result};

/// Processor time that was spent until one moment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Processor {
    /// By the processes of the server that live.
    pub(super) server: u64,
    /// By this process.
    pub(super) own: u64,
}

impl Processor {
    /// `server` is the server's first process; each of its connections has one below it.
    pub(super) fn read(server: u32) -> Result<Self> {
        let children = read_to_string(format!("/proc/{server}/task/{server}/children"))?;
        let children = children.split_whitespace().filter_map(|id| id.parse().ok());
        // One that has ended meanwhile counts no more.
        let spent = std::iter::once(server).chain(children).filter_map(|id| spent(id).ok());
        let mut own = 0;
        for task in std::fs::read_dir("/proc/self/task")? {
            let id: u32 = task?.file_name().to_string_lossy().parse()?;
            own += spent_by(&format!("/proc/self/task/{id}/schedstat"))?;
        }
        Ok(Self { server: spent.sum(), own })
    }

    /// What was spent since `before`, on each of so many messages, in microseconds.
    pub(super) fn of_each(self, before: Self, messages: u64) -> [f64; 2] {
        let each =
            |now: u64, before: u64| now.saturating_sub(before) as f64 / 1e3 / messages as f64;
        [each(self.server, before.server), each(self.own, before.own)]
    }
}

fn spent(process: u32) -> Result<u64> {
    spent_by(&format!("/proc/{process}/schedstat"))
}

fn spent_by(file: &str) -> Result<u64> {
    let told = read_to_string(file)?;
    Ok(told.split_whitespace().next().context("nothing is told")?.parse()?)
}
