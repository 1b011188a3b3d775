use std::collections::BTreeSet;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::response::Response;
use axum::routing::{any, get};
use botmesh_core::bot::Webhooks;
use botmesh_core::provider::{Provider, WebhookRefusal};
use http::StatusCode;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::{Limits, SettingsError, health};

/// A router for the webhooks of all providers of `bot`, with default limits, to be served or
/// merged into a router of your own.
///
/// # Errors
/// [`SettingsError`] when the paths of two providers are the same, or the bot has none.
pub fn router(bot: &Webhooks) -> Result<Router, SettingsError> {
    WebhookRouter::new(bot.clone()).build()
}

/// Makes a router for the webhooks of all providers of a bot.
///
/// ```no_run
/// # use botmesh_core::RunningBot;
/// # use botmesh_webhook::{SettingsError, WebhookRouter};
/// # fn mount(running: &RunningBot) -> Result<axum::Router, SettingsError> {
/// let bot = WebhookRouter::new(running.webhooks()).build()?;
/// let own = axum::Router::new().nest("/bot", bot);
/// # Ok(own)
/// # }
/// ```
#[derive(Debug)]
#[must_use]
pub struct WebhookRouter {
    providers: Vec<Arc<dyn Provider>>,
    /// Whose health is shown.
    bot: Option<Webhooks>,
    limits: Limits,
    #[cfg(feature = "metrics")]
    metrics: crate::Metrics,
}

/// What the handler of one provider's path needs.
#[derive(Clone)]
struct Entrance {
    provider: Arc<dyn Provider>,
    limits: Arc<Limits>,
    in_flight: Arc<Semaphore>,
    #[cfg(feature = "metrics")]
    metrics: crate::Metrics,
}

impl WebhookRouter {
    /// A router for this bot, with `/health` and `/ready`.
    pub fn new(bot: Webhooks) -> Self {
        Self { bot: Some(bot.clone()), ..Self::of(bot.providers()) }
    }

    /// A router for these providers, as where something else than a bot runs them. It has neither
    /// `/health` nor `/ready`.
    pub fn of(providers: Vec<Arc<dyn Provider>>) -> Self {
        Self {
            providers,
            bot: None,
            limits: Limits::default(),
            #[cfg(feature = "metrics")]
            metrics: crate::Metrics::default(),
        }
    }

    /// Sets what a request may cost.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Leaves out `/health` and `/ready`.
    pub fn without_health(mut self) -> Self {
        self.bot = None;
        self
    }

    /// Counts into `metrics`, as when several routers are shown together.
    #[cfg(feature = "metrics")]
    pub fn metrics(mut self, metrics: crate::Metrics) -> Self {
        self.metrics = metrics;
        self
    }

    pub(crate) const fn limits_in_use(&self) -> &Limits {
        &self.limits
    }

    /// The router.
    ///
    /// # Errors
    /// [`SettingsError`] when the paths of two providers are the same, or the router would have
    /// nothing to do.
    pub fn build(self) -> Result<Router, SettingsError> {
        let in_flight = Arc::new(Semaphore::new(self.limits.most_in_flight()));
        let limits = Arc::new(self.limits);
        let providers = self.providers;
        if providers.is_empty() && self.bot.is_none() {
            return Err(SettingsError::NoWebhook);
        }
        let mut router = Router::new();
        let mut taken: BTreeSet<String> = BTreeSet::new();
        if let Some(bot) = self.bot {
            taken.extend(["/health", "/ready", "/metrics"].map(str::to_owned));
            router = router.merge(health_routes(bot));
            #[cfg(feature = "metrics")]
            {
                let metrics = self.metrics.clone();
                router = router.route("/metrics", get(move || async move { metrics.shown() }));
            }
        }
        for provider in providers {
            let Some(path) = provider.webhook().map(|hook| hook.path().to_owned()) else {
                continue;
            };
            if !is_path(&path) {
                return Err(SettingsError::BadPath { path });
            }
            if !taken.insert(path.clone()) {
                return Err(SettingsError::SamePath { path });
            }
            let entrance = Entrance {
                provider,
                limits: Arc::clone(&limits),
                in_flight: Arc::clone(&in_flight),
                #[cfg(feature = "metrics")]
                metrics: self.metrics.clone(),
            };
            router = router.route(&path, any(enter).with_state(entrance));
        }
        Ok(router)
    }
}

fn health_routes(bot: Webhooks) -> Router {
    let other = bot.clone();
    Router::new()
        .route("/health", get(move || async move { health::alive(&bot.health()) }))
        .route("/ready", get(move || async move { health::ready(&other.health()) }))
}

/// A path that a router takes as it is written.
fn is_path(path: &str) -> bool {
    let plain = |c: char| c.is_ascii_graphic() && !matches!(c, '{' | '}' | '*' | '?' | '#');
    path.len() > 1 && path.starts_with('/') && path.chars().all(plain)
}

async fn enter(State(entrance): State<Entrance>, request: Request) -> Response {
    #[cfg(feature = "metrics")]
    let begun = std::time::Instant::now();
    let response = match entrance.take(request).await {
        Ok(response) => response,
        Err(status) => {
            let mut response = Response::new(Body::empty());
            *response.status_mut() = status;
            response
        }
    };
    #[cfg(feature = "metrics")]
    entrance.metrics.count(entrance.provider.id(), response.status(), begun.elapsed());
    response
}

impl Entrance {
    async fn take(&self, request: Request) -> Result<Response, StatusCode> {
        let Some(webhook) = self.provider.webhook() else { return Err(StatusCode::NOT_FOUND) };
        let (head, body) = request.into_parts();
        // A stranger learns nothing more, and costs no memory.
        if let Err(refusal) = webhook.screen(&head) {
            return Ok(answer(http::Response::from(refusal)));
        }
        let Ok(_place) = self.in_flight.try_acquire() else {
            return Ok(answer(http::Response::from(WebhookRefusal::BUSY)));
        };
        let most = webhook.max_body().min(self.limits.body_bytes());
        let body = self.read(body, most).await?;
        let request = http::Request::from_parts(head, body);
        let received = timeout(self.limits.accept_timeout(), webhook.receive(request)).await;
        let response = match received {
            Ok(Ok(taken)) => http::Response::from(taken),
            Ok(Err(refusal)) => {
                tracing::debug!(provider = %self.provider.id(), ?refusal, "a webhook was refused");
                http::Response::from(refusal)
            }
            // The future was dropped, so what it carried was not accepted.
            Err(_) => http::Response::from(WebhookRefusal::BUSY),
        };
        Ok(answer(response))
    }

    async fn read(&self, body: Body, most: usize) -> Result<Bytes, StatusCode> {
        use axum::body::HttpBody as _;
        if body.size_hint().lower() > most as u64 {
            return Err(StatusCode::PAYLOAD_TOO_LARGE);
        }
        match timeout(self.limits.body_timeout(), axum::body::to_bytes(body, most)).await {
            Ok(Ok(bytes)) => Ok(bytes),
            Ok(Err(error)) => Err(unread(&error)),
            Err(_) => Err(StatusCode::REQUEST_TIMEOUT),
        }
    }
}

/// The status of a body that was too long, or that ended too early.
fn unread(error: &axum::Error) -> StatusCode {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if error.is::<http_body_util::LengthLimitError>() {
            return StatusCode::PAYLOAD_TOO_LARGE;
        }
        cause = error.source();
    }
    StatusCode::BAD_REQUEST
}

fn answer(response: http::Response<Bytes>) -> Response {
    response.map(Body::from)
}
