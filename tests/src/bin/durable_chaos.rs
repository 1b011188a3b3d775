//! The driver of a chaos run with durability; `cargo xtask chaos --durable` builds and starts it.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, bail};
use botmesh_tests::driver::{self, Flags};
use botmesh_tests::durable::chaos::{DurableChaos, Home};
use botmesh_tests::servers::Layout;

fn main() -> ExitCode {
    driver::conclude(run())
}

fn run() -> Result<bool> {
    let chaos = read(Flags::of_this_process())?;
    let replicas = chaos.size();
    let DurableChaos { seed, people, time, home, recognises, .. } = chaos;
    let platform = if recognises { "that recognises sends" } else { "that takes every send" };
    println!(
        "seed {seed}, {home}, {replicas} replicas, {people} users on a platform {platform}, {} s",
        time.as_secs()
    );
    driver::drive(chaos.run())
}

fn read(mut flags: Flags) -> Result<DurableChaos> {
    let (program, seed) = (driver::program("durable")?, driver::fresh_seed()?);
    let mut chaos = DurableChaos::new(program, seed, driver::USUAL);
    while let Some(flag) = flags.next() {
        match flag.as_str() {
            "--keys" => chaos.recognises = true,
            "--backend" => {
                let name = flags.value(&flag)?;
                let is_file = name == "sqlite";
                chaos.home = if is_file { Home::File } else { Home::Server(Layout::named(&name)?) };
            }
            "--lease" => chaos.lease = Duration::from_secs(flags.number(&flag)?),
            "--people" => chaos.people = usize::try_from(flags.number(&flag)?)?,
            _ => flags.common(&flag, &mut chaos.time, &mut chaos.seed, &mut chaos.replicas)?,
        }
    }
    if chaos.lease.is_zero() {
        bail!("a lease of 0 s: choose 1 or more");
    }
    if !(2..=8).contains(&chaos.replicas) {
        bail!("{} replicas: choose 2 to 8", chaos.replicas);
    }
    Ok(chaos)
}
