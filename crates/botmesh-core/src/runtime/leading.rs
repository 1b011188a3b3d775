use std::time::Duration;

use tokio::sync::watch;

use super::Runtime;
use super::coordination::{ProviderSession, Role};
use super::event::Activity;
use super::supervisor::{Connection, keep_connected};
use crate::coordination::{CoordinationError, Leadership};
use crate::id::{LeaderName, ProviderId};
use crate::provider::{ConnectionState, Provider};

/// How long a leader that stepped down stays out of the next election, so that another connects.
const COOL_DOWN: Duration = Duration::from_secs(3);

/// Why a leader does not lead any more.
enum Ended {
    /// The provider has ended by itself, or the bot stops.
    ForGood,
    /// Another replica may be able to connect.
    SteppedDown,
    Lost,
}

/// Providers that only one replica may connect.
impl Runtime {
    /// Whether the provider is connected on the leader alone.
    pub(super) fn is_led(&self, provider: &dyn Provider) -> bool {
        let Some(coordinated) = &self.coordinated else { return false };
        match coordinated.settings.provider_session {
            ProviderSession::Auto => provider.capabilities().exclusive_session,
            ProviderSession::Leader => true,
            ProviderSession::Shared => false,
        }
    }

    /// What this replica is for the provider.
    pub(crate) fn role(&self, id: &ProviderId) -> Role {
        let mut providers = self.sender.providers().iter();
        let led = providers.any(|provider| provider.id() == id && self.is_led(&**provider));
        match (led, self.sender.is_standby(id)) {
            (false, _) => Role::Shared,
            (true, true) => Role::Standby,
            (true, false) => Role::Leader,
        }
    }

    /// Campaigns, connects while it leads, and campaigns again, until the bot stops or the
    /// provider has ended.
    pub(super) async fn connect_while_leading(&self, connection: &Connection) {
        let Some(coordinated) = &self.coordinated else { return };
        let id = connection.provider.id();
        let Ok(name) = LeaderName::new(format!("provider:{id}")) else { return };
        loop {
            self.sender.stand_by(id, true);
            connection.state.send_replace(ConnectionState::Connecting);
            let elected = tokio::select! {
                biased;
                () = connection.cancel.cancelled() => return,
                elected = coordinated.coordinator.lead(&name) => elected,
            };
            let ended = match elected {
                Ok(leadership) => self.lead(connection, leadership).await,
                Err(CoordinationError::Stopped) => return,
                Err(error) => {
                    self.events.error(None, Activity::Leadership, error);
                    Ended::SteppedDown
                }
            };
            match ended {
                Ended::ForGood => return,
                Ended::Lost => {}
                Ended::SteppedDown => tokio::select! {
                    biased;
                    () = connection.cancel.cancelled() => return,
                    () = tokio::time::sleep(COOL_DOWN) => {}
                },
            }
        }
    }

    async fn lead(&self, connection: &Connection, leadership: Leadership) -> Ended {
        self.sender.stand_by(connection.provider.id(), false);
        // From now on this replica wakes the chats of the provider.
        self.look.notify_one();
        self.look_for_records();
        let session =
            connection.session(connection.cancel.child_token()).leased(leadership.lease());
        let down = self.coordinated.as_ref().map_or(Duration::MAX, |it| it.settings.provider_down);
        let mut state = connection.state.subscribe();
        let connected = async {
            if !keep_connected(self, &*connection.provider, &session).await {
                // Logged out or taken over: it will not come back here, perhaps elsewhere.
                connection.cancel.cancelled().await;
            }
        };
        let ended = tokio::select! {
            biased;
            _ = leadership.lost() => Ended::Lost,
            () = connected => Ended::ForGood,
            () = down_for(&mut state, down) => Ended::SteppedDown,
        };
        // The connection is closed before anybody else may lead: its future was dropped.
        self.sender.stand_by(connection.provider.id(), true);
        if matches!(ended, Ended::SteppedDown | Ended::ForGood)
            && let Err(error) = leadership.release().await
        {
            tracing::debug!(%error, "the leadership ends with its lease");
        }
        ended
    }
}

/// Waits until the connection has not been open for this long.
async fn down_for(state: &mut watch::Receiver<ConnectionState>, down: Duration) {
    loop {
        // The sender lives as long as the connection that is watched.
        if state.wait_for(|state| *state != ConnectionState::Open).await.is_err() {
            return;
        }
        let up = state.wait_for(|state| *state == ConnectionState::Open);
        if tokio::time::timeout(down, up).await.is_err() {
            return;
        }
    }
}
