use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// A TCP proxy that can lose answers: the server has executed what was asked, and the caller
/// never hears of it.
pub(crate) struct Proxy {
    port: u16,
    to_lose: Arc<AtomicUsize>,
}

impl Proxy {
    pub(crate) async fn start(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let to_lose = Arc::new(AtomicUsize::new(0));
        tokio::spawn(accept(listener, server, Arc::clone(&to_lose)));
        Self { port, to_lose }
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Cuts the connection instead of passing the next answer on.
    pub(crate) fn lose_next_answer(&self) {
        self.to_lose.fetch_add(1, Ordering::SeqCst);
    }

    /// Whether no answer is to be lost any more.
    pub(crate) fn has_lost_all(&self) -> bool {
        self.to_lose.load(Ordering::SeqCst) == 0
    }
}

async fn accept(listener: TcpListener, server: u16, to_lose: Arc<AtomicUsize>) {
    while let Ok((client, _)) = listener.accept().await {
        let Ok(server) = TcpStream::connect(("127.0.0.1", server)).await else { continue };
        let to_lose = Arc::clone(&to_lose);
        tokio::spawn(async move {
            let (mut from_client, mut to_client) = client.into_split();
            let (mut from_server, mut to_server) = server.into_split();
            let up = tokio::io::copy(&mut from_client, &mut to_server);
            let down = async {
                let mut buffer = [0; 65536];
                while let Ok(length @ 1..) = from_server.read(&mut buffer).await {
                    let lose = to_lose.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| {
                        left.checked_sub(1)
                    });
                    if lose.is_ok() || to_client.write_all(&buffer[..length]).await.is_err() {
                        break;
                    }
                }
            };
            tokio::select! {
                _ = up => {}
                () = down => {}
            }
        });
    }
}
