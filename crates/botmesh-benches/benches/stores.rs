//! What stores reach: `cargo xtask bench stores`.

use anyhow::Result;
use botmesh_benches::stores::{Options, USAGE, measure};

fn main() -> Result<()> {
    let Some(options) = Options::parse(std::env::args().skip(1))? else {
        print!("{USAGE}");
        return Ok(());
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(measure(&options))
}
