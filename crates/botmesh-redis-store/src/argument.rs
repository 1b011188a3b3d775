//! Writes what scripts read.

use std::time::Duration;

use botmesh_core::id::{Fence, Revision};

/// What is longer counts as for ever: sums with the server's clock stay exact in Lua.
const FOR_EVER: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// Microseconds, a century at most.
pub(crate) fn time(time: Duration) -> String {
    time.min(FOR_EVER).as_micros().to_string()
}

/// Microseconds, or nothing when it is so long that it never ends.
pub(crate) fn end(time: Option<Duration>) -> String {
    time.filter(|time| *time < FOR_EVER).map(self::time).unwrap_or_default()
}

/// A fence as a text that compares as the number does.
pub(crate) fn fence(fence: Fence) -> String {
    format!("{:020}", fence.get())
}

/// A revision, or nothing for the absence of a row.
pub(crate) fn expected(revision: Option<Revision>) -> String {
    revision.map(|revision| revision.get().to_string()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// B2: fences compare as numbers at the server, up to the highest.
        #[test]
        fn fences_compare_as_texts(a in any::<u64>(), b in any::<u64>()) {
            let (one, other) = (Fence::new(a), Fence::new(b));
            prop_assert_eq!(a.cmp(&b), fence(one).cmp(&fence(other)));
        }
    }

    #[test]
    fn times_are_bounded() {
        assert_eq!(time(Duration::from_millis(3)), "3000");
        assert_eq!(time(Duration::MAX), "3153600000000000");
        assert_eq!(end(Some(Duration::MAX)), "");
        assert_eq!(end(None), "");
    }
}
