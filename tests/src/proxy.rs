//! A TCP proxy before the server, one for each replica: it delays, stalls in one direction or both,
//! and resets.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

/// A running proxy. Clones are the same one.
#[derive(Debug, Clone)]
pub struct Proxy {
    port: u16,
    controls: Arc<Controls>,
}

/// Which way bytes go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From the replica to the server.
    Up,
    /// From the server to the replica.
    Down,
}

#[derive(Debug)]
struct Controls {
    latency: watch::Sender<Duration>,
    up: watch::Sender<bool>,
    down: watch::Sender<bool>,
    resets: watch::Sender<u64>,
}

impl Proxy {
    /// Starts a proxy before the server on a port of this machine.
    ///
    /// # Errors
    /// When no port can be had.
    pub async fn start(server: u16) -> Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.context("no port is free")?;
        let port = listener.local_addr()?.port();
        let controls = Arc::new(Controls {
            latency: watch::Sender::new(Duration::ZERO),
            up: watch::Sender::new(true),
            down: watch::Sender::new(true),
            resets: watch::Sender::new(0),
        });
        tokio::spawn(accept(listener, server, Arc::clone(&controls)));
        Ok(Self { port, controls })
    }

    /// Where it listens.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Delays what is received from now on, in each direction.
    pub fn delay(&self, latency: Duration) {
        self.controls.latency.send_replace(latency);
    }

    /// Holds back everything in one direction, as a network does that loses packets, or lets it
    /// pass again.
    pub fn flow(&self, direction: Direction, flows: bool) {
        match direction {
            Direction::Up => self.controls.up.send_replace(flows),
            Direction::Down => self.controls.down.send_replace(flows),
        };
    }

    /// Breaks all connections; what was under way is lost.
    pub fn reset(&self) {
        self.controls.resets.send_modify(|resets| *resets += 1);
    }
}

async fn accept(listener: TcpListener, server: u16, controls: Arc<Controls>) {
    while let Ok((client, _)) = listener.accept().await {
        let controls = Arc::clone(&controls);
        tokio::spawn(async move {
            let mut reset = controls.resets.subscribe();
            // A client whose server is away is hung up on, as it would be without a proxy.
            let Ok(server) = TcpStream::connect(("127.0.0.1", server)).await else { return };
            let _ = (client.set_nodelay(true), server.set_nodelay(true));
            let (client, server) = (client.into_split(), server.into_split());
            tokio::select! {
                () = pump(client.0, server.1, controls.latency.subscribe(), controls.up.subscribe()) => {}
                () = pump(server.0, client.1, controls.latency.subscribe(), controls.down.subscribe()) => {}
                _ = reset.changed() => {}
            }
        });
    }
}

/// Passes bytes on in their order, each after its delay and while they may flow.
async fn pump(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    latency: watch::Receiver<Duration>,
    mut flows: watch::Receiver<bool>,
) {
    let (sender, mut receiver) = mpsc::unbounded_channel::<(Instant, Vec<u8>)>();
    let read = async {
        let mut buffer = [0; 16_384];
        while let Ok(length @ 1..) = from.read(&mut buffer).await {
            let due = Instant::now() + *latency.borrow();
            if sender.send((due, buffer[..length].to_vec())).is_err() {
                break;
            }
        }
        drop(sender);
    };
    let write = async {
        while let Some((due, bytes)) = receiver.recv().await {
            if due > Instant::now() {
                tokio::time::sleep_until(due).await;
            }
            if flows.wait_for(|flows| *flows).await.is_err() || to.write_all(&bytes).await.is_err()
            {
                return;
            }
        }
    };
    tokio::pin!(read, write);
    tokio::select! {
        // What was read is still written.
        () = &mut read => write.await,
        () = &mut write => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn echo() -> u16 {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let (mut from, mut to) = stream.into_split();
                    let _ = tokio::io::copy(&mut from, &mut to).await;
                });
            }
        });
        port
    }

    async fn answer(client: &mut TcpStream) -> std::io::Result<[u8; 2]> {
        let mut bytes = [0; 2];
        client.read_exact(&mut bytes).await.map(|_| bytes)
    }

    #[tokio::test]
    async fn it_delays_holds_back_and_resets() {
        let proxy = Proxy::start(echo().await).await.unwrap();
        let mut client = TcpStream::connect(("127.0.0.1", proxy.port())).await.unwrap();
        let latency = Duration::from_millis(40);
        proxy.delay(latency);
        let begun = Instant::now();
        client.write_all(b"hi").await.unwrap();
        assert_eq!(answer(&mut client).await.unwrap(), *b"hi");
        assert!(begun.elapsed() >= latency * 2);
        proxy.delay(Duration::ZERO);
        for direction in [Direction::Up, Direction::Down] {
            proxy.flow(direction, false);
            client.write_all(b"ho").await.unwrap();
            let held = tokio::time::timeout(latency, answer(&mut client)).await;
            assert!(held.is_err(), "{held:?}");
            proxy.flow(direction, true);
            assert_eq!(answer(&mut client).await.unwrap(), *b"ho");
        }
        proxy.reset();
        assert!(answer(&mut client).await.is_err());
    }
}
