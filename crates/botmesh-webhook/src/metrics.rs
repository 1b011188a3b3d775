use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use botmesh_core::ProviderId;
use http::StatusCode;
use parking_lot::Mutex;

/// The upper bounds, in seconds, of what requests are counted by.
const BOUNDS: [f64; 8] = [0.001, 0.005, 0.025, 0.1, 0.5, 1.0, 5.0, 30.0];

/// Counts requests by provider and status. Clones share their counts.
#[derive(Debug, Clone, Default)]
pub struct Metrics(Arc<Mutex<BTreeMap<(ProviderId, u16), Counts>>>);

#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    requests: u64,
    seconds: f64,
    within: [u64; BOUNDS.len()],
}

impl Metrics {
    pub(crate) fn count(&self, provider: &ProviderId, status: StatusCode, took: Duration) {
        let took = took.as_secs_f64();
        let mut all = self.0.lock();
        let counts = all.entry((provider.clone(), status.as_u16())).or_default();
        counts.requests += 1;
        counts.seconds += took;
        for (bound, within) in BOUNDS.iter().zip(&mut counts.within) {
            *within += u64::from(took <= *bound);
        }
    }

    /// The counts in the text format of Prometheus, version 0.0.4.
    #[must_use]
    pub fn render(&self) -> String {
        const NAME: &str = "botmesh_webhook_request_seconds";
        let mut text =
            format!("# HELP {NAME} How long webhook requests took.\n# TYPE {NAME} histogram\n");
        for ((provider, status), counts) in self.0.lock().iter() {
            // A provider id has neither quotes nor backslashes.
            let labels = format!("provider=\"{provider}\",status=\"{status}\"");
            let buckets = BOUNDS.iter().map(ToString::to_string).zip(counts.within);
            for (bound, within) in buckets.chain([("+Inf".to_owned(), counts.requests)]) {
                // Writing to a String cannot fail.
                let _ = writeln!(text, "{NAME}_bucket{{{labels},le=\"{bound}\"}} {within}");
            }
            let _ = writeln!(text, "{NAME}_sum{{{labels}}} {}", counts.seconds);
            let _ = writeln!(text, "{NAME}_count{{{labels}}} {}", counts.requests);
        }
        text
    }

    pub(crate) fn shown(&self) -> Response {
        ([(CONTENT_TYPE, "text/plain; version=0.0.4")], self.render()).into_response()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_by_provider_status_and_time() {
        let metrics = Metrics::default();
        let id = ProviderId::new("telegram").unwrap();
        metrics.count(&id, StatusCode::OK, Duration::from_millis(2));
        metrics.count(&id, StatusCode::OK, Duration::from_secs(2));
        metrics.count(&id, StatusCode::UNAUTHORIZED, Duration::ZERO);
        let text = metrics.render();
        for line in [
            r#"botmesh_webhook_request_seconds_bucket{provider="telegram",status="200",le="0.001"} 0"#,
            r#"botmesh_webhook_request_seconds_bucket{provider="telegram",status="200",le="0.005"} 1"#,
            r#"botmesh_webhook_request_seconds_bucket{provider="telegram",status="200",le="+Inf"} 2"#,
            r#"botmesh_webhook_request_seconds_sum{provider="telegram",status="200"} 2.002"#,
            r#"botmesh_webhook_request_seconds_count{provider="telegram",status="401"} 1"#,
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in {text}");
        }
    }
}
