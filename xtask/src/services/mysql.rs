//! MySQL or MariaDB: one server.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use super::host::{Host, Server, Set, Started};
use super::install::Program;
use super::port;
use super::state::State;
use crate::process;

// The package with the programs alone; the one that is named like the server also starts it.
const SERVER: Program = Program { name: "mariadbd", same_as: None, package: "mariadb-server-core" };
const CLIENT: Program =
    Program { name: "mysql", same_as: Some("mariadb"), package: "mariadb-client" };
const SHELL: Program = Program { name: "sh", same_as: None, package: "dash" };

pub(super) const PROGRAMS: &[Program] = &[SERVER, CLIENT];

pub(super) const IMAGE: &str = "mysql:8.4";
const PATIENCE: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(50);

/// The directory above the two whose passing the script sees to.
const PASS: &str = "[ \"$(id -u)\" != 0 ] || chmod a+x ../..\n";
const START: &str = include_str!("../../../tests/support/mariadb.sh");

/// Run at each start, one statement a line.
const FIRST: &str = "CREATE DATABASE IF NOT EXISTS bots;
CREATE USER IF NOT EXISTS bot@'%';
GRANT ALL PRIVILEGES ON *.* TO bot@'%' WITH GRANT OPTION;
";

pub(super) fn start(host: &Host, state: &mut State) -> Result<()> {
    let port = port::free(1)?[0];
    let (script, number) = (format!("{PASS}{START}"), port.to_string());
    let address = format!("--bind-address={}", host.bind());
    let words = ["-c", &script, "sh", ".", &number, &address, "--max-connections=500"];
    let server = Server {
        program: SHELL,
        port,
        arguments: words.map(str::to_owned).into(),
        files: vec![("first.sql", FIRST.to_owned())],
    };
    let set = Set { name: "mysql", image: IMAGE, servers: vec![server] };
    let started = host.start(&set, state)?;
    wait(&started, port)?;
    state.export("BOTMESH_TEST_MYSQL_URL", format!("mysql://bot@127.0.0.1:{port}/bots"))
}

/// Waits until a query is answered.
fn wait(started: &Started, port: u16) -> Result<()> {
    let deadline = Instant::now() + PATIENCE;
    let port = format!("--port={port}");
    let words =
        ["--no-defaults", "--host=127.0.0.1", &port, "--user=bot", "--execute=SELECT 1", "bots"];
    while started.output(&CLIENT, &words).is_err() {
        process::check_interrupted()?;
        if Instant::now() >= deadline {
            let log = started.log().unwrap_or_default();
            bail!("waited {} s in vain until MySQL answers\n{log}", PATIENCE.as_secs());
        }
        std::thread::sleep(POLL);
    }
    Ok(())
}
