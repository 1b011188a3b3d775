use std::fmt::Write as _;

use super::{Capabilities, ChoiceLimits};
use crate::message::{ButtonLayout, Location, Outgoing};

impl Outgoing {
    /// The message as a platform with these capabilities shows it: formatting that it lacks is
    /// dropped, buttons become a list or numbered lines, and a place becomes a line with the address
    /// of a map. The runtime does this before it sends.
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
        if !capabilities.formatting {
            self.drop_formatting(|_| true);
        }
        match self.layout_for(capabilities) {
            Some(layout) => self.layout = layout,
            None => {
                for (index, button) in self.buttons.drain(..).enumerate() {
                    let line = format_args!("{}. {}", index + 1, button.label);
                    add_line(self.text.to_mut(), line);
                }
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

impl Outgoing {
    /// How the platform shows the buttons; none when it cannot.
    fn layout_for(&self, able: &Capabilities) -> Option<ButtonLayout> {
        let fit = |limits: Option<ChoiceLimits>| limits.is_some_and(|it| it.fit(&self.buttons));
        if self.buttons.is_empty() || fit(able.buttons) {
            return Some(ButtonLayout::Inline);
        }
        fit(able.list).then_some(ButtonLayout::List)
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
    use crate::text::{Span, Style};

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
        let buttons = Some(ChoiceLimits::NONE);
        let all = Capabilities { buttons, location: true, ..Capabilities::default() };
        assert_eq!(message.clone().adapted(&all), message);
    }

    /// A8: what there are no buttons for becomes a list, and what there is no list for becomes lines.
    #[test]
    fn buttons_become_a_list_and_a_list_becomes_lines() {
        let able = Capabilities {
            buttons: Some(ChoiceLimits::new(3, 5)),
            list: Some(ChoiceLimits::new(4, 7)),
            ..Capabilities::default()
        };
        let menu = |labels: &[&'static str]| {
            let mut message = Outgoing::text("Which?");
            message.buttons = labels.iter().map(|it| OutgoingButton::new(*it, *it)).collect();
            message.adapted(&able)
        };
        for (labels, layout) in [
            (&["a", "b", "ñandú"][..], Some(ButtonLayout::Inline)),
            (&["a", "b", "c", "d"], Some(ButtonLayout::List)),
            (&["ñandúes"], Some(ButtonLayout::List)),
            (&["a", "b", "c", "d", "e"], None),
            (&["a", "ñandúes."], None),
        ] {
            let shown = menu(labels);
            assert_eq!((!shown.buttons.is_empty()).then_some(shown.layout), layout, "{labels:?}");
            assert_eq!(shown.buttons.len(), if layout.is_some() { labels.len() } else { 0 });
            assert_eq!(shown.text.contains(labels[0]), layout.is_none());
        }
    }

    /// A8: numbered lines behind formatted words format nothing else.
    #[test]
    fn lines_are_added_behind_what_stands_out() {
        let mut message = Outgoing::text("Which?");
        message.spans = vec![Span::new(0, 6, Style::Bold)];
        message.buttons = vec![OutgoingButton::new("Tea", "t")];
        let able = Capabilities { formatting: true, ..Capabilities::default() };
        let shown = message.adapted(&able);
        assert_eq!((shown.text.as_ref(), shown.spans[0].end), ("Which?\n1. Tea", 6));
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
