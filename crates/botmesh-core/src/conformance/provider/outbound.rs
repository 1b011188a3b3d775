//! Cases about what the bot sends and does.

use std::collections::HashSet;

use super::stage::{Stage, possible, shortened, unsupported, violation};
use super::{PICTURE, ProviderFixture, Received};
use crate::conformance::CaseError;
use crate::conformance::case::{ensure, ensure_eq};
use crate::conformance::samples::strange_texts;
use crate::id::MessageId;
use crate::message::{
    Attachment, AttachmentSource, Content, Location, MediaKind, Outgoing, OutgoingButton,
};
use crate::provider::{Capability, ProviderError, SendOptions};

/// I6: what a bot sends is received in order, in its chat.
pub async fn messages_are_received_in_their_order(
    fixture: &dyn ProviderFixture,
) -> Result<(), CaseError> {
    let stage = Stage::open(fixture).await?;
    for number in 0..20 {
        stage.sends(&Outgoing::text(format!("message {number}"))).await?;
    }
    stage.received(19).await?;
    for (number, message) in stage.messages().await.iter().enumerate() {
        ensure_eq!(message.text, format!("message {number}"), "message {number}");
    }
    if let Some(other) = fixture.chat(1) {
        let elsewhere = fixture.received(&other).await;
        ensure!(elsewhere.is_empty(), "another chat received {:?}", elsewhere.first());
    }
    Ok(())
}

/// I6: any text of a bot is received as it was sent. Where it is nothing but white space and
/// controls, it may be refused; white space around it may be lost.
pub async fn strange_texts_are_received_as_they_were(
    fixture: &dyn ProviderFixture,
) -> Result<(), CaseError> {
    let stage = Stage::open(fixture).await?;
    let mut count = 0;
    for text in strange_texts() {
        let says_something = text.chars().any(char::is_alphanumeric);
        if text.chars().any(|character| character.is_control() && character != '\n') {
            continue;
        }
        match stage.send(&Outgoing::text(text.clone())).await {
            Err(ProviderError::Rejected { .. }) if !says_something => continue,
            Err(error) => return violation(format!("sending {text:?} failed: {error}")),
            Ok(_) => {}
        }
        let received = stage.received(count).await?.text;
        ensure_eq!(received.trim(), text.trim(), "the text {text:?}");
        count += 1;
    }
    Ok(())
}

/// I6: a text of one mebibyte is received whole, perhaps in parts, or refused.
pub async fn a_mebibyte_of_text_is_received_whole_or_refused(
    fixture: &dyn ProviderFixture,
) -> Result<(), CaseError> {
    let stage = Stage::open(fixture).await?;
    let text = "mebibyte".repeat((1 << 20) / 8);
    match stage.send(&Outgoing::text(text.clone())).await {
        Err(ProviderError::Rejected { .. }) => stage.receives_no_more_than(0).await,
        Err(error) => violation(format!("a text that is too long was told as {error:?}")),
        Ok(_) => {
            let whole = stage.eventually("a mebibyte is received", async || {
                let parts: Vec<_> = stage.messages().await;
                let received: String = parts.into_iter().map(|part| part.text).collect();
                (received.len() >= text.len()).then_some(received)
            });
            let whole = whole.await?;
            ensure!(whole == text, "a mebibyte became {}", shortened(&whole));
            Ok(())
        }
    }
}

/// I6: a message with nothing in it is refused and not dropped in silence.
pub async fn an_empty_message_is_refused(fixture: &dyn ProviderFixture) -> Result<(), CaseError> {
    let stage = Stage::open(fixture).await?;
    match stage.send(&Outgoing::default()).await {
        Err(ProviderError::Rejected { .. }) => stage.receives_no_more_than(0).await,
        other => violation(format!("an empty message gave {other:?}")),
    }
}

/// I6: a receipt names the message, and no two name the same.
pub async fn receipts_name_different_messages(
    fixture: &dyn ProviderFixture,
) -> Result<(), CaseError> {
    let stage = Stage::open(fixture).await?;
    let able = stage.provider.capabilities();
    let mut ids = HashSet::new();
    for _ in 0..5 {
        match stage.sends(&Outgoing::text("the same words")).await?.message {
            Some(id) => ensure!(ids.insert(id.clone()), "two messages have the id {id}"),
            None => ensure!(
                !(able.edit || able.delete),
                "a message has no id: it cannot be edited or deleted"
            ),
        }
    }
    Ok(())
}

/// A8: a pressed button brings back its payload, or buttons are numbered lines.
pub async fn buttons_come_back_with_payload_and_label(
    fixture: &dyn ProviderFixture,
) -> Result<(), CaseError> {
    let mut stage = Stage::open(fixture).await?;
    let able = stage.provider.capabilities();
    let mut menu = Outgoing::text("Which size?");
    menu.buttons =
        vec![OutgoingButton::new("Pequeño", "size:s|ñ"), OutgoingButton::new("Large", "~1.2:0")];
    if able.buttons.is_none() {
        stage.sends(&menu.adapted(&able)).await?;
        let received = stage.received(0).await?;
        for line in ["Which size?", "1. Pequeño", "2. Large"] {
            ensure!(received.text.contains(line), "the numbered lines became {received:?}");
        }
        return Ok(());
    }
    for (index, button) in menu.buttons.iter().enumerate().rev() {
        // Some platforms take the buttons away with the press, so each press has its own message.
        let receipt = stage.sends(&menu).await?;
        let received = stage.received(1 - index).await?;
        ensure!(received.text.contains("Which size?"), "the words became {:?}", received.text);
        ensure_eq!(received.buttons, ["Pequeño", "Large"], "the labels");
        possible(fixture.user_presses(&stage.chat, &button.label).await)?;
        let press = match stage.hears().await?.content {
            Content::Button(press) => press,
            other => return violation(format!("a press arrived as {other:?}")),
        };
        ensure_eq!(press.payload, button.payload, "the payload of {:?}", button.label);
        if let Some(label) = press.label {
            ensure_eq!(label, button.label, "the label");
        }
        if let (Some(pressed), Some(sent)) = (press.message, receipt.message) {
            ensure_eq!(pressed, sent, "the message of the pressed button");
        }
    }
    Ok(())
}

/// A8: media is received with its caption, or is unsupported.
pub async fn media_is_received_with_its_caption_or_refused(
    fixture: &dyn ProviderFixture,
) -> Result<(), CaseError> {
    let stage = Stage::open(fixture).await?;
    let mut message = Outgoing::text("One point");
    let source = AttachmentSource::Bytes(PICTURE.into());
    let picture = Attachment::new(MediaKind::Image, source).named("point.png");
    message.attachments = vec![picture.with_mime("image/png")];
    if !stage.provider.capabilities().media {
        unsupported(&stage, stage.send(&message).await, Capability::Media)?;
        return stage.receives_no_more_than(0).await;
    }
    stage.sends(&message).await?;
    let received = stage.received(0).await?;
    ensure_eq!(received.attachments, [MediaKind::Image], "what is attached");
    ensure_eq!(received.text, "One point", "the caption");
    Ok(())
}

/// A8: a place is received, or its address.
pub async fn a_place_is_received(fixture: &dyn ProviderFixture) -> Result<(), CaseError> {
    let stage = Stage::open(fixture).await?;
    let able = stage.provider.capabilities();
    let place = Location { latitude: 4.711, longitude: -74.0721, name: Some("Bogotá".into()) };
    let message = Outgoing { location: Some(place.clone()), ..Outgoing::default() };
    stage.sends(&message.adapted(&able)).await?;
    let received = stage.received(0).await?;
    if able.location {
        let at = received.location.as_ref();
        let apart = at.map(|at| {
            (at.latitude - place.latitude).abs() + (at.longitude - place.longitude).abs()
        });
        ensure!(apart.is_some_and(|apart| apart < 1e-4), "{place:?} became {received:?}");
    } else {
        let told = received.text.contains("4.711") && received.text.contains("-74.0721");
        ensure!(told, "the address of {place:?} became {:?}", received.text);
    }
    Ok(())
}

/// A8: an edit is received, or is unsupported.
pub async fn an_edit_is_received_or_unsupported(
    fixture: &dyn ProviderFixture,
) -> Result<(), CaseError> {
    let stage = Stage::open(fixture).await?;
    let id = a_message(&stage).await?;
    let edited = stage.provider.edit(&stage.chat, &id, &Outgoing::text("Two")).await;
    if !stage.provider.capabilities().edit {
        return unsupported(&stage, edited, Capability::Edit);
    }
    worked(edited, "editing")?;
    stage
        .receives("the edit is received", |received| *received == Received::Edited("Two".into()))
        .await
}

/// A8: a deletion is received, or is unsupported.
pub async fn a_deletion_is_received_or_unsupported(
    fixture: &dyn ProviderFixture,
) -> Result<(), CaseError> {
    let stage = Stage::open(fixture).await?;
    let id = a_message(&stage).await?;
    let deleted = stage.provider.delete(&stage.chat, &id).await;
    if !stage.provider.capabilities().delete {
        return unsupported(&stage, deleted, Capability::Delete);
    }
    worked(deleted, "deleting")?;
    stage.receives("the deletion is received", |received| *received == Received::Deleted).await
}

/// A8: a reaction is received and taken back, or is unsupported.
pub async fn a_reaction_is_received_or_unsupported(
    fixture: &dyn ProviderFixture,
) -> Result<(), CaseError> {
    let mut stage = Stage::open(fixture).await?;
    stage.says("look at this").await?;
    let said = stage.hears().await?.id;
    let id = match said {
        Some(id) => id,
        None => a_message(&stage).await?,
    };
    for emoji in [Some("👍"), None] {
        let reacted = stage.provider.react(&stage.chat, &id, emoji).await;
        if !stage.provider.capabilities().react {
            unsupported(&stage, reacted, Capability::React)?;
            continue;
        }
        worked(reacted, "reacting")?;
        let wanted = Received::Reacted(emoji.map(str::to_owned));
        stage.receives("the reaction is received", |received| *received == wanted).await?;
    }
    Ok(())
}

/// A8: typing is received, or is unsupported.
pub async fn typing_is_received_or_unsupported(
    fixture: &dyn ProviderFixture,
) -> Result<(), CaseError> {
    let stage = Stage::open(fixture).await?;
    let typed = stage.provider.typing(&stage.chat).await;
    if !stage.provider.capabilities().typing {
        return unsupported(&stage, typed, Capability::Typing);
    }
    worked(typed, "typing")?;
    stage.receives("typing is received", |received| *received == Received::Typing).await
}

/// I6: an idempotency key is honoured where it is declared.
pub async fn a_repeated_key_is_received_once(
    fixture: &dyn ProviderFixture,
) -> Result<(), CaseError> {
    let stage = Stage::open(fixture).await?;
    if !stage.provider.capabilities().idempotent_send {
        return Err(CaseError::NotRun("the provider does not honour idempotency keys"));
    }
    let options = SendOptions { idempotency_key: Some("key-1".into()), ..SendOptions::default() };
    for _ in 0..2 {
        let sent = stage.provider.send(&stage.chat, &Outgoing::text("once"), &options).await;
        worked(sent.map(drop), "sending")?;
    }
    stage.received(0).await?;
    stage.receives_no_more_than(1).await
}

/// A message of ours that can be edited and deleted, or a made-up one where nothing can be.
async fn a_message(stage: &Stage<'_>) -> Result<MessageId, CaseError> {
    match stage.sends(&Outgoing::text("One")).await?.message {
        Some(id) => Ok(id),
        None => MessageId::new("1").map_err(|error| CaseError::Violation(error.to_string())),
    }
}

fn worked(outcome: Result<(), ProviderError>, what: &str) -> Result<(), CaseError> {
    outcome.or_else(|error| violation(format!("{what} is declared and failed: {error}")))
}
