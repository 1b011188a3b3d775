//! The wall clock of a server, which jumps: a small library that the server is started with shifts
//! it by what a file says. Nothing else of the machine has another time.

use std::ffi::OsString;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use crate::history::nanos;

const SOURCE: &str = include_str!("clock.c");
/// How the library is told of its file.
const VARIABLE: &str = "BOTMESH_CLOCK_OFFSET";

/// The clock of one server, which has the machine's time at first.
#[derive(Debug)]
pub struct ServerClock {
    library: PathBuf,
    path: PathBuf,
    file: File,
    offset: i64,
    /// The furthest that it ever was ahead.
    most: i64,
}

impl ServerClock {
    /// Builds the library.
    ///
    /// # Errors
    /// When there is no C compiler, or this system loads no such libraries.
    pub fn new(directory: &Path) -> Result<Self> {
        if !cfg!(target_os = "linux") {
            bail!("clocks can be set on Linux only");
        }
        let (source, library) = (directory.join("clock.c"), directory.join("clock.so"));
        std::fs::write(&source, SOURCE)?;
        let mut compile = Command::new("cc");
        compile.args(["-O2", "-shared", "-fPIC", "-o"]).arg(&library).arg(&source);
        let compiled = compile.output().context("there is no C compiler `cc`")?;
        if !compiled.status.success() {
            bail!("{}", String::from_utf8_lossy(&compiled.stderr));
        }
        let path = directory.join("clock");
        let mut options = File::options();
        let file = options.read(true).write(true).create(true).truncate(true).open(&path)?;
        file.write_all_at(&0_i64.to_ne_bytes(), 0)?;
        Ok(Self { library, path, file, offset: 0, most: 0 })
    }

    /// What a server is started with to have this clock.
    pub(super) fn environment(&self) -> Vec<(String, OsString)> {
        let (library, path) = (self.library.clone().into(), self.path.clone().into());
        vec![("LD_PRELOAD".to_owned(), library), (VARIABLE.to_owned(), path)]
    }

    /// Sets it forward or back at once.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn jump(&mut self, by: Duration, back: bool) -> Result<()> {
        let by = i64::try_from(nanos(by)).unwrap_or(i64::MAX);
        self.set(if back { self.offset - by } else { self.offset + by })
    }

    /// Sets it to the furthest that it ever was ahead, so that it tells no time twice: what a
    /// server with no memory of its fences relies on.
    ///
    /// # Errors
    /// As for [`jump`](Self::jump).
    pub fn set_right(&mut self) -> Result<()> {
        self.set(self.most)
    }

    fn set(&mut self, offset: i64) -> Result<()> {
        self.file.write_all_at(&offset.to_ne_bytes(), 0).context("the clock cannot be set")?;
        (self.offset, self.most) = (offset, self.most.max(offset));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::servers::{Server, is_installed};

    async fn seconds_ahead(server: &Server) -> i64 {
        let answer = server.ask("TIME").await.unwrap();
        let told: i64 = answer.lines().nth(2).unwrap().parse().unwrap();
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        told - i64::try_from(now.as_secs()).unwrap()
    }

    #[tokio::test]
    async fn the_clock_of_a_server_jumps_and_nobody_elses() {
        let directory = tempfile::tempdir().unwrap();
        let mut clock = match ServerClock::new(directory.path()) {
            Ok(clock) if is_installed() => clock,
            other => return println!("skipped: {other:?}, or redis-server is absent"),
        };
        let mut server = Server::start_under(directory.path(), &clock).await.unwrap();
        let hour = Duration::from_secs(3600);
        for (by, back, wanted) in [(hour, false, 3600), (hour * 3, true, -7200)] {
            clock.jump(by, back).unwrap();
            let ahead = seconds_ahead(&server).await;
            assert!((ahead - wanted).abs() <= 1, "{ahead} instead of {wanted}");
        }
        server.kill();
        clock.set_right().unwrap();
        server.launch().await.unwrap();
        let ahead = seconds_ahead(&server).await;
        assert!((ahead - 3600).abs() <= 1, "{ahead}");
    }
}
