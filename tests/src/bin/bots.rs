//! The driver of a run of whole bots; `cargo xtask chaos --bots` builds and starts it.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Result, bail};
use botmesh_tests::bots::{Bots, examine};
use botmesh_tests::driver::{self, Flags};

fn main() -> ExitCode {
    driver::conclude(run())
}

fn run() -> Result<bool> {
    let mut bots = Bots::new(driver::program("replica")?, driver::fresh_seed()?, driver::USUAL);
    let mut flags = Flags::of_this_process();
    while let Some(flag) = flags.next() {
        match flag.as_str() {
            "--examine" => {
                let report = examine(Path::new(&flags.value(&flag)?))?;
                return Ok(driver::tell(&report, None));
            }
            "--people" => bots.people = usize::try_from(flags.number(&flag)?)?,
            _ => flags.common(&flag, &mut bots.time, &mut bots.seed, &mut bots.replicas)?,
        }
    }
    if !(2..=8).contains(&bots.replicas) {
        bail!("{} replicas: choose 2 to 8", bots.replicas);
    }
    println!(
        "seed {}, {} replicas of a bot, faults for {} s",
        bots.seed,
        bots.replicas,
        bots.time.as_secs()
    );
    driver::drive(bots.run())
}
