use std::fmt;
use std::time::Duration;

use tokio::time::Instant;

use super::StoreFixture;
use crate::store::StoreError;

/// Set to `1`, it makes a case fail whose backend is absent.
const REQUIRE: &str = "BOTMESH_REQUIRE_BACKENDS";

/// Why a case of a suite did not pass.
pub enum CaseError {
    /// The contract is broken, in this way.
    Violation(String),
    /// The backend is absent, or does not claim to have what the case is about.
    NotRun(&'static str),
}

impl fmt::Display for CaseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Violation(what) => f.write_str(what),
            Self::NotRun(why) => write!(f, "not run: {why}"),
        }
    }
}

// A failed test prints its error by `Debug`.
impl fmt::Debug for CaseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for CaseError {}

impl From<StoreError> for CaseError {
    fn from(error: StoreError) -> Self {
        let mut text = format!("the store failed: {error}");
        let mut source = std::error::Error::source(&error);
        while let Some(cause) = source {
            text.push_str(": ");
            text.push_str(&cause.to_string());
            source = cause.source();
        }
        Self::Violation(text)
    }
}

/// The result of a test: a case that could not run passes, with a line on standard output, unless
/// `BOTMESH_REQUIRE_BACKENDS=1` is set and its backend is absent.
///
/// # Errors
/// [`CaseError`] when the case failed.
pub fn finish(outcome: Result<(), CaseError>) -> Result<(), CaseError> {
    match outcome {
        Err(CaseError::NotRun(ABSENT)) if std::env::var(REQUIRE).is_ok_and(|set| set == "1") => {
            Err(CaseError::Violation(format!("{ABSENT}, and {REQUIRE}=1 wants it")))
        }
        Err(CaseError::NotRun(why)) => {
            println!("not run: {why}");
            Ok(())
        }
        other => other,
    }
}

pub(super) const ABSENT: &str = "the backend is absent";

/// Fails the case unless the condition holds.
macro_rules! ensure {
    ($condition:expr, $($message:tt)+) => {{
        let holds: bool = $condition;
        if !holds {
            return Err($crate::conformance::CaseError::Violation(format!($($message)+)));
        }
    }};
}

/// Fails the case unless both are equal.
macro_rules! ensure_eq {
    ($found:expr, $wanted:expr, $($message:tt)+) => {
        match (&$found, &$wanted) {
            (found, wanted) => $crate::conformance::case::ensure!(
                found == wanted,
                "{}: found {found:?}, wanted {wanted:?}",
                format!($($message)+)
            ),
        }
    };
}

pub(super) use {ensure, ensure_eq};

/// Backends may keep whole milliseconds: then what ends seems to end this much early at most.
pub(super) const GRAIN: Duration = Duration::from_millis(2);

/// How long a case waits for what must happen.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);

/// Lets time pass until `condition` holds.
pub(super) async fn eventually<F>(
    fixture: &dyn StoreFixture,
    what: &str,
    mut condition: F,
) -> Result<(), CaseError>
where
    F: AsyncFnMut() -> Result<bool, CaseError>,
{
    let started = Instant::now();
    while !condition().await? {
        ensure!(started.elapsed() < PATIENCE, "{what}: not after {PATIENCE:?}");
        fixture.pass(Duration::from_millis(20)).await;
    }
    Ok(())
}
