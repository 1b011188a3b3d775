//! What processors did, in nanoseconds, as Linux counts it.

use std::fs::read_to_string;

use anyhow::{Context as _, Result};

/// Processor time that was spent until one moment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Processor {
    /// By the processes of the server that live; zero where it is another machine's.
    pub(super) server: u64,
    /// By this process.
    pub(super) own: u64,
}

impl Processor {
    /// `server` is the server's first process; each of its connections may have one below it.
    pub(super) fn read(server: Option<u32>) -> Result<Self> {
        let children = match server {
            Some(server) => read_to_string(format!("/proc/{server}/task/{server}/children"))?,
            None => String::new(),
        };
        let children = children.split_whitespace().filter_map(|id| id.parse().ok());
        // One that has ended meanwhile counts no more.
        let spent_by_all = server.into_iter().chain(children).filter_map(|id: u32| spent(id).ok());
        Ok(Self { server: spent_by_all.sum(), own: spent(std::process::id())? })
    }

    /// What was spent since `before`, on each of so many messages, in microseconds.
    pub(super) fn of_each(self, before: Self, messages: u64) -> [f64; 2] {
        let each =
            |now: u64, before: u64| now.saturating_sub(before) as f64 / 1e3 / messages as f64;
        [each(self.server, before.server), each(self.own, before.own)]
    }
}

/// By all threads of a process.
fn spent(process: u32) -> Result<u64> {
    let mut spent = 0;
    for thread in std::fs::read_dir(format!("/proc/{process}/task"))? {
        // One that has ended meanwhile counts no more.
        let Ok(told) = read_to_string(thread?.path().join("schedstat")) else { continue };
        spent += told.split_whitespace().next().context("nothing is told")?.parse::<u64>()?;
    }
    Ok(spent)
}
