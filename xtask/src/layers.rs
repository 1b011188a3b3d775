//! The layers of the core crate, the edges between the crates, and the check that both are kept.
//!
//! These two tables are the only place that lists them: a new edge is a change of design and is reviewed here.

use std::collections::BTreeMap;

use crate::source;
use crate::tidy::Finding;
use crate::workspace::{Kind, Package, Workspace};

#[cfg(test)]
mod tests;

/// The top-level modules of the core crate from the ground up. A module uses its own layer and those before it.
const LAYERS: &[&[&str]] = &[
    &["id", "time", "error", "watched", "lang"],
    &["message", "text", "i18n"],
    &["provider", "store", "coordination"],
    &["question", "matcher", "flow", "conversation"],
    &["durability", "schedule"],
    &["runtime"],
    &["bot", "terminal", "prelude"],
    &["testing", "conformance"],
];

const CORE: &str = "botmesh-core";

/// Each published crate with the siblings that it may depend on.
const CRATES: &[(&str, &[&str])] = &[
    (CORE, &[]),
    ("botmesh-sql", &[CORE]),
    ("botmesh-webhook", &[CORE]),
    ("botmesh-sqlite-store", &[CORE, "botmesh-sql"]),
    ("botmesh-postgres-store", &[CORE, "botmesh-sql"]),
    ("botmesh-mysql-store", &[CORE, "botmesh-sql"]),
    ("botmesh-redis-store", &[CORE]),
    ("botmesh-mongo-store", &[CORE]),
    ("botmesh-telegram", &[CORE, "botmesh-webhook"]),
    ("botmesh-discord", &[CORE, "botmesh-webhook"]),
    ("botmesh-email", &[CORE, "botmesh-webhook"]),
    ("botmesh-meta", &[CORE, "botmesh-webhook"]),
    ("botmesh-whatsapp-web", &[CORE, "botmesh-webhook"]),
];

/// What all may use in their tests. It is not published, and need not be: a dev-dependency by path alone is left out of what
/// is published.
const TEST_SUPPORT: &str = "botmesh-test-support";

/// A path inside a crate: where it starts and its segments, the last one as the `as` that follows renames it.
#[derive(Debug, PartialEq, Eq)]
struct CratePath {
    at: usize,
    segments: Vec<String>,
}

/// Checks every edge between published crates.
pub(crate) fn check_crates(workspace: &Workspace) -> Vec<Finding> {
    let published = workspace.packages.iter().filter(|package| package.published);
    published
        .flat_map(|package| {
            let manifest = format!("{}/Cargo.toml", workspace.relative(package));
            check_crate(package).into_iter().map(move |message| Finding::file(&manifest, message))
        })
        .collect()
}

fn check_crate(package: &Package) -> Vec<String> {
    let Some((_, allowed)) = CRATES.iter().find(|(name, _)| *name == package.name) else {
        return vec![format!(
            "crate `{}` has no place yet: add it to CRATES in xtask/src/layers.rs",
            package.name
        )];
    };
    let siblings = package.dependencies.iter().filter(|dependency| dependency.internal);
    siblings
        // A crate may name itself in its dev-dependencies, to switch a feature on for its own tests.
        .filter(|sibling| sibling.name != package.name)
        .filter(|sibling| sibling.name != TEST_SUPPORT || sibling.kind != Kind::Development)
        .filter(|sibling| !allowed.contains(&sibling.name.as_str()))
        .map(|sibling| {
            let may = if allowed.is_empty() { "none".to_owned() } else { allowed.join(", ") };
            format!(
                "`{}` must not depend on `{}`; of its siblings it may use {may}",
                package.name, sibling.name
            )
        })
        .collect()
}

/// Checks the paths of one file of the core crate. `file` is relative to its `src`; `root` is the text of its
/// `lib.rs`, which says where a name that is used from the crate's root really lives.
pub(crate) fn check_module(file: &str, text: &str, root: &str) -> Vec<(usize, String)> {
    let modules: Vec<&str> =
        file.trim_end_matches(".rs").trim_end_matches("/mod").split('/').collect();
    if file == "lib.rs" || modules.last() == Some(&"tests") {
        return Vec::new();
    }
    let own = modules[0];
    let Some(own_layer) = layer(own) else {
        return vec![(1, format!("{}: add it to LAYERS in xtask/src/layers.rs", unknown(own)))];
    };
    let code = source::without_tests(&source::code(text));
    let exports = exports(root);
    let mut found = Vec::new();
    for path in crate_paths(&code).into_iter().chain(super_paths(&code, modules.len())) {
        let line = source::line(&code, path.at);
        let Some(first) = path.segments.first() else { continue };
        let target = exports.get(first.as_str()).map_or(first.as_str(), String::as_str);
        match layer(target) {
            Some(layer) if layer <= own_layer => {}
            Some(layer) => found.push((
                line,
                format!("`{own}` (layer {own_layer}) must not use `{target}` (layer {layer}): edges point down only"),
            )),
            None => found.push((
                line,
                format!(
                    "{}: name the module it lives in, or add a new module to LAYERS in xtask/src/layers.rs",
                    unknown(target)
                ),
            )),
        }
    }
    // One line may name a module several times.
    found.dedup();
    found
}

fn unknown(module: &str) -> String {
    format!("`{module}` is no module with a layer")
}

fn layer(module: &str) -> Option<usize> {
    LAYERS.iter().position(|modules| modules.contains(&module))
}

/// The names that `lib.rs` re-exports, each with the top-level module that it comes from.
fn exports(root: &str) -> BTreeMap<String, String> {
    let code = source::without_tests(&source::code(root));
    let mut exports = BTreeMap::new();
    for at in source::words(&code, "use") {
        let from = at + 4;
        for segments in expand(&code, from).into_iter().map(|path| path.segments) {
            let inner = segments.iter().position(|segment| segment != "self" && segment != "crate");
            let (Some(inner), Some(name)) = (inner, segments.last()) else { continue };
            exports.insert(name.clone(), segments[inner].clone());
        }
    }
    exports
}

/// Every path that starts at the crate's root, without calls of macros, which have no module.
fn crate_paths(code: &str) -> Vec<CratePath> {
    source::words(code, "crate")
        .filter(|at| code[at + 5..].starts_with("::"))
        .flat_map(|at| expand(code, at + 7))
        .filter(|path| !(path.segments.len() == 1 && is_macro_call(code, path)))
        .collect()
}

fn is_macro_call(code: &str, path: &CratePath) -> bool {
    let end = path.at + path.segments[0].len();
    code[end..].starts_with('!')
}

/// Every chain of `super` that leaves the top-level module, in a file `depth` modules below the root.
fn super_paths(code: &str, depth: usize) -> Vec<CratePath> {
    let mut found = Vec::new();
    for at in source::words(code, "super") {
        if code[..at].ends_with("::") {
            continue;
        }
        let mut end = at;
        let mut climbed = 0;
        while code[end..].starts_with("super::") {
            end += 7;
            climbed += 1;
        }
        if climbed >= depth {
            // An inline module climbs once more to stay where it is: only names of modules can be a breach.
            found.extend(
                expand(code, end).into_iter().filter(|path| {
                    path.segments.first().is_some_and(|first| layer(first).is_some())
                }),
            );
        }
    }
    found
}

/// The paths of a use tree whose first segment or group starts at an offset.
fn expand(code: &str, from: usize) -> Vec<CratePath> {
    let at = from + code[from..].len() - code[from..].trim_start().len();
    if code[at..].starts_with('{') {
        let end = source::closing(code, at).unwrap_or(code.len());
        return group(code, at + 1, end - 1);
    }
    let first = source::word_at(code, at);
    if first.is_empty() {
        return Vec::new();
    }
    let end = at + first.len();
    let mut rest = Vec::new();
    if code[end..].starts_with("::") {
        rest = expand(code, end + 2);
    }
    if rest.is_empty() {
        let mut segments = vec![first.to_owned()];
        if let Some(renamed) = code[end..].trim_start().strip_prefix("as ") {
            segments.push(source::word_at(renamed, 0).to_owned());
        }
        return vec![CratePath { at, segments }];
    }
    for path in &mut rest {
        path.segments.insert(0, first.to_owned());
        path.at = at;
    }
    rest
}

fn group(code: &str, from: usize, to: usize) -> Vec<CratePath> {
    let mut found = Vec::new();
    let mut start = from;
    let mut depth = 0usize;
    for (offset, byte) in code.bytes().enumerate().take(to).skip(from) {
        match byte {
            b'{' => depth += 1,
            b'}' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => {
                found.extend(expand(code, start));
                start = offset + 1;
            }
            _ => {}
        }
    }
    if !code[start..to].trim().is_empty() {
        found.extend(expand(code, start));
    }
    found
}
