use std::collections::{HashMap, HashSet, VecDeque};

use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::watch;

use super::{Call, Fault};

/// All that the platform knows.
#[derive(Default)]
pub(super) struct State {
    pub(super) inner: Mutex<Inner>,
    changes: watch::Sender<u64>,
}

#[derive(Default)]
pub(super) struct Inner {
    /// What was not confirmed, in order.
    pub(super) queue: VecDeque<(i64, Value)>,
    last_update: i64,
    last: Option<(i64, Value)>,
    last_messages: HashMap<i64, i64>,
    last_number: i64,
    pub(super) known: HashSet<i64>,
    pub(super) messages: HashMap<(i64, i64), Value>,
    calls: Vec<Call>,
    faults: Vec<(String, Fault)>,
    pub(super) acknowledged: usize,
    pub(super) open_polls: usize,
    pub(super) last_poll: u64,
    pub(super) overlaps: usize,
    pub(super) webhook: Option<Webhook>,
    pub(super) file: Vec<u8>,
    date: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Webhook {
    pub(super) url: String,
    pub(super) secret: String,
    pub(super) connections: usize,
}

impl State {
    /// Changes something, and tells whoever waits for that.
    pub(super) fn change<T>(&self, change: impl FnOnce(&mut Inner) -> T) -> T {
        let changed = change(&mut self.inner.lock());
        self.changes.send_modify(|count| *count += 1);
        changed
    }

    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    pub(super) fn queue(&self, mut update: Value) -> i64 {
        self.change(|inner| {
            inner.last_update += 1;
            let id = inner.last_update;
            update["update_id"] = id.into();
            inner.last = Some((id, update.clone()));
            inner.queue.push_back((id, update));
            id
        })
    }

    /// Queues two updates, the second one before the first.
    pub(super) fn queue_swapped(&self, first: Value, second: Value) {
        self.change(|inner| {
            let numbers = [inner.last_update + 1, inner.last_update + 2];
            inner.last_update += 2;
            for (id, mut update) in numbers.into_iter().zip([first, second]).rev() {
                update["update_id"] = id.into();
                inner.queue.push_back((id, update));
            }
        });
    }

    pub(super) fn repeat(&self) {
        self.change(|inner| {
            if let Some(last) = inner.last.clone() {
                inner.queue.push_back(last);
            }
        });
    }

    pub(super) fn know(&self, chat: i64) {
        self.inner.lock().known.insert(chat);
    }

    pub(super) fn next_message(&self, chat: i64) -> i64 {
        self.inner.lock().next_message(chat)
    }

    pub(super) fn next_number(&self) -> i64 {
        let mut inner = self.inner.lock();
        inner.last_number += 1;
        inner.last_number
    }

    pub(super) fn fail(&self, method: &str, fault: Fault) {
        self.inner.lock().faults.push((method.to_owned(), fault));
    }

    /// The fault that this call is to have.
    pub(super) fn take_fault(&self, method: &str) -> Option<Fault> {
        let mut inner = self.inner.lock();
        let sends = method.starts_with("send");
        let wanted = |(of, _): &(String, Fault)| of == method || (of == "*" && sends);
        let at = inner.faults.iter().position(wanted)?;
        Some(inner.faults.remove(at).1)
    }

    pub(super) fn record(&self, call: Call) {
        self.change(|inner| inner.calls.push(call));
    }

    pub(super) fn calls(&self) -> Vec<Call> {
        self.inner.lock().calls.clone()
    }

    pub(super) fn acknowledged(&self) -> usize {
        self.inner.lock().acknowledged
    }

    pub(super) fn overlaps(&self) -> usize {
        self.inner.lock().overlaps
    }

    pub(super) fn webhook(&self) -> Option<String> {
        self.inner.lock().webhook.as_ref().map(|webhook| webhook.url.clone())
    }

    /// The date of what users write, in seconds.
    pub(super) fn date(&self) -> u64 {
        self.inner.lock().date.unwrap_or(1_790_000_000)
    }

    pub(super) fn set_date(&self, seconds: u64) {
        self.inner.lock().date = Some(seconds);
    }

    pub(super) fn set_file(&self, bytes: Vec<u8>) {
        self.inner.lock().file = bytes;
    }

    /// The newest message of the chat with a button that says this, and the data of the button.
    pub(super) fn button(&self, chat: i64, label: &str) -> Option<(Value, Value)> {
        let inner = self.inner.lock();
        let mut of_chat: Vec<_> =
            inner.messages.iter().filter(|((of, _), _)| *of == chat).collect();
        of_chat.sort_by_key(|((_, id), _)| std::cmp::Reverse(*id));
        of_chat.into_iter().find_map(|(_, message)| {
            let rows = message["reply_markup"]["inline_keyboard"].as_array()?;
            let mut buttons = rows.iter().filter_map(Value::as_array).flatten();
            let button = buttons.find(|button| button["text"] == label)?;
            Some((message.clone(), button["callback_data"].clone()))
        })
    }
}

impl Inner {
    pub(super) fn next_message(&mut self, chat: i64) -> i64 {
        let last = self.last_messages.entry(chat).or_insert(0);
        *last += 1;
        *last
    }
}
