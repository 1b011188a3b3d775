//! JSON as it is read: texts and names stay where they are, in what was received.

use std::borrow::Cow;
use std::fmt;
use std::ops::Index;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::Number;

/// A value. What is asked of a value of another kind, or of a field that is missing, is null.
#[derive(Debug, Clone)]
pub(super) enum Node<'a> {
    Null,
    Bool(bool),
    Number(Number),
    Text(Cow<'a, str>),
    List(Vec<Node<'a>>),
    Fields(Fields<'a>),
}

/// The fields of an object in the order in which they were told.
type Fields<'a> = Vec<(Cow<'a, str>, Node<'a>)>;

/// As many fields as most objects have.
const FIELDS: usize = 8;

/// As what field serde_json tells a number to whoever reads anything, where some crate of the program
/// has switched its feature `arbitrary_precision` on.
const PRECISE: &str = "$serde_json::private::Number";

static NULL: Node<'static> = Node::Null;

impl<'a> Node<'a> {
    pub(super) fn get(&self, name: &str) -> Option<&Self> {
        // Of fields with the same name the last one counts.
        let found = self.fields()?.iter().rev().find(|(field, _)| field == name);
        found.map(|(_, value)| value)
    }

    pub(super) fn fields(&self) -> Option<&[(Cow<'a, str>, Self)]> {
        match self {
            Self::Fields(fields) => Some(fields),
            _ => None,
        }
    }

    pub(super) fn as_array(&self) -> Option<&[Self]> {
        match self {
            Self::List(all) => Some(all),
            _ => None,
        }
    }

    pub(super) fn as_str(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    fn as_number(&self) -> Option<&Number> {
        match self {
            Self::Number(number) => Some(number),
            _ => None,
        }
    }

    pub(super) fn as_i64(&self) -> Option<i64> {
        self.as_number()?.as_i64()
    }

    pub(super) fn as_u64(&self) -> Option<u64> {
        self.as_number()?.as_u64()
    }

    pub(super) fn as_f64(&self) -> Option<f64> {
        self.as_number()?.as_f64()
    }

    pub(super) fn is_true(&self) -> bool {
        matches!(self, Self::Bool(true))
    }

    pub(super) const fn is_object(&self) -> bool {
        matches!(self, Self::Fields(_))
    }

    pub(super) fn null() -> &'a Self {
        &NULL
    }
}

impl<'a> Index<&str> for Node<'a> {
    type Output = Self;

    fn index(&self, name: &str) -> &Self {
        self.get(name).unwrap_or(Self::null())
    }
}

impl PartialEq for Node<'_> {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Bool(one), Self::Bool(other)) => one == other,
            (Self::Number(one), Self::Number(other)) => one == other,
            (Self::Text(one), Self::Text(other)) => one == other,
            (Self::List(one), Self::List(other)) => one == other,
            (Self::Fields(one), Self::Fields(others)) => {
                one.len() == others.len()
                    && one.iter().all(|(name, value)| other.get(name) == Some(value))
            }
            _ => false,
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Node<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader)
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

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Node<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<Node<'de>, E> {
        Ok(Node::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Node<'de>, E> {
        Ok(Node::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Node<'de>, E> {
        Ok(Node::Number(value.into()))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Node<'de>, E> {
        Ok(Node::Number(value.into()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Node<'de>, E> {
        Ok(Number::from_f64(value).map_or(Node::Null, Node::Number))
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Node<'de>, E> {
        Ok(Node::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Node<'de>, E> {
        Ok(Node::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut all: A) -> Result<Node<'de>, A::Error> {
        let mut list = Vec::new();
        while let Some(one) = all.next_element()? {
            list.push(one);
        }
        Ok(Node::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut all: A) -> Result<Node<'de>, A::Error> {
        let mut fields = Fields::new();
        while let Some(Name(name)) = all.next_key()? {
            if fields.is_empty() {
                fields.reserve(FIELDS);
            }
            fields.push((name, all.next_value()?));
        }
        if let [(name, Node::Text(number))] = &fields[..]
            && name == PRECISE
            && let Ok(number) = number.parse()
        {
            return Ok(Node::Number(number));
        }
        Ok(Node::Fields(fields))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn read(text: &str) -> Node<'_> {
        serde_json::from_str(text).unwrap()
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            ".{0,6}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::btree_map(".{0,4}", inner, 0..5)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    fn same(node: &Node<'_>, value: &Value) -> bool {
        match (node, value) {
            (Node::Null, Value::Null) => true,
            (Node::Bool(one), Value::Bool(other)) => one == other,
            (Node::Number(one), Value::Number(other)) => one == other,
            (Node::Text(one), Value::String(other)) => one == other,
            (Node::List(one), Value::Array(other)) => {
                one.len() == other.len()
                    && one.iter().zip(other).all(|(one, other)| same(one, other))
            }
            (Node::Fields(one), Value::Object(other)) => {
                one.len() == other.len()
                    && other.iter().all(|(name, value)| same(&node[name.as_str()], value))
            }
            _ => false,
        }
    }

    proptest! {
        /// I1: what is read is what was told, whatever that is.
        #[test]
        fn it_is_read_as_any_other_reader_reads_it(value in any_json()) {
            let text = value.to_string();
            let node = read(&text);
            prop_assert!(same(&node, &value), "{:?} of {}", node, text);
            prop_assert!(node == read(&text));
        }
    }

    #[test]
    fn the_last_of_fields_with_one_name_counts_and_their_order_does_not() {
        assert_eq!(read(r#"{"a":1,"a":2}"#)["a"].as_i64(), Some(2));
        assert!(read(r#"{"a":1,"b":2}"#) == read(r#"{"b":2,"a":1}"#));
        assert!(read(r#"{"a":1}"#) != read(r#"{"a":1,"b":2}"#));
        assert!(same(&read(r#"{"\u0061":"\n"}"#), &json!({"a": "\n"})));
    }

    /// I1: a number is one also where serde_json keeps all of its digits.
    #[test]
    fn a_number_of_arbitrary_precision_is_a_number() {
        let told = format!(r#"{{"latitude":{{"{PRECISE}":"1.5"}}}}"#);
        assert_eq!(read(&told)["latitude"].as_f64(), Some(1.5));
        assert!(read(&format!(r#"{{"{PRECISE}":"no"}}"#)).is_object());
    }

    #[test]
    fn what_stands_as_it_is_told_is_not_copied() {
        let Node::Fields(fields) = read(r#"{"a":"b"}"#) else { panic!("no object") };
        assert!(matches!(&fields[..], [(Cow::Borrowed("a"), Node::Text(Cow::Borrowed("b")))]));
    }
}
