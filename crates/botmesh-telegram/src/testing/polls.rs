//! `getUpdates`: <https://core.telegram.org/bots/api#getupdates>.

use std::time::Duration;

use serde_json::Value;
use tokio::time::{Instant, timeout_at};

use super::Call;
use super::answer::Refusal;
use super::state::State;

/// Counts a question while it is open, also when its connection ends.
struct Open<'a>(&'a State);

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.inner.lock().open_polls -= 1;
    }
}

/// Answers with what there is, or waits for something as long as it is asked to. A later question
/// ends an earlier one.
pub(super) async fn updates(state: &State, call: &Call) -> Result<Value, Refusal> {
    let seconds = call.number("timeout").and_then(|seconds| u64::try_from(seconds).ok());
    let until = Instant::now() + Duration::from_secs(seconds.unwrap_or(0).min(50));
    let limit = call.number("limit").and_then(|limit| usize::try_from(limit).ok()).unwrap_or(100);
    let mut changes = state.changes();
    let own = state.change(|inner| {
        let offset = call.number("offset").unwrap_or(0);
        let before = inner.queue.len();
        inner.queue.retain(|(id, _)| *id >= offset);
        inner.acknowledged += before - inner.queue.len();
        // One update, at once: that is how a poller takes its leave.
        let leaves = seconds == Some(0) && limit == 1;
        inner.overlaps += usize::from(inner.open_polls > 0 && !leaves);
        inner.open_polls += 1;
        inner.last_poll += 1;
        inner.last_poll
    });
    let _open = Open(state);
    loop {
        {
            let inner = state.inner.lock();
            if inner.webhook.is_some() {
                return Err(conflict(
                    "can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first",
                ));
            }
            if inner.last_poll != own {
                return Err(conflict(
                    "terminated by other getUpdates request; make sure that only one bot instance is running",
                ));
            }
            if !inner.queue.is_empty() {
                let all = inner.queue.iter().take(limit.clamp(1, 100));
                return Ok(all.map(|(_, update)| update.clone()).collect());
            }
        }
        if timeout_at(until, changes.changed()).await.is_err() {
            return Ok(Value::Array(Vec::new()));
        }
    }
}

fn conflict(words: &str) -> Refusal {
    Refusal(409, format!("Conflict: {words}"), Value::Null)
}
