//! A TCP proxy before a server.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::wire::Wire;

/// A TCP proxy before a server. It can lose answers, after the server has executed what was asked;
/// lose messages, and nothing else; and stop all traffic.
#[derive(Debug, Clone)]
pub struct Proxy {
    wire: Wire,
    port: u16,
    faults: Arc<Faults>,
    traffic: Arc<Traffic>,
}

/// What clients have done.
#[derive(Debug, Default)]
struct Traffic {
    connections: AtomicUsize,
    round_trips: AtomicUsize,
}

#[derive(Debug)]
struct Faults {
    answers_to_lose: AtomicUsize,
    loses_messages: AtomicBool,
    flows: watch::Sender<bool>,
    cuts: watch::Sender<u64>,
}

impl Proxy {
    /// Starts one before the server on a port of this machine.
    ///
    /// # Panics
    /// When no port can be had.
    pub async fn start(wire: Wire, server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let faults = Faults {
            answers_to_lose: AtomicUsize::new(0),
            loses_messages: AtomicBool::new(false),
            flows: watch::Sender::new(true),
            cuts: watch::Sender::new(0),
        };
        let (faults, traffic) = (Arc::new(faults), Arc::<Traffic>::default());
        let (with, counted) = (Arc::clone(&faults), Arc::clone(&traffic));
        tokio::spawn(accept(listener, wire, server, with, counted));
        Self { wire, port, faults, traffic }
    }

    /// Where clients connect.
    #[must_use]
    pub fn url(&self) -> String {
        self.wire.url(self.port)
    }

    /// How many connections clients have opened.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.traffic.connections.load(Ordering::SeqCst)
    }

    /// How often clients have sent something after everything before it was answered.
    #[must_use]
    pub fn round_trips(&self) -> usize {
        self.traffic.round_trips.load(Ordering::SeqCst)
    }

    /// Cuts the connection instead of passing the next answer on.
    pub fn lose_next_answer(&self) {
        self.faults.answers_to_lose.fetch_add(1, Ordering::SeqCst);
    }

    /// Whether no answer is to be lost any more.
    #[must_use]
    pub fn has_lost_all(&self) -> bool {
        self.faults.answers_to_lose.load(Ordering::SeqCst) == 0
    }

    /// Loses the messages of subscriptions from now on.
    pub fn lose_messages(&self) {
        self.faults.loses_messages.store(true, Ordering::SeqCst);
    }

    /// Stops all traffic, or lets it flow again.
    pub fn freeze(&self, frozen: bool) {
        self.faults.flows.send_replace(!frozen);
    }

    /// Cuts all connections.
    pub fn cut(&self) {
        self.faults.cuts.send_modify(|cuts| *cuts += 1);
    }
}

async fn accept(
    listener: TcpListener,
    wire: Wire,
    server: u16,
    faults: Arc<Faults>,
    traffic: Arc<Traffic>,
) {
    while let Ok((client, _)) = listener.accept().await {
        traffic.connections.fetch_add(1, Ordering::SeqCst);
        let Ok(server) = TcpStream::connect(("127.0.0.1", server)).await else { continue };
        // A message that is passed on in pieces must not wait for the other side's acknowledgement.
        for side in [&client, &server] {
            let _ = side.set_nodelay(true);
        }
        let (client, server) = (client.into_split(), server.into_split());
        let (faults, traffic) = (Arc::clone(&faults), Arc::clone(&traffic));
        tokio::spawn(async move {
            let mut cut = faults.cuts.subscribe();
            let asked = AtomicBool::new(false);
            let ask = || {
                if !asked.swap(true, Ordering::SeqCst) {
                    traffic.round_trips.fetch_add(1, Ordering::SeqCst);
                }
            };
            let answer = || asked.store(false, Ordering::SeqCst);
            tokio::select! {
                () = pass_on(client.0, server.1, &faults, ask) => {}
                () = pass_back(server.0, client.1, wire, &faults, answer) => {}
                _ = cut.changed() => {}
            }
        });
    }
}

async fn flowing(faults: &Faults) {
    let mut flows = faults.flows.subscribe();
    let _ = flows.wait_for(|flows| *flows).await;
}

async fn pass_on(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    faults: &Faults,
    ask: impl Fn(),
) {
    let mut buffer = [0; 65536];
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        ask();
        flowing(faults).await;
        if to.write_all(&buffer[..length]).await.is_err() {
            break;
        }
    }
}

async fn pass_back(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    wire: Wire,
    faults: &Faults,
    answer: impl Fn(),
) {
    let mut waiting = Vec::new();
    let mut buffer = [0; 65536];
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        answer();
        flowing(faults).await;
        waiting.extend_from_slice(&buffer[..length]);
        while let Some(length) = wire.frame(&waiting) {
            let frame: Vec<u8> = waiting.drain(..length).collect();
            if faults.loses_messages.load(Ordering::SeqCst) && wire.is_push(&frame) {
                continue;
            }
            let losing = &faults.answers_to_lose;
            let lose =
                losing.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
            if lose.is_ok() || to.write_all(&frame).await.is_err() {
                return;
            }
        }
    }
}
