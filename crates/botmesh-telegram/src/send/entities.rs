//! Formatting as Telegram wants it: <https://core.telegram.org/bots/api#messageentity>.

use std::ops::Range;

use botmesh_core::text::{Span, Style};
use serde_json::{Value, json};

use super::split;

/// How many entities of one message Telegram takes; it leaves out those that follow.
const MOST: usize = 100;

/// The entities of the part of a text that stands at these bytes; none when nothing stands out.
pub(super) fn of(text: &str, spans: &[Span], part: Range<usize>) -> Option<Value> {
    if spans.is_empty() {
        return None;
    }
    let code = spans.iter().filter(|span| is_code(&span.style)).map(|span| span.start..span.end);
    let code: Vec<Range<usize>> = code.collect();
    let mut entities = Vec::new();
    for span in spans {
        let within = span.start.max(part.start)..span.end.min(part.end);
        // Letters of equal width cannot be formatted in another way as well.
        let around = if is_code(&span.style) { &[][..] } else { &code };
        for piece in without(within, around) {
            entities.extend(entity(text, part.start, piece, &span.style));
        }
    }
    entities.truncate(MOST);
    (!entities.is_empty()).then_some(Value::Array(entities))
}

const fn is_code(style: &Style) -> bool {
    matches!(style, Style::Code | Style::Preformatted { .. })
}

/// What is left of a range without others.
fn without(range: Range<usize>, others: &[Range<usize>]) -> Vec<Range<usize>> {
    let mut left = vec![range];
    for other in others {
        let cut = |piece: Range<usize>| {
            let before = piece.start..piece.end.min(other.start);
            let behind = piece.start.max(other.end)..piece.end;
            // What does not overlap is not cut, and would be found twice.
            if other.start >= piece.end || other.end <= piece.start {
                return [piece, 0..0];
            }
            [before, behind]
        };
        left = left.into_iter().flat_map(cut).filter(|piece| piece.start < piece.end).collect();
    }
    left.retain(|piece| piece.start < piece.end);
    left
}

fn entity(text: &str, from: usize, piece: Range<usize>, style: &Style) -> Option<Value> {
    let offset = split::length(text.get(from..piece.start)?);
    let length = split::length(text.get(piece)?);
    let mut entity = match style {
        Style::Bold => json!({ "type": "bold" }),
        Style::Italic => json!({ "type": "italic" }),
        Style::Underlined => json!({ "type": "underline" }),
        Style::Struck => json!({ "type": "strikethrough" }),
        Style::Spoiler => json!({ "type": "spoiler" }),
        Style::Code => json!({ "type": "code" }),
        Style::Preformatted { language: None } => json!({ "type": "pre" }),
        Style::Preformatted { language: Some(language) } => {
            json!({ "type": "pre", "language": language })
        }
        Style::Quote => json!({ "type": "blockquote" }),
        Style::Link { address } => json!({ "type": "text_link", "url": address }),
        Style::Mention { user } => {
            let user: i64 = user.parse().ok()?;
            json!({ "type": "text_mention", "user": { "id": user } })
        }
        _ => return None,
    };
    entity["offset"] = offset.into();
    entity["length"] = length.into();
    Some(entity)
}

#[cfg(test)]
mod tests {
    use botmesh_core::Outgoing;
    use proptest::prelude::*;

    use super::super::{MAX_TEXT, plan};
    use super::*;
    use crate::address::Address;

    fn link() -> Style {
        Style::Link { address: "https://b.example/?a=1&b=2".into() }
    }

    /// A8: formatting is told in the units that Telegram counts in.
    #[test]
    fn offsets_are_counted_in_utf_16() {
        let text = "🦀 ñandú here";
        let spans = [Span::new(5, 12, Style::Bold), Span::new(13, 17, link())];
        assert_eq!(
            of(text, &spans, 0..text.len()).unwrap(),
            json!([
                { "type": "bold", "offset": 3, "length": 5 },
                { "type": "text_link", "url": "https://b.example/?a=1&b=2", "offset": 9, "length": 4 },
            ])
        );
        assert_eq!(of(text, &[], 0..text.len()), None);
    }

    /// A8: what Telegram does not take together is not sent together.
    #[test]
    fn nothing_lies_around_code() {
        let spans = [Span::new(0, 7, Style::Bold), Span::new(2, 4, Style::Code)];
        let entities = of("abcdefg", &spans, 0..7).unwrap();
        let found: Vec<_> = entities
            .as_array()
            .unwrap()
            .iter()
            .map(|it| {
                (
                    it["type"].as_str().unwrap(),
                    it["offset"].as_u64().unwrap(),
                    it["length"].as_u64().unwrap(),
                )
            })
            .collect();
        assert_eq!(found, [("bold", 0, 2), ("bold", 4, 3), ("code", 2, 2)]);
    }

    /// A8: a name that is no number mentions nobody, and a span that is none formats nothing.
    #[test]
    fn what_cannot_be_told_is_left_out() {
        let style = |user: &'static str| Style::Mention { user: user.into() };
        assert_eq!(of("Ana", &[Span::new(0, 3, style("ana"))], 0..3), None);
        let known = of("Ana", &[Span::new(0, 3, style("42"))], 0..3).unwrap();
        assert_eq!(known[0]["user"]["id"], 42);
        assert_eq!(
            of("ñ", &[Span::new(1, 2, Style::Bold), Span::new(0, 9, Style::Bold)], 0..2)
                .unwrap()
                .as_array()
                .unwrap()
                .len(),
            1
        );
    }

    /// The words of each message with how each unit of them is formatted.
    fn received(message: &Outgoing) -> Vec<(u16, Vec<String>)> {
        let mut all = Vec::new();
        for call in plan(&Address::chat(7), message).unwrap() {
            let fields = serde_json::to_value(call.fields()).unwrap();
            let units: Vec<u16> = fields["text"].as_str().unwrap().encode_utf16().collect();
            let mut formats = vec![Vec::new(); units.len()];
            for entity in fields["entities"].as_array().into_iter().flatten() {
                let at = |field: &str| usize::try_from(entity[field].as_u64().unwrap()).unwrap();
                assert!(at("length") > 0);
                for format in &mut formats[at("offset")..at("offset") + at("length")] {
                    format.push(entity["type"].as_str().unwrap().to_owned());
                }
            }
            all.extend(units.into_iter().zip(formats));
        }
        all
    }

    proptest! {
        /// A8: in a text of any length each letter is formatted as it was, in whichever message it is.
        #[test]
        fn a_long_text_keeps_its_formatting(
            words in prop::collection::vec("[a-zñ🦀]{1,9}", 1..6),
            repeat in 1usize..600,
            marks in prop::collection::vec((0usize..4000, 1usize..3000, prop::bool::ANY), 0..5),
        ) {
            let text = vec![words.join(" "); repeat].join(" ");
            let mut message = Outgoing::text(text.clone());
            let boundary = |mut at: usize| {
                at = at.min(text.len());
                while !text.is_char_boundary(at) {
                    at -= 1;
                }
                at
            };
            for (start, length, bold) in marks {
                let (start, end) = (boundary(start), boundary(start + length));
                if start < end {
                    let style = if bold { Style::Bold } else { Style::Italic };
                    message.spans.push(Span::new(start, end, style));
                }
            }
            let mut expected = Vec::new();
            for (at, letter) in text.char_indices() {
                let over = message.spans.iter().filter(|span| span.start <= at && at < span.end);
                let formats: Vec<String> = over
                    .map(|span| if span.style == Style::Bold { "bold" } else { "italic" }.to_owned())
                    .collect();
                let mut units = [0; 2];
                for unit in letter.encode_utf16(&mut units) {
                    expected.push((*unit, formats.clone()));
                }
            }
            prop_assume!(split::parts(&text, MAX_TEXT).count() <= 16);
            prop_assert_eq!(received(&message), expected);
        }
    }
}
