//! One replica, started by the driver of a chaos run.

use anyhow::Result;
use botmesh_tests::process::Orders;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let orders = Orders::read(&arguments)?;
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(1).enable_all().build()?.block_on(orders.obey())
}
