use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! number_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
        )]
        #[serde(transparent)]
        pub struct $name(u64);

        impl $name {
            /// Takes the number as it is.
            #[must_use]
            pub const fn new(number: u64) -> Self {
                Self(number)
            }

            /// The number.
            #[must_use]
            pub const fn get(self) -> u64 {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

number_id!(
    /// Grows with each grant of one key, and is not consecutive. A resource that remembers the
    /// highest fence it has seen can refuse the late write of a former holder.
    Fence
);
number_id!(
    /// Names one version of one stored row. A revision is never used again for the same key, not
    /// even after the row was deleted and made anew.
    Revision
);
number_id!(
    /// The place of a record in its chat's inbox. Grows with each record and is never used again
    /// for the same chat.
    Position
);
