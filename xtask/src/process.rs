//! Child processes: run, watched, and ended when this program is told to stop.

use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use anyhow::{Context as _, Result, bail};

static INTERRUPTED: AtomicBool = AtomicBool::new(false);
/// The child in the foreground; zero when there is none.
static FOREGROUND: AtomicU32 = AtomicU32::new(0);

/// From now on Ctrl-C, a termination and a hang-up end the child in the foreground instead of this program, so that
/// the caller comes back and every guard drops.
pub(crate) fn watch_for_interrupts() -> Result<()> {
    ctrlc::set_handler(|| {
        INTERRUPTED.store(true, Ordering::SeqCst);
        let foreground = FOREGROUND.load(Ordering::SeqCst);
        if foreground != 0 {
            signal(foreground, "TERM");
        }
    })
    .context("the handler of Ctrl-C could not be installed")
}

/// Fails once this program was told to stop.
pub(crate) fn check_interrupted() -> Result<()> {
    if INTERRUPTED.load(Ordering::SeqCst) {
        bail!("interrupted");
    }
    Ok(())
}

/// Runs a command in the foreground, with its output where ours goes and without a standard input.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    check_interrupted()?;
    let shown = show(command);
    let mut child = command
        .stdin(Stdio::null())
        .spawn()
        .with_context(|| format!("`{shown}` could not be started"))?;
    FOREGROUND.store(child.id(), Ordering::SeqCst);
    if INTERRUPTED.load(Ordering::SeqCst) {
        signal(child.id(), "TERM");
    }
    let status = wait(&mut child);
    FOREGROUND.store(0, Ordering::SeqCst);
    check_interrupted()?;
    let status = status.with_context(|| format!("`{shown}` could not be waited for"))?;
    if !status.success() {
        bail!("`{shown}` failed ({status})");
    }
    Ok(())
}

/// Runs a command and answers what it printed; what it complained about is part of the error.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    check_interrupted()?;
    let shown = show(command);
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("`{shown}` could not be started"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        let complaint = String::from_utf8_lossy(&output.stderr);
        bail!("`{shown}` failed ({}): {}{}", output.status, complaint.trim(), text.trim());
    }
    Ok(text)
}

/// Whether a command can be started and succeeds.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// Sends a signal by process id. A process that is gone is no error.
pub(crate) fn signal(id: u32, name: &str) {
    // `kill` is built into every shell, but not every small system has the program.
    let _ = succeeds(Command::new("sh").args(["-c", "kill -\"$0\" \"$1\"", name, &id.to_string()]));
}

fn wait(child: &mut Child) -> std::io::Result<std::process::ExitStatus> {
    loop {
        match child.wait() {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

fn show(command: &Command) -> String {
    let mut shown = command.get_program().to_string_lossy().into_owned();
    if let Some(name) = std::path::Path::new(&shown).file_name() {
        shown = name.to_string_lossy().into_owned();
    }
    for argument in command.get_args() {
        shown.push(' ');
        shown.push_str(&argument.to_string_lossy());
    }
    shown
}
