//! Programs that servers need, through the system's package manager.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::process;

/// A program and where it comes from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Program {
    pub(super) name: &'static str,
    /// Another name under which the same program is installed; it behaves by the name it is called with.
    pub(super) same_as: Option<&'static str>,
    /// The Debian package that holds it and starts no server of its own.
    pub(super) package: &'static str,
}

impl Program {
    /// Where the program lies.
    fn find(&self) -> Option<PathBuf> {
        let names = std::iter::once(self.name).chain(self.same_as);
        let path = std::env::var_os("PATH")?;
        let directories: Vec<PathBuf> = std::env::split_paths(&path)
            .chain(["/usr/sbin", "/sbin"].map(PathBuf::from))
            .chain(versioned())
            .collect();
        names
            .flat_map(|name| directories.iter().map(move |directory| directory.join(name)))
            .find(|candidate| candidate.is_file())
    }

    /// A command that runs the program under its own name.
    pub(super) fn command(&self) -> Result<Command> {
        let path = self.find().with_context(|| format!("`{}` is missing", self.name))?;
        let mut command = Command::new(path);
        call_as(&mut command, self.name);
        Ok(command)
    }
}

/// Where Debian keeps the programs of PostgreSQL, each version in a directory of its own.
fn versioned() -> Vec<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten();
    versions.flatten().map(|version| version.path().join("bin")).collect()
}

#[cfg(unix)]
fn call_as(command: &mut Command, name: &str) {
    use std::os::unix::process::CommandExt as _;
    command.arg0(name);
}

#[cfg(not(unix))]
fn call_as(_: &mut Command, _: &str) {}

/// Makes sure that programs are there: installs what is missing when this runs as root or was told to.
pub(super) fn ensure(programs: &[Program], told_to: bool) -> Result<()> {
    let missing: Vec<&Program> =
        programs.iter().filter(|program| program.find().is_none()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let mut packages: Vec<&str> = missing.iter().map(|program| program.package).collect();
    packages.dedup();
    let root = is_root();
    let has_apt = process::succeeds(Command::new("apt-get").arg("--version"));
    if !has_apt || !(root || told_to) {
        bail!("{}", advice(&missing, &packages));
    }
    println!("installing {}", packages.join(", "));
    // Only a machine without package lists, such as a fresh container, needs the second try.
    if process::run(&mut install(root, &packages)).is_err() {
        process::run(&mut privileged(root, &["apt-get", "update"]))?;
        process::run(&mut install(root, &packages))?;
    }
    match missing.iter().find(|program| program.find().is_none()) {
        None => Ok(()),
        Some(program) => bail!("package {} does not hold `{}`", program.package, program.name),
    }
}

fn advice(missing: &[&Program], packages: &[&str]) -> String {
    let names: Vec<&str> = missing.iter().map(|program| program.name).collect();
    let verb = if names.len() == 1 { "is" } else { "are" };
    format!(
        "{} {verb} missing: run `sudo apt-get install --no-install-recommends {}` (or what your system calls it), \
         or run this again with --install, or start a container engine",
        names.join(" and "),
        packages.join(" ")
    )
}

fn install(root: bool, packages: &[&str]) -> Command {
    let mut command = privileged(root, &["apt-get", "install", "--yes", "--no-install-recommends"]);
    command.args(packages).env("DEBIAN_FRONTEND", "noninteractive");
    command
}

fn privileged(root: bool, words: &[&str]) -> Command {
    let words: Vec<&str> = if root { words.to_vec() } else { [&["sudo"], words].concat() };
    let mut command = Command::new(words[0]);
    command.args(&words[1..]);
    command
}

fn is_root() -> bool {
    process::output(Command::new("id").arg("-u")).is_ok_and(|id| id.trim() == "0")
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHELL: Program = Program { name: "no-such-shell", same_as: Some("sh"), package: "dash" };
    const ABSENT: Program =
        Program { name: "no-such-server", same_as: None, package: "no-such-package" };

    #[test]
    fn a_program_is_found_under_its_other_name_and_called_by_its_own() {
        assert!(SHELL.find().unwrap().ends_with("sh"));
        let name = process::output(SHELL.command().unwrap().args(["-c", "echo $0"])).unwrap();
        assert_eq!(name.trim(), "no-such-shell");
    }

    #[test]
    fn a_missing_program_is_named_with_the_command_that_installs_it() {
        assert!(ABSENT.find().is_none());
        let advice = advice(&[&ABSENT], &["no-such-package"]);
        assert!(advice.contains("no-such-server is missing"), "{advice}");
        assert!(
            advice.contains("sudo apt-get install --no-install-recommends no-such-package"),
            "{advice}"
        );
    }
}
