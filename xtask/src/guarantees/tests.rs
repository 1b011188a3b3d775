use super::*;

const TESTS: &str = r#"
/// B2: N concurrent writers from one revision: exactly one wins.
#[tokio::test(flavor = "multi_thread")]
async fn one_writer_wins() {}

#[cfg(test)]
mod tests {
    /// Proves several.
    ///
    /// A1, D2: in order.
    #[test]
    fn order_is_kept() {}

    /// A1: not a test at all
    fn not_a_test() {}
}
"#;

const CASES: &str = "
/// B4: any key is stored.
pub async fn strange_keys(fixture: &dyn Fixture) {}
";

const COORDINATOR_CASES: &str = "
/// C10: one leads.
pub async fn one_leads(fixture: &dyn Fixture) {}
";

fn index() -> Index {
    let mut index = Index::default();
    index.add("botmesh-core", "crates/core/src/store/memory.rs", "src/store/memory.rs", TESTS);
    index.add(
        "botmesh-core",
        "crates/core/src/conformance/store.rs",
        "src/conformance/store.rs",
        CASES,
    );
    let coordinator = "conformance/coordinator/leading.rs";
    index.add(
        "botmesh-core",
        &format!("crates/core/src/{coordinator}"),
        &format!("src/{coordinator}"),
        COORDINATOR_CASES,
    );
    let suite = "mod suite { botmesh_core::store_conformance!(Fixture); }";
    index.add(
        "botmesh-sqlite-store",
        "crates/sqlite/tests/conformance.rs",
        "tests/conformance.rs",
        suite,
    );
    index
}

/// A document and a baseline in which all is pending, but for what is given.
fn written(kept: &str, except: &[&str], pending: &str) -> (String, String) {
    let rest: Vec<String> = Promise::all()
        .map(|promise| promise.to_string())
        .filter(|number| !except.contains(&number.as_str()))
        .collect();
    let items: String = rest.iter().map(|number| format!("- **{number}** Something.\n")).collect();
    let document = format!("# Title\n\n{kept}\n## Not built yet\n\n{pending}{items}");
    (document, rest.join("\n"))
}

fn findings(document: &str, baseline: &str) -> Vec<String> {
    check(&Document::parse(document), baseline, &index())
}

#[test]
fn a_document_that_lists_all_as_pending_is_fine() {
    let (document, baseline) = written("", &[], "");
    assert_eq!(findings(&document, &baseline), Vec::<String>::new());
}

#[test]
fn a_kept_promise_names_tests_that_exist_and_say_so() {
    for test in [
        "`botmesh_core::store::memory::one_writer_wins`",
        "`botmesh-core::store::memory::one_writer_wins`",
        "`crates/core/src/store/memory.rs one_writer_wins`",
    ] {
        let kept = format!("- **B2** One writer\n  wins.\n  - test: {test}\n");
        let (document, baseline) = written(&kept, &["B2"], "");
        assert_eq!(findings(&document, &baseline), Vec::<String>::new(), "{test}");
    }
    let kept = "- **B4** Any key.\n  - test: `botmesh_sqlite_store::conformance::suite::strange_keys`\n\
                - **D2** Held.\n  - test: `botmesh_core::store::memory::tests::order_is_kept`\n";
    let (document, baseline) = written(kept, &["B4", "D2"], "");
    assert_eq!(findings(&document, &baseline), Vec::<String>::new());
}

#[test]
fn a_test_that_is_missing_or_proves_something_else_is_named() {
    for (promise, test, says) in [
        ("B2", "botmesh_core::store::memory::no_writer_wins", "there is no test"),
        (
            "B2",
            "botmesh_core::store::one_writer_wins",
            "`botmesh_core::store::memory::one_writer_wins` has that name",
        ),
        ("A1", "botmesh_core::store::memory::tests::not_a_test", "there is no test"),
        ("B4", "botmesh_redis_store::conformance::strange_keys", "there is no test"),
        ("C10", "botmesh_sqlite_store::conformance::suite::one_leads", "there is no test"),
        ("B3", "botmesh_core::store::memory::one_writer_wins", "does not say that it proves B3"),
    ] {
        let kept = format!("- **{promise}** Something.\n  - test: `{test}`\n");
        let (document, baseline) = written(&kept, &[promise], "");
        let found = findings(&document, &baseline);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains(says), "{found:?}");
    }
}

#[test]
fn a_promise_may_be_kept_in_part() {
    let kept = "- **B2** One wins.\n  - for: memory, SQLite\n  - test: `botmesh_core::store::memory::one_writer_wins`\n";
    let (document, baseline) = written(kept, &["B2"], "- **B2** The rest.\n  - for: Redis\n");
    assert_eq!(findings(&document, &format!("{baseline}\nB2 for Redis")), Vec::<String>::new());

    let found = findings(&document, &format!("{baseline}\nB2 for MongoDB, Redis"));
    assert!(found[0].contains("write `B2 for Redis`"), "{found:?}");
    let found = findings(&document, &format!("{baseline}\nB2"));
    assert!(found[0].contains("write `B2 for Redis`"), "{found:?}");
    let found = findings(&document, &format!("{baseline}\nB2 for MongoDB"));
    assert!(found[0].contains("may only shrink"), "{found:?}");
}

#[test]
fn a_part_is_said_on_both_sides_and_only_once() {
    let test = "  - test: `botmesh_core::store::memory::one_writer_wins`\n";
    for (kept, pending, says) in [
        (format!("- **B2** One.\n  - for: SQLite\n{test}"), "", "kept in part"),
        (format!("- **B2** One.\n{test}"), "- **B2** Rest.\n  - for: Redis\n", "both lists"),
        (format!("- **B2** One.\n  - for: SQLite\n{test}"), "- **B2** Rest.\n", "both lists"),
        (
            format!("- **B2** One.\n  - for: Redis\n{test}"),
            "- **B2** Rest.\n  - for: Redis\n",
            "same part",
        ),
    ] {
        let (document, baseline) = written(&kept, &["B2"], pending);
        let baseline =
            if pending.is_empty() { baseline } else { format!("{baseline}\nB2 for Redis") };
        let found = findings(&document, &baseline);
        assert!(found.iter().any(|finding| finding.contains(says)), "{says}: {found:?}");
    }
}

#[test]
fn the_list_of_what_is_missing_only_shrinks() {
    let (document, baseline) = written("", &[], "");
    let found = findings(&document, &baseline.replace("C16\n", ""));
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("C16") && found[0].contains("may only shrink"), "{found:?}");

    let kept = "- **B2** One.\n  - test: `botmesh_core::store::memory::one_writer_wins`\n";
    let (document, baseline) = written(kept, &["B2"], "");
    let found = findings(&document, &format!("{baseline}\nB2"));
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("B2 is kept now"), "{found:?}");
}

#[test]
fn faults_of_form_are_told_with_their_line() {
    for (kept, says) in [
        ("- **A16** Too far.\n", ":3: `A16` is no promise"),
        ("- **Z1** No section.\n", "`Z1` is no promise"),
        ("- **A01** A zero.\n", "`A01` is no promise"),
        ("- **B2**\n", "no sentence"),
        ("- **B2** One.\n  - proof: x\n", ":4: `proof: x` is neither"),
        ("- **B2** One.\n- **B2** Two.\n", "twice"),
        ("- **B2** One.\n", "names no test"),
    ] {
        let (document, baseline) = written(kept, &["B2"], "");
        let found = findings(&document, &baseline);
        assert!(found.iter().any(|finding| finding.contains(says)), "{kept}: {found:?}");
    }
    let (document, baseline) = written("", &["B2"], "");
    let found = findings(&document, &baseline);
    assert!(found[0].contains("B2 is missing"), "{found:?}");
}

#[test]
fn a_test_of_a_promise_that_does_not_exist_is_found() {
    let mut index = index();
    index.add("a", "a/src/lib.rs", "src/lib.rs", "/// D10: nothing.\n#[test]\nfn x() {}\n");
    let (document, baseline) = written("", &[], "");
    let found = check(&Document::parse(&document), &baseline, &index);
    assert_eq!(found, ["a/src/lib.rs:3: there is no promise D10"]);
}

#[test]
fn a_claim_of_a_pending_promise_is_noted() {
    let (document, _) = written("", &[], "");
    let notes = notes(&Document::parse(&document), &index());
    assert!(
        notes.iter().any(|note| note.contains("one_writer_wins") && note.contains("B2")),
        "{notes:?}"
    );
}
