//! A load balancer that gives each connection to the next replica that takes it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;

pub(crate) struct Balancer {
    address: String,
    /// How many connections each replica got.
    given: Arc<Vec<AtomicUsize>>,
    task: AbortHandle,
}

impl Balancer {
    pub(crate) async fn start(replicas: Vec<String>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let given: Arc<Vec<AtomicUsize>> = Arc::new(replicas.iter().map(|_| 0.into()).collect());
        let counts = Arc::clone(&given);
        let task = tokio::spawn(async move {
            let replicas = Arc::new(replicas);
            for next in 0.. {
                let Ok((stream, _)) = listener.accept().await else { continue };
                let (replicas, counts) = (Arc::clone(&replicas), Arc::clone(&counts));
                tokio::spawn(pass(stream, replicas, counts, next));
            }
        });
        Self { address, given, task: task.abort_handle() }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn given(&self) -> Vec<usize> {
        self.given.iter().map(|count| count.load(Ordering::Relaxed)).collect()
    }
}

impl Drop for Balancer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn pass(
    mut client: TcpStream,
    replicas: Arc<Vec<String>>,
    counts: Arc<Vec<AtomicUsize>>,
    next: usize,
) {
    for turn in 0..replicas.len() {
        let place = (next + turn) % replicas.len();
        if let Ok(mut replica) = TcpStream::connect(&replicas[place]).await {
            counts[place].fetch_add(1, Ordering::Relaxed);
            // A replica that dies cuts it, and the platform calls again.
            let _ = tokio::io::copy_bidirectional(&mut client, &mut replica).await;
            return;
        }
    }
}
