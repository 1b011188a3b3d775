//! The command line of the bench.

use anyhow::{Result, bail};

use crate::Workload;

/// How to use it.
pub const USAGE: &str = "\
usage: cargo xtask bench dispatch [WORKLOAD]... [OPTION]...

Workloads: handler user-state flow persistent-flow conversation; without any, all of them.

  --quick        one short run of each at 1 and 1,000 chats
  --runs N       how often each is measured (5)
  --chats N      at this number of chats only
  --no-memory    leave out the memory and the allocations
  --peers        also measure other frameworks in turn with ours; needs node and npm
  --json         print the figures as one line of JSON in place of the table
";

/// What is to be measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Which kinds of work.
    pub workloads: Vec<Workload>,
    /// At which numbers of chats.
    pub chats: Vec<u64>,
    /// How often.
    pub runs: usize,
    /// Messages are divided by this.
    pub shortened: u64,
    /// Whether memory and allocations are measured.
    pub memory: bool,
    /// For how many chats.
    pub memory_chats: u64,
    /// Whether other frameworks are measured.
    pub peers: bool,
    /// Whether JSON is printed.
    pub json: bool,
}

impl Options {
    /// Reads the arguments; none when the usage is asked for.
    ///
    /// # Errors
    /// When an argument is not known.
    pub fn parse(arguments: impl Iterator<Item = String>) -> Result<Option<Self>> {
        let mut options = Self {
            workloads: Vec::new(),
            chats: vec![1, 1_000, 100_000],
            runs: 5,
            shortened: 1,
            memory: true,
            memory_chats: 100_000,
            peers: false,
            json: false,
        };
        let mut arguments = arguments;
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                // Cargo tells every bench that it is one.
                "--bench" => {}
                "--help" | "-h" => return Ok(None),
                "--quick" => {
                    options.chats = vec![1, 1_000];
                    options.runs = 1;
                    options.shortened = 10;
                    options.memory_chats = 10_000;
                }
                "--no-memory" => options.memory = false,
                "--peers" => options.peers = true,
                "--json" => options.json = true,
                "--runs" => options.runs = number(&argument, arguments.next())?,
                "--chats" => options.chats = vec![number(&argument, arguments.next())?],
                name => match Workload::named(name) {
                    Some(workload) => options.workloads.push(workload),
                    None => bail!("the bench does not know {name:?}\n{USAGE}"),
                },
            }
        }
        if options.workloads.is_empty() {
            options.workloads = Workload::ALL.to_vec();
        }
        Ok(Some(options))
    }
}

fn number<N: std::str::FromStr + PartialEq + From<u8>>(
    option: &str,
    value: Option<String>,
) -> Result<N> {
    match value.and_then(|value| value.parse().ok()) {
        Some(number) if number != N::from(0) => Ok(number),
        _ => bail!("{option} needs a number above 0\n{USAGE}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Option<Options>> {
        Options::parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn a_quick_run_of_one_workload_leaves_out_the_rest() {
        let options = parse("flow --quick --runs 3 --bench").unwrap().unwrap();
        assert_eq!(options.workloads, [Workload::Flow]);
        assert_eq!((options.chats, options.runs), (vec![1, 1_000], 3));
    }

    #[test]
    fn an_unknown_argument_is_told_with_the_usage() {
        let error = parse("--quik").unwrap_err().to_string();
        assert!(error.contains("--quik") && error.contains("--quick"), "{error}");
        assert!(parse("--chats 0").is_err() && parse("--runs").is_err());
        assert_eq!(parse("--help").unwrap(), None);
    }
}
