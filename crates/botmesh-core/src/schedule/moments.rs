use std::fmt;
use std::str::FromStr as _;
use std::time::Duration;

use croner::Cron;
use jiff::Zoned;
use jiff::tz::TimeZone;
use thiserror::Error;

use crate::time::Timestamp;

/// The moments at which a job is due.
///
/// - [`every`](Self::every): the multiples of a period, counted from 1970-01-01 UTC, so that they are
///   the same on each replica and after each restart.
/// - [`cron`](Self::cron): local times that match a pattern.
/// - [`at`](Self::at): one moment.
#[derive(Clone)]
pub struct Schedule(Kind);

#[derive(Clone)]
enum Kind {
    Every(Duration),
    Cron { cron: Box<Cron>, zone: TimeZone, text: String },
    At(Timestamp),
}

/// A time zone by its name, as [`tz`] makes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Zone(String);

/// The time zone with this name in the IANA database, such as `America/Bogota`. Whether there is
/// one is told when the bot is built. The system's database is used, else the one that was
/// compiled in.
#[must_use]
pub fn tz(name: impl Into<String>) -> Zone {
    Zone(name.into())
}

/// Why there is no such schedule.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ScheduleError {
    /// The period is shorter than a millisecond, or not one of whole milliseconds.
    #[error("{0:?} is no period: give whole milliseconds, at least one")]
    Period(Duration),
    /// The pattern is none.
    #[error(
        "{pattern:?} is no cron pattern ({reason}): five fields are minute, hour, day of month, month, day of week"
    )]
    Pattern {
        /// What was given.
        pattern: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The pattern matches no day that there is.
    #[error("{pattern:?} never comes: no such date is in the years to come")]
    Never {
        /// What was given.
        pattern: String,
    },
    /// There is no such time zone.
    #[error(
        "there is no time zone {0:?}: use a name of the IANA database, such as America/Bogota, or UTC"
    )]
    Zone(String),
}

impl Schedule {
    /// Every `period`.
    ///
    /// # Errors
    /// [`ScheduleError::Period`].
    pub fn every(period: Duration) -> Result<Self, ScheduleError> {
        let whole = period.subsec_nanos().is_multiple_of(1_000_000);
        if period.is_zero() || !whole || u64::try_from(period.as_millis()).is_err() {
            return Err(ScheduleError::Period(period));
        }
        Ok(Self(Kind::Every(period)))
    }

    /// At each local time of `zone` that matches `pattern`: five fields (minute, hour, day of
    /// month, month, day of week), or six with seconds before them; names, ranges, steps, lists, `L`
    /// for the last day and `#` for the nth weekday. Where both days are restricted, one that
    /// matches is enough.
    ///
    /// Where the clocks are set forward, a time that is skipped and has a fixed hour and minute is
    /// due at the first moment after the gap. Where they are set back, such a time is due once, at
    /// the first of the two. Patterns with wildcards go on with the clock: they have nothing in the
    /// gap, and run through the repeated hour.
    ///
    /// # Errors
    /// [`ScheduleError`] when the pattern or the zone is none, or nothing ever matches.
    pub fn cron(pattern: &str, zone: &Zone) -> Result<Self, ScheduleError> {
        let refused =
            |reason: String| ScheduleError::Pattern { pattern: pattern.to_owned(), reason };
        let cron = Cron::from_str(pattern).map_err(|error| refused(error.to_string()))?;
        let time_zone = TimeZone::get(&zone.0).map_err(|_| ScheduleError::Zone(zone.0.clone()))?;
        let text = format!("cron {pattern} {}", zone.0);
        let schedule = Self(Kind::Cron { cron: Box::new(cron), zone: time_zone, text });
        // Any year does: what comes at all comes again within 28, but for the first day of a pattern
        // with a year of its own.
        match schedule.next_after(Timestamp::from_millis(0)) {
            Some(_) => Ok(schedule),
            None => Err(ScheduleError::Never { pattern: pattern.to_owned() }),
        }
    }

    /// Once, at `moment`.
    #[must_use]
    pub const fn at(moment: Timestamp) -> Self {
        Self(Kind::At(moment))
    }

    /// The first moment after `moment`; none when there is no more.
    #[must_use]
    pub fn next_after(&self, moment: Timestamp) -> Option<Timestamp> {
        match &self.0 {
            Kind::Every(period) => {
                let period = millis(*period);
                let next = (moment.as_millis() / period).checked_add(1)?.checked_mul(period)?;
                Some(Timestamp::from_millis(next))
            }
            Kind::Cron { cron, zone, .. } => {
                let start = zoned(moment, zone)?;
                cron.find_next_occurrence(&start, false).ok().and_then(timestamp)
            }
            Kind::At(at) => (*at > moment).then_some(*at),
        }
    }

    /// The last moment that is not after `moment`; none when there was none.
    #[must_use]
    pub fn last_until(&self, moment: Timestamp) -> Option<Timestamp> {
        match &self.0 {
            Kind::Every(period) => {
                let period = millis(*period);
                Some(Timestamp::from_millis(moment.as_millis() / period * period))
            }
            Kind::Cron { cron, zone, .. } => {
                // Patterns have whole seconds.
                let start = zoned(Timestamp::from_millis(moment.as_millis() / 1000 * 1000), zone)?;
                cron.find_previous_occurrence(&start, true).ok().and_then(timestamp)
            }
            Kind::At(at) => (*at <= moment).then_some(*at),
        }
    }

    /// How late an occurrence may begin before it counts as missed: a minute, or half a period that
    /// is shorter than two.
    pub(crate) fn patience(&self) -> Duration {
        const MINUTE: Duration = Duration::from_secs(60);
        match &self.0 {
            Kind::Every(period) => (*period / 2).min(MINUTE),
            Kind::Cron { .. } | Kind::At(_) => MINUTE,
        }
    }

    /// The least time between two moments.
    pub(crate) const fn shortest(&self) -> Duration {
        match &self.0 {
            Kind::Every(period) => *period,
            // Patterns have whole seconds, and a single moment has no other.
            Kind::Cron { .. } | Kind::At(_) => Duration::from_secs(1),
        }
    }

    /// What the first occurrence of a job comes after that begins at `moment`.
    pub(crate) fn beginning(&self, moment: Timestamp) -> Timestamp {
        match &self.0 {
            // What is due once and was not done is still due.
            Kind::At(at) => Timestamp::from_millis(at.as_millis().saturating_sub(1)),
            Kind::Every(_) | Kind::Cron { .. } => moment,
        }
    }
}

/// The time is told by its parts, so that two schedules are the same if their texts are.
impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Every(period) => write!(f, "every {} ms", period.as_millis()),
            Kind::Cron { text, .. } => f.write_str(text),
            Kind::At(at) => write!(f, "at {}", at.as_millis()),
        }
    }
}

impl fmt::Debug for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Schedule({self})")
    }
}

fn millis(period: Duration) -> u64 {
    u64::try_from(period.as_millis()).unwrap_or(u64::MAX)
}

fn zoned(moment: Timestamp, zone: &TimeZone) -> Option<Zoned> {
    let millis = i64::try_from(moment.as_millis()).ok()?;
    let moment = jiff::Timestamp::from_millisecond(millis).ok()?;
    Some(moment.to_zoned(zone.clone()))
}

#[allow(clippy::needless_pass_by_value, reason = "a closure would be longer")]
fn timestamp(moment: Zoned) -> Option<Timestamp> {
    u64::try_from(moment.timestamp().as_millisecond()).ok().map(Timestamp::from_millis)
}

#[cfg(test)]
mod tests;
