use std::time::Duration;

use tokio::time::Instant;

const FIRST: Duration = Duration::from_millis(500);
const LAST: Duration = Duration::from_secs(30);

/// How long it has to go well until trouble is news again.
const CALM: Duration = Duration::from_secs(60);

/// Something that goes wrong again and again: tried again ever later, and told once.
#[derive(Debug, Default)]
pub(crate) struct Trouble {
    failures: u32,
    last: Option<Instant>,
}

impl Trouble {
    /// It failed. Says how long to wait, and whether that is news.
    pub(crate) fn again(&mut self) -> (Duration, bool) {
        let news = self.last.is_none_or(|last| last.elapsed() > CALM + LAST);
        if news {
            self.failures = 0;
        }
        let wait = FIRST.saturating_mul(1 << self.failures.min(10)).min(LAST);
        self.failures += 1;
        self.last = Some(Instant::now());
        (wait, news)
    }

    /// It worked. The next failure is tried again soon.
    pub(crate) fn over(&mut self) {
        self.failures = 0;
        if self.last.is_some_and(|last| last.elapsed() > CALM) {
            self.last = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// I1: two pollers that push each other out are told once, and retried ever more slowly.
    #[tokio::test(start_paused = true)]
    async fn trouble_is_told_once_and_retried_ever_later() {
        let mut trouble = Trouble::default();
        let mut waits = Vec::new();
        for _ in 0..8 {
            let (wait, news) = trouble.again();
            assert_eq!(news, waits.is_empty());
            waits.push(wait.as_millis());
            tokio::time::advance(wait).await;
        }
        assert_eq!(waits, [500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]);
        trouble.over();
        assert_eq!(trouble.again(), (FIRST, false), "a moment of calm is no end of it");
        trouble.over();
        tokio::time::advance(CALM + FIRST).await;
        trouble.over();
        assert_eq!(trouble.again(), (FIRST, true));
    }
}
