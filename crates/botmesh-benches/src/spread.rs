//! What several runs of one measurement came to.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

/// The median, the least and the most of several runs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Spread {
    /// Half of the runs came to less.
    pub median: f64,
    /// The least.
    pub least: f64,
    /// The most.
    pub most: f64,
}

impl Spread {
    /// The spread of these runs; none when there were none.
    #[must_use]
    pub fn of(runs: &[f64]) -> Option<Self> {
        let mut runs = runs.to_vec();
        runs.sort_by(f64::total_cmp);
        Some(Self {
            median: *runs.get(runs.len() / 2)?,
            least: *runs.first()?,
            most: *runs.last()?,
        })
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { median, least, most } = self;
        f.pad(&format!("{median:.0} ({least:.0}-{most:.0})"))
    }
}

/// The time, in microseconds, that `share` of the sorted times do not exceed.
#[must_use]
pub fn quantile(sorted: &[Duration], share: f64) -> Option<f64> {
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "an index within the list"
    )]
    let index = (sorted.len() as f64 * share) as usize;
    let time = sorted.get(index.min(sorted.len().saturating_sub(1)))?;
    Some(time.as_secs_f64() * 1e6)
}

/// How many there were in each second.
#[must_use]
#[allow(clippy::cast_precision_loss, reason = "a rate needs no more digits")]
pub fn rate(number: u64, took: Duration) -> f64 {
    number as f64 / took.as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_no_mean() {
        let spread = Spread::of(&[5.0, 1.0, 1000.0]).unwrap();
        assert_eq!(spread, Spread { median: 5.0, least: 1.0, most: 1000.0 });
        assert_eq!(Spread::of(&[]), None);
    }

    #[test]
    fn quantiles_stay_within_the_list() {
        let times: Vec<Duration> = (1..=100).map(Duration::from_micros).collect();
        assert_eq!(quantile(&times, 0.5), Some(51.0));
        assert_eq!(quantile(&times, 1.0), Some(100.0));
        assert_eq!(quantile(&[], 0.5), None);
    }
}
