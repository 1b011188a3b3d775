//! Cases about what users say.

use std::collections::HashSet;

use super::stage::{Stage, WATCH, possible, shortened, unsupported, violation};
use super::{PICTURE, Played, ProviderFixture};
use crate::conformance::CaseError;
use crate::conformance::case::{ensure, ensure_eq};
use crate::conformance::samples::strange_texts;
use crate::message::{Content, Location, Media, MediaKind};
use crate::provider::Capability;

/// I6: what a user says arrives in order, in the chat and from the provider it says.
pub async fn messages_of_a_chat_arrive_in_their_order(
    fixture: &dyn ProviderFixture,
) -> Result<(), CaseError> {
    let mut stage = Stage::open(fixture).await?;
    for number in 0..20 {
        stage.says(&format!("message {number}")).await?;
    }
    for number in 0..20 {
        let message = stage.hears().await?;
        let wanted = Content::Text(format!("message {number}"));
        ensure_eq!(message.content, wanted, "message {number}");
        ensure_eq!(message.chat, stage.chat, "the chat of a message");
        let provider = stage.provider.id().as_str();
        ensure_eq!(message.chat.provider(), provider, "the provider in the chat key");
    }
    Ok(())
}

/// I6: messages of two chats carry two chat keys.
pub async fn messages_of_two_chats_are_told_apart(
    fixture: &dyn ProviderFixture,
) -> Result<(), CaseError> {
    let Some(other) = fixture.chat(1) else {
        return Err(CaseError::NotRun("the platform has one chat"));
    };
    let mut stage = Stage::open(fixture).await?;
    ensure!(other != stage.chat, "the fixture gives one chat as two");
    for (chat, text) in [(&stage.chat, "to the first"), (&other, "to the second")] {
        possible(fixture.user_says(chat, text).await)?;
    }
    for _ in 0..2 {
        let message = stage.hears().await?;
        let wanted = if message.chat == other { "to the second" } else { "to the first" };
        ensure_eq!(message.body(), Some(wanted), "the message of {}", message.chat);
    }
    Ok(())
}

/// I6: each message has an id, and no two have the same.
pub async fn each_message_has_an_id_of_its_own(
    fixture: &dyn ProviderFixture,
) -> Result<(), CaseError> {
    let mut stage = Stage::open(fixture).await?;
    let mut ids = HashSet::new();
    for _ in 0..10 {
        stage.says("the same words").await?;
        let Some(id) = stage.hears().await?.id else {
            return violation("a message has no id: duplicates of it cannot be told");
        };
        ensure!(ids.insert(id.clone()), "two messages have the id {id}");
    }
    Ok(())
}

/// I6: a message that the platform repeats has the id by which it is known.
pub async fn a_repeated_message_has_the_id_it_had(
    fixture: &dyn ProviderFixture,
) -> Result<(), CaseError> {
    let mut stage = Stage::open(fixture).await?;
    stage.says("once").await?;
    let first = stage.hears().await?;
    possible(fixture.platform_repeats(&stage.chat).await)?;
    stage.says("after it").await?;
    loop {
        let next = stage.hears().await?;
        if next.body() == Some("after it") {
            return Ok(());
        }
        ensure_eq!(next.id, first.id, "the id of a message that came twice");
        ensure_eq!(next.content, first.content, "a message that came twice");
    }
}

/// I6: any text of a user arrives as it was written.
pub async fn strange_texts_arrive_as_they_were(
    fixture: &dyn ProviderFixture,
) -> Result<(), CaseError> {
    let mut stage = Stage::open(fixture).await?;
    let mut said = 0;
    for text in strange_texts() {
        if fixture.user_says(&stage.chat, &text).await == Played::Impossible {
            continue;
        }
        said += 1;
        let message = stage.hears().await?;
        ensure_eq!(message.content, Content::Text(text.clone()), "the text {text:?}");
    }
    ensure!(said > 20, "users of this platform can say only {said} of the texts");
    Ok(())
}

/// I6: a text of one mebibyte is never cut, and what follows it arrives.
pub async fn a_mebibyte_of_text_arrives_whole_or_not_at_all(
    fixture: &dyn ProviderFixture,
) -> Result<(), CaseError> {
    let mut stage = Stage::open(fixture).await?;
    let text = "mebibyte".repeat((1 << 20) / 8);
    possible(fixture.user_says(&stage.chat, &text).await)?;
    stage.says("after it").await?;
    let mut heard = stage.hears().await?;
    if heard.body() != Some("after it") {
        let body = heard.body().unwrap_or_default();
        ensure!(body == text, "of a mebibyte arrived {} bytes: {}", body.len(), shortened(body));
        heard = stage.hears().await?;
    }
    ensure_eq!(heard.body(), Some("after it"), "the message behind a long one");
    Ok(())
}

/// I6: media arrives with its kind, its caption and a handle.
pub async fn media_arrives_with_its_caption(
    fixture: &dyn ProviderFixture,
) -> Result<(), CaseError> {
    let mut stage = Stage::open(fixture).await?;
    let mut sent = 0;
    for kind in [MediaKind::Image, MediaKind::Document] {
        if fixture.user_sends_media(&stage.chat, kind, "a ñandú").await == Played::Impossible {
            continue;
        }
        sent += 1;
        match stage.hears().await?.content {
            Content::Media(media) => {
                ensure_eq!(media.kind, kind, "the kind");
                ensure_eq!(media.caption.as_deref(), Some("a ñandú"), "the caption");
                ensure!(!media.reference.is_empty(), "there is no handle to download it by");
            }
            other => return violation(format!("media arrived as {other:?}")),
        }
    }
    if sent == 0 { possible(Played::Impossible) } else { Ok(()) }
}

/// A8: what a user sent is downloaded whole, or that is unsupported.
pub async fn what_users_send_is_downloaded_whole_or_not_at_all(
    fixture: &dyn ProviderFixture,
) -> Result<(), CaseError> {
    let mut stage = Stage::open(fixture).await?;
    if !stage.provider.capabilities().download {
        let media = Media::new(MediaKind::Image, "1");
        let opened = stage.provider.download(&media).await;
        return unsupported(&stage, opened, Capability::Download);
    }
    possible(fixture.user_sends_media(&stage.chat, MediaKind::Document, "a ñandú").await)?;
    let media = match stage.hears().await?.content {
        Content::Media(media) => media,
        other => return violation(format!("media arrived as {other:?}")),
    };
    let read = match stage.provider.download(&media).await {
        Ok(stream) => stream.read_all(1 << 20).await,
        Err(error) => Err(error),
    };
    match read {
        Ok(read) => ensure_eq!(read.as_deref(), Some(PICTURE), "the bytes of the file"),
        Err(error) => return violation(format!("the download failed: {error}")),
    }
    Ok(())
}

/// I6: a place arrives.
pub async fn a_place_arrives(fixture: &dyn ProviderFixture) -> Result<(), CaseError> {
    let mut stage = Stage::open(fixture).await?;
    let place = Location { latitude: 4.711, longitude: -74.0721, name: None };
    possible(fixture.user_sends_location(&stage.chat, &place).await)?;
    match stage.hears().await?.content {
        Content::Location(arrived) => {
            let apart = (arrived.latitude - place.latitude).abs()
                + (arrived.longitude - place.longitude).abs();
            ensure!(apart < 1e-4, "{place:?} arrived as {arrived:?}");
            Ok(())
        }
        other => violation(format!("a place arrived as {other:?}")),
    }
}

/// I6: what is not in the platform's format disturbs nothing else.
pub async fn garbage_ends_nothing(fixture: &dyn ProviderFixture) -> Result<(), CaseError> {
    let mut stage = Stage::open(fixture).await?;
    stage.says("before it").await?;
    possible(fixture.platform_sends_garbage().await)?;
    fixture.pass(WATCH).await;
    stage.says("after it").await?;
    let heard = stage.hears().await?;
    ensure_eq!(heard.body(), Some("before it"), "the message before the garbage");
    let heard = stage.hears().await?;
    ensure_eq!(heard.body(), Some("after it"), "the message after the garbage");
    ensure!(!stage.has_ended(), "the run has ended");
    Ok(())
}

/// I6: after a lost connection messages arrive again; a run that failed is run again, as the
/// runtime does.
pub async fn a_lost_connection_comes_back(fixture: &dyn ProviderFixture) -> Result<(), CaseError> {
    let mut stage = Stage::open(fixture).await?;
    stage.says("before it").await?;
    stage.hears().await?;
    possible(fixture.platform_drops_connection().await)?;
    fixture.pass(WATCH).await;
    if stage.has_ended() {
        stage.run_again().await?;
    }
    stage.says("after it").await?;
    // What was not acknowledged in time may come once more.
    loop {
        if stage.hears().await?.body() == Some("after it") {
            return Ok(());
        }
    }
}
