use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::{Failure, Played, ProviderFixture, Received, ReceivedMessage};
use crate::conformance::CaseError;
use crate::conformance::case::{ensure, ensure_eq};
use crate::id::ChatKey;
use crate::message::{Message, Outgoing};
use crate::provider::{
    Accepted, Capability, ConnectionState, DeliverError, Deliveries, Inbound, Provider,
    ProviderError, Receipt, SendOptions, Session,
};

/// How long a case waits for what must happen.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);
/// How long a case waits for what must not happen.
pub(super) const WATCH: Duration = Duration::from_millis(500);
const STEP: Duration = Duration::from_millis(10);

/// What the bot does with a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reception {
    Take,
    /// Neither take nor refuse it for now.
    Ponder,
    RefuseAsFull,
    RefuseAsStopping,
}

/// The bot's side: takes messages as it is told.
struct Bot {
    reception: watch::Receiver<Reception>,
    offered: watch::Sender<usize>,
    taken: mpsc::UnboundedSender<Message>,
}

#[async_trait]
impl Deliveries for Bot {
    async fn deliver(&self, message: Message) -> Result<Accepted, DeliverError> {
        self.offered.send_modify(|offered| *offered += 1);
        let mut reception = self.reception.clone();
        let decided = reception.wait_for(|now| *now != Reception::Ponder).await.map(|now| *now);
        match decided.unwrap_or(Reception::RefuseAsStopping) {
            Reception::RefuseAsFull => Err(DeliverError::ChatFull { waiting: 1 }),
            Reception::RefuseAsStopping => Err(DeliverError::Stopping),
            Reception::Take | Reception::Ponder => {
                let _ = self.taken.send(message);
                Ok(Accepted::New)
            }
        }
    }
}

/// A provider that runs, with a bot behind it.
pub(super) struct Stage<'a> {
    pub(super) fixture: &'a dyn ProviderFixture,
    pub(super) provider: Arc<dyn Provider>,
    pub(super) chat: ChatKey,
    reception: watch::Sender<Reception>,
    offered: watch::Receiver<usize>,
    taken: mpsc::UnboundedReceiver<Message>,
    bot: Arc<Bot>,
    cancel: CancellationToken,
    run: JoinHandle<Result<(), ProviderError>>,
}

impl Drop for Stage<'_> {
    fn drop(&mut self) {
        self.run.abort();
    }
}

impl<'a> Stage<'a> {
    /// Runs the provider and waits until it is connected.
    pub(super) async fn open(fixture: &'a dyn ProviderFixture) -> Result<Self, CaseError> {
        let Some(chat) = fixture.chat(0) else {
            return violation("the fixture has no chat of number 0");
        };
        let provider = fixture.provider();
        let (reception, receptions) = watch::channel(Reception::Take);
        let (offers, offered) = watch::channel(0);
        let (takes, taken) = mpsc::unbounded_channel();
        let bot = Arc::new(Bot { reception: receptions, offered: offers, taken: takes });
        let (cancel, run) = connect(&provider, &bot).await?;
        Ok(Self { fixture, provider, chat, reception, offered, taken, bot, cancel, run })
    }

    pub(super) fn receive_as(&self, reception: Reception) {
        self.reception.send_replace(reception);
    }

    /// The user says `text`; fails the case when the platform cannot do even that.
    pub(super) async fn says(&self, text: &str) -> Result<(), CaseError> {
        match self.fixture.user_says(&self.chat, text).await {
            Played::Done => Ok(()),
            Played::Impossible => violation(format!("no user can say {text:?}")),
        }
    }

    /// The next message that the bot took.
    pub(super) async fn hears(&mut self) -> Result<Message, CaseError> {
        match tokio::time::timeout(PATIENCE, self.taken.recv()).await {
            Ok(Some(message)) => Ok(message),
            _ => violation(format!("no message arrived within {PATIENCE:?}{}", self.how_it_runs())),
        }
    }

    /// Waits until the bot was offered this many messages, taken or not.
    pub(super) async fn is_offered(&mut self, count: usize) -> Result<(), CaseError> {
        let offered = self.offered.wait_for(|offered| *offered >= count);
        match tokio::time::timeout(PATIENCE, offered).await {
            Ok(Ok(_)) => Ok(()),
            _ => violation(format!("the bot was not offered {count} messages")),
        }
    }

    pub(super) async fn send(&self, message: &Outgoing) -> Result<Receipt, ProviderError> {
        self.provider.send(&self.chat, message, &SendOptions::default()).await
    }

    /// Sends what no platform may refuse.
    pub(super) async fn sends(&self, message: &Outgoing) -> Result<Receipt, CaseError> {
        self.send(message).await.or_else(|error| {
            violation(format!("sending {:?} failed: {error}", shortened(&message.text)))
        })
    }

    pub(super) async fn messages(&self) -> Vec<ReceivedMessage> {
        let received = self.fixture.received(&self.chat).await;
        let messages = received.into_iter().filter_map(|received| match received {
            Received::Message(message) => Some(message),
            _ => None,
        });
        messages.collect()
    }

    /// The message number `index`, as soon as the platform has received it.
    pub(super) async fn received(&self, index: usize) -> Result<ReceivedMessage, CaseError> {
        self.eventually("the platform receives the message", async || {
            self.messages().await.into_iter().nth(index)
        })
        .await
    }

    /// Waits for what `wanted` finds among all that the platform received.
    pub(super) async fn receives(
        &self,
        what: &str,
        wanted: impl Fn(&Received) -> bool,
    ) -> Result<(), CaseError> {
        self.eventually(what, async || {
            self.fixture.received(&self.chat).await.iter().any(&wanted).then_some(())
        })
        .await
    }

    /// Nothing but what is known of already is received.
    pub(super) async fn receives_no_more_than(&self, count: usize) -> Result<(), CaseError> {
        self.fixture.pass(WATCH).await;
        let received = self.messages().await;
        ensure!(received.len() <= count, "the platform received {:?}", received.last());
        Ok(())
    }

    pub(super) async fn eventually<T>(
        &self,
        what: &str,
        mut found: impl AsyncFnMut() -> Option<T>,
    ) -> Result<T, CaseError> {
        let started = tokio::time::Instant::now();
        loop {
            if let Some(found) = found().await {
                return Ok(found);
            }
            if started.elapsed() > PATIENCE {
                let so_far = self.fixture.received(&self.chat).await;
                let so_far = shortened(&format!("{so_far:?}"));
                return violation(format!("{what}: not within {PATIENCE:?}; so far: {so_far}"));
            }
            self.fixture.pass(STEP).await;
        }
    }

    /// Lets the platform fail the next send, if it can.
    pub(super) async fn fails_next_send(&self, failure: Failure) -> Result<(), CaseError> {
        possible(self.fixture.platform_fails_next_send(failure).await)
    }

    /// Whether the run has ended by itself.
    pub(super) fn has_ended(&self) -> bool {
        self.run.is_finished()
    }

    fn how_it_runs(&self) -> &'static str {
        if self.has_ended() { "; the run has ended" } else { "" }
    }

    /// Cancels the run, which has to end without an error.
    pub(super) async fn cancel(&mut self) -> Result<(), CaseError> {
        self.cancel.cancel();
        match tokio::time::timeout(PATIENCE, &mut self.run).await {
            Err(_) => violation(format!("the run goes on {PATIENCE:?} after it was cancelled")),
            Ok(Ok(Ok(()))) => Ok(()),
            Ok(Ok(Err(error))) => violation(format!("the cancelled run failed: {error}")),
            Ok(Err(panic)) => violation(format!("the run panicked: {panic}")),
        }
    }

    /// Runs the provider once more, after its run has ended.
    pub(super) async fn run_again(&mut self) -> Result<(), CaseError> {
        (self.cancel, self.run) = connect(&self.provider, &self.bot).await?;
        Ok(())
    }
}

type Running = (CancellationToken, JoinHandle<Result<(), ProviderError>>);

async fn connect(provider: &Arc<dyn Provider>, bot: &Arc<Bot>) -> Result<Running, CaseError> {
    let inbound = Inbound::new(Arc::clone(bot) as Arc<dyn Deliveries>);
    let (state, mut states) = watch::channel(ConnectionState::Connecting);
    let cancel = CancellationToken::new();
    let session = Session::new(inbound, cancel.clone(), Arc::new(state));
    let running = Arc::clone(provider);
    let run = tokio::spawn(async move { running.run(session).await });
    let open = states.wait_for(|state| *state == ConnectionState::Open);
    if !matches!(tokio::time::timeout(PATIENCE, open).await, Ok(Ok(_))) {
        run.abort();
        return violation(format!("the connection was not reported open within {PATIENCE:?}"));
    }
    Ok((cancel, run))
}

pub(super) fn violation<T>(what: impl Into<String>) -> Result<T, CaseError> {
    Err(CaseError::Violation(what.into()))
}

/// What is not declared must be told as unsupported.
pub(super) fn unsupported<T: std::fmt::Debug>(
    stage: &Stage<'_>,
    outcome: Result<T, ProviderError>,
    wanted: Capability,
) -> Result<(), CaseError> {
    match outcome {
        Err(ProviderError::Unsupported { provider, capability }) => {
            ensure_eq!(capability, wanted, "the capability that is lacking");
            ensure_eq!(&provider, stage.provider.id(), "the provider that lacks it");
            Ok(())
        }
        other => violation(format!("{wanted:?} is not declared, and gave {other:?}")),
    }
}

/// Ends the case where the platform has nothing of what it is about.
pub(super) fn possible(played: Played) -> Result<(), CaseError> {
    match played {
        Played::Done => Ok(()),
        Played::Impossible => Err(CaseError::NotRun("the platform has nothing of the kind")),
    }
}

/// Enough of a text to tell it.
pub(super) fn shortened(text: &str) -> String {
    let mut characters = text.chars();
    let mut short: String = characters.by_ref().take(200).collect();
    if characters.next().is_some() {
        short.push('…');
    }
    short
}
