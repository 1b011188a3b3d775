//! What `/health` and `/ready` answer.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use botmesh_core::bot::{Health, HealthStatus, Role};
use botmesh_core::provider::ConnectionState;
use serde::Serialize;

#[derive(Serialize)]
struct Report {
    status: &'static str,
    providers: Vec<Provider>,
}

#[derive(Serialize)]
struct Provider {
    id: String,
    role: &'static str,
    state: &'static str,
}

/// The process is alive. Restarting it would not help against a platform that is away, so this
/// fails in no state that it can still answer in.
pub(crate) fn alive(health: &Health) -> Response {
    (StatusCode::OK, report(health)).into_response()
}

/// Whether requests should be sent here.
pub(crate) fn ready(health: &Health) -> Response {
    let ready = health.status().is_ready();
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, report(health)).into_response()
}

fn report(health: &Health) -> Json<Report> {
    let providers = health.providers.iter().map(|provider| Provider {
        id: provider.id.to_string(),
        role: role(provider.role),
        state: state(provider.state),
    });
    Json(Report { status: HealthStatus::as_str(health.status()), providers: providers.collect() })
}

const fn role(role: Role) -> &'static str {
    match role {
        Role::Leader => "leader",
        Role::Standby => "standby",
        _ => "shared",
    }
}

const fn state(state: ConnectionState) -> &'static str {
    match state {
        ConnectionState::Open => "open",
        ConnectionState::Closed => "closed",
        _ => "connecting",
    }
}
