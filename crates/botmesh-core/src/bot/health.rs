use std::fmt;

use crate::id::ProviderId;
use crate::provider::ConnectionState;
use crate::runtime::Role;

/// How a running bot is, as a load balancer or an operator wants to know it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Health {
    /// Whether the bot takes no more messages.
    pub stopping: bool,
    /// Each provider.
    pub providers: Vec<ProviderHealth>,
}

/// How one provider of a bot is.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProviderHealth {
    /// The provider.
    pub id: ProviderId,
    /// What this replica is for it.
    pub role: Role,
    /// Whether it is connected here.
    pub state: ConnectionState,
}

/// A bot in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum HealthStatus {
    /// It leads a provider, and all that it has to be connected to is.
    Leader,
    /// It leads none and waits to.
    Standby,
    /// Nothing is led, and all providers are connected.
    Serving,
    /// A provider that has to be connected here is not.
    Degraded,
    /// It takes no more messages.
    Stopping,
}

impl Health {
    /// The bot in one word. A bot that waits for one provider and serves another serves.
    #[must_use]
    pub fn status(&self) -> HealthStatus {
        let has = |role| self.providers.iter().any(|provider| provider.role == role);
        let cut_off = |provider: &ProviderHealth| {
            provider.role != Role::Standby && provider.state != ConnectionState::Open
        };
        if self.stopping {
            HealthStatus::Stopping
        } else if self.providers.iter().any(cut_off) {
            HealthStatus::Degraded
        } else if has(Role::Leader) {
            HealthStatus::Leader
        } else if has(Role::Shared) {
            HealthStatus::Serving
        } else {
            HealthStatus::Standby
        }
    }
}

impl HealthStatus {
    /// Whether the bot does what it is for: a standby does.
    #[must_use]
    pub const fn is_ready(self) -> bool {
        matches!(self, Self::Leader | Self::Standby | Self::Serving)
    }

    /// The word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Leader => "leader",
            Self::Standby => "standby",
            Self::Serving => "serving",
            Self::Degraded => "degraded",
            Self::Stopping => "stopping",
        }
    }
}

impl fmt::Display for HealthStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(stopping: bool, providers: &[(Role, ConnectionState)]) -> &'static str {
        let id = ProviderId::new("telegram").unwrap();
        let providers =
            providers.iter().map(|&(role, state)| ProviderHealth { id: id.clone(), role, state });
        Health { stopping, providers: providers.collect() }.status().as_str()
    }

    /// E3, E4: a standby, a leader and one that is cut off are told apart.
    #[test]
    fn leader_standby_and_degraded_are_told_apart() {
        use ConnectionState::{Closed, Connecting, Open};
        assert_eq!(status(false, &[(Role::Leader, Open)]), "leader");
        assert_eq!(status(false, &[(Role::Standby, Connecting)]), "standby");
        assert_eq!(status(false, &[(Role::Leader, Connecting)]), "degraded");
        assert_eq!(status(false, &[(Role::Shared, Closed), (Role::Leader, Open)]), "degraded");
        assert_eq!(status(false, &[(Role::Shared, Open), (Role::Standby, Connecting)]), "serving");
        assert_eq!(status(true, &[(Role::Leader, Open)]), "stopping");
    }
}
