//! Tests whose server is absent.

/// Set to `1`, it makes a test fail whose server is absent.
const REQUIRE: &str = "BOTMESH_REQUIRE_BACKENDS";

/// Tells that a test is skipped, and why.
///
/// # Panics
/// When `BOTMESH_REQUIRE_BACKENDS=1` wants it to run.
pub fn skip(why: &str) {
    let is_required = std::env::var(REQUIRE).is_ok_and(|set| set == "1");
    assert!(!is_required, "{why}, and {REQUIRE}=1 wants it");
    println!("skipped: {why}");
}

/// Where the server is whose address this variable has; none where a test that needs it is skipped.
///
/// # Panics
/// When `BOTMESH_REQUIRE_BACKENDS=1` wants it to run.
#[must_use]
pub fn server(variable: &str) -> Option<String> {
    let address = std::env::var(variable).ok();
    if address.is_none() {
        skip(&format!("{variable} is not set"));
    }
    address
}
