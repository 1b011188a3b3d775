//! A scripted user, who chats with the bot about one thing after the other.

use std::time::Duration;

use tokio::sync::{mpsc, watch};

use super::definition::TOPICS;
use super::notes::{Event, Notebook};
use super::platform::Platform;
use crate::history::Nanos;
use botmesh_core::testing::Dice;

/// How long a user waits before saying it once more.
pub const PATIENCE: Duration = Duration::from_secs(6);
/// How often a user says it once more before giving up.
const REPEATS: u32 = 5;

const MILLISECOND: Duration = Duration::from_millis(1);

/// One of the users of a run.
#[derive(Debug)]
pub struct Person {
    platform: Platform,
    provider: &'static str,
    chat: String,
    hears: mpsc::UnboundedReceiver<String>,
    dice: Dice,
    pace: Duration,
    said: u64,
    since: Nanos,
}

/// What a reply wants of the user.
enum Wants {
    Answer(String),
    Patience,
    Nothing,
}

impl Person {
    /// A user with this name, whose think time is `pace` at most.
    #[must_use]
    pub fn new(
        platform: &Platform,
        provider: &'static str,
        name: &str,
        dice: Dice,
        pace: Duration,
    ) -> Self {
        let chat = format!("{provider}:{name}");
        let hears = platform.listen(&chat);
        let platform = platform.clone();
        Self { platform, provider, chat, hears, dice, pace, said: 0, since: 0 }
    }

    /// Chats until told to end, and then sees whether the bot still answers.
    pub async fn chat(mut self, ending: watch::Receiver<bool>) {
        while !*ending.borrow() {
            match self.dice.below(12) {
                0 => self.burst().await,
                1 | 2 => self.ask_once("count").await,
                _ => {
                    let topic = self.dice.choose(&TOPICS).copied().unwrap_or("three");
                    self.converse(topic, &ending).await;
                }
            }
            let pause = self.dice.between(Duration::ZERO, self.pace * 2);
            tokio::time::sleep(pause).await;
        }
        self.see_whether_it_lives().await;
    }

    /// Goes through the same conversation this often; used where nothing fails.
    pub async fn repeat(mut self, topic: &str, times: u32) -> Vec<String> {
        let (_never, ending) = watch::channel(false);
        for _ in 0..times {
            self.converse(topic, &ending).await;
        }
        Vec::new()
    }

    async fn converse(&mut self, topic: &str, ending: &watch::Receiver<bool>) {
        while self.hears.try_recv().is_ok() {}
        self.say(topic, false);
        let (mut last, mut repeats) = (topic.to_owned(), 0);
        loop {
            let Some(heard) = self.hear().await else {
                repeats += 1;
                if repeats > REPEATS || *ending.borrow() {
                    return;
                }
                self.say(&last, true);
                continue;
            };
            match self.wants(&heard, &last) {
                Wants::Answer(answer) => {
                    self.say(&answer, false);
                    last = answer;
                }
                Wants::Patience => {}
                Wants::Nothing => return,
            }
        }
    }

    fn wants(&self, heard: &str, last: &str) -> Wants {
        let words: Vec<&str> = heard.split(' ').collect();
        match words[..] {
            ["Q", "late", _] | ["count", _] => Wants::Patience,
            // A late reply to something else.
            ["new", said] if said != last => Wants::Patience,
            ["Q", flow, number] => Wants::Answer(format!("a-{flow}-{number}-{}", self.said)),
            _ => Wants::Nothing,
        }
    }

    /// Says several things at once, at whichever replicas.
    async fn burst(&mut self) {
        let count = 2 + self.dice.below(4);
        for number in 0..count {
            self.say(&format!("burst-{number}"), false);
        }
        let mut heard = 0;
        while heard < count {
            let Some(reply) = self.hear_one().await else { return };
            // A late reply to something else is none to these.
            heard += u64::from(!reply.starts_with("count") && !reply.starts_with("new a-"));
        }
    }

    async fn ask_once(&mut self, what: &str) {
        self.say(what, false);
        while let Some(reply) = self.hear().await {
            if !reply.starts_with("new ") {
                return;
            }
        }
    }

    fn say(&mut self, text: &str, again: bool) {
        self.said += 1;
        self.since = Notebook::now();
        self.platform.say(self.provider, &self.chat, text, again);
    }

    /// The newest of what the bot says, after some thought.
    async fn hear(&mut self) -> Option<String> {
        let mut heard = self.hear_one().await?;
        let thinks = self.dice.between(MILLISECOND, self.pace);
        tokio::time::sleep(thinks).await;
        while let Ok(newer) = self.hears.try_recv() {
            heard = newer;
        }
        Some(heard)
    }

    async fn hear_one(&mut self) -> Option<String> {
        if let Ok(heard) = tokio::time::timeout(PATIENCE, self.hears.recv()).await {
            return heard;
        }
        let (chat, since) = (self.chat.clone(), self.since);
        self.platform.notes().note(Event::Silence { chat, since });
        None
    }

    async fn see_whether_it_lives(&mut self) {
        // What is still under way comes first.
        while tokio::time::timeout(PATIENCE / 3, self.hears.recv()).await.is_ok() {}
        for _ in 0..2 {
            self.say("ping", false);
            if tokio::time::timeout(PATIENCE, self.hears.recv()).await.is_ok() {
                return;
            }
        }
        self.platform.notes().note(Event::Dead { chat: self.chat.clone() });
    }
}
