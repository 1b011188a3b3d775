//! The command line of `cargo xtask`.

use anyhow::{Result, bail};

use crate::{fuzz, simulate};

#[cfg(test)]
mod tests;

pub(crate) const HELP: &str = "\
usage: cargo xtask COMMAND

  ci [--install]                 every check that a change must pass, with the servers that its tests need
  test [-p CRATE] [FILTER]...    unit and integration tests, with the servers of `services up` if they run
  services up|down|status        private servers on free ports in a temporary directory
           [--install]           ... installing the programs they need through the package manager
  simulate [--seeds N]           whole bots with faults in virtual time: so many seeds, 2,000 by default
           [--first N]           ... beginning with another one than 0
  bench [NAME [ARGUMENT...]]     one benchmark; without a name, the list of them
  chaos [--minutes 10 | --seconds N] [--seed N] [--replicas N]
        [--backend redis|postgres|mysql|mongo | --sentinel | --cluster]
                                 worker processes and faults on a private server, and a check of what happened
        --bots [--minutes 10] [--seed N] [--replicas N] [--people N]
                                 ... the same with whole bots, which are also restarted and deployed in order
        --durable [--minutes 10] [--seed N] [--replicas N] [--people N] [--keys]
        [--backend redis|postgres|mysql|mongo|sqlite] [--lease SECONDS]
                                 ... with bots that lose nothing, one alone on SQLite; with --keys the platform knows
                                 repeated sends
  fuzz [TARGET [--seconds 60 | --input FILE]]
                                 one fuzz target under libFuzzer; without one, the list of them
  tidy                           layers, file sizes, manifests, crate docs, forbidden text
  guarantees                     every promise of docs/guarantees.md against the tests that prove it
";

/// One command with its arguments.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Command {
    Help,
    Ci { install: bool },
    Test { arguments: Vec<String> },
    Services { action: Action, install: bool },
    Simulate { seeds: u64, first: u64 },
    Bench { name: Option<String>, arguments: Vec<String> },
    Chaos { arguments: Vec<String> },
    Fuzz { target: Option<(String, fuzz::What)> },
    Tidy,
    Guarantees,
}

/// What to do with the private servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    Up,
    Down,
    Status,
}

/// Reads the arguments that follow the program's name.
pub(crate) fn parse(arguments: impl Iterator<Item = String>) -> Result<Command> {
    let mut arguments: Vec<String> = arguments.collect();
    if arguments.is_empty() || arguments.iter().any(|argument| argument == "--help") {
        return Ok(Command::Help);
    }
    let command = arguments.remove(0);
    match command.as_str() {
        "help" | "-h" => Ok(Command::Help),
        "ci" => {
            let install = take_install(&mut arguments);
            nothing_left(&command, &arguments)?;
            Ok(Command::Ci { install })
        }
        "test" => Ok(Command::Test { arguments }),
        "services" => {
            let install = take_install(&mut arguments);
            let action = match arguments.first().map(String::as_str) {
                Some("up") => Action::Up,
                Some("down") => Action::Down,
                Some("status") => Action::Status,
                Some(other) => bail!("services cannot `{other}`; it takes up, down or status"),
                None => bail!("services needs one of up, down or status"),
            };
            nothing_left(&command, &arguments[1..])?;
            Ok(Command::Services { action, install })
        }
        "simulate" => {
            let seeds = take_number(&mut arguments, "--seeds")?.unwrap_or(simulate::SEEDS);
            let first = take_number(&mut arguments, "--first")?.unwrap_or(0);
            nothing_left(&command, &arguments)?;
            Ok(Command::Simulate { seeds, first })
        }
        "bench" => {
            let name = (!arguments.is_empty()).then(|| arguments.remove(0));
            Ok(Command::Bench { name, arguments })
        }
        "chaos" => Ok(Command::Chaos { arguments }),
        "fuzz" => {
            let seconds = take_number(&mut arguments, "--seconds")?;
            let input = take_value(&mut arguments, "--input", "file")?;
            let name = (!arguments.is_empty()).then(|| arguments.remove(0));
            nothing_left(&command, &arguments)?;
            let what = match (input, seconds) {
                (Some(_), Some(_)) => bail!("fuzz takes --seconds or --input, not both"),
                (Some(file), None) => fuzz::What::Input(file),
                (None, seconds) => fuzz::What::Search(seconds.unwrap_or(fuzz::SECONDS)),
            };
            Ok(Command::Fuzz { target: name.map(|name| (name, what)) })
        }
        "tidy" => {
            nothing_left(&command, &arguments)?;
            Ok(Command::Tidy)
        }
        "guarantees" => {
            nothing_left(&command, &arguments)?;
            Ok(Command::Guarantees)
        }
        other => bail!("there is no command `{other}`; `cargo xtask help` lists them"),
    }
}

fn take_install(arguments: &mut Vec<String>) -> bool {
    let before = arguments.len();
    arguments.retain(|argument| argument != "--install");
    arguments.len() < before
}

fn take_number(arguments: &mut Vec<String>, flag: &str) -> Result<Option<u64>> {
    let Some(value) = take_value(arguments, flag, "number")? else { return Ok(None) };
    match value.parse() {
        Ok(number) => Ok(Some(number)),
        Err(_) => bail!("{flag} needs a number, not `{value}`"),
    }
}

fn take_value(arguments: &mut Vec<String>, flag: &str, what: &str) -> Result<Option<String>> {
    let Some(at) = arguments.iter().position(|argument| argument == flag) else { return Ok(None) };
    arguments.remove(at);
    if at == arguments.len() {
        bail!("{flag} needs a {what}");
    }
    Ok(Some(arguments.remove(at)))
}

fn nothing_left(command: &str, rest: &[String]) -> Result<()> {
    match rest.first() {
        None => Ok(()),
        Some(argument) => bail!("`{command}` does not take `{argument}`"),
    }
}
