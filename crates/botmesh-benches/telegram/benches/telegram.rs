//! From the JSON of an update to the reply that is handed to the transport, on one processor, beside
//! other frameworks: `cargo xtask bench telegram`. It fetches two of them from their registries.

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use botmesh_telegram_benches::contender::Contender;
use botmesh_telegram_benches::meter::Measured;
use botmesh_telegram_benches::{Peers, updates};
use tempfile::TempDir;

const USAGE: &str = "\
usage: cargo xtask bench telegram [--updates N] [--chats N] [--rounds N]
";

/// The processor on which all are measured, and the one for what they talk to.
const PROCESSOR: &str = "0";
const OTHER: &str = "1";

/// Tells this program that it is to measure one contender.
const FLAG: &str = "--contender";

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|it| it != "--bench").collect();
    if let [flag, name, redis, file, warm] = &arguments[..]
        && flag == FLAG
    {
        let measured = Contender::measure(name, Path::new(file), warm.parse()?, redis)?;
        println!("{}", serde_json::to_string(&measured)?);
        return Ok(());
    }
    let (mut count, mut chats, mut rounds) = (100_000, 1_000, 3);
    let mut arguments = arguments.into_iter();
    while let Some(flag) = arguments.next() {
        let value = arguments.next().with_context(|| format!("{flag} needs a value\n{USAGE}"))?;
        match flag.as_str() {
            "--updates" => count = value.parse()?,
            "--chats" => chats = value.parse()?,
            "--rounds" => rounds = value.parse()?,
            _ => bail!("{flag} is not known\n{USAGE}"),
        }
    }
    let peers = Peers::install()?;
    let redis = Redis::start()?;
    let directory = tempfile::tempdir()?;
    let mut runs: [Vec<Measured>; 6] = Default::default();
    // In turn, so that whatever else the machine does slows all alike.
    for round in 0..rounds {
        for (contender, runs) in Contender::ALL.into_iter().zip(&mut runs) {
            let Some(mut command) = command(contender, &peers, &redis)? else { continue };
            let count = if contender.is_slow() { count / 10 } else { count };
            let file = directory.path().join(format!("{count}"));
            if round == 0 && !file.exists() {
                updates::write(&file, count + count / 2, chats)?;
            }
            runs.push(measure(command.arg(&file).arg((count / 2).to_string()))?);
        }
    }
    show(&runs);
    Ok(())
}

/// The command that measures a contender, but for the file and the number of updates.
fn command(contender: Contender, peers: &Peers, redis: &Redis) -> Result<Option<Command>> {
    let mut command = Command::new("taskset");
    command.args(["--cpu-list", PROCESSOR]);
    match (contender, peers.command(contender)) {
        (_, Some(other)) => command.args(other),
        (Contender::Grammy | Contender::Aiogram, None) => return Ok(None),
        _ => {
            let own = std::env::current_exe()?;
            command.arg(own).args([FLAG, contender.name(), &redis.address()])
        }
    };
    Ok(Some(command))
}

fn measure(command: &mut Command) -> Result<Measured> {
    let output = command.stderr(Stdio::inherit()).output();
    let output = output.context("taskset could not be started: it is a part of util-linux")?;
    ensure!(output.status.success(), "{command:?} failed with {}", output.status);
    let printed = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&printed).with_context(|| format!("{command:?} printed {printed:?}"))
}

fn show(runs: &[Vec<Measured>; 6]) {
    let rate = |runs: &[Measured], time: fn(&Measured) -> f64| {
        let rates = runs.iter().map(|run| run.messages as f64 / time(run));
        let mut rates: Vec<f64> = rates.collect();
        rates.sort_by(f64::total_cmp);
        rates.get(rates.len() / 2).copied()
    };
    let ours = rate(&runs[0], |run| run.cpu);
    println!("{:<16}{:>14}{:>26}{:>18}", "", "updates/s", "updates/processor second", "ours to it");
    for (contender, runs) in Contender::ALL.into_iter().zip(runs) {
        let (Some(wall), Some(cpu)) = (rate(runs, |run| run.wall), rate(runs, |run| run.cpu))
        else {
            println!("{:<16}{:>14}", contender.name(), "left out");
            continue;
        };
        let ratio = ours.filter(|_| contender != Contender::Ours).map(|ours| ours / cpu);
        let ratio = ratio.map(|ratio| format!("{ratio:.2}")).unwrap_or_default();
        println!("{:<16}{wall:>14.0}{cpu:>26.0}{ratio:>18}", contender.name());
    }
}

/// A Redis of the bench's own, on the other processor.
struct Redis {
    port: u16,
    process: Child,
    _directory: TempDir,
}

impl Redis {
    fn start() -> Result<Self> {
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
        let directory = tempfile::tempdir()?;
        let mut command = Command::new("taskset");
        command.args(["--cpu-list", OTHER, "redis-server", "--port", &port.to_string()]);
        command.args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir"]);
        let process = command.arg(directory.path()).stdout(Stdio::null()).spawn();
        let process = process.context("taskset or redis-server is not installed")?;
        let redis = Self { port, process, _directory: directory };
        let deadline = Instant::now() + Duration::from_secs(20);
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            ensure!(Instant::now() < deadline, "redis-server did not start");
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(redis)
    }

    fn address(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
