//! One bot with durability, started by a test.

use anyhow::Result;
use botmesh_tests::driver;
use botmesh_tests::durable::replica::Orders;

fn main() -> Result<()> {
    driver::obey(|arguments| Ok(Orders::read(arguments)?.obey()))
}
