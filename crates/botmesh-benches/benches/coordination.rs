//! What the coordination of replicas costs: `cargo xtask bench coordination`.

use anyhow::Result;
use botmesh_benches::coordination::{Figure, Options, USAGE, measure};

fn main() -> Result<()> {
    let Some(options) = Options::parse(std::env::args().skip(1))? else {
        print!("{USAGE}");
        return Ok(());
    };
    println!("{}", Figure::heading());
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(measure(&options, |figure| println!("{figure}")))
}
