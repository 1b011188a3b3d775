//! What cargo says about the workspace, and the files in it.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

/// The workspace that this program was built in.
#[derive(Debug)]
pub(crate) struct Workspace {
    pub(crate) root: PathBuf,
    pub(crate) target: PathBuf,
    pub(crate) packages: Vec<Package>,
}

/// One member of the workspace.
#[derive(Debug)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) directory: PathBuf,
    pub(crate) published: bool,
    pub(crate) library: bool,
    pub(crate) dependencies: Vec<Dependency>,
    pub(crate) benches: Vec<Bench>,
}

/// One dependency of a member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    /// Whether the dependency lies in this workspace.
    pub(crate) internal: bool,
    pub(crate) has_version: bool,
}

/// Which table of the manifest a dependency stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Normal,
    Development,
    Build,
}

/// A bench target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Bench {
    pub(crate) name: String,
    pub(crate) required_features: Vec<String>,
}

impl Workspace {
    pub(crate) fn load() -> Result<Self> {
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../Cargo.toml");
        let output = Command::new(cargo())
            .args(["metadata", "--no-deps", "--format-version", "1", "--manifest-path"])
            .arg(&manifest)
            .output()
            .context("cargo metadata could not be started")?;
        if !output.status.success() {
            bail!("cargo metadata failed: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        Self::from_metadata(&serde_json::from_slice(&output.stdout)?)
    }

    fn from_metadata(metadata: &Value) -> Result<Self> {
        let packages = metadata["packages"].as_array().context("cargo metadata has no packages")?;
        Ok(Self {
            root: path(&metadata["workspace_root"])?,
            target: path(&metadata["target_directory"])?,
            packages: packages.iter().map(package).collect::<Result<_>>()?,
        })
    }

    /// All files that are not ignored, relative to the root with `/` between components, sorted.
    pub(crate) fn files(&self) -> Result<Vec<String>> {
        let output = Command::new("git")
            .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
            .current_dir(&self.root)
            .output()
            .context("git could not be started; it lists the files of the workspace")?;
        if !output.status.success() {
            bail!("git ls-files failed: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        let listed = String::from_utf8(output.stdout).context("a file name is not UTF-8")?;
        let mut files: Vec<String> = listed
            .split('\0')
            .filter(|file| !file.is_empty() && self.root.join(file).is_file())
            .map(str::to_owned)
            .collect();
        files.sort();
        files.dedup();
        Ok(files)
    }

    /// The directory of a member relative to the root, with `/` between components.
    pub(crate) fn relative(&self, package: &Package) -> String {
        let directory = package.directory.strip_prefix(&self.root).unwrap_or(&package.directory);
        directory.to_string_lossy().replace('\\', "/")
    }

    /// Where this program keeps what it must find again in its next run.
    pub(crate) fn state_directory(&self) -> Result<PathBuf> {
        let directory = self.target.join("xtask");
        std::fs::create_dir_all(&directory)
            .with_context(|| format!("{} could not be created", directory.display()))?;
        Ok(directory)
    }

    /// Waits until no other run on the same target directory does the same, and keeps others waiting until the
    /// answer is dropped.
    pub(crate) fn lock(&self, subject: &str) -> Result<File> {
        let path = self.state_directory()?.join(format!("{subject}.lock"));
        let lock = File::create(&path)
            .with_context(|| format!("{} could not be created", path.display()))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                println!("another run holds {}; waiting for it", path.display());
                lock.lock().context("the lock of another run could not be waited for")?;
            }
            Err(TryLockError::Error(error)) => {
                bail!("{} could not be locked: {error}", path.display())
            }
        }
        Ok(lock)
    }
}

/// The cargo that runs this program.
pub(crate) fn cargo() -> String {
    std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned())
}

fn package(value: &Value) -> Result<Package> {
    let manifest = path(&value["manifest_path"])?;
    let targets = list(&value["targets"]);
    Ok(Package {
        name: string(&value["name"])?,
        directory: manifest.parent().context("a manifest has no directory")?.to_owned(),
        published: value["publish"].as_array().is_none_or(|registries| !registries.is_empty()),
        library: targets.iter().any(|target| is_kind(target, "lib")),
        dependencies: list(&value["dependencies"]).iter().map(dependency).collect::<Result<_>>()?,
        benches: targets
            .iter()
            .filter(|target| is_kind(target, "bench"))
            .map(|target| {
                let required_features = list(&target["required-features"]);
                Ok(Bench {
                    name: string(&target["name"])?,
                    required_features: required_features
                        .iter()
                        .map(string)
                        .collect::<Result<_>>()?,
                })
            })
            .collect::<Result<_>>()?,
    })
}

fn dependency(value: &Value) -> Result<Dependency> {
    Ok(Dependency {
        name: string(&value["name"])?,
        kind: match value["kind"].as_str() {
            None => Kind::Normal,
            Some("dev") => Kind::Development,
            Some(_) => Kind::Build,
        },
        internal: value["path"].is_string(),
        has_version: value["req"].as_str() != Some("*"),
    })
}

fn is_kind(target: &Value, kind: &str) -> bool {
    list(&target["kind"]).iter().any(|value| value.as_str() == Some(kind))
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn string(value: &Value) -> Result<String> {
    value.as_str().map(str::to_owned).context("cargo metadata lacks a text that it should have")
}

fn path(value: &Value) -> Result<PathBuf> {
    string(value).map(PathBuf::from)
}
