//! Manifests are complete for publishing, and say once per workspace what is the same for all.

use anyhow::{Context as _, Result};
use toml::{Table, Value};

use super::{Finding, read};
use crate::workspace::{Kind, Package, Workspace};

/// Must come from the workspace, so that all crates move in lockstep.
const INHERITED: &[&str] = &["version", "edition", "rust-version", "license", "repository"];
/// May be the workspace's or the crate's own.
const PRESENT: &[&str] = &["description", "keywords", "categories", "readme"];

pub(crate) fn check(workspace: &Workspace, package: &Package) -> Result<Vec<Finding>> {
    let file = format!("{}/Cargo.toml", workspace.relative(package));
    let text = read(workspace, &file)?.unwrap_or_default();
    let manifest: Table = text.parse().with_context(|| format!("{file} is no TOML"))?;
    let mut messages = check_lints(&manifest);
    if package.published {
        messages.extend(check_fields(&manifest));
        messages.extend(check_versions(package));
    }
    Ok(messages.into_iter().map(|message| Finding::file(&file, message)).collect())
}

fn check_lints(manifest: &Table) -> Vec<String> {
    match manifest.get("lints") {
        Some(lints) if inherits(lints) => Vec::new(),
        _ => vec![
            "does not take the lints of the workspace: add `[lints] workspace = true`".to_owned(),
        ],
    }
}

fn check_fields(manifest: &Table) -> Vec<String> {
    let package = manifest.get("package").and_then(Value::as_table);
    let field = |name: &str| package.and_then(|package| package.get(name));
    let inherited =
        INHERITED.iter().filter(|name| !field(name).is_some_and(inherits)).map(|name| {
            format!("must take its {name} from the workspace: write `{name}.workspace = true`")
        });
    let present = PRESENT
        .iter()
        .filter(|name| field(name).is_none_or(is_empty))
        .map(|name| format!("has no {name}, which its page needs"));
    inherited.chain(present).collect()
}

fn check_versions(package: &Package) -> Vec<String> {
    let internal = package.dependencies.iter().filter(|dependency| dependency.internal);
    internal
        .filter_map(|dependency| {
            let name = &dependency.name;
            match (dependency.kind, dependency.has_version) {
                (Kind::Development, true) => Some(format!(
                    "dev-dependency `{name}` has a version: name it by path alone, so that publishing strips it and \
                     cycles do not block"
                )),
                (Kind::Normal | Kind::Build, false) => Some(format!(
                    "dependency `{name}` has no version and cannot be published: write `{name}.workspace = true`"
                )),
                _ => None,
            }
        })
        .collect()
}

fn inherits(value: &Value) -> bool {
    value.get("workspace").and_then(Value::as_bool) == Some(true)
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::String(text) => text.trim().is_empty(),
        Value::Array(values) => values.is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::Dependency;

    const COMPLETE: &str = "[package]\nname = \"a\"\ndescription = \"A.\"\nversion.workspace = true\n\
        edition.workspace = true\nrust-version.workspace = true\nlicense.workspace = true\n\
        repository.workspace = true\nkeywords.workspace = true\ncategories.workspace = true\nreadme = \"README.md\"\n\
        [lints]\nworkspace = true\n";

    fn messages(manifest: &str) -> Vec<String> {
        let manifest: Table = manifest.parse().unwrap();
        let mut messages = check_lints(&manifest);
        messages.extend(check_fields(&manifest));
        messages
    }

    #[test]
    fn a_complete_manifest_passes() {
        assert_eq!(messages(COMPLETE), Vec::<String>::new());
    }

    #[test]
    fn each_missing_line_is_named() {
        for name in INHERITED.iter().chain(PRESENT) {
            let lines = COMPLETE.lines().filter(|line| !line.starts_with(*name));
            let found = messages(&lines.collect::<Vec<_>>().join("\n"));
            assert_eq!(found.len(), 1, "without {name}: {found:?}");
            assert!(found[0].contains(name));
        }
    }

    #[test]
    fn a_version_of_its_own_or_empty_text_does_not_count() {
        let found = messages(
            &COMPLETE.replace("version.workspace = true\nedition", "version = \"1.0.0\"\nedition"),
        );
        assert!(found[0].contains("version"), "{found:?}");
        let found = messages(&COMPLETE.replace("\"A.\"", "\" \""));
        assert!(found[0].contains("description"), "{found:?}");
        let found = messages(
            &COMPLETE.replace("[lints]\nworkspace = true", "[lints]\nrust.unused = \"warn\""),
        );
        assert!(found[0].contains("lints"), "{found:?}");
    }

    #[test]
    fn internal_versions_are_there_for_users_and_absent_for_tests() {
        for (kind, has_version, fine) in [
            (Kind::Normal, true, true),
            (Kind::Normal, false, false),
            (Kind::Build, false, false),
            (Kind::Development, true, false),
            (Kind::Development, false, true),
        ] {
            let dependency =
                Dependency { name: "botmesh-core".into(), kind, internal: true, has_version };
            let package = Package {
                name: "a".into(),
                directory: "/".into(),
                published: true,
                library: true,
                dependencies: vec![dependency],
                benches: vec![],
            };
            assert_eq!(check_versions(&package).is_empty(), fine, "{kind:?} {has_version}");
        }
    }
}
