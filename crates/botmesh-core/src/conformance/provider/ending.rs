//! Cases about the end of a run, and about what Debug shows.

use super::ProviderFixture;
use super::stage::{Reception, Stage, possible};
use crate::conformance::CaseError;
use crate::conformance::case::{ensure, ensure_eq};

/// I6: a cancelled run ends in time, without an error.
pub async fn cancelling_ends_the_run(fixture: &dyn ProviderFixture) -> Result<(), CaseError> {
    let mut stage = Stage::open(fixture).await?;
    stage.says("hello").await?;
    stage.hears().await?;
    ensure!(!stage.has_ended(), "the run ended before it was cancelled");
    stage.cancel().await
}

/// I6: a bot that is busy with a message does not keep a cancelled run alive.
pub async fn cancelling_ends_the_run_while_a_message_is_being_taken(
    fixture: &dyn ProviderFixture,
) -> Result<(), CaseError> {
    let mut stage = Stage::open(fixture).await?;
    stage.receive_as(Reception::Ponder);
    stage.says("take your time").await?;
    stage.is_offered(1).await?;
    stage.cancel().await
}

/// I6: a provider whose run has ended can run again.
pub async fn a_provider_runs_again(fixture: &dyn ProviderFixture) -> Result<(), CaseError> {
    let mut stage = Stage::open(fixture).await?;
    stage.says("one").await?;
    ensure_eq!(stage.hears().await?.body(), Some("one"), "the message to the first run");
    stage.cancel().await?;
    stage.run_again().await?;
    stage.says("two").await?;
    loop {
        // What the platform does not know as taken may come once more.
        match stage.hears().await?.body() {
            Some("one") => {}
            other => {
                ensure_eq!(other, Some("two"), "the message to the second run");
                return Ok(());
            }
        }
    }
}

/// I7: secrets appear in no Debug output.
pub async fn debug_shows_no_secrets(fixture: &dyn ProviderFixture) -> Result<(), CaseError> {
    let mut secrets = fixture.secrets();
    let mut stage = Stage::open(fixture).await?;
    let said = "conformance-private-words";
    possible(fixture.user_says(&stage.chat, said).await)?;
    stage.hears().await?;
    secrets.push(said.to_owned());
    let shown = format!("{0:?} {0:#?}", stage.provider);
    for secret in secrets {
        ensure!(!shown.contains(&secret), "Debug of the provider shows a secret or a message");
    }
    Ok(())
}
