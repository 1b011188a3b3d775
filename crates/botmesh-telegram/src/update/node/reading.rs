//! The list of a document, made in one pass over its text.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::Number;

use super::{Entry, Told};

/// How many bytes of text there are for each value, about, in what Telegram sends.
const BYTES_EACH: usize = 16;

/// As what field serde_json tells a number to whoever reads anything, where some crate of the program
/// has switched its feature `arbitrary_precision` on.
const PRECISE: &str = "$serde_json::private::Number";

/// The values of a text, each followed by what is inside of it.
pub(super) fn read(text: &str) -> Result<Vec<Entry<'_>>, serde_json::Error> {
    let mut entries = Vec::with_capacity(text.len() / BYTES_EACH + 1);
    let mut reader = serde_json::Deserializer::from_str(text);
    Reading { entries: &mut entries, name: Cow::Borrowed("") }.deserialize(&mut reader)?;
    reader.end()?;
    Ok(entries)
}

/// Reads one value to the end of the list.
struct Reading<'l, 'a> {
    entries: &'l mut Vec<Entry<'a>>,
    name: Cow<'a, str>,
}

impl<'a> Reading<'_, 'a> {
    fn put<E>(self, told: Told<'a>) -> Result<(), E> {
        self.entries.push(Entry { name: self.name, told });
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for Reading<'_, 'de> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Reading<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        self.put(Told::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<(), E> {
        self.put(Told::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<(), E> {
        self.put(Told::Number(value.into()))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<(), E> {
        self.put(Told::Number(value.into()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<(), E> {
        self.put(Number::from_f64(value).map_or(Told::Null, Told::Number))
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<(), E> {
        self.put(Told::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        self.put(Told::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut all: A) -> Result<(), A::Error> {
        let place = self.entries.len();
        self.entries.push(Entry { name: self.name, told: Told::List(0) });
        loop {
            let next = Reading { entries: self.entries, name: Cow::Borrowed("") };
            if all.next_element_seed(next)?.is_none() {
                break;
            }
        }
        self.entries[place].told = Told::List(self.entries.len() - place - 1);
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut all: A) -> Result<(), A::Error> {
        let place = self.entries.len();
        self.entries.push(Entry { name: self.name, told: Told::Fields(0) });
        while let Some(Name(name)) = all.next_key()? {
            all.next_value_seed(Reading { entries: self.entries, name })?;
        }
        self.entries[place].told = match precise(&self.entries[place + 1..]) {
            Some(number) => {
                self.entries.truncate(place + 1);
                Told::Number(number)
            }
            None => Told::Fields(self.entries.len() - place - 1),
        };
        Ok(())
    }
}

/// The number that an object stands for, if it does.
fn precise(inside: &[Entry<'_>]) -> Option<Number> {
    match inside {
        [Entry { name, told: Told::Text(number) }] if name == PRECISE => number.parse().ok(),
        _ => None,
    }
}

/// A name of a field, where it stands if it needs no unescaping.
struct Name<'a>(Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Name<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NameReader;

        impl<'de> Visitor<'de> for NameReader {
            type Value = Name<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a field")
            }

            fn visit_borrowed_str<E: Error>(self, name: &'de str) -> Result<Name<'de>, E> {
                Ok(Name(Cow::Borrowed(name)))
            }

            fn visit_str<E: Error>(self, name: &str) -> Result<Name<'de>, E> {
                Ok(Name(Cow::Owned(name.to_owned())))
            }
        }

        deserializer.deserialize_str(NameReader)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Document;
    use super::*;

    /// I1: a number is one also where serde_json keeps all of its digits.
    #[test]
    fn a_number_of_arbitrary_precision_is_a_number() {
        let told = format!(r#"{{"latitude":{{"{PRECISE}":"1.5"}},"next":true}}"#);
        let document = Document::read(&told).unwrap();
        assert_eq!(document.root().get("latitude").as_f64(), Some(1.5));
        assert!(document.root().get("next").is_true());
        let no = format!(r#"{{"{PRECISE}":"no"}}"#);
        assert!(Document::read(&no).unwrap().root().is_object());
    }
}
