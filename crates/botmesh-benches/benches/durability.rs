//! What it costs that nothing is lost: `cargo xtask bench durability`.

use anyhow::Result;
use botmesh_benches::durability::{Options, USAGE, measure};

fn main() -> Result<()> {
    let Some(options) = Options::parse(std::env::args().skip(1))? else {
        print!("{USAGE}");
        return Ok(());
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(measure(&options))
}
