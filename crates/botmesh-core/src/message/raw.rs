mod plain;

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
pub struct RawPayload {
    text: Arc<str>,
    value: OnceLock<Arc<Value>>,
}

impl RawPayload {
    /// A payload that is this text.
    pub fn from_json(text: impl Into<Arc<str>>) -> Self {
        Self { text: text.into(), value: OnceLock::new() }
    }

    /// What it says. A text that is no JSON is told as that text.
    #[must_use]
    pub fn value(&self) -> &Value {
        self.value.get_or_init(|| {
            let read = serde_json::from_str(&self.text);
            Arc::new(read.unwrap_or_else(|_| Value::String(self.text.to_string())))
        })
    }
}

impl From<Value> for RawPayload {
    fn from(value: Value) -> Self {
        Self { text: value.to_string().into(), value: OnceLock::from(Arc::new(value)) }
    }
}

impl PartialEq for RawPayload {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text || self.value() == other.value()
    }
}

impl fmt::Debug for RawPayload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RawPayload").field(self.value()).finish()
    }
}

/// As the JSON that it is, where that reads as the same wherever it stands. All other texts are
/// written as a text, and so come back: what is no JSON, what is nested too deeply to stand in something
/// else, and null, which would be no payload at all.
impl Serialize for RawPayload {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match plain::json(&self.text) {
            Some(json) => json.serialize(serializer),
            None => serializer.serialize_str(&self.text),
        }
    }
}

impl<'de> Deserialize<'de> for RawPayload {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match Value::deserialize(deserializer)? {
            Value::String(text) => Self::from_json(text),
            value => Self::from(value),
        })
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

    /// G11: null is a payload, and a text one that says nothing of what it looks like.
    #[test]
    fn a_payload_is_never_taken_for_another_or_for_none() {
        for value in [json!(null), json!("7"), json!("null"), json!("{"), json!("\"a\""), json!(7)]
        {
            for payload in
                [RawPayload::from(value.clone()), RawPayload::from_json(value.to_string())]
            {
                let written = serde_json::to_string(&Some(&payload)).unwrap();
                let read: Option<RawPayload> = serde_json::from_str(&written).unwrap();
                assert_eq!(read.as_ref().map(RawPayload::value), Some(&value), "by {written}");
                assert_eq!(serde_json::to_string(&read).unwrap(), written);
            }
        }
    }

    /// I1, G11: what can be read by itself can be read inside of what travels, however deep it is.
    #[test]
    fn a_deep_payload_comes_back() {
        for depth in [1, 60, 100, 126, 127, 128, 5_000] {
            let text = format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
            let payload = RawPayload::from_json(text.as_str());
            let written = serde_json::to_string(&[[[&payload]]]).unwrap();
            let [[[read]]]: [[[RawPayload; 1]; 1]; 1] = serde_json::from_str(&written).unwrap();
            assert_eq!(read, payload, "at {depth}");
        }
    }

    /// G11: what was written in the words of the platform is not changed on its way.
    #[test]
    fn a_payload_travels_in_the_words_of_the_platform() {
        let told = r#"{"b": 1.50, "a":[ "\u00fc" ]}"#;
        let payload = RawPayload::from_json(told);
        assert_eq!(serde_json::to_string(&payload).unwrap(), told);
        assert_eq!(serde_json::to_value(&payload).unwrap(), json!({"a": ["ü"], "b": 1.5}));
        // What only looks like JSON is a text.
        for text in [r#"{"a":1e999}"#, r#"["\ud800"]"#, "{} {}", r#"{"a":01}"#] {
            let payload = RawPayload::from_json(text);
            assert_eq!(serde_json::to_value(&payload).unwrap(), json!(text));
            assert_eq!(payload.value(), &json!(text));
        }
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
