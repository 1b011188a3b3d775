//! Files stay small enough to be read in one sitting.

use super::Finding;

const LIMIT: usize = 400;
/// Tests and benches repeat themselves for clarity.
const TEST_LIMIT: usize = 600;

pub(crate) fn check(file: &str, content: &str) -> Option<Finding> {
    if !file.ends_with(".rs") {
        return None;
    }
    let limit = limit(file);
    let lines = content.lines().count();
    (lines > limit).then(|| {
        Finding::new(
            file,
            limit + 1,
            format!("{lines} lines, the limit is {limit}: split the file by subject, or move its tests to tests.rs"),
        )
    })
}

fn limit(file: &str) -> usize {
    let mut components = file.rsplit('/');
    let is_tests_file = components.next() == Some("tests.rs");
    if is_tests_file || components.any(|directory| directory == "tests" || directory == "benches") {
        TEST_LIMIT
    } else {
        LIMIT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_over_its_limit_is_found() {
        for (file, lines, found) in [
            ("crates/a/src/lib.rs", 400, false),
            ("crates/a/src/lib.rs", 401, true),
            ("crates/a/src/x/tests.rs", 600, false),
            ("crates/a/src/x/tests.rs", 601, true),
            ("crates/a/tests/store.rs", 600, false),
            ("benches/src/dispatch.rs", 401, false),
            ("crates/a/src/contests.rs", 401, true),
            ("docs/guide.md", 5000, false),
        ] {
            let finding = check(file, &"x\n".repeat(lines));
            assert_eq!(finding.is_some(), found, "{file} with {lines} lines");
        }
    }
}
