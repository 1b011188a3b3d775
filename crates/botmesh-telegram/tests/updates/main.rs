//! Updates as they are documented, and as nobody documented them.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod anything;
mod documented;
