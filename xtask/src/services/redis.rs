//! Redis: one server, a set watched by Sentinel, and a cluster of six nodes.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use super::host::{Host, Server, Set, Started};
use super::install::Program;
use super::port;
use super::state::State;
use crate::process;

// Debian's `redis-server` package would also start a server of the system. The program itself is in `redis-tools`,
// under the name of the checker; it becomes the server when it is called so.
const SERVER: Program =
    Program { name: "redis-server", same_as: Some("redis-check-rdb"), package: "redis-tools" };
const CLIENT: Program = Program { name: "redis-cli", same_as: None, package: "redis-tools" };

pub(super) const PROGRAMS: &[Program] = &[SERVER, CLIENT];

pub(super) const IMAGE: &str = "redis:7";
/// The name under which Sentinel knows the master.
const MASTER: &str = "botmesh";
const PATIENCE: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(50);

pub(super) fn start(host: &Host, state: &mut State) -> Result<()> {
    start_single(host, state)?;
    start_sentinel(host, state)?;
    start_cluster(host, state)
}

fn start_single(host: &Host, state: &mut State) -> Result<()> {
    let ports = port::free(1)?;
    let servers = vec![server(host, ports[0], &["--save", "", "--appendonly", "no"])];
    let started = host.start(&Set { name: "redis", image: IMAGE, servers }, state)?;
    wait(&started, "redis answers", || answers(&started, ports[0]))?;
    state.export("BOTMESH_TEST_REDIS_URL", url(ports[0]))
}

fn start_sentinel(host: &Host, state: &mut State) -> Result<()> {
    let ports = port::free(6)?;
    let (master, replicas, sentinels) = (ports[0], &ports[1..3], &ports[3..]);
    let stored = ["--save", "", "--appendonly", "no", "--repl-diskless-sync-delay", "0"];
    let mut servers = vec![server(host, master, &stored)];
    for replica in replicas {
        let follow = ["--replicaof", "127.0.0.1", &master.to_string()];
        servers.push(server(host, *replica, &[stored.as_slice(), &follow].concat()));
    }
    servers.extend(sentinels.iter().map(|port| sentinel(host, *port, master)));
    let started = host.start(&Set { name: "redis-sentinel", image: IMAGE, servers }, state)?;
    wait(&started, "every replica follows its master", || {
        replicas.iter().all(|port| follows(&started, *port))
    })?;
    wait(&started, "every sentinel answers", || {
        sentinels.iter().all(|port| answers(&started, *port))
    })?;
    for port in sentinels {
        // They ask for replicas every ten seconds, and asked before there were any. Before Redis 7 they wait.
        ask(&started, *port, &["sentinel", "debug", "info-period", "1000"]);
    }
    wait(&started, "the sentinels know each other", || {
        sentinels.iter().all(|port| knows_all(&started, *port))
    })?;
    state.export("BOTMESH_TEST_REDIS_SENTINEL", urls(sentinels))?;
    state.export("BOTMESH_TEST_REDIS_SENTINEL_MASTER", MASTER.to_owned())
}

fn start_cluster(host: &Host, state: &mut State) -> Result<()> {
    let ports = port::free(6)?;
    let arguments = [
        ["--cluster-enabled", "yes"],
        ["--cluster-config-file", "nodes.conf"],
        ["--cluster-node-timeout", "1000"],
        // With a delay, a fail-over right after the start leaves the cluster down for good.
        ["--repl-diskless-sync-delay", "0"],
        ["--appendonly", "yes"],
        ["--save", ""],
    ];
    let servers = ports.iter().map(|port| server(host, *port, arguments.as_flattened())).collect();
    let started = host.start(&Set { name: "redis-cluster", image: IMAGE, servers }, state)?;
    wait(&started, "every node answers", || ports.iter().all(|port| answers(&started, *port)))?;
    let nodes: Vec<String> = ports.iter().map(|port| format!("127.0.0.1:{port}")).collect();
    let mut create = vec!["--cluster", "create"];
    create.extend(nodes.iter().map(String::as_str));
    create.extend(["--cluster-replicas", "1", "--cluster-yes"]);
    started.output(&CLIENT, &create).context("the cluster could not be created")?;
    wait(&started, "the cluster is complete", || {
        let settled = ports.iter().all(|port| {
            let information = ask(&started, *port, &["cluster", "info"]);
            information.contains("cluster_state:ok")
                && information.contains("cluster_known_nodes:6")
        });
        settled && ports.iter().filter(|port| follows(&started, **port)).count() == 3
    })?;
    state.export("BOTMESH_TEST_REDIS_CLUSTER", urls(&ports))
}

fn server(host: &Host, port: u16, arguments: &[&str]) -> Server {
    let port_text = port.to_string();
    let common = ["--port", &port_text, "--bind", host.bind(), "--protected-mode", "no"];
    let arguments = common.iter().chain(arguments).map(|word| (*word).to_owned()).collect();
    Server { program: SERVER, port, arguments, files: vec![] }
}

fn sentinel(host: &Host, port: u16, master: u16) -> Server {
    let configuration = format!(
        "port {port}\nbind {}\nprotected-mode no\n\
         sentinel monitor {MASTER} 127.0.0.1 {master} 2\n\
         sentinel down-after-milliseconds {MASTER} 1000\n\
         sentinel failover-timeout {MASTER} 5000\n",
        host.bind()
    );
    Server {
        program: SERVER,
        port,
        arguments: vec!["sentinel.conf".to_owned(), "--sentinel".to_owned()],
        files: vec![("sentinel.conf", configuration)],
    }
}

fn answers(started: &Started, port: u16) -> bool {
    ask(started, port, &["ping"]).trim() == "PONG"
}

fn follows(started: &Started, port: u16) -> bool {
    ask(started, port, &["info", "replication"]).contains("master_link_status:up")
}

/// Whether a sentinel knows both replicas and both other sentinels.
fn knows_all(started: &Started, port: u16) -> bool {
    let information = ask(started, port, &["info", "sentinel"]);
    information.contains("status=ok,") && information.contains("slaves=2,sentinels=3")
}

/// What a server says; nothing while it does not answer.
fn ask(started: &Started, port: u16, words: &[&str]) -> String {
    let port = port.to_string();
    started.output(&CLIENT, &[["-p", port.as_str()].as_slice(), words].concat()).unwrap_or_default()
}

fn wait(started: &Started, goal: &str, reached: impl Fn() -> bool) -> Result<()> {
    let deadline = Instant::now() + PATIENCE;
    while !reached() {
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
    format!("redis://127.0.0.1:{port}")
}

fn urls(ports: &[u16]) -> String {
    ports.iter().map(|port| url(*port)).collect::<Vec<_>>().join(",")
}
