//! An example as a process that a test talks to.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// A test fails when nothing happens for so long.
const PATIENCE: Duration = Duration::from_secs(60);

/// The compiled example: cargo puts it beside the directory of this test program. `cargo test`
/// and `cargo nextest run` build all examples, unless some targets are selected.
fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let path = test.parent().and_then(Path::parent).unwrap().join("examples").join(name);
    assert!(path.is_file(), "{} is not built: run `cargo build --examples`", path.display());
    path
}

pub(crate) fn command(name: &str, database: &Path) -> Command {
    let mut command = Command::new(example(name));
    command.env("BOTMESH_DB", database).current_dir(std::env::temp_dir());
    command
}

/// A running example, with its keyboard and its screen.
pub(crate) struct Chat {
    process: Child,
    keyboard: Option<ChildStdin>,
    screen: Receiver<String>,
    errors: Receiver<String>,
    readers: Vec<JoinHandle<()>>,
}

impl Chat {
    pub(crate) fn start(name: &str, database: &Path) -> Self {
        let mut process = command(name, database)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (screen, screen_reader) = lines_of(process.stdout.take().unwrap());
        let (errors, errors_reader) = lines_of(process.stderr.take().unwrap());
        let keyboard = process.stdin.take();
        Self { process, keyboard, screen, errors, readers: vec![screen_reader, errors_reader] }
    }

    pub(crate) fn types(&mut self, line: &str) -> &mut Self {
        self.types_bytes(format!("{line}\n").as_bytes())
    }

    pub(crate) fn types_bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.keyboard.as_mut().unwrap().write_all(bytes).unwrap();
        self
    }

    /// The next line on the screen.
    pub(crate) fn next(&mut self) -> String {
        self.screen.recv_timeout(PATIENCE).expect("a line on standard output")
    }

    pub(crate) fn shows(&mut self, expected: &str) -> &mut Self {
        assert_eq!(self.next(), expected);
        self
    }

    pub(crate) fn next_error(&mut self) -> String {
        self.errors.recv_timeout(PATIENCE).expect("a line on standard error")
    }

    /// Ends the process as `kill -9` does; it gets no chance to write anything.
    pub(crate) fn kill(mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// Closes the input and waits for the end; returns what was still shown.
    pub(crate) fn ends(mut self) -> (ExitStatus, Vec<String>, Vec<String>) {
        drop(self.keyboard.take());
        for reader in self.readers.drain(..) {
            reader.join().unwrap();
        }
        let status = self.process.wait().unwrap();
        (status, self.screen.try_iter().collect(), self.errors.try_iter().collect())
    }
}

impl Drop for Chat {
    fn drop(&mut self) {
        // Already ended, unless the test has failed.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn lines_of(stream: impl Read + Send + 'static) -> (Receiver<String>, JoinHandle<()>) {
    let (line, lines) = channel();
    let reader = std::thread::spawn(move || {
        for text in BufReader::new(stream).lines() {
            // Who does not listen any more has seen enough.
            let _ = line.send(text.unwrap());
        }
    });
    (lines, reader)
}
