//! Receives the wake-ups of one incarnation.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use botmesh_core::coordination::client::PushSink;
use botmesh_core::id::IncarnationId;
use futures_util::future::try_join_all;
use redis::{PushInfo, PushKind};
use tokio::runtime::Handle;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::wire::read_wakeup;
use crate::error::Fault;
use crate::link::{Link, Open};
use crate::pushes::Listener;
use crate::servers::Connection;

/// The shortest and the longest pause before listening is tried again.
const PAUSES: (Duration, Duration) = (Duration::from_millis(10), Duration::from_secs(1));

/// The task that listens, if there is one.
#[derive(Debug, Default)]
pub(super) struct Ear(Mutex<Option<JoinHandle<()>>>);

impl Ear {
    /// Listens for one incarnation in place of any other, and waits until that has begun or was
    /// tried once in vain.
    pub(super) async fn listen(
        &self,
        runtime: &Handle,
        link: Arc<Link>,
        channels: Vec<String>,
        incarnation: IncarnationId,
        sink: PushSink,
    ) -> Result<(), Fault> {
        let (sender, begun) = oneshot::channel();
        link.listening().set(waking(&channels, incarnation, sink.clone()));
        let listening = Listening { link, channels, sink };
        let task = runtime.spawn(listening.run(sender));
        self.replace(Some(task));
        // Without an answer the runtime has stopped.
        begun.await.unwrap_or(Ok(()))
    }

    pub(super) fn close(&self) {
        self.replace(None);
    }

    fn replace(&self, task: Option<JoinHandle<()>>) {
        let mut present = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(before) = std::mem::replace(&mut *present, task) {
            before.abort();
        }
    }
}

impl Drop for Ear {
    fn drop(&mut self) {
        self.close();
    }
}

struct Listening {
    link: Arc<Link>,
    channels: Vec<String>,
    sink: PushSink,
}

/// Wakes within the task of the connection, so that no other task is between a push and whoever
/// waits for it.
fn waking(channels: &[String], incarnation: IncarnationId, sink: PushSink) -> Listener {
    let channels: HashSet<Vec<u8>> = channels.iter().map(|name| name.as_bytes().to_vec()).collect();
    Arc::new(move |channel, text| {
        // An old connection may still bring what was meant for an incarnation before.
        if channels.contains(channel)
            && let Some(wakeup) = read_wakeup(text, &incarnation)
        {
            sink.wake(wakeup);
        }
    })
}

impl Listening {
    async fn run(self, begun: oneshot::Sender<Result<(), Fault>>) {
        let mut begun = Some(begun);
        let mut pause = PAUSES.0;
        loop {
            match self.link.connection().await {
                Ok(open) => match open.take_messages() {
                    Some(messages) => self.hear(&open, messages, &mut begun, &mut pause).await,
                    // Its messages went to another incarnation.
                    None => {
                        self.link.discard(open.generation);
                        continue;
                    }
                },
                Err(fault) => tell(&mut begun, Err(fault)),
            }
            self.sink.disconnected();
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(PAUSES.1);
        }
    }

    /// Hears the messages of one connection until it ends.
    async fn hear(
        &self,
        open: &Open,
        mut messages: UnboundedReceiver<PushInfo>,
        begun: &mut Option<oneshot::Sender<Result<(), Fault>>>,
        pause: &mut Duration,
    ) {
        let mut subscribed = false;
        loop {
            if !subscribed {
                match self.link.settle(open, subscribe(open, &self.channels).await) {
                    Ok(()) => {
                        subscribed = true;
                        *pause = PAUSES.0;
                        self.sink.connected();
                        tell(begun, Ok(()));
                    }
                    Err(fault) => {
                        tracing::debug!(?fault, "redis sends no wake-ups, tickets poll");
                        self.sink.disconnected();
                        tell(begun, Err(fault));
                    }
                }
            }
            let again = async {
                match subscribed {
                    true => std::future::pending().await,
                    false => tokio::time::sleep(*pause).await,
                }
            };
            tokio::select! {
                message = messages.recv() => match message.map(|message| take(&message, open)) {
                    Some(ControlFlow::Continue(heard)) => subscribed &= heard,
                    Some(ControlFlow::Break(())) | None => {
                        self.link.discard(open.generation);
                        return;
                    }
                },
                () = self.link.discarded(open.generation) => return,
                () = again => *pause = (*pause * 2).min(PAUSES.1),
            }
        }
    }
}

/// Takes what the driver says of the connection. Breaks when the connection has ended; answers whether all channels are
/// still subscribed.
fn take(message: &PushInfo, open: &Open) -> ControlFlow<(), bool> {
    match message.kind {
        // One node of a cluster is away, or gave a slot away.
        PushKind::Disconnection | PushKind::SUnsubscribe
            if matches!(open.connection, Connection::Cluster(_)) =>
        {
            ControlFlow::Continue(false)
        }
        PushKind::Disconnection => ControlFlow::Break(()),
        _ => ControlFlow::Continue(true),
    }
}

fn tell(begun: &mut Option<oneshot::Sender<Result<(), Fault>>>, how: Result<(), Fault>) {
    if let Some(begun) = begun.take() {
        // Whoever waited may have given up.
        let _ = begun.send(how);
    }
}

async fn subscribe(open: &Open, channels: &[String]) -> redis::RedisResult<()> {
    match &open.connection {
        Connection::Node(node) => {
            let mut node = node.clone();
            node.subscribe(channels).await
        }
        Connection::Cluster(cluster) => {
            // Each on its own: they belong to different nodes.
            let all = channels.iter().map(|channel| {
                let mut cluster = cluster.clone();
                async move { cluster.ssubscribe(channel).await }
            });
            try_join_all(all).await.map(drop)
        }
    }
}
