//! What cargo alone cannot do for this workspace: the checks of a change, private servers for the tests, benches.
//!
//! Run it as `cargo xtask`; without arguments it lists its commands.

mod bench;
mod chaos;
mod ci;
mod flags;
mod fuzz;
mod guarantees;
mod layers;
mod process;
mod services;
mod simulate;
mod source;
mod test;
mod tidy;
mod tool;
mod workspace;

use std::process::ExitCode;

use flags::Command;
use workspace::Workspace;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> anyhow::Result<()> {
    let command = flags::parse(std::env::args().skip(1))?;
    if let Command::Help = command {
        print!("{}", flags::HELP);
        return Ok(());
    }
    process::watch_for_interrupts()?;
    let workspace = Workspace::load()?;
    match command {
        Command::Help => Ok(()),
        Command::Ci { install } => ci::run(&workspace, install),
        Command::Test { arguments } => test::run(&workspace, &arguments),
        Command::Services { action, install } => services::run(&workspace, action, install),
        Command::Simulate { seeds, first } => simulate::run(&workspace, seeds, first),
        Command::Bench { name, arguments } => bench::run(&workspace, name.as_deref(), &arguments),
        Command::Chaos { arguments } => chaos::run(&workspace, &arguments),
        Command::Fuzz { target } => fuzz::run(&workspace, target),
        Command::Tidy => tidy::run(&workspace),
        Command::Guarantees => guarantees::run(&workspace),
    }
}
