//! JSON that can be put into other JSON as it stands.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// How deep it may be nested: readers refuse what is nested too deeply, and it stands in something.
const DEEPEST: usize = 64;

/// The text as JSON, if everybody reads it as the same value wherever it stands: neither a text, which
/// stands for what is written otherwise, nor null, which stands for nothing.
pub(super) fn json(text: &str) -> Option<&RawValue> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let is_value = Within(DEEPEST).deserialize(&mut reader).ok()?;
    if is_value { serde_json::from_str(text).ok() } else { None }
}

/// Reads a value as others do, and keeps nothing of it; answers whether it is more than a text or null.
struct Within(usize);

impl<'de> DeserializeSeed<'de> for Within {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl Within {
    fn deeper<E: Error>(self) -> Result<usize, E> {
        self.0.checked_sub(1).ok_or_else(|| E::custom("nested too deeply"))
    }
}

impl<'de> Visitor<'de> for Within {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<bool, E> {
        Ok(true)
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<bool, E> {
        Ok(true)
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<bool, E> {
        Ok(true)
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<bool, E> {
        Ok(true)
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut all: A) -> Result<bool, A::Error> {
        let within = self.deeper()?;
        while all.next_element_seed(Within(within))?.is_some() {}
        Ok(true)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut all: A) -> Result<bool, A::Error> {
        let within = self.deeper()?;
        while all.next_key::<IgnoredAny>()?.is_some() {
            all.next_value_seed(Within(within))?;
        }
        Ok(true)
    }
}
