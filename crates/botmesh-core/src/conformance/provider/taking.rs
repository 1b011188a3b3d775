//! Cases about the moment at which the platform is told that a message was taken.

use super::ProviderFixture;
use super::stage::{Reception, Stage, WATCH};
use crate::conformance::CaseError;
use crate::conformance::case::{ensure, ensure_eq};

const NOT_TOLD: CaseError = CaseError::NotRun("the platform is not told what was taken");

/// I6: the platform is told that a message is taken only when it is.
pub async fn nothing_is_acknowledged_before_the_bot_has_taken_it(
    fixture: &dyn ProviderFixture,
) -> Result<(), CaseError> {
    let mut stage = Stage::open(fixture).await?;
    let Some(before) = fixture.acknowledged().await else { return Err(NOT_TOLD) };
    stage.receive_as(Reception::Ponder);
    stage.says("take your time").await?;
    stage.is_offered(1).await?;
    fixture.pass(WATCH).await;
    ensure_eq!(fixture.acknowledged().await, Some(before), "acknowledged while the bot ponders");
    stage.receive_as(Reception::Take);
    stage.hears().await?;
    stage
        .eventually("the platform is told that the message was taken", async || {
            fixture.acknowledged().await.filter(|now| *now > before)
        })
        .await?;
    Ok(())
}

/// I6: a message that the bot had no room for is not acknowledged, and comes again.
pub async fn a_message_that_a_full_chat_refuses_comes_again(
    fixture: &dyn ProviderFixture,
) -> Result<(), CaseError> {
    let mut stage = Stage::open(fixture).await?;
    let before = fixture.acknowledged().await;
    stage.receive_as(Reception::RefuseAsFull);
    stage.says("the first").await?;
    stage.is_offered(1).await?;
    fixture.pass(WATCH).await;
    ensure_eq!(fixture.acknowledged().await, before, "acknowledged although the chat was full");
    ensure!(!stage.has_ended(), "the run has ended because one chat was full");
    stage.receive_as(Reception::Take);
    // A platform that pushes sends again what was not acknowledged; else the provider does.
    fixture.platform_repeats(&stage.chat).await;
    ensure_eq!(stage.hears().await?.body(), Some("the first"), "the message that was refused");
    Ok(())
}

/// I6: a message that a stopping bot refuses is not acknowledged.
pub async fn a_message_that_a_stopping_bot_refuses_is_not_acknowledged(
    fixture: &dyn ProviderFixture,
) -> Result<(), CaseError> {
    let mut stage = Stage::open(fixture).await?;
    let Some(before) = fixture.acknowledged().await else { return Err(NOT_TOLD) };
    stage.receive_as(Reception::RefuseAsStopping);
    stage.says("too late").await?;
    stage.is_offered(1).await?;
    fixture.pass(WATCH).await;
    ensure_eq!(fixture.acknowledged().await, Some(before), "acknowledged by a stopping bot");
    Ok(())
}
