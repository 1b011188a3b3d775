//! A person who chats with the bot, over whichever replica comes first.

use std::sync::Arc;
use std::time::Duration;

use botmesh_core::ChatKey;
use botmesh_core::testing::TestProvider;
use botmesh_core::testing::provider::Listener;
use tokio::time::Instant;

use crate::bot::CONVERSATIONS;
use crate::history::History;
use botmesh_core::testing::Dice;

/// The longest that a bot takes where nothing fails: a message waits for its turn, a step takes
/// its time.
const PATIENCE: Duration = Duration::from_secs(110);

pub struct Person {
    pub chat: ChatKey,
    pub hears: Listener,
    pub connections: Vec<TestProvider>,
    pub history: Arc<History>,
    pub dice: Dice,
    said: u64,
    last_said: Instant,
    /// The conversation that was begun.
    topic: &'static str,
    /// The newest of what came while the user was not looking.
    unread: Option<String>,
}

impl Person {
    pub fn new(
        name: &str,
        connections: &[TestProvider],
        history: &Arc<History>,
        dice: Dice,
    ) -> Self {
        let chat = connections[0].chat(name);
        Self {
            hears: connections[0].listen(&chat),
            chat,
            connections: connections.to_vec(),
            history: Arc::clone(history),
            dice,
            said: 0,
            last_said: Instant::now(),
            topic: "",
            unread: None,
        }
    }

    /// Chats until then; in between silence is a fault of the bot.
    pub async fn chats(mut self, until: Instant) -> Self {
        while Instant::now() < until {
            self.begins().await;
            while let Some(text) = self.next().await {
                if Instant::now() >= until || !self.reacts(&text).await {
                    break;
                }
            }
            tokio::time::sleep(self.dice.millis(10, 8_000)).await;
        }
        self
    }

    /// Whatever the chat is in, the bot still answers.
    pub async fn finds_it_alive(mut self) {
        // What is still under way comes first.
        while self.hear(PATIENCE).await.is_some() {}
        self.says("ping").await;
        if self.hear(PATIENCE).await.is_none() {
            self.history.violation(format!("{} is dead", self.chat));
        }
    }

    async fn begins(&mut self) {
        if self.dice.happens(300) {
            self.bursts().await;
            return;
        }
        self.reads_all();
        self.unread = None;
        self.topic = CONVERSATIONS[self.dice.pick(CONVERSATIONS.len())];
        self.history.begins(&self.chat);
        self.says(self.topic).await;
    }

    /// Several messages at once, at several replicas.
    async fn bursts(&mut self) {
        let count = 2 + self.dice.below(6);
        for number in 0..count {
            self.says(format!("burst-{number}")).await;
            tokio::time::sleep(self.dice.millis(0, 5)).await;
        }
        self.history.count("bursts");
        let since = self.last_said;
        for _ in 0..count {
            if self.hear(PATIENCE).await.is_none() {
                self.is_left_alone(since);
                break;
            }
        }
        self.says("well").await;
    }

    /// The next text, or none when there is nothing to wait for any more.
    async fn next(&mut self) -> Option<String> {
        let heard = self.hear(PATIENCE).await;
        if heard.is_none() {
            self.is_left_alone(self.last_said);
        }
        heard
    }

    fn is_left_alone(&self, since: Instant) {
        if !self.history.is_disturbed_since(&self.chat, since) {
            self.history.violation(format!("{} got no answer", self.chat));
        }
        self.history.count("silences");
    }

    async fn hear(&mut self, patience: Duration) -> Option<String> {
        if let Some(unread) = self.unread.take() {
            return Some(unread);
        }
        let heard = tokio::time::timeout(patience, self.hears.next_message()).await.ok()?;
        let text = heard.text.to_string();
        if text.starts_with("Q ") {
            self.history.asked(&self.chat, &text);
        }
        Some(text)
    }

    /// Reads what has come meanwhile; tells whether there was anything.
    fn reads_all(&mut self) -> bool {
        let mut any = false;
        while let Some(entry) = self.hears.try_next() {
            let Some(sent) = entry.what.sent() else { continue };
            any = true;
            if sent.text.starts_with("Q ") {
                self.history.asked(&self.chat, &sent.text);
            }
            self.unread = Some(sent.text.to_string());
        }
        any
    }

    /// Answers a question; false when the conversation is over.
    async fn reacts(&mut self, text: &str) -> bool {
        let words: Vec<&str> = text.split(' ').collect();
        match words[..] {
            ["Q", "three", "4"] => {
                if self.thinks().await {
                    return true;
                }
                let label = if self.dice.happens(500) { "Red" } else { "Blue" };
                self.presses(label).await
            }
            ["Q", flow, number] => {
                if self.thinks().await {
                    return true;
                }
                let count = self.said;
                self.says(format!("a-{flow}-{number}-{count}")).await;
                true
            }
            ["S", flow, ref answers @ ..] => {
                self.checks(flow, answers);
                false
            }
            ["new", ..] => false,
            _ => {
                self.history.count("notices");
                false
            }
        }
    }

    /// Each answer is where its question is, and none is missing.
    fn checks(&self, flow: &str, answers: &[&str]) {
        self.history.count("summaries");
        let expected = match flow {
            "three" => 4,
            "rest" => 1,
            _ => 2,
        };
        let right = |(place, answer): (usize, &&str)| {
            answer.starts_with(&format!("a-{flow}-{}-", place + 1)) || !answer.starts_with("a-")
        };
        if answers.len() != expected || !answers.iter().enumerate().all(right) {
            let wrong = format!("{} has mixed up its answers: {flow} {answers:?}", self.chat);
            if self.history.is_disturbed_since(&self.chat, Instant::now() - 2 * PATIENCE) {
                // The user may have answered what was asked again meanwhile.
                self.history.count("crossed answers");
            } else {
                self.history.violation(wrong);
            }
        }
    }

    /// Takes some time; tells whether something new has come meanwhile, which comes first.
    async fn thinks(&mut self) -> bool {
        let time = self.dice.millis(5, 9_000);
        tokio::time::sleep(time).await;
        self.reads_all()
    }

    async fn says(&mut self, text: impl Into<String>) {
        let text = text.into();
        self.said += 1;
        loop {
            let connected: Vec<&TestProvider> =
                self.connections.iter().filter(|it| it.is_connected()).collect();
            if !connected.is_empty() {
                let at = connected[self.dice.pick(connected.len())];
                self.last_said = Instant::now();
                self.history.note(format!("{} says {text:?}", self.chat));
                if at.says(&self.chat, text.clone()).await.is_ok() {
                    return;
                }
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    }

    /// False when there is no such button any more.
    async fn presses(&mut self, label: &str) -> bool {
        let connected: Vec<&TestProvider> =
            self.connections.iter().filter(|it| it.is_connected()).collect();
        if connected.is_empty() {
            return false;
        }
        let at = connected[self.dice.pick(connected.len())];
        self.last_said = Instant::now();
        self.history.note(format!("{} presses {label}", self.chat));
        at.presses(&self.chat, label).await.is_ok()
    }
}
