//! JSON as it is read: one list for the whole text, in which names and texts stay where they are in what
//! was received.

mod reading;

use std::borrow::Cow;

use serde_json::Number;

/// A text that was read. What is inside of a value follows it.
#[derive(Debug, Clone)]
pub(super) struct Document<'a>(Vec<Entry<'a>>);

/// A value, and its name where it is a field.
#[derive(Debug, Clone)]
struct Entry<'a> {
    name: Cow<'a, str>,
    told: Told<'a>,
}

#[derive(Debug, Clone)]
enum Told<'a> {
    Null,
    Bool(bool),
    Number(Number),
    Text(Cow<'a, str>),
    /// A list, and how many entries are inside of it, at any depth.
    List(usize),
    /// An object likewise; its fields are in the order in which they were told.
    Fields(usize),
}

/// A value in a document. What is asked of a value of another kind, or of a field that is missing,
/// is null.
#[derive(Debug, Clone, Copy)]
pub(super) struct Node<'n, 'a>(&'n [Entry<'a>]);

impl<'a> Document<'a> {
    /// Reads a text.
    pub(super) fn read(text: &'a str) -> Result<Self, serde_json::Error> {
        reading::read(text).map(Self)
    }

    /// All of it.
    pub(super) fn root(&self) -> Node<'_, 'a> {
        Node(&self.0)
    }
}

impl<'n, 'a> Node<'n, 'a> {
    pub(super) const NULL: Self = Node(&[]);

    fn told(self) -> &'n Told<'a> {
        self.0.first().map_or(&Told::Null, |entry| &entry.told)
    }

    /// The field of this name.
    pub(super) fn get(self, name: &str) -> Self {
        // Of fields with the same name the last one counts.
        let named = self.fields().filter(|(field, _)| *field == name);
        named.last().map_or(Self::NULL, |(_, value)| value)
    }

    /// The fields of an object, in their order.
    pub(super) fn fields(self) -> impl Iterator<Item = (&'n str, Self)> {
        let inside = if self.is_object() { self.inside() } else { &[] };
        Values(inside).map(|value| (value.name(), value))
    }

    /// The values in a list, in their order.
    pub(super) fn list(self) -> impl Iterator<Item = Self> {
        Values(if self.is_list() { self.inside() } else { &[] })
    }

    fn inside(self) -> &'n [Entry<'a>] {
        self.0.get(1..).unwrap_or_default()
    }

    fn name(self) -> &'n str {
        self.0.first().map_or("", |entry| &entry.name)
    }

    pub(super) fn as_str(self) -> Option<&'n str> {
        match self.told() {
            Told::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(super) fn as_number(self) -> Option<&'n Number> {
        match self.told() {
            Told::Number(number) => Some(number),
            _ => None,
        }
    }

    pub(super) fn as_i64(self) -> Option<i64> {
        self.as_number()?.as_i64()
    }

    pub(super) fn as_u64(self) -> Option<u64> {
        self.as_number()?.as_u64()
    }

    pub(super) fn as_f64(self) -> Option<f64> {
        self.as_number()?.as_f64()
    }

    pub(super) fn is_true(self) -> bool {
        matches!(self.told(), Told::Bool(true))
    }

    pub(super) fn is_object(self) -> bool {
        matches!(self.told(), Told::Fields(_))
    }

    pub(super) fn is_list(self) -> bool {
        matches!(self.told(), Told::List(_))
    }

    /// Whether there is a value at all, if only null.
    pub(super) const fn is_told(self) -> bool {
        !self.0.is_empty()
    }
}

/// The values that stand one behind the other.
struct Values<'n, 'a>(&'n [Entry<'a>]);

impl<'n, 'a> Iterator for Values<'n, 'a> {
    type Item = Node<'n, 'a>;

    fn next(&mut self) -> Option<Node<'n, 'a>> {
        let inside = match self.0.first()?.told {
            Told::List(inside) | Told::Fields(inside) => inside,
            _ => 0,
        };
        let (value, rest) = self.0.split_at_checked(inside + 1)?;
        self.0 = rest;
        Some(Node(value))
    }
}

impl PartialEq for Node<'_, '_> {
    fn eq(&self, other: &Self) -> bool {
        match (self.told(), other.told()) {
            (Told::Null, Told::Null) => true,
            (Told::Bool(one), Told::Bool(other)) => one == other,
            (Told::Number(one), Told::Number(other)) => one == other,
            (Told::Text(one), Told::Text(other)) => one == other,
            (Told::List(_), Told::List(_)) => self.list().eq(other.list()),
            (Told::Fields(_), Told::Fields(_)) => {
                self.fields().count() == other.fields().count()
                    && self.fields().all(|(name, value)| {
                        let same = other.get(name);
                        same.is_told() && same == value
                    })
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn read(text: &str) -> Document<'_> {
        Document::read(text).unwrap()
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

    fn same(node: Node<'_, '_>, value: &Value) -> bool {
        match (node.told(), value) {
            (Told::Null, Value::Null) => true,
            (Told::Bool(one), Value::Bool(other)) => one == other,
            (Told::Number(one), Value::Number(other)) => one == other,
            (Told::Text(one), Value::String(other)) => one == other,
            (Told::List(_), Value::Array(other)) => {
                node.list().count() == other.len()
                    && node.list().zip(other).all(|(one, other)| same(one, other))
            }
            (Told::Fields(_), Value::Object(other)) => {
                node.fields().count() == other.len()
                    && other.iter().all(|(name, value)| same(node.get(name), value))
            }
            _ => false,
        }
    }

    proptest! {
        /// I1: what is read is what was told, whatever that is.
        #[test]
        fn it_is_read_as_any_other_reader_reads_it(value in any_json()) {
            let text = value.to_string();
            let document = read(&text);
            prop_assert!(same(document.root(), &value), "{:?} of {}", document, text);
            prop_assert!(document.root() == read(&text).root());
        }
    }

    #[test]
    fn the_last_of_fields_with_one_name_counts_and_their_order_does_not() {
        let equal = |one: &str, other: &str| read(one).root() == read(other).root();
        assert_eq!(read(r#"{"a":1,"a":2}"#).root().get("a").as_i64(), Some(2));
        assert!(equal(r#"{"a":1,"b":2}"#, r#"{"b":2,"a":1}"#));
        assert!(!equal(r#"{"a":1}"#, r#"{"a":1,"b":2}"#));
        assert!(!equal(r#"{"a":null}"#, r#"{"b":null}"#));
        assert!(same(read(r#"{"\u0061":"\n"}"#).root(), &json!({"a": "\n"})));
    }

    /// I1: what is asked of another kind of value, or of one that is missing, is null.
    #[test]
    fn what_is_not_there_is_null() {
        let document = read(r#"{"a":[{"b":1},2],"c":{"a":3}}"#);
        let root = document.root();
        for missing in [root.get("b"), root.get("a").get("b"), root.get("c").get("a").get("a")] {
            assert!(!missing.is_told());
            assert_eq!(
                (missing.as_str(), missing.as_i64(), missing.list().count()),
                (None, None, 0)
            );
        }
        assert_eq!(root.get("c").get("a").as_i64(), Some(3));
        assert_eq!(root.list().count(), 0);
        assert_eq!(root.get("a").fields().count(), 0);
    }

    #[test]
    fn what_stands_as_it_is_told_is_not_copied() {
        let Document(entries) = read(r#"{"a":"b"}"#);
        let [_, Entry { name: Cow::Borrowed("a"), told: Told::Text(Cow::Borrowed("b")) }] =
            &entries[..]
        else {
            panic!("{entries:?}")
        };
    }
}
