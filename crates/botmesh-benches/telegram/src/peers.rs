//! The frameworks that are not written in Rust, in a temporary directory.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::Result;
use tempfile::TempDir;

use crate::contender::Contender;

const AIOGRAM: &str = "aiogram==3.31.0";

const FILES: [(&str, &str); 3] = [
    ("package.json", include_str!("../peers/package.json")),
    ("grammy.mjs", include_str!("../peers/grammy.mjs")),
    ("aiogram_peer.py", include_str!("../peers/aiogram_peer.py")),
];

/// What could be installed.
#[derive(Debug)]
pub struct Peers {
    directory: TempDir,
    grammy: bool,
    aiogram: bool,
}

impl Peers {
    /// Fetches what there is a program for, and says what is left out.
    ///
    /// # Errors
    /// When there is no temporary directory.
    pub fn install() -> Result<Self> {
        let directory = tempfile::tempdir()?;
        for (name, text) in FILES {
            std::fs::write(directory.path().join(name), text)?;
        }
        let mut npm = Command::new("npm");
        npm.args(["install", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"]);
        let mut pip = Command::new("python3");
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target"]);
        pip.args(["python", AIOGRAM]);
        let grammy = installed(&mut npm, directory.path(), "grammY", "node and npm");
        let aiogram = installed(&mut pip, directory.path(), "aiogram", "python3 and pip");
        Ok(Self { directory, grammy, aiogram })
    }

    /// The command that measures one of them; none when it is not here.
    #[must_use]
    pub fn command(&self, contender: Contender) -> Option<Vec<String>> {
        let path = |name: &str| self.directory.path().join(name).to_string_lossy().into_owned();
        match contender {
            Contender::Grammy if self.grammy => Some(vec!["node".to_owned(), path("grammy.mjs")]),
            Contender::Aiogram if self.aiogram => {
                let packages = format!("PYTHONPATH={}", path("python"));
                Some(vec!["env".into(), packages, "python3".into(), path("aiogram_peer.py")])
            }
            _ => None,
        }
    }
}

fn installed(command: &mut Command, directory: &Path, what: &str, needs: &str) -> bool {
    let status = command.current_dir(directory).stdout(Stdio::null()).status();
    let fine = status.is_ok_and(|status| status.success());
    if !fine {
        eprintln!("{what} is left out: it needs {needs}, and their registry");
    }
    fine
}
