//! The figures, for people.

use std::fmt::Write as _;

use serde::Serialize;

use crate::memory::Memory;
use crate::spread::Spread;

/// How fast one kind of work is at one number of chats.
#[derive(Debug, Clone, Serialize)]
pub struct Speed {
    /// The kind of work.
    pub workload: &'static str,
    /// `botmesh`, or the peer's name.
    pub framework: &'static str,
    /// How many chats wrote in turn.
    pub chats: u64,
    /// Messages answered in each second.
    pub rate: Spread,
    /// Microseconds from the delivery to the reply, one message at a time: half take no longer.
    pub p50: Spread,
    /// 99 of 100 take no longer.
    pub p99: Spread,
    /// How many times as many messages as the peer botmesh answers; for peers.
    pub ours_to_theirs: Option<f64>,
}

/// What one kind of work takes in memory.
#[derive(Debug, Clone, Serialize)]
pub struct Use {
    /// The kind of work.
    pub workload: &'static str,
    /// How many chats there were.
    pub chats: u64,
    /// What was measured.
    #[serde(flatten)]
    pub memory: Memory,
}

/// All figures.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Figures {
    /// How fast it is.
    pub speed: Vec<Speed>,
    /// What it takes in memory.
    pub memory: Vec<Use>,
}

impl Figures {
    /// The figures as a text of aligned columns.
    #[must_use]
    pub fn table(&self) -> String {
        let mut text = String::new();
        self.write(&mut text).map(|()| text).unwrap_or_default()
    }

    fn write(&self, text: &mut String) -> std::fmt::Result {
        writeln!(
            text,
            "{:<16} {:<9} {:>7}  {:>27}  {:>14}  {:>14}  {:>10}",
            "workload",
            "by",
            "chats",
            "messages/s (least-most)",
            "p50 in us",
            "p99 in us",
            "ours/peer"
        )?;
        for speed in &self.speed {
            let Speed { workload, framework, chats, rate, p50, p99, ours_to_theirs } = speed;
            let (p50, p99) = (p50.median, p99.median);
            let ratio = ours_to_theirs.map(|ratio| format!("{ratio:.2}")).unwrap_or_default();
            writeln!(
                text,
                "{workload:<16} {framework:<9} {chats:>7}  {rate:>27}  {p50:>14.1}  {p99:>14.1}  {ratio:>10}"
            )?;
        }
        if self.memory.is_empty() {
            return Ok(());
        }
        writeln!(
            text,
            "\n{:<16} {:>7}  {:>23}  {:>13}  {:>21}  {:>20}",
            "workload",
            "chats",
            "allocations per message",
            "+ its own",
            "bytes of each chat",
            "resident"
        )?;
        for Use { workload, chats, memory } in &self.memory {
            let Memory { allocations, of_message, bytes_per_chat, resident_per_chat } = memory;
            let resident = resident_per_chat.map(|bytes| format!("{bytes:.0}")).unwrap_or_default();
            writeln!(
                text,
                "{workload:<16} {chats:>7}  {allocations:>23.2}  {of_message:>13.2}  {bytes_per_chat:>21.0}  {resident:>20}"
            )?;
        }
        Ok(())
    }
}
