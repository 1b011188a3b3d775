//! Cases about how what the bot sends is shown.

use super::stage::{Stage, possible, violation};
use super::{ProviderFixture, ReceivedMessage};
use crate::conformance::CaseError;
use crate::conformance::case::{ensure, ensure_eq};
use crate::message::{ButtonLayout, Content, Outgoing, OutgoingButton};
use crate::provider::ChoiceLimits;
use crate::text::{Span, Style};

/// How many buttons are tried at most, and how long their labels are.
const TRIED: ChoiceLimits = ChoiceLimits::new(100, 20);

/// A8: what stands out in a text is received at its words, or the words are with the address.
pub async fn formatting_is_received_at_its_words(
    fixture: &dyn ProviderFixture,
) -> Result<(), CaseError> {
    let stage = Stage::open(fixture).await?;
    let able = stage.provider.capabilities();
    let address = "https://b.example/a?b=1&c=2";
    let parts = [
        ("🦀", Style::Bold),
        ("ñandú", Style::Italic),
        ("here", Style::Link { address: address.into() }),
        ("a < b", Style::Code),
    ];
    let mut message = Outgoing::text("🦀 and ñandú: read here, *not* a < b");
    for (words, style) in &parts {
        let Some(start) = message.text.find(words) else { continue };
        message.spans.push(Span::new(start, start + words.len(), style.clone()));
    }
    stage.sends(&message.adapted(&able)).await?;
    let received = stage.received(0).await?;
    for word in ["🦀 and ñandú: read here", "*not* a < b"] {
        ensure!(received.text.contains(word), "the words became {:?}", received.text);
    }
    if !able.formatting {
        ensure!(received.text.contains(address), "the address is not in {:?}", received.text);
        return Ok(());
    }
    for (words, style) in parts {
        let wanted = (words.to_owned(), style);
        // A platform that has only a part of it shows the address.
        let told = matches!(wanted.1, Style::Link { .. }) && received.text.contains(address);
        ensure!(
            told || received.formatted.contains(&wanted),
            "{wanted:?} is not among {:?}",
            received.formatted
        );
    }
    Ok(())
}

/// A8: as many buttons as the provider declares, as long as it declares, are received.
pub async fn buttons_within_the_limits_are_received(
    fixture: &dyn ProviderFixture,
) -> Result<(), CaseError> {
    let stage = Stage::open(fixture).await?;
    let able = stage.provider.capabilities();
    for limits in [able.buttons, able.list].into_iter().flatten() {
        let limits = ChoiceLimits::new(limits.most.min(TRIED.most), limits.label.min(TRIED.label));
        let menu = menu(limits.most, limits.label).adapted(&able);
        stage.sends(&menu).await?;
        let number = stage.messages().await.len().saturating_sub(1);
        let received = stage.received(number).await?;
        ensure_eq!(shown(&received, &menu), labels(&menu), "the labels");
    }
    if able.buttons.is_none() && able.list.is_none() {
        return Err(CaseError::NotRun("the platform has neither buttons nor lists"));
    }
    Ok(())
}

/// A8: more buttons than the platform has room for become the rows of a list, else numbered lines.
pub async fn more_buttons_than_there_is_room_for_become_a_list_or_lines(
    fixture: &dyn ProviderFixture,
) -> Result<(), CaseError> {
    let mut stage = Stage::open(fixture).await?;
    let able = stage.provider.capabilities();
    let Some(limits) = able.buttons.filter(|limits| limits.most < 1000) else {
        return Err(CaseError::NotRun("there is room for all buttons"));
    };
    let whole = menu(limits.most + 1, limits.label.min(8));
    let menu = whole.clone().adapted(&able);
    stage.sends(&menu).await?;
    let received = stage.received(0).await?;
    ensure!(received.text.contains("Which one?"), "the words became {:?}", received.text);
    if menu.buttons.is_empty() {
        for (index, button) in whole.buttons.iter().enumerate() {
            let line = format!("{}. {}", index + 1, button.label);
            let text: String = stage.messages().await.into_iter().map(|it| it.text).collect();
            ensure!(text.contains(&line), "{line:?} is not in {text:?}");
        }
        return Ok(());
    }
    ensure_eq!(received.rows, labels(&menu), "the rows of the list");
    let Some(chosen) = menu.buttons.last() else { return violation("the list has no rows") };
    possible(fixture.user_presses(&stage.chat, &chosen.label).await)?;
    match stage.hears().await?.content {
        Content::Button(press) => ensure_eq!(press.payload, chosen.payload, "what was chosen"),
        other => return violation(format!("a choice arrived as {other:?}")),
    }
    Ok(())
}

/// So many buttons, with different labels of so many characters.
fn menu(count: usize, length: usize) -> Outgoing {
    let mut menu = Outgoing::text("Which one?");
    menu.buttons = (0..count)
        .map(|number| {
            let number = number.to_string();
            let rest = length.saturating_sub(number.len());
            OutgoingButton::new(format!("{number}{}", "ñ".repeat(rest)), format!("p{number}"))
        })
        .collect();
    menu
}

fn labels(message: &Outgoing) -> Vec<String> {
    message.buttons.iter().map(|button| button.label.to_string()).collect()
}

/// The labels as the platform shows them.
fn shown(received: &ReceivedMessage, sent: &Outgoing) -> Vec<String> {
    match sent.layout {
        ButtonLayout::Inline => received.buttons.clone(),
        ButtonLayout::List => received.rows.clone(),
    }
}
