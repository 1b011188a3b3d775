//! Cases about platforms that are late, out of order, or wrong about the time.

use std::time::Duration;

use tokio::time::Instant;

use super::ProviderFixture;
use super::stage::{Stage, possible};
use crate::conformance::CaseError;
use crate::conformance::case::{ensure, ensure_eq};
use crate::message::Outgoing;
use crate::time::Timestamp;

/// I6: messages that the platform delivers out of order are each taken, and told apart.
pub async fn messages_out_of_order_are_all_taken(
    fixture: &dyn ProviderFixture,
) -> Result<(), CaseError> {
    let mut stage = Stage::open(fixture).await?;
    possible(fixture.platform_swaps(&stage.chat, "the first", "the second").await)?;
    stage.says("the third").await?;
    let mut heard = Vec::new();
    for _ in 0..3 {
        heard.push(stage.hears().await?);
    }
    ensure!(heard[0].id != heard[1].id, "two messages have the id {:?}", heard[0].id);
    ensure_eq!(heard[2].body(), Some("the third"), "the message that was not out of order");
    for text in ["the first", "the second"] {
        let found = heard.iter().any(|message| message.body() == Some(text));
        ensure!(found, "{text:?} did not arrive");
    }
    Ok(())
}

/// I6: what a platform believes about the time neither holds a message back nor changes its order.
pub async fn a_wrong_clock_disturbs_nothing(
    fixture: &dyn ProviderFixture,
) -> Result<(), CaseError> {
    let mut stage = Stage::open(fixture).await?;
    // The year 9999, 1970, and 2001.
    for (number, millis) in [253_370_764_800_000, 0, 1_000_000_000_000].into_iter().enumerate() {
        possible(fixture.platform_clock_says(Timestamp::from_millis(millis)).await)?;
        stage.says(&format!("message {number}")).await?;
        let message = stage.hears().await?;
        ensure_eq!(message.body(), Some(&*format!("message {number}")), "message {number}");
        stage.sends(&Outgoing::text(format!("answer {number}"))).await?;
        stage.received(number).await?;
    }
    Ok(())
}

/// I6: a slow answer is waited for; meanwhile messages arrive, and nothing is sent twice.
pub async fn a_slow_answer_is_waited_for(fixture: &dyn ProviderFixture) -> Result<(), CaseError> {
    let late = Duration::from_secs(3);
    let mut stage = Stage::open(fixture).await?;
    possible(fixture.platform_answers_late(late).await)?;
    let provider = std::sync::Arc::clone(&stage.provider);
    let chat = stage.chat.clone();
    let begun = Instant::now();
    let send = tokio::spawn(async move {
        provider.send(&chat, &Outgoing::text("slowly"), &Default::default()).await
    });
    stage.says("meanwhile").await?;
    stage.hears().await?;
    let heard_after = begun.elapsed();
    let sent = send.await.map_err(|panic| CaseError::Violation(panic.to_string()))?;
    ensure!(heard_after < late, "a message waited {heard_after:?} for a send");
    ensure!(sent.is_ok(), "an answer after {late:?} was told as {sent:?}");
    ensure!(begun.elapsed() >= late, "a send ended after {:?}", begun.elapsed());
    stage.received(0).await?;
    stage.receives_no_more_than(1).await
}
