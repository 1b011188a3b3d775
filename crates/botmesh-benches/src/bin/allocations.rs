//! Measures what one kind of work allocates and prints it as JSON; `cargo xtask bench dispatch`
//! starts it.

use std::alloc::System;

use anyhow::{Context as _, Result};
use botmesh_benches::{Workload, memory};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let usage = "usage: allocations WORKLOAD CHATS MESSAGES";
    let workload = arguments.next().and_then(|name| Workload::named(&name)).context(usage)?;
    let chats = arguments.next().context(usage)?.parse().context(usage)?;
    let messages = arguments.next().context(usage)?.parse().context(usage)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let memory = runtime.block_on(memory::measure(ALLOCATOR, workload, chats, messages))?;
    println!("{}", serde_json::to_string(&memory)?);
    Ok(())
}
