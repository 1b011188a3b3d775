//! The suite of providers: a provider under test, and a fake of its platform.

pub mod disorder;
pub mod ending;
pub mod failing;
pub mod inbound;
mod macros;
pub mod outbound;
pub mod showing;
mod stage;
pub mod taking;
#[cfg(test)]
mod tests;

use std::fmt::Debug;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::CaseError;
use crate::id::ChatKey;
use crate::message::{Location, MediaKind};
use crate::provider::Provider;
use crate::text::Style;
use crate::time::Timestamp;

/// The smallest picture, one transparent point. What users of a fake platform send is downloaded
/// as these bytes.
pub const PICTURE: &[u8] =
    b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89\
\0\0\0\rIDATx\x9cc`\0\x01\0\0\x05\0\x01\r\n-\xb4\0\0\0\0IEND\xaeB`\x82";

/// A provider under test, connected to a fake of its platform, and what a test may do there.
///
/// Each case gets a fixture of its own. The fake speaks the platform's real wire format, so that
/// what is tested is what will run. What the platform has nothing of is answered with
/// [`Played::Impossible`], and the cases about it are not run; what the provider declares in its
/// [`capabilities`](Provider::capabilities) must be there.
///
/// A case runs on one thread, so a fixture without a network may pause tokio's clock.
#[async_trait]
pub trait ProviderFixture: Debug + Send + Sync {
    /// The provider under test; always the same one.
    fn provider(&self) -> Arc<dyn Provider>;

    /// Two different chats, of number 0 and 1; none where the platform has only one.
    fn chat(&self, number: usize) -> Option<ChatKey>;

    /// What Debug and errors must not show, such as tokens and passwords.
    fn secrets(&self) -> Vec<String> {
        Vec::new()
    }

    /// Lets time pass. A fixture with a virtual clock advances that.
    async fn pass(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }

    /// The user writes `text`. Does not wait until the provider has taken it.
    async fn user_says(&self, chat: &ChatKey, text: &str) -> Played;

    /// The user presses the button that says `label`, or chooses that row of a list, of the newest
    /// message that has it.
    async fn user_presses(&self, _chat: &ChatKey, _label: &str) -> Played {
        Played::Impossible
    }

    /// The user sends a picture, a recording or a file with this caption.
    async fn user_sends_media(&self, _chat: &ChatKey, _kind: MediaKind, _caption: &str) -> Played {
        Played::Impossible
    }

    /// The user sends a place.
    async fn user_sends_location(&self, _chat: &ChatKey, _place: &Location) -> Played {
        Played::Impossible
    }

    /// The user says two things, and the platform delivers the second one first.
    async fn platform_swaps(&self, _chat: &ChatKey, _first: &str, _second: &str) -> Played {
        Played::Impossible
    }

    /// From now on the platform's clock says this, whatever time it is.
    async fn platform_clock_says(&self, _moment: Timestamp) -> Played {
        Played::Impossible
    }

    /// The platform takes the next send at once, and answers it this much later.
    async fn platform_answers_late(&self, _delay: Duration) -> Played {
        Played::Impossible
    }

    /// The platform delivers the last message of this chat once more.
    async fn platform_repeats(&self, _chat: &ChatKey) -> Played {
        Played::Impossible
    }

    /// The platform sends things that are not in its format: as many kinds as the fixture knows.
    async fn platform_sends_garbage(&self) -> Played {
        Played::Impossible
    }

    /// The platform fails the next send in this way, and does not take the message.
    async fn platform_fails_next_send(&self, _failure: Failure) -> Played {
        Played::Impossible
    }

    /// The platform drops the connection; a new one would be accepted.
    async fn platform_drops_connection(&self) -> Played {
        Played::Impossible
    }

    /// How many messages the platform knows as taken by the bot, over all chats; none where the
    /// platform is not told.
    async fn acknowledged(&self) -> Option<usize> {
        None
    }

    /// All that the platform has received for this chat, in order.
    async fn received(&self, chat: &ChatKey) -> Vec<Received>;
}

/// Whether the fake platform could do what it was asked to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Played {
    /// It is done, or will be as soon as the provider lets it.
    Done,
    /// There is nothing of the kind on this platform.
    Impossible,
}

/// How a platform fails a send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Failure {
    /// It has a problem of its own, such as an HTTP status of 500.
    Broken,
    /// It wants fewer messages and says how long to wait.
    RateLimited(Duration),
    /// The user blocked the bot, or the chat is gone.
    ChatGone,
    /// It does not accept the credentials any more.
    Unauthorized,
    /// Its answer is cut off in the middle.
    Garbled,
    /// Its answer is longer than anybody should read.
    Endless,
}

/// What a platform received.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Received {
    /// A message.
    Message(ReceivedMessage),
    /// A message was replaced by one with this text.
    Edited(String),
    /// A message was deleted.
    Deleted,
    /// A reaction; none when it was taken back.
    Reacted(Option<String>),
    /// The sign that the bot is writing.
    Typing,
}

/// A message as the platform received it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ReceivedMessage {
    /// The words or the caption.
    pub text: String,
    /// What stands out in them: the words, and how.
    pub formatted: Vec<(String, Style)>,
    /// The labels of the buttons, in order.
    pub buttons: Vec<String>,
    /// The labels of the rows of a list, in order.
    pub rows: Vec<String>,
    /// The kinds of what is attached, in order.
    pub attachments: Vec<MediaKind>,
    /// The place.
    pub location: Option<Location>,
}

/// One case of the suite of providers.
#[derive(Debug, Clone, Copy)]
pub struct ProviderCase {
    /// The name of the case and of its test.
    pub name: &'static str,
    /// What it checks.
    pub promise: &'static str,
    /// Runs it.
    pub run: for<'a> fn(&'a dyn ProviderFixture) -> ProviderCaseRun<'a>,
}

/// A case that runs.
pub type ProviderCaseRun<'a> = Pin<Box<dyn Future<Output = Result<(), CaseError>> + 'a>>;

/// All cases of the suite, for those who do not run it by
/// [`provider_conformance!`](crate::provider_conformance).
pub const PROVIDER_CASES: &[ProviderCase] = crate::__provider_cases!(@each list []);
