//! The driver of a chaos run; `cargo xtask chaos` builds and starts it.

use std::process::ExitCode;

use anyhow::{Result, bail};
use botmesh_tests::chaos::Chaos;
use botmesh_tests::driver::{self, Flags};
use botmesh_tests::servers::Layout;

fn main() -> ExitCode {
    driver::conclude(run())
}

fn run() -> Result<bool> {
    let chaos = read(Flags::of_this_process())?;
    let Chaos { seed, replicas, time, layout, .. } = chaos;
    println!("seed {seed}, {layout}, {replicas} replicas, {} s", time.as_secs());
    driver::drive(chaos.run())
}

fn read(mut flags: Flags) -> Result<Chaos> {
    let mut chaos = Chaos::new(driver::program("worker")?, driver::fresh_seed()?, driver::USUAL);
    let mut layouts = Vec::new();
    while let Some(flag) = flags.next() {
        match flag.as_str() {
            "--sentinel" => layouts.push(Layout::Sentinel),
            "--cluster" => layouts.push(Layout::Cluster),
            "--backend" => layouts.push(Layout::named(&flags.value(&flag)?)?),
            _ => flags.common(&flag, &mut chaos.time, &mut chaos.seed, &mut chaos.replicas)?,
        }
    }
    match layouts.as_slice() {
        [] => {}
        [layout] => chaos.layout = *layout,
        _ => bail!("choose one of --sentinel, --cluster and a --backend"),
    }
    if !(3..=8).contains(&chaos.replicas) {
        bail!("{} replicas: choose 3 to 8", chaos.replicas);
    }
    Ok(chaos)
}
