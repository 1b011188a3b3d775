use std::borrow::Cow;

use crate::message::Outgoing;
use crate::text::{Span, Style};

impl Outgoing {
    /// Takes the formatting away that a platform lacks: the words stay, with the address of a link
    /// behind them and `> ` before the lines of a quote. A provider whose platform has some of it
    /// calls this for the rest; where [`Capabilities`](super::Capabilities) say that there is none,
    /// the runtime does.
    ///
    /// ```
    /// use botmesh_core::message::Outgoing;
    /// use botmesh_core::text::{Span, Style};
    /// let mut message = Outgoing::text("read this");
    /// let address = "https://b.example".into();
    /// message.spans = vec![Span::new(5, 9, Style::Link { address })];
    /// message.drop_formatting(|_| true);
    /// assert_eq!(message.text, "read this (https://b.example)");
    /// ```
    pub fn drop_formatting(&mut self, lacks: impl Fn(&Style) -> bool) {
        if !self.spans.iter().any(|span| lacks(&span.style)) {
            return;
        }
        let (mut left, dropped): (Vec<Span>, Vec<Span>) =
            std::mem::take(&mut self.spans).into_iter().partition(|span| !lacks(&span.style));
        let mut additions: Vec<(usize, Cow<'static, str>)> = Vec::new();
        for span in &dropped {
            let Some(words) = self.text.get(span.start..span.end) else { continue };
            match &span.style {
                Style::Link { address } if *address != words => {
                    additions.push((span.end, format!(" ({address})").into()));
                }
                Style::Quote => {
                    let ends = words.trim_end_matches('\n').match_indices('\n');
                    let starts = ends.map(|(at, _)| span.start + at + 1);
                    let lines = std::iter::once(span.start).chain(starts);
                    additions.extend(lines.map(|at| (at, "> ".into())));
                }
                _ => {}
            }
        }
        // An address belongs to what ends, and comes before what begins.
        additions.sort_by_key(|(at, words)| (*at, words.starts_with('>')));
        let mut text = String::with_capacity(self.text.len() + 16 * additions.len());
        let mut from = 0;
        for (at, words) in &additions {
            text.push_str(self.text.get(from..*at).unwrap_or_default());
            text.push_str(words);
            from = *at;
        }
        text.push_str(self.text.get(from..).unwrap_or_default());
        let added = |counts: &dyn Fn(usize) -> bool| -> usize {
            let before = additions.iter().filter(|(at, _)| counts(*at));
            before.map(|(_, words)| words.len()).sum()
        };
        for span in &mut left {
            let Span { start, end, .. } = *span;
            span.start += added(&|at| at <= start);
            span.end += added(&|at| at < end);
        }
        self.text = text.into();
        self.spans = left;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn link() -> Style {
        Style::Link { address: "https://b.example".into() }
    }

    fn message(text: &str, spans: &[(&str, Style)]) -> Outgoing {
        let mut message = Outgoing::text(text.to_owned());
        message.spans = spans
            .iter()
            .map(|(words, style)| {
                let start = text.find(words).unwrap();
                Span::new(start, start + words.len(), style.clone())
            })
            .collect();
        message
    }

    /// A8: without formatting the words stay, and what a reader would miss is added.
    #[test]
    fn without_formatting_a_link_has_its_address_and_a_quote_its_marks() {
        let mut all = message(
            "bold this https://b.example\none\ntwo\n.",
            &[
                ("bold", Style::Bold),
                ("this", link()),
                ("https://b.example", link()),
                ("one\ntwo\n", Style::Quote),
            ],
        );
        all.drop_formatting(|_| true);
        assert_eq!(all.text, "bold this (https://b.example) https://b.example\n> one\n> two\n.");
        assert!(all.spans.is_empty());
    }

    /// A8: what a platform has stays at its words.
    #[test]
    fn what_is_left_stays_at_its_words() {
        let spans =
            [("a b", Style::Bold), ("b", link()), ("c", Style::Italic), ("d", Style::Quote)];
        let mut some = message("a b c d", &spans);
        some.drop_formatting(|style| matches!(style, Style::Link { .. } | Style::Quote));
        assert_eq!(some.text, "a b (https://b.example) c > d");
        let named: Vec<_> = some.spans.iter().map(|it| &some.text[it.start..it.end]).collect();
        assert_eq!(named, ["a b", "c"]);
    }

    proptest! {
        /// A8: whatever is dropped, no word is lost and every span that is left says the same words.
        #[test]
        fn dropping_formatting_loses_no_word(
            words in prop::collection::vec("[a-zñ🦀 \n]{0,6}", 1..8),
            which in prop::collection::vec((0usize..8, 0usize..8, 0usize..4), 0..6),
        ) {
            let text = words.concat();
            let at = |word: usize| words.iter().take(word).map(String::len).sum::<usize>();
            let styles = [Style::Bold, Style::Italic, link(), Style::Quote];
            let mut message = Outgoing::text(text.clone());
            for (from, to, style) in which {
                let (start, end) = (at(from.min(to)), at(from.max(to)));
                if start < end {
                    message.spans.push(Span::new(start, end, styles[style].clone()));
                }
            }
            let before = message.clone();
            message.drop_formatting(|style| matches!(style, Style::Link { .. } | Style::Quote));
            let bare = |text: &str| text.replace(" (https://b.example)", "").replace("> ", "");
            prop_assert_eq!(bare(&message.text), bare(&text));
            let kept = before.spans.iter().filter(|it| matches!(it.style, Style::Bold | Style::Italic));
            for (old, new) in kept.zip(&message.spans) {
                prop_assert_eq!(bare(&message.text[new.start..new.end]), bare(&text[old.start..old.end]));
                prop_assert_eq!(&old.style, &new.style);
            }
        }
    }
}
