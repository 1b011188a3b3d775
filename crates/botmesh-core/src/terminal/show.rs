use std::borrow::Cow;
use std::fmt::Write as _;

use crate::message::{Attachment, AttachmentSource, Location, MediaKind, Outgoing};

const PREFIX: &str = "bot> ";
const INDENT: &str = "     ";

/// How things are shown.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Style {
    /// Somebody watches: what will pass is shown, and nothing can command the screen.
    pub(super) live: bool,
    pub(super) colour: bool,
}

impl Style {
    /// The lines that show `message`.
    pub(super) fn message(self, message: &Outgoing) -> String {
        let mut shown = String::new();
        match &message.attachments[..] {
            [only] => self.paragraph(&mut shown, &attachment(only, &message.text)),
            several => {
                if !message.text.is_empty() {
                    self.paragraph(&mut shown, &message.text);
                }
                for one in several {
                    self.paragraph(&mut shown, &attachment(one, ""));
                }
            }
        }
        if let Some(place) = &message.location {
            self.paragraph(&mut shown, &location(place));
        }
        for (index, button) in message.buttons.iter().enumerate() {
            let label = self.safe(&button.label).replace('\n', " ");
            let (on, off) = if self.colour { ("\x1b[1m", "\x1b[0m") } else { ("", "") };
            let _ = writeln!(shown, "  {on}[{}]{off} {label}", index + 1);
        }
        shown
    }

    /// One line for something that is no message.
    pub(super) fn note(self, note: &str) -> String {
        let mut shown = String::new();
        self.paragraph(&mut shown, note);
        shown
    }

    /// The new content of a message.
    pub(super) fn edited(self, new: &Outgoing) -> String {
        let mut new = new.clone();
        new.text.to_mut().insert_str(0, "[edited] ");
        self.message(&new)
    }

    fn paragraph(self, shown: &mut String, text: &str) {
        let text = self.safe(text);
        for (index, line) in text.split('\n').enumerate() {
            match index {
                0 if self.colour => shown.push_str("\x1b[36mbot>\x1b[0m "),
                0 => shown.push_str(PREFIX),
                _ => shown.push_str(INDENT),
            }
            shown.push_str(line);
            shown.push('\n');
        }
    }

    /// Control characters in a text could move the cursor or rewrite what stands on the screen.
    fn safe(self, text: &str) -> Cow<'_, str> {
        let commands = |c: char| c.is_control() && c != '\n' && c != '\t';
        if !self.live || !text.contains(commands) {
            return Cow::Borrowed(text);
        }
        let mut safe = String::with_capacity(text.len() + 8);
        for character in text.chars() {
            if commands(character) {
                safe.extend(character.escape_unicode());
            } else {
                safe.push(character);
            }
        }
        Cow::Owned(safe)
    }
}

fn attachment(attachment: &Attachment, caption: &str) -> String {
    let kind = match attachment.kind {
        MediaKind::Image => "image",
        MediaKind::Video => "video",
        MediaKind::Audio => "audio",
        MediaKind::Voice => "voice",
        MediaKind::Document => "document",
        MediaKind::Sticker => "sticker",
    };
    let mut line = format!("[{kind}] ");
    if !caption.is_empty() {
        line.push_str(caption);
        line.push(' ');
    }
    line.push('<');
    if let Some(name) = &attachment.name {
        line.push_str(name);
        line.push_str(": ");
    }
    // Writing to a String cannot fail.
    let _ = match &attachment.source {
        AttachmentSource::Url(source) | AttachmentSource::Reference(source) => {
            line.write_str(source)
        }
        AttachmentSource::Path(path) => write!(line, "{}", path.display()),
        AttachmentSource::Bytes(bytes) => write!(line, "{} bytes", bytes.len()),
    };
    line.push('>');
    line
}

fn location(place: &Location) -> String {
    let Location { latitude, longitude, name } = place;
    match name {
        Some(name) => format!("[location] {name} <{latitude}, {longitude}>"),
        None => format!("[location] <{latitude}, {longitude}>"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{ButtonLayout, OutgoingButton};

    fn shop() -> Outgoing {
        let source = AttachmentSource::Url("https://example.org/cap.png?size=2".into());
        Outgoing {
            text: "A cap.\nBuy it?".into(),
            spans: Vec::new(),
            attachments: vec![Attachment::new(MediaKind::Image, source)],
            buttons: vec![OutgoingButton::new("Yes", "y"), OutgoingButton::new("No,\nnever", "n")],
            layout: ButtonLayout::Inline,
            location: Some(Location { latitude: 4.6, longitude: -74.1, name: Some("Shop".into()) }),
            reply_to: None,
        }
    }

    /// A11: text, media, a place and buttons are each shown as readable lines.
    #[test]
    fn a_message_is_shown_as_plain_lines() {
        assert_eq!(
            Style::default().message(&shop()),
            "bot> [image] A cap.\n     Buy it? <https://example.org/cap.png?size=2>\n\
             bot> [location] Shop <4.6, -74.1>\n  [1] Yes\n  [2] No, never\n"
        );
    }

    #[test]
    fn several_attachments_have_a_line_each() {
        let mut message = Outgoing::text("Two");
        let bytes = Attachment::new(MediaKind::Document, AttachmentSource::Bytes([1, 2].into()));
        let path = Attachment::new(MediaKind::Voice, AttachmentSource::Path("/tmp/a.ogg".into()));
        message.attachments = vec![bytes.named("a.pdf"), path];
        assert_eq!(
            Style::default().message(&message),
            "bot> Two\nbot> [document] <a.pdf: 2 bytes>\nbot> [voice] </tmp/a.ogg>\n"
        );
    }

    #[test]
    fn colour_is_shown_only_when_wanted() {
        let colourful = Style { live: true, colour: true };
        assert!(colourful.message(&shop()).contains("\x1b[36mbot>\x1b[0m [image]"));
        assert!(!Style { live: true, colour: false }.message(&shop()).contains('\x1b'));
    }

    #[test]
    fn a_text_cannot_command_the_screen_of_a_person() {
        let text = Outgoing::text("a\x1b[2Jb\u{9b}\rc\td");
        let live = Style { live: true, colour: false };
        assert_eq!(live.message(&text), "bot> a\\u{1b}[2Jb\\u{9b}\\u{d}c\td\n");
        assert_eq!(Style::default().message(&text), "bot> a\x1b[2Jb\u{9b}\rc\td\n");
    }
}
