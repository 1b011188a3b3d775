//! MongoDB: a replica set of one member in a container, or a stand-in where no engine answers.
//!
//! `mongod` is in no package registry. The stand-in, SecantusDB, speaks the same protocol over the same storage
//! engine, and is much slower: no figure that is measured on it says anything about MongoDB. It is under the GPL, so
//! it is only ever a process of its own. Tests also start private ones of it, wherever the shared server runs.

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use super::host::{Host, Server, Set, Started};
use super::install::Program;
use super::port;
use super::state::State;
use super::virtual_environment::{PythonPackage, VirtualEnvironment};
use crate::process;

const IMAGE: &str = "mongo:8";
const SERVER: Program = Program { name: "mongod", same_as: None, package: "mongodb-org-server" };
const CLIENT: Program = Program { name: "mongosh", same_as: None, package: "mongodb-mongosh" };
const SHELL: Program = Program { name: "sh", same_as: None, package: "dash" };
const STAND_IN: PythonPackage =
    PythonPackage { name: "secantusdb", version: "0.7.0b3", program: "secantusd-py" };

const PATIENCE: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(100);

/// Makes the set of one member at first, and fails until that is the primary.
const INITIATE: &str = "try { rs.status() } catch (error) { rs.initiate({ _id: 'rs0', members: \
    [{ _id: 0, host: '127.0.0.1:PORT' }] }) } if (!db.hello().isWritablePrimary) quit(1)";

/// Asks the stand-in with the driver that it brings along.
const ASK: &str = "import sys, pymongo; \
    pymongo.MongoClient(sys.argv[1], serverSelectionTimeoutMS=1000).admin.command('ping')";

pub(super) fn start(state: &mut State) -> Result<()> {
    let stand_in = VirtualEnvironment::with(STAND_IN);
    let engine = Host::engine(IMAGE)?;
    match (&engine, &stand_in) {
        (Some(host), _) => start_container(host, state)?,
        (None, Ok(environment)) => start_stand_in(environment, state)?,
        (None, Err(error)) => bail!("{error:#}; or start a container engine"),
    }
    match stand_in {
        Ok(environment) => {
            let program = environment.program().to_string_lossy().into_owned();
            state.export("BOTMESH_TEST_MONGO_PROGRAM", program)
        }
        Err(error) => {
            println!(
                "notice: tests that need a private server of MongoDB's kind cannot run: {error:#}"
            );
            Ok(())
        }
    }
}

fn start_container(host: &Host, state: &mut State) -> Result<()> {
    let port = port::free(1)?[0];
    let number = port.to_string();
    let arguments =
        ["--replSet", "rs0", "--bind_ip", host.bind(), "--dbpath", ".", "--port", &number];
    let arguments = arguments.map(str::to_owned).into();
    let server = Server { program: SERVER, port, arguments, files: vec![] };
    let started = host.start(&Set { name: "mongo", image: IMAGE, servers: vec![server] }, state)?;
    let initiate = INITIATE.replace("PORT", &number);
    let ask = || started.output(&CLIENT, &["--quiet", "--port", &number, "--eval", &initiate]);
    wait(&started, "the replica set has a primary", || ask().is_ok())?;
    state.export("BOTMESH_TEST_MONGO_URL", url(port))
}

fn start_stand_in(environment: &VirtualEnvironment, state: &mut State) -> Result<()> {
    println!(
        "notice: no container engine can run {IMAGE}; {} {} stands in for MongoDB",
        STAND_IN.name, STAND_IN.version
    );
    let port = port::free(1)?[0];
    let server = shell(environment.program(), port);
    let started =
        Host::Machine.start(&Set { name: "mongo", image: "", servers: vec![server] }, state)?;
    let url = url(port);
    let python = environment.python();
    wait(&started, "the stand-in answers", || {
        process::succeeds(Command::new(&python).args(["-c", ASK, &url]))
    })?;
    state.export("BOTMESH_TEST_MONGO_URL", url)
}

fn shell(program: PathBuf, port: u16) -> Server {
    const SCRIPT: &str = "exec \"$1\" --host 127.0.0.1 --port \"$2\" --storage-path data";
    let program = program.to_string_lossy().into_owned();
    let arguments =
        vec!["-c".to_owned(), SCRIPT.to_owned(), "sh".to_owned(), program, port.to_string()];
    Server { program: SHELL, port, arguments, files: vec![] }
}

fn wait(started: &Started, goal: &str, is_reached: impl Fn() -> bool) -> Result<()> {
    let deadline = Instant::now() + PATIENCE;
    while !is_reached() {
        process::check_interrupted()?;
        if Instant::now() >= deadline {
            let log = started.log().unwrap_or_default();
            bail!("waited {} s in vain until {goal}\n{log}", PATIENCE.as_secs());
        }
        std::thread::sleep(POLL);
    }
    Ok(())
}

fn url(port: u16) -> String {
    format!("mongodb://127.0.0.1:{port}")
}
