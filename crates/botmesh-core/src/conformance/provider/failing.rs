//! Cases about platforms that fail, and the errors that tell how.

use std::time::Duration;

use tokio::time::Instant;

use super::stage::{Stage, violation};
use super::{Failure, ProviderFixture};
use crate::conformance::CaseError;
use crate::conformance::case::ensure;
use crate::id::{ChatKey, ProviderId};
use crate::message::Outgoing;
use crate::provider::{ProviderError, Receipt, SendOptions};

/// Lets one send fail in this way, and looks at the error.
async fn failed_send(
    stage: &Stage<'_>,
    failure: Failure,
    right: impl Fn(&ProviderError) -> bool,
) -> Result<(), CaseError> {
    stage.fails_next_send(failure).await?;
    let error = match stage.send(&Outgoing::text("this one fails")).await {
        Ok(receipt) => return violation(format!("{failure:?} was told as {receipt:?}")),
        Err(error) => error,
    };
    ensure!(right(&error), "{failure:?} was told as {error:?}");
    no_secrets(stage.fixture, &error)?;
    stage.receives_no_more_than(0).await
}

fn no_secrets(fixture: &dyn ProviderFixture, error: &ProviderError) -> Result<(), CaseError> {
    let mut shown = format!("{error:?} {error}");
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        shown.push_str(&format!(" {cause} {cause:?}"));
        source = cause.source();
    }
    for secret in fixture.secrets() {
        ensure!(!shown.contains(&secret), "an error shows a secret");
    }
    Ok(())
}

/// I6: a failure of the platform is an error that may pass.
pub async fn a_broken_platform_is_unreachable_and_sends_go_on(
    fixture: &dyn ProviderFixture,
) -> Result<(), CaseError> {
    let unreachable = |error: &ProviderError| {
        matches!(error, ProviderError::Unreachable { .. }) && error.is_transient()
    };
    let stage = Stage::open(fixture).await?;
    failed_send(&stage, Failure::Broken, unreachable).await?;
    stage.sends(&Outgoing::text("this one does not")).await?;
    let received = stage.received(0).await?;
    ensure!(received.text == "this one does not", "the platform received {received:?}");
    Ok(())
}

/// I6: an answer that is cut off, or that has no end, is an error after which sends go on.
pub async fn an_answer_that_cannot_be_read_is_an_error_and_sends_go_on(
    fixture: &dyn ProviderFixture,
) -> Result<(), CaseError> {
    let stage = Stage::open(fixture).await?;
    for failure in [Failure::Garbled, Failure::Endless] {
        let unknown = |error: &ProviderError| {
            matches!(error, ProviderError::Unreachable { .. } | ProviderError::Unreadable { .. })
        };
        failed_send(&stage, failure, unknown).await?;
    }
    stage.sends(&Outgoing::text("this one does not")).await?;
    let received = stage.received(0).await?;
    ensure!(received.text == "this one does not", "the platform received {received:?}");
    Ok(())
}

/// I6: a rate limit is an error that tells how long to wait, or is waited for.
pub async fn a_rate_limit_tells_how_long_to_wait(
    fixture: &dyn ProviderFixture,
) -> Result<(), CaseError> {
    let wait = Duration::from_secs(2);
    let stage = Stage::open(fixture).await?;
    stage.fails_next_send(Failure::RateLimited(wait)).await?;
    let begun = Instant::now();
    match stage.send(&Outgoing::text("slowly")).await {
        Ok(Receipt { .. }) => {
            ensure!(begun.elapsed() >= wait, "sent again after {:?}", begun.elapsed());
            stage.received(0).await?;
        }
        Err(error @ ProviderError::RateLimited { retry_after, .. }) => {
            ensure!(error.is_transient(), "a rate limit is not transient");
            ensure!(retry_after >= wait, "told to wait {retry_after:?} instead of {wait:?}");
            ensure!(retry_after < wait * 10, "told to wait {retry_after:?} instead of {wait:?}");
            no_secrets(fixture, &error)?;
        }
        Err(error) => return violation(format!("a rate limit was told as {error:?}")),
    }
    Ok(())
}

/// I6: a chat that cannot be reached any more is an error of its own.
pub async fn a_chat_that_is_gone_is_told_apart(
    fixture: &dyn ProviderFixture,
) -> Result<(), CaseError> {
    let gone = |error: &ProviderError| {
        matches!(error, ProviderError::ChatGone { .. }) && !error.is_transient()
    };
    failed_send(&Stage::open(fixture).await?, Failure::ChatGone, gone).await
}

/// I6: refused credentials are an error of their own.
pub async fn refused_credentials_are_told_apart(
    fixture: &dyn ProviderFixture,
) -> Result<(), CaseError> {
    let refused = |error: &ProviderError| matches!(error, ProviderError::Unauthorized { .. });
    failed_send(&Stage::open(fixture).await?, Failure::Unauthorized, refused).await
}

/// I6: a send to a chat of another provider is an error.
pub async fn a_chat_of_another_provider_is_an_error(
    fixture: &dyn ProviderFixture,
) -> Result<(), CaseError> {
    let stage = Stage::open(fixture).await?;
    let foreign = ProviderId::new("conformance.foreign")
        .and_then(|provider| ChatKey::new(&provider, &stage.chat.chat()))
        .map_err(|error| CaseError::Violation(error.to_string()))?;
    let message = Outgoing::text("to nobody");
    match stage.provider.send(&foreign, &message, &SendOptions::default()).await {
        Err(ProviderError::ChatGone { .. } | ProviderError::Rejected { .. }) => {
            stage.receives_no_more_than(0).await
        }
        other => violation(format!("a send to another provider's chat gave {other:?}")),
    }
}
