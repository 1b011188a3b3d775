//! One bot with durability, started by a test.

use anyhow::Result;
use botmesh_tests::durable::replica::Orders;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let orders = Orders::read(&arguments)?;
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(1).enable_all().build()?;
    let obeyed = runtime.block_on(orders.obey());
    // Standard input, which tells whether the driver lives, may be read for ever.
    runtime.shutdown_background();
    obeyed
}
