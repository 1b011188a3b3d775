use std::fmt::Write as _;

use super::Capabilities;
use crate::message::{Location, Outgoing};

impl Outgoing {
    /// The message as a platform with these capabilities shows it: buttons that it lacks become
    /// numbered lines, and a place becomes a line with the address of a map. The runtime does
    /// this before it sends.
    ///
    /// ```
    /// use botmesh_core::message::{Outgoing, OutgoingButton};
    /// use botmesh_core::provider::Capabilities;
    /// let mut message = Outgoing::text("Which size?");
    /// message.buttons = vec![OutgoingButton::new("Small", "s"), OutgoingButton::new("Large", "l")];
    /// let adapted = message.adapted(&Capabilities::default());
    /// assert_eq!(adapted.text, "Which size?\n1. Small\n2. Large");
    /// ```
    #[must_use]
    pub fn adapted(mut self, capabilities: &Capabilities) -> Self {
        if !capabilities.buttons {
            for (index, button) in self.buttons.drain(..).enumerate() {
                let line = format_args!("{}. {}", index + 1, button.label);
                add_line(self.text.to_mut(), line);
            }
        }
        if !capabilities.location
            && let Some(Location { latitude, longitude, name }) = self.location.take()
        {
            let text = self.text.to_mut();
            if let Some(name) = name {
                add_line(text, format_args!("{name}"));
            }
            add_line(
                text,
                format_args!("https://www.openstreetmap.org/?mlat={latitude}&mlon={longitude}"),
            );
        }
        self
    }
}

fn add_line(text: &mut String, line: std::fmt::Arguments<'_>) {
    if !text.is_empty() {
        text.push('\n');
    }
    // Writing to a String cannot fail.
    let _ = text.write_fmt(line);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{OutgoingButton, Reply};

    /// A8: what a platform lacks becomes text rather than silence.
    #[test]
    fn buttons_become_numbered_lines_and_a_place_becomes_an_address() {
        let mut message = Outgoing::text("Which?");
        message.buttons = vec![OutgoingButton::new("Tea", "t"), OutgoingButton::new("Milk", "m")];
        message.location = Reply::location(4.5, -74.25).location;
        let plain = message.clone().adapted(&Capabilities::default());
        assert_eq!(
            plain.text,
            "Which?\n1. Tea\n2. Milk\nhttps://www.openstreetmap.org/?mlat=4.5&mlon=-74.25"
        );
        assert!(plain.buttons.is_empty() && plain.location.is_none());
        let all = Capabilities { buttons: true, location: true, ..Capabilities::default() };
        assert_eq!(message.clone().adapted(&all), message);
    }

    #[test]
    fn a_named_place_without_words_is_its_name_and_address() {
        let location = Location { latitude: 4.5, longitude: -74.0, name: Some("Café".into()) };
        let message = Outgoing { location: Some(location), ..Outgoing::default() };
        assert_eq!(
            message.adapted(&Capabilities::default()).text,
            "Café\nhttps://www.openstreetmap.org/?mlat=4.5&mlon=-74"
        );
    }
}
