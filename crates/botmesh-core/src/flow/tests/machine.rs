//! Jumps, sub-flows, scripts, pauses.
