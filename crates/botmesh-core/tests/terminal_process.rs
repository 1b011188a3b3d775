//! The terminal provider on the standard input and output of a real process.
#![cfg(all(unix, feature = "terminal"))]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use async_trait::async_trait;
use botmesh_core::message::Outgoing;
use botmesh_core::provider::{
    Accepted, DeliverError, Deliveries, Inbound, Provider, SendOptions, Session,
};
use botmesh_core::terminal::Terminal;
use botmesh_core::{Content, Message};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

const CHILD: &str = "BOTMESH_TERMINAL_CHILD";

/// A bot that repeats what it hears.
struct Echo(Arc<Terminal>);

#[async_trait]
impl Deliveries for Echo {
    async fn deliver(&self, message: Message) -> Result<Accepted, DeliverError> {
        let Content::Text(text) = &message.content else { panic!("{message:?}") };
        let echo = Outgoing::text(format!("you said {text}"));
        self.0.send(&message.chat, &echo, &SendOptions::default()).await.unwrap();
        Ok(Accepted::New)
    }
}

/// Runs the echo in this process and returns as a `main` would.
fn run_echo() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let terminal = Arc::new(Terminal::new());
        let inbound = Inbound::new(Arc::new(Echo(Arc::clone(&terminal))));
        let state = Arc::new(watch::channel(Default::default()).0);
        let session = Session::new(inbound, CancellationToken::new(), state);
        terminal.run(session).await.unwrap();
    });
}

/// Starts this test program again, to run only `test` in the role of the bot.
fn start(test: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture", "--quiet", "--test-threads=1"])
        .env(CHILD, "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn is_child() -> bool {
    std::env::var_os(CHILD).is_some()
}

/// Waits for the end of the process, but not for ever.
fn end_of(mut child: Child) -> ExitStatus {
    let (ended, ends) = mpsc::channel();
    let id = child.id();
    std::thread::spawn(move || ended.send(child.wait().unwrap()));
    ends.recv_timeout(Duration::from_secs(60)).unwrap_or_else(|_| {
        signal("KILL", id);
        panic!("the process did not end");
    })
}

fn signal(name: &str, process: u32) {
    let sent = Command::new("kill").args([format!("-{name}"), process.to_string()]).status();
    assert!(sent.unwrap().success());
}

/// What the process prints, without the lines of the test program itself.
fn chat_of(child: &mut Child) -> impl Iterator<Item = String> + use<> {
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    lines.filter(|line| {
        !(line.is_empty()
            || line == "."
            || line.starts_with("running ")
            || line.starts_with("test "))
    })
}

/// A11: a piped script is answered to its end; bad bytes are reported on standard error only.
#[test]
fn a_piped_script_is_answered_on_standard_output_alone() {
    if is_child() {
        return run_echo();
    }
    let mut child = start("a_piped_script_is_answered_on_standard_output_alone");
    child.stdin.take().unwrap().write_all(b"one\n\xff\nthree").unwrap();
    let chat: Vec<String> = chat_of(&mut child).collect();
    let reports = BufReader::new(child.stderr.take().unwrap());
    let reports: Vec<String> = reports.lines().map(Result::unwrap).collect();
    assert_eq!(chat, ["bot> you said one", "bot> you said three"]);
    let problem = "terminal: line 2 is not valid UTF-8 and was skipped: send text as UTF-8";
    assert_eq!(reports, [problem]);
    assert!(end_of(child).success());
}

/// A11: Ctrl-C ends the run cleanly, and a process ends although its input stays open.
#[test]
fn a_process_ends_on_ctrl_c_while_its_input_stays_open() {
    if is_child() {
        return run_echo();
    }
    let mut child = start("a_process_ends_on_ctrl_c_while_its_input_stays_open");
    let mut keyboard = child.stdin.take().unwrap();
    keyboard.write_all(b"hello\n").unwrap();
    let mut chat = chat_of(&mut child);
    assert_eq!(chat.next().unwrap(), "bot> you said hello");
    signal("INT", child.id());
    assert!(end_of(child).success());
    assert_eq!(chat.next(), None);
    drop(keyboard);
}

/// A11: `/quit` ends a process although its input stays open.
#[test]
fn a_process_ends_on_quit_while_its_input_stays_open() {
    if is_child() {
        return run_echo();
    }
    let mut child = start("a_process_ends_on_quit_while_its_input_stays_open");
    let mut keyboard = child.stdin.take().unwrap();
    keyboard.write_all(b"hello\n/quit\n").unwrap();
    let chat: Vec<String> = chat_of(&mut child).collect();
    assert_eq!(chat, ["bot> you said hello"]);
    assert!(end_of(child).success());
    drop(keyboard);
}
