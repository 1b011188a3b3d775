//! `cargo xtask bench`: finds a benchmark by its name, in whichever member it lives.

use std::process::Command;

use anyhow::{Context as _, Result};

use crate::process;
use crate::workspace::{Bench, Package, Workspace, cargo};

/// Runs one benchmark, or lists them all.
pub(crate) fn run(workspace: &Workspace, name: Option<&str>, arguments: &[String]) -> Result<()> {
    let Some(name) = name else {
        println!("{}", listed(workspace));
        return Ok(());
    };
    let (package, bench) = find(workspace, name)?;
    let mut command = Command::new(cargo());
    command.args(["bench", "-p", &package.name, "--bench", &bench.name]);
    if !bench.required_features.is_empty() {
        command.args(["--features", &bench.required_features.join(",")]);
    }
    command.arg("--").args(arguments).current_dir(&workspace.root);
    process::run(&mut command)
}

fn find<'a>(workspace: &'a Workspace, name: &str) -> Result<(&'a Package, &'a Bench)> {
    all(workspace)
        .find(|(_, bench)| bench.name == name)
        .with_context(|| format!("there is no benchmark `{name}`; {}", listed(workspace)))
}

fn listed(workspace: &Workspace) -> String {
    let names: Vec<String> = all(workspace)
        .map(|(package, bench)| format!("{} (in {})", bench.name, package.name))
        .collect();
    if names.is_empty() {
        "there are no benchmarks yet".to_owned()
    } else {
        format!("benchmarks: {}", names.join(", "))
    }
}

fn all(workspace: &Workspace) -> impl Iterator<Item = (&Package, &Bench)> {
    workspace
        .packages
        .iter()
        .flat_map(|package| package.benches.iter().map(move |bench| (package, bench)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workspace(benches: &[&str]) -> Workspace {
        let benches = benches
            .iter()
            .map(|name| Bench { name: (*name).to_owned(), required_features: vec![] })
            .collect();
        let package = Package {
            name: "botmesh-benches".into(),
            directory: "/".into(),
            published: false,
            library: false,
            dependencies: vec![],
            benches,
        };
        Workspace { root: "/".into(), target: "/".into(), packages: vec![package] }
    }

    #[test]
    fn a_benchmark_is_found_by_name_and_an_unknown_one_lists_those_there_are() {
        let workspace = workspace(&["dispatch", "store"]);
        assert_eq!(find(&workspace, "store").unwrap().1.name, "store");
        let error = find(&workspace, "speed").unwrap_err().to_string();
        assert!(
            error.contains("speed") && error.contains("dispatch") && error.contains("store"),
            "{error}"
        );
    }

    #[test]
    fn no_benchmarks_is_said_as_such() {
        assert_eq!(listed(&workspace(&[])), "there are no benchmarks yet");
    }
}
