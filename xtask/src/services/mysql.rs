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

/// With its port and its address. The servers do not run as root; the directories above are made
/// passable for their user. Names of hosts are not looked up, so that the bot, which may come from
/// anywhere, is not taken for the anonymous user of this host. Nobody takes the power away from a test,
/// so the disk is not waited for.
const START: &str = r#"set -eu
as=
if [ "$(id -u)" = 0 ]; then
    as=--user=mysql
    chmod a+x . .. ../..
    chown mysql .
fi
PATH=$PATH:/usr/sbin:/usr/local/sbin
first="$PWD/first.sql"
chmod a+r "$first"
# A server removes what it finds in its directory for temporary files when it starts.
mkdir -p temporary
test -z "$as" || chown mysql temporary
as="$as --tmpdir=$PWD/temporary"
if command -v mariadbd >/dev/null; then
    server=mariadbd
    more=
    mariadb-install-db --no-defaults $as --datadir="$PWD/data" --skip-test-db \
        --auth-root-authentication-method=normal
else
    server=mysqld
    more=--mysqlx=OFF
    mysqld --no-defaults $as --datadir="$PWD/data" --initialize-insecure
fi
exec $server --no-defaults $as $more --datadir="$PWD/data" --socket="$PWD/socket" --pid-file="$PWD/pid" \
    --port="$1" --bind-address="$2" --skip-name-resolve --max-connections=500 --skip-log-bin \
    --innodb-buffer-pool-size=64M --innodb-flush-method=nosync --init-file="$first"
"#;

/// Run at each start, one statement a line.
const FIRST: &str = "CREATE DATABASE IF NOT EXISTS bots;
CREATE USER IF NOT EXISTS bot@'%';
GRANT ALL PRIVILEGES ON *.* TO bot@'%' WITH GRANT OPTION;
";

pub(super) fn start(host: &Host, state: &mut State) -> Result<()> {
    let port = port::free(1)?[0];
    let words = ["-c", START, "sh", &port.to_string(), host.bind()];
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
