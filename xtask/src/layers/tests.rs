use super::*;
use crate::workspace::{Dependency, Kind};

const ROOT: &str = "pub mod store;\npub use crate::id::ChatKey;\npub use self::{bot::Bot, flow::{Flow, step::Ask as Question}};\n";

fn breaches(file: &str, text: &str) -> Vec<(usize, String)> {
    check_module(file, text, ROOT)
}

#[test]
fn paths_that_point_down_or_aside_are_fine() {
    for (file, text) in [
        (
            "store.rs",
            "use crate::id::ChatKey;\nuse crate::{error::BoxError, message::{Message, Content}};",
        ),
        ("store/memory.rs", "use crate::coordination::Lease; use super::ChatStore;"),
        ("store/memory.rs", "use super::super::id::ChatKey;"),
        ("bot/context.rs", "fn f() -> crate::flow::Flow { crate::ChatKey::new() }"),
        ("runtime.rs", "fn f() { crate::internal_macro!(); }"),
        ("conversation.rs", "use crate::Question;"),
        ("testing.rs", "use crate::bot::Bot;"),
        ("store.rs", "mod inner { use super::lock; }"),
        ("lib.rs", "pub use crate::bot::Bot; mod anything;"),
    ] {
        assert_eq!(breaches(file, text), [], "{file}: {text}");
    }
}

#[test]
fn paths_that_point_up_are_breaches() {
    for (file, text, line, target) in [
        ("store.rs", "\nuse crate::flow::Flow;", 2, "flow"),
        ("id.rs", "use crate::{error::BoxError,\n bot::Bot};", 2, "bot"),
        ("id.rs", "fn f(x: crate::store::Store) {}", 1, "store"),
        ("flow.rs", "use crate::Bot;", 1, "bot"),
        ("message.rs", "use crate::Question;", 1, "flow"),
        ("flow/step.rs", "use super::super::runtime;", 1, "runtime"),
        ("flow.rs", "use super::runtime::Turn;", 1, "runtime"),
        (
            "flow.rs",
            "#[cfg(any(test, feature = \"testing\"))] use crate::testing::Clock;",
            1,
            "testing",
        ),
        ("store.rs", "macro_rules! m { () => { $crate::bot::f() } }", 1, "bot"),
    ] {
        let found = breaches(file, text);
        assert_eq!(found.len(), 1, "{text}: {found:?}");
        assert_eq!(found[0].0, line, "{text}");
        assert!(found[0].1.contains(&format!("must not use `{target}`")), "{found:?}");
    }
}

#[test]
fn tests_and_comments_may_point_anywhere() {
    for (file, text) in [
        ("store.rs", "#[cfg(test)]\nmod tests { use crate::bot::Bot; }"),
        ("store/tests.rs", "use crate::bot::Bot;"),
        ("store.rs", "/// See [`crate::bot::Bot`].\nfn f() {}"),
        ("store.rs", "fn f() -> &'static str { \"crate::bot\" }"),
    ] {
        assert_eq!(breaches(file, text), [], "{file}: {text}");
    }
}

#[test]
fn a_module_without_a_layer_is_told_to_get_one() {
    for (file, text) in
        [("gadget.rs", ""), ("gadget/part.rs", ""), ("bot.rs", "use crate::gadget::X;")]
    {
        let found = breaches(file, text);
        assert!(found[0].1.contains("gadget") && found[0].1.contains("LAYERS"), "{found:?}");
    }
}

fn package(name: &str, dependencies: &[&str]) -> Package {
    Package {
        name: name.into(),
        directory: "/".into(),
        published: true,
        library: true,
        dependencies: dependencies
            .iter()
            .map(|name| Dependency {
                name: (*name).into(),
                kind: Kind::Normal,
                internal: name.starts_with("botmesh"),
                has_version: true,
            })
            .collect(),
        benches: vec![],
    }
}

#[test]
fn crates_depend_downward_only() {
    for (name, dependencies) in [
        (CORE, ["tokio", CORE].as_slice()),
        ("botmesh-sqlite-store", &[CORE, "botmesh-sql"]),
        ("botmesh-telegram", &[CORE, "botmesh-webhook", "reqwest"]),
    ] {
        assert_eq!(check_crate(&package(name, dependencies)), Vec::<String>::new(), "{name}");
    }
    for (name, dependency) in [
        (CORE, "botmesh-sql"),
        ("botmesh-redis-store", "botmesh-sql"),
        ("botmesh-telegram", "botmesh-sqlite-store"),
        ("botmesh-sqlite-store", "botmesh-postgres-store"),
    ] {
        let found = check_crate(&package(name, &[dependency]));
        assert_eq!(found.len(), 1, "{name} on {dependency}");
        assert!(found[0].contains(dependency));
    }
    assert!(check_crate(&package("botmesh-gadget", &[]))[0].contains("CRATES"));
}
