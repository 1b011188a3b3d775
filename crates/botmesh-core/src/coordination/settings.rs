use std::time::Duration;

use thiserror::Error;

/// How a coordinator leases and waits. Made by [`CoordinatorSettings::builder`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CoordinatorSettings {
    lease: Duration,
    heartbeat: Duration,
    turn_wait: Duration,
    max_poll: Duration,
    max_queue: u32,
    idle: Duration,
    grace: Option<Duration>,
}

/// Builds [`CoordinatorSettings`].
#[derive(Debug, Clone)]
#[must_use = "call `build`"]
pub struct CoordinatorSettingsBuilder {
    settings: CoordinatorSettings,
    heartbeat: Option<Duration>,
    idle: Option<Duration>,
}

/// Why settings of a coordinator contradict each other.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// A single lost renewal would end the lease.
    #[error(
        "a lease of {lease:?} with a heartbeat each {heartbeat:?} is lost with one renewal: make the lease at least three heartbeats long"
    )]
    LeaseTooShort {
        /// The lease.
        lease: Duration,
        /// The time between two renewals.
        heartbeat: Duration,
    },
    /// A value is outside of what makes sense.
    #[error("{setting} of {value:?} is out of range: choose {least:?} to {most:?}")]
    OutOfRange {
        /// The setting.
        setting: &'static str,
        /// Its value.
        value: Duration,
        /// The least that is allowed.
        least: Duration,
        /// The most that is allowed.
        most: Duration,
    },
    /// No ticket could ever wait.
    #[error("max_queue is zero: allow at least one ticket to wait")]
    NoQueue,
}

impl CoordinatorSettings {
    /// Begins with the defaults: a lease of 15 s renewed each third of it, turns waited for up to
    /// 2 min, at most 1000 tickets for one key.
    ///
    /// ```
    /// use std::time::Duration;
    /// use botmesh_core::coordination::CoordinatorSettings;
    /// let settings = CoordinatorSettings::builder().lease(Duration::from_secs(6)).build()?;
    /// assert_eq!(settings.heartbeat(), Duration::from_secs(2));
    /// # Ok::<(), botmesh_core::coordination::SettingsError>(())
    /// ```
    pub fn builder() -> CoordinatorSettingsBuilder {
        CoordinatorSettingsBuilder { settings: Self::default(), heartbeat: None, idle: None }
    }

    /// How long a replica that has gone silent keeps what it holds.
    #[must_use]
    pub const fn lease(&self) -> Duration {
        self.lease
    }

    /// The time between two renewals.
    #[must_use]
    pub const fn heartbeat(&self) -> Duration {
        self.heartbeat
    }

    /// The longest wait for a turn.
    #[must_use]
    pub const fn turn_wait(&self) -> Duration {
        self.turn_wait
    }

    /// The longest time between two polls of a waiting ticket while no push can arrive, and the
    /// shortest while pushes do.
    #[must_use]
    pub const fn max_poll(&self) -> Duration {
        self.max_poll
    }

    /// How many tickets may wait for one key.
    #[must_use]
    pub const fn max_queue(&self) -> u32 {
        self.max_queue
    }

    /// How long a backend remembers the last holder of a key that nobody holds.
    #[must_use]
    pub const fn idle(&self) -> Duration {
        self.idle
    }

    /// How long nothing is granted after the backend was restarted or has lost its data.
    #[must_use]
    pub fn grace(&self) -> Duration {
        self.grace.unwrap_or(self.lease)
    }

    /// Whether these settings say that leases differ, and cover them all.
    pub(super) fn allow_for(&self, longest: Duration) -> bool {
        self.grace.is_some_and(|grace| grace >= longest)
    }
}

impl Default for CoordinatorSettings {
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(15),
            heartbeat: Duration::from_secs(5),
            turn_wait: Duration::from_secs(120),
            max_poll: Duration::from_millis(100),
            max_queue: 1000,
            idle: Duration::from_secs(600),
            grace: None,
        }
    }
}

impl CoordinatorSettingsBuilder {
    /// How long a replica that has gone silent keeps what it holds; 200 ms to 1 h, 15 s by
    /// default.
    pub const fn lease(mut self, lease: Duration) -> Self {
        self.settings.lease = lease;
        self
    }

    /// The time between two renewals; a third of the lease by default and at most.
    pub const fn heartbeat(mut self, heartbeat: Duration) -> Self {
        self.heartbeat = Some(heartbeat);
        self
    }

    /// The longest wait for a turn; 2 min by default.
    pub const fn turn_wait(mut self, wait: Duration) -> Self {
        self.settings.turn_wait = wait;
        self
    }

    /// The longest time between two polls of a waiting ticket while no push can arrive; 5 ms to
    /// 2 s, 100 ms by default. While pushes arrive polls only find those that were lost: the
    /// first is due after this time, later ones after a tenth of the wait, up to 2 s, and a
    /// replica sends at most 200 a second.
    pub const fn max_poll(mut self, poll: Duration) -> Self {
        self.settings.max_poll = poll;
        self
    }

    /// How many tickets may wait for one key; 1000 by default.
    pub const fn max_queue(mut self, tickets: u32) -> Self {
        self.settings.max_queue = tickets;
        self
    }

    /// How long a backend remembers the last holder of a key that nobody holds; at least two
    /// leases, 10 min by default.
    pub const fn idle(mut self, idle: Duration) -> Self {
        self.idle = Some(idle);
        self
    }

    /// How long nothing is granted after the backend was restarted or has lost its data: the lease
    /// by default and at least. Where the leases of replicas differ, give all of them the longest
    /// one here; otherwise a replica with a longer lease, if it was cut off at that time, may hold
    /// a chat that another one gets too early.
    pub const fn grace(mut self, grace: Duration) -> Self {
        self.settings.grace = Some(grace);
        self
    }

    /// Checks the settings.
    ///
    /// # Errors
    /// [`SettingsError`] when they contradict each other.
    pub fn build(self) -> Result<CoordinatorSettings, SettingsError> {
        let mut settings = self.settings;
        settings.heartbeat = self.heartbeat.unwrap_or(settings.lease / 3);
        settings.idle = self.idle.unwrap_or(settings.idle.max(settings.lease * 2));
        let hour = Duration::from_secs(3600);
        within("lease", settings.lease, Duration::from_millis(200), hour)?;
        within("heartbeat", settings.heartbeat, Duration::from_millis(1), hour)?;
        if settings.lease < settings.heartbeat * 3 {
            let (lease, heartbeat) = (settings.lease, settings.heartbeat);
            return Err(SettingsError::LeaseTooShort { lease, heartbeat });
        }
        let (least, most) = (Duration::from_millis(5), Duration::from_secs(2));
        within("max_poll", settings.max_poll, least, most)?;
        within("turn_wait", settings.turn_wait, Duration::from_millis(1), hour * 24)?;
        within("idle", settings.idle, settings.lease * 2, hour * 24 * 30)?;
        within("grace", settings.grace(), settings.lease, hour * 24)?;
        if settings.max_queue == 0 {
            return Err(SettingsError::NoQueue);
        }
        Ok(settings)
    }
}

fn within(
    setting: &'static str,
    value: Duration,
    least: Duration,
    most: Duration,
) -> Result<(), SettingsError> {
    if value < least || value > most {
        return Err(SettingsError::OutOfRange { setting, value, least, most });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// C5: the lease is renewed each third of it, 15 s by default.
    #[test]
    fn leases_are_renewed_each_third_of_them() {
        let settings = CoordinatorSettings::builder().build().unwrap();
        assert_eq!(settings, CoordinatorSettings::default());
        assert_eq!((settings.lease(), settings.heartbeat()), (15 * SECOND, 5 * SECOND));
    }

    #[test]
    fn contradictions_are_refused() {
        let builder = CoordinatorSettings::builder;
        let short = builder().lease(9 * SECOND).heartbeat(4 * SECOND).build();
        assert!(matches!(short, Err(SettingsError::LeaseTooShort { .. })));
        let refused = |built: CoordinatorSettingsBuilder| match built.build() {
            Err(SettingsError::OutOfRange { setting, .. }) => setting,
            other => panic!("{other:?}"),
        };
        assert_eq!(refused(builder().lease(Duration::from_millis(10))), "lease");
        assert_eq!(refused(builder().idle(20 * SECOND)), "idle");
        assert_eq!(refused(builder().grace(14 * SECOND)), "grace");
        assert_eq!(refused(builder().max_poll(Duration::ZERO)), "max_poll");
        assert_eq!(builder().max_queue(0).build(), Err(SettingsError::NoQueue));
    }
}
