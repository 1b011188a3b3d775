use std::time::Duration;

use crate::SettingsError;

/// What a request may cost. Made by [`Limits::builder`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    body: usize,
    header_time: Duration,
    body_time: Duration,
    accept_time: Duration,
    in_flight: usize,
    connections: usize,
    stop_time: Duration,
}

/// Chooses [`Limits`].
#[derive(Debug, Clone)]
#[must_use]
pub struct LimitsBuilder {
    limits: Limits,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body: 4 << 20,
            header_time: Duration::from_secs(10),
            body_time: Duration::from_secs(10),
            accept_time: Duration::from_secs(5),
            in_flight: 1024,
            connections: 4096,
            stop_time: Duration::from_secs(10),
        }
    }
}

impl Limits {
    /// Begins with the defaults.
    ///
    /// ```
    /// use botmesh_webhook::Limits;
    /// let limits = Limits::builder().body(1 << 20).in_flight(256).build()?;
    /// # Ok::<(), botmesh_webhook::SettingsError>(())
    /// ```
    pub fn builder() -> LimitsBuilder {
        LimitsBuilder { limits: Self::default() }
    }

    pub(crate) const fn body_bytes(&self) -> usize {
        self.body
    }

    pub(crate) const fn header_timeout(&self) -> Duration {
        self.header_time
    }

    pub(crate) const fn body_timeout(&self) -> Duration {
        self.body_time
    }

    pub(crate) const fn accept_timeout(&self) -> Duration {
        self.accept_time
    }

    pub(crate) const fn most_in_flight(&self) -> usize {
        self.in_flight
    }

    pub(crate) const fn most_connections(&self) -> usize {
        self.connections
    }

    pub(crate) const fn stop_timeout(&self) -> Duration {
        self.stop_time
    }
}

impl LimitsBuilder {
    /// The longest body of a request, in bytes, whatever its provider would read. Default 4 MiB.
    pub const fn body(mut self, bytes: usize) -> Self {
        self.limits.body = bytes;
        self
    }

    /// How long a client may take for the head of a request. Default 10 s. It holds for a
    /// [`Server`](crate::Server); in a router of your own your server decides.
    pub const fn header_time(mut self, time: Duration) -> Self {
        self.limits.header_time = time;
        self
    }

    /// How long a client may take for the body of a request. Default 10 s.
    pub const fn body_time(mut self, time: Duration) -> Self {
        self.limits.body_time = time;
        self
    }

    /// How long a bot that is full is waited for before the platform is told to come again.
    /// Default 5 s.
    pub const fn accept_time(mut self, time: Duration) -> Self {
        self.limits.accept_time = time;
        self
    }

    /// How many requests are worked on at a time; one more is told to come again. Default 1,024.
    pub const fn in_flight(mut self, requests: usize) -> Self {
        self.limits.in_flight = requests;
        self
    }

    /// How many connections a [`Server`](crate::Server) holds; one more waits. Default 4,096.
    pub const fn connections(mut self, connections: usize) -> Self {
        self.limits.connections = connections;
        self
    }

    /// How long a [`Server`](crate::Server) that stops lets its requests finish. Default 10 s.
    pub const fn stop_time(mut self, time: Duration) -> Self {
        self.limits.stop_time = time;
        self
    }

    /// The limits.
    ///
    /// # Errors
    /// [`SettingsError`] when one of them is zero.
    pub fn build(self) -> Result<Limits, SettingsError> {
        let limits = &self.limits;
        let zero = [
            ("body", limits.body == 0),
            ("header_time", limits.header_time.is_zero()),
            ("body_time", limits.body_time.is_zero()),
            ("accept_time", limits.accept_time.is_zero()),
            ("in_flight", limits.in_flight == 0),
            ("connections", limits.connections == 0),
            ("stop_time", limits.stop_time.is_zero()),
        ];
        match zero.into_iter().find(|(_, zero)| *zero) {
            Some((setting, _)) => Err(SettingsError::Zero { setting }),
            None => Ok(self.limits),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A14: a limit of nothing would refuse everything, and is told at once.
    #[test]
    fn a_limit_of_zero_is_refused_by_name() {
        let refused = Limits::builder().body_time(Duration::ZERO).build();
        assert_eq!(refused, Err(SettingsError::Zero { setting: "body_time" }));
        assert_eq!(Limits::builder().build(), Ok(Limits::default()));
    }
}
