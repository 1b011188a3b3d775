use std::fmt;
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

/// The payload with which a platform told a message, as JSON. Clones share it.
///
/// It is kept as the text that came, and read only when somebody asks for it.
///
/// ```
/// use botmesh_core::message::RawPayload;
/// let payload = RawPayload::from_json(r#"{"update_id": 7}"#);
/// assert_eq!(payload.value()["update_id"], 7);
/// ```
#[derive(Clone)]
pub struct RawPayload(Arc<Payload>);

struct Payload {
    /// Empty when it was given as a value.
    text: Box<str>,
    value: OnceLock<Value>,
}

impl RawPayload {
    /// A payload that is this text.
    pub fn from_json(text: impl Into<Box<str>>) -> Self {
        Self(Arc::new(Payload { text: text.into(), value: OnceLock::new() }))
    }

    /// What it says. A text that is no JSON is told as that text.
    #[must_use]
    pub fn value(&self) -> &Value {
        let Payload { text, value } = &*self.0;
        value.get_or_init(|| {
            serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_string()))
        })
    }
}

impl From<Value> for RawPayload {
    fn from(value: Value) -> Self {
        Self(Arc::new(Payload { text: Box::default(), value: OnceLock::from(value) }))
    }
}

impl PartialEq for RawPayload {
    fn eq(&self, other: &Self) -> bool {
        self.value() == other.value()
    }
}

impl fmt::Debug for RawPayload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RawPayload").field(self.value()).finish()
    }
}

impl Serialize for RawPayload {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.value().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for RawPayload {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    /// G11: a payload comes back as it was, whatever it was made of.
    #[test]
    fn a_payload_is_the_same_as_text_and_as_value() {
        let value = json!({"a": [1, 2.5, "ü"], "b": null});
        let (one, other) =
            (RawPayload::from_json(value.to_string()), RawPayload::from(value.clone()));
        assert_eq!(one, other);
        let read: RawPayload = serde_json::from_str(&serde_json::to_string(&one).unwrap()).unwrap();
        assert_eq!(read.value(), &value);
    }

    proptest! {
        /// I1, G11: a text that is no JSON is lost no more than one that is.
        #[test]
        fn any_text_is_told_and_travels(text in ".{0,40}") {
            let payload = RawPayload::from_json(text.as_str());
            match serde_json::from_str::<Value>(&text) {
                Ok(value) => prop_assert_eq!(payload.value(), &value),
                Err(_) => prop_assert_eq!(payload.value(), &Value::String(text)),
            }
            let written = serde_json::to_string(&payload).unwrap();
            prop_assert_eq!(serde_json::from_str::<RawPayload>(&written).unwrap(), payload);
        }
    }
}
