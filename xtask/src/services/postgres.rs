//! PostgreSQL: one server, and PgBouncer before it, which lends connections by transaction.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use super::host::{Host, Server, Set, Started};
use super::install::Program;
use super::port;
use super::state::State;
use crate::process;

// Where nothing forbids it, Debian's package also starts a server of the system; it is not used.
const SERVER: Program = Program { name: "postgres", same_as: None, package: "postgresql" };
const CLIENT: Program = Program { name: "psql", same_as: None, package: "postgresql-client" };
const POOLER: Program = Program { name: "pgbouncer", same_as: None, package: "pgbouncer" };
const SHELL: Program = Program { name: "sh", same_as: None, package: "dash" };

pub(super) const PROGRAMS: &[Program] = &[SERVER, CLIENT];

pub(super) const IMAGE: &str = "postgres:17";
const PATIENCE: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(50);

/// The pooler does not run as root. The directories above are made passable for its user.
const BECOME: &str = r#"set -eu
as=
if [ "$(id -u)" = 0 ]; then
    chmod a+x . .. ../..
    chown postgres .
    as="setpriv --reuid=postgres --regid=postgres --init-groups env HOME=$PWD"
fi
"#;

/// The directory above the two whose passing the script sees to.
const PASS: &str = "[ \"$(id -u)\" != 0 ] || chmod a+x ../..\n";
const START: &str = include_str!("../../../tests/support/postgres.sh");

pub(super) fn start(host: &Host, install: bool, state: &mut State) -> Result<()> {
    let port = port::free(1)?[0];
    let (number, addresses) = (port.to_string(), format!("listen_addresses={}", host.bind()));
    let arguments = [".", &number, "-c", &addresses, "-c", "max_connections=500"];
    let server = shell(port, &format!("{PASS}{START}"), &arguments, vec![]);
    let set = Set { name: "postgres", image: IMAGE, servers: vec![server] };
    let started = host.start(&set, state)?;
    wait(&started, &started, "postgres answers", port)?;
    state.export("BOTMESH_TEST_POSTGRES_URL", url(port))?;
    start_pooler(&started, port, install, state)
}

/// The pooler runs on this machine in any case; the image of PostgreSQL does not hold it.
fn start_pooler(server: &Started, behind: u16, install: bool, state: &mut State) -> Result<()> {
    let host = Host::machine(&[POOLER], install)?;
    let port = port::free(1)?[0];
    // `auth_type = any` lets everybody in as this user.
    let configuration = format!(
        "[databases]\n* = host=127.0.0.1 port={behind} user=postgres\n[pgbouncer]\n\
         listen_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n\
         auth_type = any\npool_mode = transaction\nmax_client_conn = 1000\n\
         default_pool_size = 5\n"
    );
    let script = format!("{BECOME}exec $as \"$(command -v pgbouncer)\" pgbouncer.ini\n");
    let pooler = shell(port, &script, &[], vec![("pgbouncer.ini", configuration)]);
    let set = Set { name: "pgbouncer", image: "", servers: vec![pooler] };
    let started = host.start(&set, state)?;
    wait(&started, server, "pgbouncer answers", port)?;
    state.export("BOTMESH_TEST_POSTGRES_POOLER_URL", url(port))
}

fn shell(
    port: u16,
    script: &str,
    arguments: &[&str],
    files: Vec<(&'static str, String)>,
) -> Server {
    let words = ["-c", script, "sh"].into_iter().chain(arguments.iter().copied());
    Server { program: SHELL, port, arguments: words.map(str::to_owned).collect(), files }
}

/// Waits until a query is answered at a port. The port opens before that.
fn wait(started: &Started, client: &Started, goal: &str, port: u16) -> Result<()> {
    let deadline = Instant::now() + PATIENCE;
    let url = url(port);
    while client.output(&CLIENT, &["-c", "SELECT 1", &url]).is_err() {
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
    format!("postgres://postgres@127.0.0.1:{port}/postgres")
}
