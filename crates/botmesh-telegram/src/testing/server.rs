use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Path, Request, State as Shared};
use axum::response::Response;
use axum::routing::any;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::broadcast;
use tokio::task::{AbortHandle, JoinSet};

use super::answer::{Refusal, answer, raw};
use super::state::State;
use super::{FakeTelegram, Fault, method, polls, pushes, requests};

/// Listens for calls, and calls the webhook.
pub(super) struct Server {
    address: SocketAddr,
    cut: broadcast::Sender<()>,
    tasks: [AbortHandle; 2],
}

#[derive(Clone)]
struct Platform {
    state: Arc<State>,
    hang_up: tokio::sync::mpsc::UnboundedSender<()>,
}

impl Server {
    pub(super) async fn start(address: SocketAddr, state: Arc<State>) -> std::io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let (cut, _) = broadcast::channel(1);
        let serving = tokio::spawn(serve(listener, Arc::clone(&state), cut.clone()));
        let pushing = tokio::spawn(pushes::push(state));
        let tasks = [serving.abort_handle(), pushing.abort_handle()];
        Ok(Self { address, cut, tasks })
    }

    pub(super) const fn address(&self) -> SocketAddr {
        self.address
    }

    pub(super) fn cut(&self) {
        // Without connections there is nobody to hear it.
        let _ = self.cut.send(());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

async fn serve(listener: TcpListener, state: Arc<State>, cut: broadcast::Sender<()>) {
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            Some(_) = connections.join_next() => continue,
        };
        let Ok((stream, _)) = accepted else { continue };
        let (hang_up, mut hung_up) = tokio::sync::mpsc::unbounded_channel();
        let platform = Platform { state: Arc::clone(&state), hang_up };
        let router = Router::new()
            .route("/{bot}/{method}", any(take))
            .route("/file/{bot}/{*path}", any(file))
            .layer(DefaultBodyLimit::max(64 << 20))
            .with_state(platform);
        let mut cut = cut.subscribe();
        connections.spawn(async move {
            let service = TowerToHyperService::new(router);
            let http = hyper::server::conn::http1::Builder::new();
            tokio::select! {
                _ = http.serve_connection(TokioIo::new(stream), service) => {}
                _ = cut.recv() => {}
                _ = hung_up.recv() => {}
            }
        });
    }
}

async fn take(
    Shared(platform): Shared<Platform>,
    Path((bot, method)): Path<(String, String)>,
    request: Request,
) -> Response {
    if bot != format!("bot{}", FakeTelegram::TOKEN) {
        return answer(Err(Refusal(401, "Unauthorized".to_owned(), Value::Null)));
    }
    // Names are case-insensitive; here they are as they are documented.
    let mut method = method;
    if let Some(first) = method.get_mut(..1) {
        first.make_ascii_lowercase();
    }
    let Some(mut call) = requests::read(&method, request).await else {
        return answer(Err(Refusal::bad("can't parse the request")));
    };
    let state = &platform.state;
    let fault = state.take_fault(&method);
    match fault {
        Some(Fault::Error(code, words, wait)) => {
            let parameters = wait.map_or(Value::Null, |wait| json!({ "retry_after": wait }));
            return answer(Err(Refusal(code, words, parameters)));
        }
        Some(Fault::Raw(status, body)) => return raw(status, body),
        Some(Fault::Reset) => return hang_up(&platform).await,
        _ => {}
    }
    let result = if method == "getUpdates" {
        polls::updates(state, &call).await
    } else {
        let result = method::carry_out(state, &mut call);
        if result.is_ok() {
            state.record(call);
        }
        result
    };
    match fault {
        Some(Fault::TakenAndReset) => return hang_up(&platform).await,
        Some(Fault::Slow(time)) => tokio::time::sleep(time).await,
        _ => {}
    }
    answer(result)
}

async fn hang_up(platform: &Platform) -> Response {
    let _ = platform.hang_up.send(());
    std::future::pending().await
}

async fn file(
    Shared(platform): Shared<Platform>,
    Path((bot, _path)): Path<(String, String)>,
) -> Response {
    if bot != format!("bot{}", FakeTelegram::TOKEN) {
        return answer(Err(Refusal(401, "Unauthorized".to_owned(), Value::Null)));
    }
    raw(200, platform.state.inner.lock().file.clone())
}
