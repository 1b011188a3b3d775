use std::borrow::Cow;
use std::fmt::Write as _;

use super::{Capabilities, Capability};
use crate::message::{Location, Outgoing};

impl Outgoing {
    /// The message as a platform with these capabilities can show it: buttons that it lacks become
    /// numbered lines, a place becomes a line with a map address. A message that already fits is
    /// not copied.
    ///
    /// ```
    /// use botmesh_core::message::{Outgoing, OutgoingButton};
    /// use botmesh_core::provider::Capabilities;
    /// let mut message = Outgoing::text("Which size?");
    /// message.buttons = vec![OutgoingButton::new("Small", "s"), OutgoingButton::new("Large", "l")];
    /// let adapted = message.adapted(&Capabilities::default());
    /// assert_eq!(adapted.unwrap().text, "Which size?\n1. Small\n2. Large");
    /// ```
    ///
    /// # Errors
    /// [`Capability::Media`] when there are attachments and the platform takes none: there is no
    /// way to say them in words.
    pub fn adapted(&self, capabilities: &Capabilities) -> Result<Cow<'_, Self>, Capability> {
        if !self.attachments.is_empty() && !capabilities.media {
            return Err(Capability::Media);
        }
        let mut adapted = Cow::Borrowed(self);
        if !self.buttons.is_empty() && !capabilities.buttons {
            let message = adapted.to_mut();
            let text = message.text.to_mut();
            for (index, button) in message.buttons.drain(..).enumerate() {
                add_line(text, format_args!("{}. {}", index + 1, button.label));
            }
        }
        if let Some(place) = &self.location
            && !capabilities.location
        {
            let message = adapted.to_mut();
            message.location = None;
            add_line(message.text.to_mut(), format_args!("{}", in_words(place)));
        }
        Ok(adapted)
    }
}

fn add_line(text: &mut String, line: std::fmt::Arguments<'_>) {
    if !text.is_empty() {
        text.push('\n');
    }
    // Writing to a String cannot fail.
    let _ = text.write_fmt(line);
}

fn in_words(place: &Location) -> String {
    let Location { latitude, longitude, name } = place;
    let address = format!("https://www.openstreetmap.org/?mlat={latitude}&mlon={longitude}");
    match name {
        Some(name) => format!("{name}: {address}"),
        None => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Attachment, AttachmentSource, MediaKind, OutgoingButton};

    fn everything() -> Outgoing {
        Outgoing {
            text: "Here".into(),
            buttons: vec![OutgoingButton::new("Yes", "y"), OutgoingButton::new("No", "n")],
            location: Some(Location {
                latitude: 4.5, longitude: -74.0, name: Some("Café".into())
            }),
            ..Outgoing::default()
        }
    }

    /// A8: buttons and places that a platform lacks are said in words.
    #[test]
    fn what_a_platform_lacks_is_said_in_words() {
        let adapted = everything();
        let adapted = adapted.adapted(&Capabilities::default()).unwrap();
        assert_eq!(
            adapted.text,
            "Here\n1. Yes\n2. No\nCafé: https://www.openstreetmap.org/?mlat=4.5&mlon=-74"
        );
        assert!(adapted.buttons.is_empty() && adapted.location.is_none());
        assert_eq!(adapted.adapted(&Capabilities::default()).unwrap(), adapted);
    }

    #[test]
    fn a_message_that_fits_is_not_copied() {
        let able = Capabilities { buttons: true, location: true, ..Capabilities::default() };
        assert!(matches!(everything().adapted(&able), Ok(Cow::Borrowed(_))));
    }

    /// A8: media for a platform without media is an error, not silence.
    #[test]
    fn media_for_a_platform_without_media_is_refused() {
        let mut message = everything();
        let source = AttachmentSource::Url("https://example.org/a.png".into());
        message.attachments = vec![Attachment::new(MediaKind::Image, source)];
        assert_eq!(message.adapted(&Capabilities::default()), Err(Capability::Media));
    }
}
