//! One replica, started by the driver of a chaos run.

use anyhow::Result;
use botmesh_tests::driver;
use botmesh_tests::process::Orders;

fn main() -> Result<()> {
    driver::obey(|arguments| Ok(Orders::read(arguments)?.obey()))
}
