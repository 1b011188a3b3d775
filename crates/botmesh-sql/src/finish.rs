//! Work that goes on to its end, also when nobody waits for it any more.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::runtime::Handle;

/// A future that runs to its end in a task of its own when it is dropped after it has begun. So the
/// connection of a statement whose caller gives up is whole again when the answer is there, and
/// need not be closed: whoever gives up often would otherwise leave nobody a connection.
///
/// It has to come to an end by itself. Outside of a runtime it is dropped where it stands.
pub struct Finish<T: Send + 'static> {
    work: Option<Pin<Box<dyn Future<Output = T> + Send>>>,
    has_begun: bool,
}

impl<T: Send + 'static> Finish<T> {
    /// Of this work.
    pub fn new(work: impl Future<Output = T> + Send + 'static) -> Self {
        Self { work: Some(Box::pin(work)), has_begun: false }
    }
}

impl<T: Send + 'static> Future for Finish<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        self.has_begun = true;
        let Some(work) = &mut self.work else { return Poll::Pending };
        let done = ready!(work.as_mut().poll(context));
        self.work = None;
        Poll::Ready(done)
    }
}

impl<T: Send + 'static> Drop for Finish<T> {
    fn drop(&mut self) {
        if let Some(rest) = self.work.take().filter(|_| self.has_begun)
            && let Ok(runtime) = Handle::try_current()
        {
            runtime.spawn(async move { drop(rest.await) });
        }
    }
}

impl<T: Send + 'static> fmt::Debug for Finish<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Finish").field("has_begun", &self.has_begun).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use tokio::sync::{Notify, oneshot};

    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    #[tokio::test(start_paused = true)]
    async fn what_has_begun_goes_on_when_its_caller_gives_up() {
        let (go_on, (done, is_done)) = (Arc::new(Notify::new()), oneshot::channel());
        let told = Arc::clone(&go_on);
        let work = Finish::new(async move {
            told.notified().await;
            let _ = done.send(());
        });
        assert!(tokio::time::timeout(MINUTE, work).await.is_err());
        go_on.notify_one();
        is_done.await.unwrap();
    }

    #[tokio::test]
    async fn what_has_not_begun_never_does() {
        let (done, is_done) = oneshot::channel();
        drop(Finish::new(async move { done.send(()) }));
        assert!(is_done.await.is_err());
    }

    #[tokio::test]
    async fn who_waits_gets_the_answer() {
        assert_eq!(Finish::new(async { 7 }).await, 7);
    }
}
