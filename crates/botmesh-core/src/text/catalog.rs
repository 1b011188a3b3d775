use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::sync::Arc;

use fluent_bundle::concurrent::FluentBundle;
use fluent_bundle::{FluentArgs, FluentError, FluentResource, FluentValue};
use parking_lot::Mutex;

use super::{Argument, Language, Localized, Span, Text, TextsError};
use crate::message::{ButtonLayout, Outgoing, OutgoingButton, Reply};

const ENGLISH: &str = include_str!("ftl/en.ftl");
const SPANISH: &str = include_str!("ftl/es.ftl");

/// Keys that a warning was written for are remembered up to this many.
const MAX_WARNED: usize = 1000;

/// All texts by language and key, in the format of [Project Fluent](https://projectfluent.org).
///
/// A text is looked up in the language asked for (`es-CO`), that language without its region
/// (`es`), the default language and English; the first that has the key wins. A key that none has
/// is shown itself, and a warning is logged once. Fluent knows no dots in names: the key
/// `shop.welcome` is written `shop-welcome` there.
///
/// ```
/// use botmesh_core::text::{Language, Texts, t};
/// let texts = Texts::builtin()
///     .add("en", "shop-items = { $count ->\n    [one] One item\n   *[other] { $count } items\n }")?
///     .add("es", "core-choice-yes = Claro")?;
/// let english = Language::english();
/// assert_eq!(texts.resolve(t("shop.items").with("count", 3), &english), "3 items");
/// assert_eq!(texts.resolve(t("core.choice.yes"), &Language::new("es-CO")?), "Claro");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Texts {
    bundles: BTreeMap<String, FluentBundle<Arc<FluentResource>>>,
    default: Language,
    warned: Mutex<HashSet<String>>,
}

impl Default for Texts {
    fn default() -> Self {
        Self::builtin()
    }
}

impl Texts {
    /// The texts that botmesh itself needs, in English and Spanish. The default language is
    /// English.
    #[must_use]
    pub fn builtin() -> Self {
        let mut texts = Self {
            bundles: BTreeMap::new(),
            default: Language::english(),
            warned: Mutex::new(HashSet::new()),
        };
        for (tag, ftl) in [("en", ENGLISH), ("es", SPANISH)] {
            if let Ok(language) = Language::new(tag) {
                // Whatever of it is well-formed; a test sees to it that all is.
                let resource = FluentResource::try_new(ftl.to_owned()).unwrap_or_else(|(r, _)| r);
                texts.bundle(&language).add_resource_overriding(Arc::new(resource));
            }
        }
        texts
    }

    /// Adds texts to a language, new ones and such that replace others of the same key.
    ///
    /// # Errors
    /// [`TextsError`] when `language` is no language tag or `ftl` is not well-formed; it names the
    /// line.
    pub fn add(mut self, language: &str, ftl: &str) -> Result<Self, TextsError> {
        let language = Language::new(language)?;
        let resource = FluentResource::try_new(ftl.to_owned())
            .map_err(|(_, errors)| errors.into_iter().map(FluentError::ParserError).collect())
            .map_err(|errors: Vec<_>| TextsError::syntax(&language, ftl, &errors))?;
        let resource = Arc::new(resource);
        FluentBundle::new_concurrent(vec![language.identifier().clone()])
            .add_resource(Arc::clone(&resource))
            .map_err(|errors| TextsError::repeated(&language, ftl, &errors))?;
        self.bundle(&language).add_resource_overriding(resource);
        Ok(self)
    }

    /// Sets the language for chats whose own language is not known or has no texts.
    #[must_use]
    pub fn with_default_language(mut self, language: Language) -> Self {
        self.default = language;
        self
    }

    /// The language for chats whose own language is not known or has no texts.
    #[must_use]
    pub const fn default_language(&self) -> &Language {
        &self.default
    }

    /// The tags of the languages that have texts, in alphabetic order.
    pub fn languages(&self) -> impl Iterator<Item = &str> {
        self.bundles.keys().map(String::as_str)
    }

    /// The words of the text in this language. A plain text is handed through as it is.
    #[must_use]
    pub fn resolve(&self, text: impl Into<Text>, language: &Language) -> Cow<'static, str> {
        self.spans(text, language).0
    }

    /// The words of the text in this language, and what stands out in them.
    #[must_use]
    pub fn spans(
        &self,
        text: impl Into<Text>,
        language: &Language,
    ) -> (Cow<'static, str>, Vec<Span>) {
        match text.into() {
            Text::Plain(text) => (text, Vec::new()),
            Text::Localized(localized) => (self.look_up(&localized, language).into(), Vec::new()),
            Text::Formatted(formatted) => {
                let mut show = |text: &Text| self.resolve(text.clone(), language);
                let (words, spans) = formatted.spans(&mut show);
                (words.into(), spans)
            }
        }
    }

    /// The reply with all its texts in this language.
    #[must_use]
    pub fn localize(&self, reply: Reply, language: &Language) -> Outgoing {
        let button = |button: crate::message::Button| {
            OutgoingButton::new(self.resolve(button.label, language), button.payload)
        };
        let (text, spans) = self.spans(reply.text, language);
        Outgoing {
            text,
            spans,
            attachments: reply.attachments,
            buttons: reply.buttons.into_iter().map(button).collect(),
            layout: ButtonLayout::default(),
            location: reply.location,
            reply_to: reply.reply_to,
        }
    }

    /// The words of a text that lists them with commas, such as `core.cancel.words`, in lower
    /// case.
    #[must_use]
    pub fn words(&self, key: &'static str, language: &Language) -> Vec<String> {
        let list = self.look_up(&super::t(key), language);
        let words = list.split(',').map(|word| word.trim().to_lowercase());
        words.filter(|word| !word.is_empty()).collect()
    }

    fn bundle(&mut self, language: &Language) -> &mut FluentBundle<Arc<FluentResource>> {
        self.bundles.entry(language.to_string()).or_insert_with(|| {
            let mut bundle = FluentBundle::new_concurrent(vec![language.identifier().clone()]);
            // The marks would end up in what a person copies out of the chat.
            bundle.set_use_isolating(false);
            bundle
        })
    }

    fn look_up(&self, text: &Localized, language: &Language) -> String {
        let id = text.key().replace('.', "-");
        let english = Language::english();
        let chain = [language, &language.base(), &self.default, &self.default.base(), &english];
        for language in chain {
            let Some(bundle) = self.bundles.get(&language.to_string()) else { continue };
            let Some(message) = bundle.get_message(&id) else { continue };
            let Some(pattern) = message.value() else { continue };
            let mut errors = Vec::new();
            let arguments: FluentArgs<'_> =
                text.arguments().map(|(name, value)| (name.to_owned(), value_of(value))).collect();
            let shown = bundle.format_pattern(pattern, Some(&arguments), &mut errors).into_owned();
            if let Some(error) = errors.first()
                && self.warns_first_time(text.key())
            {
                tracing::warn!(key = text.key(), %language, %error, "a text is shown with gaps");
            }
            return shown;
        }
        if self.warns_first_time(text.key()) {
            tracing::warn!(key = text.key(), %language, "no language has this text");
        }
        text.key().to_owned()
    }

    fn warns_first_time(&self, key: &str) -> bool {
        let mut warned = self.warned.lock();
        warned.len() < MAX_WARNED && warned.insert(key.to_owned())
    }
}

fn value_of(argument: &Argument) -> FluentValue<'_> {
    match argument {
        Argument::Text(text) => FluentValue::from(text.as_ref()),
        Argument::Number(number) => FluentValue::from(*number),
    }
}

impl fmt::Debug for Texts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Texts")
            .field("languages", &self.bundles.keys())
            .field("default", &self.default)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
