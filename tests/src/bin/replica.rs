//! One replica of a whole bot, started by the driver of a run.

use anyhow::Result;
use botmesh_tests::bots::replica::Orders;
use botmesh_tests::driver;

fn main() -> Result<()> {
    driver::obey(|arguments| Ok(Orders::read(arguments)?.obey()))
}
