//! How long one message waits for its turn: when the chat is free, and when another replica has it.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use botmesh_core::coordination::{Coordinator, CoordinatorSettings};
use redis::AsyncConnectionConfig;
use redis::aio::MultiplexedConnection;
use tokio::sync::mpsc;

use super::counters::Counters;
use super::server::PrivateServer;
use super::{Figure, Options, Report, chat, hand_over, replica, replica_with, take};
use crate::spread::quantile;

const PING: &str = "PING by the same driver";
const PUSH: &str = "a message between two connections";

pub(super) async fn measure(
    server: &PrivateServer,
    options: &Options,
    report: &mut Report<'_>,
) -> Result<()> {
    free(server, options, report).await?;
    let first = replica(&server.url()).await?;
    let second = replica(&server.url()).await?;
    let mut bare = BarePush::connect(server).await?;
    let push = async || bare.push().await;
    let [ours, pushes] = hand_overs(&*first, &*second, options.samples, push).await?;
    let goal = "<= 1.5";
    tell(report, "hand-over by push, release to running", &ours, (PUSH, &pushes), [goal, ""]);
    first.stop().await?;
    second.stop().await?;
    by_poll(server, options, &pushes, report).await
}

/// A message of a chat that nobody has.
async fn free(server: &PrivateServer, options: &Options, report: &mut Report<'_>) -> Result<()> {
    let replica = replica(&server.url()).await?;
    let mut connection = server.connection().await?;
    let (mut grants, mut pings, mut calls) = (Vec::new(), Vec::new(), 0.0);
    for number in 0..options.samples {
        let begun = Instant::now();
        redis::cmd("PING").exec_async(&mut connection).await?;
        pings.push(begun.elapsed());
        let key = chat(number as u64)?;
        let before = Counters::read(&mut connection).await?;
        let begun = Instant::now();
        let turn = take(&*replica, &key).await?;
        grants.push(begun.elapsed());
        turn.release().await?;
        let used = Counters::read(&mut connection).await?.since(before);
        calls += used.scripts + used.others;
    }
    replica.stop().await?;
    let (grants, pings) = (Times::of(grants)?, Times::of(pings)?);
    tell(report, "reserve to grant, free chat", &grants, (PING, &pings), ["<= limit + 60 us", ""]);
    report.add(Figure {
        what: "round trips of a message, free chat, one at a time".to_owned(),
        ours: calls / options.samples as f64,
        unit: "calls",
        limit: None,
        goal: "2, and a heartbeat each 5 s",
    });
    Ok(())
}

/// With the older protocol, which has no pushes: whoever waits asks again and again.
async fn by_poll(
    server: &PrivateServer,
    options: &Options,
    pushes: &Times,
    report: &mut Report<'_>,
) -> Result<()> {
    let url = format!("{}?protocol=resp2", server.url());
    let settings = CoordinatorSettings::builder().max_poll(Duration::from_millis(5)).build()?;
    let first = replica_with(&url, settings.clone()).await?;
    let second = replica_with(&url, settings).await?;
    let mut times = Vec::new();
    for _ in 0..options.samples / 10 {
        times.push(hand_over(&*first, &*second).await?);
    }
    let times = Times::of(times)?;
    tell(report, "hand-over by poll each 5 ms", &times, (PUSH, pushes), ["", ""]);
    first.stop().await?;
    second.stop().await?;
    Ok(())
}

/// Two connections, one of which sends messages to the other.
struct BarePush {
    sender: MultiplexedConnection,
    _receiver: MultiplexedConnection,
    messages: mpsc::UnboundedReceiver<redis::PushInfo>,
}

impl BarePush {
    async fn connect(server: &PrivateServer) -> Result<Self> {
        let (pushes, mut messages) = mpsc::unbounded_channel();
        let url = format!("{}?protocol=resp3", server.url());
        let config = AsyncConnectionConfig::new().set_push_sender(pushes);
        let client = redis::Client::open(url)?;
        let mut receiver = client.get_multiplexed_async_connection_with_config(&config).await?;
        receiver.subscribe("bare").await?;
        // The first tells of the subscription.
        messages.recv().await.context("the connection has ended")?;
        Ok(Self { sender: server.connection().await?, _receiver: receiver, messages })
    }

    /// How long a message takes from its sending until a task that waits for it runs.
    async fn push(&mut self) -> Result<Duration> {
        let Self { sender, messages, .. } = self;
        let send = async {
            tokio::task::yield_now().await;
            let begun = Instant::now();
            redis::cmd("PUBLISH").arg("bare").arg("x").exec_async(sender).await?;
            anyhow::Ok(begun)
        };
        let wait = async {
            messages.recv().await.context("the connection has ended")?;
            Ok(Instant::now())
        };
        let (running, begun) = tokio::try_join!(wait, send)?;
        Ok(running.saturating_duration_since(begun))
    }
}

/// What half and what 99 of 100 do not exceed, in microseconds.
#[derive(Debug)]
pub(super) struct Times {
    pub(super) p50: f64,
    pub(super) p99: f64,
}

impl Times {
    pub(super) fn of(mut times: Vec<Duration>) -> Result<Self> {
        times.sort_unstable();
        let at = |share| quantile(&times, share).context("nothing was measured");
        Ok(Self { p50: at(0.5)?, p99: at(0.99)? })
    }
}

/// How long messages of free chats wait for their turns, and what `bare` took just before each.
pub(super) async fn free_chats(
    replica: &impl Coordinator,
    samples: usize,
    mut bare: impl AsyncFnMut() -> Result<Duration>,
) -> Result<[Times; 2]> {
    let (mut grants, mut limits) = (Vec::new(), Vec::new());
    for number in 0..samples {
        limits.push(bare().await?);
        let key = chat(number as u64)?;
        let begun = Instant::now();
        let turn = take(replica, &key).await?;
        grants.push(begun.elapsed());
        turn.release().await?;
    }
    Ok([Times::of(grants)?, Times::of(limits)?])
}

/// How long chats take from one replica to the other, and what `bare` took just before each.
pub(super) async fn hand_overs(
    from: &impl Coordinator,
    to: &impl Coordinator,
    samples: usize,
    mut bare: impl AsyncFnMut() -> Result<Duration>,
) -> Result<[Times; 2]> {
    let (mut ours, mut limits) = (Vec::new(), Vec::new());
    for _ in 0..samples {
        limits.push(bare().await?);
        ours.push(hand_over(from, to).await?);
    }
    Ok([Times::of(ours)?, Times::of(limits)?])
}

pub(super) fn tell(
    report: &mut Report<'_>,
    what: &str,
    ours: &Times,
    (name, limit): (&'static str, &Times),
    goals: [&'static str; 2],
) {
    for (share, ours, limit, goal) in
        [("p50", ours.p50, limit.p50, goals[0]), ("p99", ours.p99, limit.p99, goals[1])]
    {
        let what = format!("{what}, {share}");
        report.add(Figure { what, ours, unit: "us", limit: Some((name, limit)), goal });
    }
}
