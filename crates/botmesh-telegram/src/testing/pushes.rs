//! Calling a webhook: <https://core.telegram.org/bots/api#setwebhook>.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::task::JoinSet;

use super::state::{State, Webhook};

/// How long after a failure an update is pushed again.
const AGAIN: Duration = Duration::from_millis(100);

/// How often an update is pushed that is refused as malformed.
const TRIES: u32 = 3;

/// Pushes what is queued for as long as the platform lives: the updates of a chat one after the
/// other, those of different chats at once.
pub(super) async fn push(state: Arc<State>) {
    // Each call has a connection of its own, so that a load balancer can give it to any replica.
    let Ok(client) = reqwest::Client::builder().pool_max_idle_per_host(0).build() else { return };
    let mut changes = state.changes();
    let mut pushing = JoinSet::new();
    let mut busy: HashSet<String> = HashSet::new();
    loop {
        let webhook = state.inner.lock().webhook.clone();
        if let Some(webhook) = webhook {
            while busy.len() < webhook.connections
                && let Some((id, update)) = next(&state, &busy)
            {
                let lane = lane(id, &update);
                busy.insert(lane.clone());
                let (client, webhook) = (client.clone(), webhook.clone());
                pushing.spawn(async move { (lane, id, deliver(&client, &webhook, &update).await) });
            }
        }
        tokio::select! {
            biased;
            Some(pushed) = pushing.join_next() => {
                let Ok((lane, id, taken)) = pushed else { continue };
                state.change(|inner| {
                    if let Some(place) = inner.queue.iter().position(|(queued, _)| *queued == id) {
                        inner.queue.remove(place);
                    }
                    inner.acknowledged += usize::from(taken);
                });
                busy.remove(&lane);
            }
            changed = changes.changed() => if changed.is_err() { return },
        }
    }
}

/// The first queued update of a chat that nothing is being pushed of.
fn next(state: &State, busy: &HashSet<String>) -> Option<(i64, Value)> {
    let inner = state.inner.lock();
    inner.queue.iter().find(|(id, update)| !busy.contains(&lane(*id, update))).cloned()
}

/// Parts of an album go out at once, as they do on Telegram; all else in its chat's order.
fn lane(id: i64, update: &Value) -> String {
    let message = &update["message"];
    if message.get("media_group_id").is_some() {
        return format!("part {id}");
    }
    let chat = [message, &update["callback_query"]["message"], &update["edited_message"]]
        .iter()
        .find_map(|it| it["chat"]["id"].as_i64());
    chat.map_or_else(|| format!("update {id}"), |chat| chat.to_string())
}

/// Pushes until it is taken; says whether it was.
async fn deliver(client: &reqwest::Client, webhook: &Webhook, update: &Value) -> bool {
    let mut malformed = 0;
    loop {
        // What the test put in as words goes out as they are.
        let body = match &update["raw"] {
            Value::String(raw) => raw.clone(),
            _ => update.to_string(),
        };
        let sent = client
            .post(&webhook.url)
            .header("content-type", "application/json")
            .header("x-telegram-bot-api-secret-token", &webhook.secret)
            .timeout(Duration::from_secs(60))
            .body(body)
            .send()
            .await;
        match sent.map(|response| response.status().as_u16()) {
            Ok(200..=299) => return true,
            Ok(400..=499) => {
                malformed += 1;
                if malformed == TRIES {
                    return false;
                }
            }
            _ => {}
        }
        tokio::time::sleep(AGAIN).await;
    }
}
