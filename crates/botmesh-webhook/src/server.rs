use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::{JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;

use crate::{Limits, ServeError, WebhookRouter};

/// Serves a router over HTTP/1.1, without encryption: put it behind whatever ends your TLS.
#[derive(Debug)]
#[must_use]
pub struct Server {
    router: Router,
    limits: Limits,
}

/// A server that runs. Dropping it ends it where it stands; [`stop`](Self::stop) ends it in order.
#[derive(Debug)]
#[must_use = "the server ends when this is dropped: keep it, and await `stop`"]
pub struct ServerHandle {
    address: SocketAddr,
    cancel: CancellationToken,
    task: Option<JoinHandle<()>>,
}

/// How long after a connection could not be taken the next is tried, as when no file is left.
const AFTER_FAILURE: Duration = Duration::from_millis(50);

impl Server {
    /// Serves the webhooks of a bot.
    ///
    /// # Errors
    /// [`ServeError`] when the router cannot be made.
    pub fn new(router: WebhookRouter) -> Result<Self, ServeError> {
        let limits = router.limits_in_use().clone();
        Ok(Self { router: router.build()?, limits })
    }

    /// Serves a router of your own, within these limits.
    pub const fn of(router: Router, limits: Limits) -> Self {
        Self { router, limits }
    }

    /// Listens at `address` and serves until it is stopped. Port 0 takes any that is free.
    ///
    /// # Errors
    /// [`ServeError::Bind`].
    pub async fn start(self, address: SocketAddr) -> Result<ServerHandle, ServeError> {
        let bind = |source| ServeError::Bind { address, source };
        let listener = TcpListener::bind(address).await.map_err(bind)?;
        let address = listener.local_addr().map_err(bind)?;
        tracing::info!(%address, "webhooks are served");
        let cancel = CancellationToken::new();
        let task = tokio::spawn(self.serve(listener, cancel.clone()));
        Ok(ServerHandle { address, cancel, task: Some(task) })
    }

    async fn serve(self, listener: TcpListener, cancel: CancellationToken) {
        let places = Arc::new(Semaphore::new(self.limits.most_connections()));
        let mut connections = JoinSet::new();
        loop {
            let taken = async {
                // The semaphore is never closed.
                let place = Arc::clone(&places).acquire_owned().await.ok();
                (place, listener.accept().await)
            };
            tokio::select! {
                biased;
                () = cancel.cancelled() => break,
                Some(_) = connections.join_next() => {}
                (place, accepted) = taken => match accepted {
                    Ok((stream, _)) => {
                        connections.spawn(self.connection(stream, place, cancel.clone()));
                    }
                    Err(error) => {
                        tracing::debug!(%error, "a connection could not be taken");
                        tokio::time::sleep(AFTER_FAILURE).await;
                    }
                }
            }
        }
        drop(listener);
        let all = async { while connections.join_next().await.is_some() {} };
        if tokio::time::timeout(self.limits.stop_timeout(), all).await.is_err() {
            tracing::warn!("requests did not finish in time and were cut off");
        }
    }

    fn connection(
        &self,
        stream: TcpStream,
        place: Option<OwnedSemaphorePermit>,
        cancel: CancellationToken,
    ) -> impl Future<Output = ()> + use<> {
        let service = TowerToHyperService::new(self.router.clone());
        let header_time = self.limits.header_timeout();
        async move {
            let _place = place;
            let _ = stream.set_nodelay(true);
            let mut http = hyper::server::conn::http1::Builder::new();
            // Until the head of a request is there: a connection that stays idle ends as well.
            http.timer(TokioTimer::new()).header_read_timeout(header_time).max_buf_size(64 << 10);
            let mut connection =
                std::pin::pin!(http.serve_connection(TokioIo::new(stream), service));
            let ended = tokio::select! {
                biased;
                ended = connection.as_mut() => ended,
                () = cancel.cancelled() => {
                    connection.as_mut().graceful_shutdown();
                    connection.await
                }
            };
            if let Err(error) = ended {
                tracing::debug!(%error, "a connection ended");
            }
        }
    }
}

impl ServerHandle {
    /// Where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Takes no more connections, lets the requests that came finish, and closes. Stop it after the
    /// bot, which tells platforms to come again from the moment it stops.
    pub async fn stop(mut self) {
        self.cancel.cancel();
        if let Some(task) = self.task.take() {
            // A panic is the task's own, and there is nothing left to stop.
            let _ = task.await;
        }
    }
}

impl Drop for ServerHandle {
    fn drop(&mut self) {
        if let Some(task) = self.task.take() {
            task.abort();
        }
    }
}
