//! A set of servers in one container of an engine.

use std::fmt::Write as _;
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use serde::{Deserialize, Serialize};

use super::host::Set;
use crate::process;

/// A container of one set.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Container {
    pub(super) name: String,
    pub(super) id: String,
    engine: String,
}

impl Container {
    /// Starts a container with all servers of a set.
    pub(super) fn start(engine: &str, set: &Set) -> Result<Self> {
        let id = process::output(&mut run(engine, set))
            .with_context(|| format!("the container of {} could not be started", set.name))?;
        Ok(Self { name: set.name.to_owned(), id: id.trim().to_owned(), engine: engine.to_owned() })
    }

    pub(super) fn is_alive(&self) -> bool {
        let mut inspect = Command::new(&self.engine);
        inspect.args(["inspect", "--format", "{{.State.Running}}", &self.id]);
        inspect.output().is_ok_and(|output| output.stdout.trim_ascii() == b"true")
    }

    /// Stops and removes the container. One that is gone is no error.
    pub(super) fn remove(self) -> Result<()> {
        let engine = |words: &[&str]| process::succeeds(Command::new(&self.engine).args(words));
        if engine(&["rm", "--force", "--volumes", &self.id]) || !engine(&["inspect", &self.id]) {
            return Ok(());
        }
        bail!("container {} of {} could not be removed", self.id, self.name)
    }
}

/// Whether an engine has an image, or could fetch it.
pub(super) fn has_image(engine: &str, image: &str) -> bool {
    process::succeeds(Command::new(engine).args(["image", "inspect", image]))
        || process::run(Command::new(engine).args(["pull", image])).is_ok()
}

fn run(engine: &str, set: &Set) -> Command {
    let mut command = Command::new(engine);
    command.args(["run", "--detach", "--rm", "--init", "--label", "botmesh.services"]);
    for server in &set.servers {
        command.arg("--publish").arg(format!("127.0.0.1:{0}:{0}", server.port));
    }
    command.args(["--entrypoint", "sh", set.image, "-c", &script(set, "/servers")]);
    command
}

/// What the container runs: each server in a directory of its own, until all have ended.
fn script(set: &Set, directory: &str) -> String {
    let mut script = String::new();
    for server in &set.servers {
        let own = format!("{directory}/{}", server.port);
        let mut lines = format!("mkdir -p {own} && cd {own}\n");
        for (name, content) in &server.files {
            let _ = writeln!(lines, "printf %s {} > {}", quoted(content), quoted(name));
        }
        let arguments = server.arguments.iter().map(String::as_str);
        let words: Vec<String> =
            std::iter::once(server.program.name).chain(arguments).map(quoted).collect();
        let _ = writeln!(lines, "{} &", words.join(" "));
        script.push_str(&lines);
    }
    script.push_str("wait\n");
    script
}

fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::services::host::Server;
    use crate::services::install::Program;

    fn set() -> Set {
        let server = |port| Server {
            program: Program { name: "sh", same_as: None, package: "dash" },
            port,
            arguments: vec![
                "-c".into(),
                "echo \"it's $1\" > out".into(),
                String::new(),
                "$HOME".into(),
            ],
            files: vec![("sh.conf", "port 1\nname 'x'\n".into())],
        };
        Set { name: "shells", image: "redis:7", servers: vec![server(15_001), server(15_002)] }
    }

    #[test]
    fn a_set_is_one_container_that_publishes_to_this_machine_only() {
        let command = run("docker", &set());
        let words: Vec<&str> = command.get_args().filter_map(|word| word.to_str()).collect();
        let line = words.join(" ");
        assert!(line.starts_with("run --detach --rm "), "{line}");
        assert!(
            line.contains("--publish 127.0.0.1:15001:15001 --publish 127.0.0.1:15002:15002"),
            "{line}"
        );
        assert!(line.contains("--entrypoint sh redis:7 -c mkdir"), "{line}");
    }

    #[test]
    fn the_script_of_a_container_passes_files_and_arguments_unchanged() {
        let home = tempfile::tempdir().unwrap();
        let directory = home.path().to_string_lossy();
        process::output(Command::new("sh").args(["-c", &script(&set(), &directory)])).unwrap();
        for port in ["15001", "15002"] {
            let read = |name| std::fs::read_to_string(home.path().join(port).join(name)).unwrap();
            assert_eq!(read("out"), "it's $HOME\n");
            assert_eq!(read("sh.conf"), "port 1\nname 'x'\n");
        }
    }
}
