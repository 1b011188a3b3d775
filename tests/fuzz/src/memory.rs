//! How much memory an input may cost.

/// Runs `work` on `bytes` and fails when more than `each` bytes for each of them and `fixed` beside
/// were held at one time. Counts what this thread allocates.
pub(crate) fn bounded(bytes: &[u8], each: usize, fixed: usize, work: impl FnOnce(&[u8])) {
    let cost = allocation_counter::measure(|| work(bytes));
    let most = bytes.len().saturating_mul(each).saturating_add(fixed);
    assert!(
        usize::try_from(cost.bytes_max).is_ok_and(|held| held <= most),
        "{} bytes of input held {} bytes of memory: at most {most} are expected",
        bytes.len(),
        cost.bytes_max,
    );
}
