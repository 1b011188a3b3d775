//! Programs that come as a Python package, each in an environment of its own that later runs find again.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::process;

/// A package of one version and the program that it holds.
#[derive(Debug, Clone, Copy)]
pub(super) struct PythonPackage {
    pub(super) name: &'static str,
    pub(super) version: &'static str,
    pub(super) program: &'static str,
}

/// An environment that holds one package.
#[derive(Debug)]
pub(super) struct VirtualEnvironment {
    directory: PathBuf,
    program: &'static str,
}

impl VirtualEnvironment {
    /// The environment of a package, which is made when it is not there.
    pub(super) fn with(package: PythonPackage) -> Result<Self> {
        Self::within(&cache()?, package)
    }

    fn within(cache: &Path, package: PythonPackage) -> Result<Self> {
        let named = format!("{}-{}", package.name, package.version);
        let environment = Self { directory: cache.join(&named), program: package.program };
        if environment.program().is_file() {
            return Ok(environment);
        }
        if !process::succeeds(Command::new("python3").args(["-c", "import ensurepip, venv"])) {
            bail!(
                "Python with its modules `venv` and `ensurepip` is missing: run `sudo apt-get install python3-venv` \
                 (or what your system calls it)"
            );
        }
        println!("installing {} {} for Python", package.name, package.version);
        std::fs::create_dir_all(cache)
            .with_context(|| format!("{} could not be created", cache.display()))?;
        // Its programs name its path, so it is made where it stays. What a broken run left is made anew.
        process::run(
            Command::new("python3").args(["-m", "venv", "--clear"]).arg(&environment.directory),
        )?;
        let requirement = format!("{}=={}", package.name, package.version);
        let install =
            ["-m", "pip", "--disable-pip-version-check", "--no-input", "install", "--quiet"];
        process::run(Command::new(environment.python()).args(install).arg(requirement))
            .with_context(|| format!("pip could not install {named}"))?;
        if !environment.program().is_file() {
            bail!("the package {named} does not hold `{}`", package.program);
        }
        Ok(environment)
    }

    /// The program of the package.
    pub(super) fn program(&self) -> PathBuf {
        self.directory.join("bin").join(self.program)
    }

    /// The Python that sees the package.
    pub(super) fn python(&self) -> PathBuf {
        self.directory.join("bin/python")
    }
}

/// Where programs keep what they can fetch again.
fn cache() -> Result<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let cache = set("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(set("HOME")?).join(".cache")));
    Ok(cache.context("neither XDG_CACHE_HOME nor HOME is set")?.join("botmesh"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_environment_that_is_there_is_used_as_it_is() {
        let cache = tempfile::tempdir().unwrap();
        let package = PythonPackage { name: "no-such-package", version: "1", program: "server" };
        let bin = cache.path().join("no-such-package-1/bin");
        std::fs::create_dir_all(&bin).unwrap();
        std::fs::write(bin.join("server"), "").unwrap();
        let environment = VirtualEnvironment::within(cache.path(), package).unwrap();
        assert_eq!(environment.program(), bin.join("server"));
        assert_eq!(environment.python(), bin.join("python"));
    }
}
