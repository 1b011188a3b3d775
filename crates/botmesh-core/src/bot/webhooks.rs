use std::fmt;
use std::sync::Arc;

use tokio::sync::watch;

use super::health::{Health, ProviderHealth};
use crate::id::ProviderId;
use crate::provider::{ConnectionState, Provider, Webhook};
use crate::runtime::{Runtime, Supervisor};

/// What a web server needs of a running bot: where platforms call, and how the bot is. It may
/// outlive the bot, whose providers then refuse what comes.
#[derive(Clone)]
pub struct Webhooks {
    runtime: Arc<Runtime>,
    states: Arc<[(ProviderId, watch::Receiver<ConnectionState>)]>,
}

impl Webhooks {
    pub(super) fn new(runtime: Arc<Runtime>, supervisor: Option<&Supervisor>) -> Self {
        let states = supervisor.map(|supervisor| supervisor.states().into()).unwrap_or_default();
        Self { runtime, states }
    }

    /// The providers that are called over HTTP; [`Provider::webhook`] has the rest.
    #[must_use]
    pub fn providers(&self) -> Vec<Arc<dyn Provider>> {
        let all = self.runtime.sender().providers().iter();
        all.filter(|provider| provider.webhook().is_some()).cloned().collect()
    }

    /// The path of each provider that is called over HTTP.
    #[must_use]
    pub fn paths(&self) -> Vec<String> {
        let all = self.runtime.sender().providers().iter();
        all.filter_map(|provider| provider.webhook())
            .map(Webhook::path)
            .map(str::to_owned)
            .collect()
    }

    /// How the bot is.
    #[must_use]
    pub fn health(&self) -> Health {
        let providers = self.states.iter().map(|(id, state)| ProviderHealth {
            id: id.clone(),
            role: self.runtime.role(id),
            state: *state.borrow(),
        });
        Health { stopping: self.runtime.is_closed(), providers: providers.collect() }
    }
}

impl fmt::Debug for Webhooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Webhooks").field("paths", &self.paths()).finish_non_exhaustive()
    }
}
