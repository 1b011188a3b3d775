//! What is piped into a terminal.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use botmesh_core::Message;
use botmesh_core::provider::{
    Accepted, ConnectionState, DeliverError, Deliveries, Inbound, Provider, Session,
};
use botmesh_core::terminal::Terminal;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::memory::bounded;

#[derive(Default)]
struct Counting(AtomicUsize);

#[async_trait]
impl Deliveries for Counting {
    async fn deliver(&self, message: Message) -> Result<Accepted, DeliverError> {
        assert!(message.body().is_some_and(|body| !body.is_empty()));
        self.0.fetch_add(1, Ordering::Relaxed);
        Ok(Accepted::New)
    }
}

pub(crate) fn run(bytes: &[u8]) {
    let lines = bytes.split(|byte| *byte == b'\n').count();
    let bytes = bytes.to_vec();
    bounded(&bytes.clone(), 64, 1 << 20, |_| {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let counting = Arc::new(Counting::default());
            let (state, _) = watch::channel(ConnectionState::Connecting);
            let inbound = Inbound::new(Arc::<Counting>::clone(&counting));
            let session = Session::new(inbound, CancellationToken::new(), Arc::new(state));
            let terminal = Terminal::over(io::Cursor::new(bytes), tokio::io::sink());
            terminal.reports_to(io::sink()).run(session).await.unwrap();
            assert!(counting.0.load(Ordering::Relaxed) <= lines);
        });
    });
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    [&b"/start\nAna\r\n36\n"[..], b"\xef\xbb\xbfhi\n\n \n\xff\xfe\nafter", b"/quit\nnever"]
        .map(<[u8]>::to_vec)
        .into()
}
