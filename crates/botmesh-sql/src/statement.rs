use std::fmt::Write as _;
use std::sync::Arc;

use crate::dialect::Dialect;
use crate::prefix::TablePrefix;
use crate::value::Value;

/// A statement as its backend reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    text: Arc<str>,
    /// Which value each placeholder stands for, where placeholders have no numbers.
    places: Arc<[usize]>,
    answer: Answer,
    before: Arc<[Statement]>,
}

/// Where the rows of a statement come from.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Answer {
    /// The backend returns them.
    Rows,
    /// MySQL: one row with the number that the statement gave to `LAST_INSERT_ID`; no row if that
    /// is zero.
    InsertId,
}

impl Statement {
    /// The text.
    #[must_use]
    pub fn text(&self) -> &Arc<str> {
        &self.text
    }

    /// What is run before it, in this order, on the same values and in one transaction. The rows of
    /// all of them are the answer, one after the other. Only SQLite and MySQL have such statements.
    #[must_use]
    pub fn before(&self) -> &[Self] {
        &self.before
    }

    /// Where its rows come from.
    #[must_use]
    pub const fn answer(&self) -> &Answer {
        &self.answer
    }

    /// The values for placeholders without numbers, from the first one to the last.
    pub fn in_places<'a>(&'a self, values: &'a [Value]) -> impl Iterator<Item = &'a Value> {
        self.places.iter().map(|place| values.get(*place).unwrap_or(&Value::Null))
    }

    /// The same statement, whose rows come from elsewhere.
    #[must_use]
    pub fn answered_by(mut self, answer: Answer) -> Self {
        self.answer = answer;
        self
    }

    /// The last of these statements, which is preceded by the others; an empty one if there are none.
    pub(crate) fn in_turn(mut statements: Vec<Self>) -> Self {
        let last = statements.pop().unwrap_or_else(|| Self::numbered(String::new()));
        Self { before: statements.into(), ..last }
    }

    /// A statement of a dialect whose placeholders have numbers.
    pub(crate) fn numbered(text: String) -> Self {
        let (places, before) = (Arc::default(), Arc::default());
        Self { text: text.into(), places, answer: Answer::Rows, before }
    }
}

/// Writes the statement of a template.
pub(crate) struct Rendering<'a> {
    pub(crate) dialect: &'a Dialect,
    prefix: &'a TablePrefix,
    text: String,
    places: Vec<usize>,
}

impl<'a> Rendering<'a> {
    pub(crate) fn new(dialect: &'a Dialect, prefix: &'a TablePrefix) -> Self {
        Self { dialect, prefix, text: String::new(), places: Vec::new() }
    }

    pub(crate) fn finish(self) -> Statement {
        Statement { places: self.places.into(), ..Statement::numbered(self.text) }
    }

    pub(crate) fn template(&mut self, template: &str) {
        self.text.reserve(template.len() * 2);
        let mut rest = template;
        while let Some((before, after)) = rest.split_once('{') {
            self.text.push_str(before);
            let (word, after) = after.split_once('}').unwrap_or((after, ""));
            self.word(word);
            rest = after;
        }
        self.text.push_str(rest);
    }

    fn word(&mut self, word: &str) {
        if let Some(meaning) = self.dialect.word(word) {
            return self.template(meaning);
        }
        match word {
            "p" => self.prefix.write_qualified(&mut self.text),
            "index" => self.text.push_str(self.prefix.as_str()),
            _ => match word.strip_prefix("new ") {
                Some(column) if self.dialect.returning => {
                    self.text.extend(["excluded.", column]);
                }
                Some(column) => self.text.extend(["VALUES(", column, ")"]),
                None => self.place(word),
            },
        }
    }

    fn place(&mut self, number: &str) {
        self.text.push(self.dialect.placeholder);
        if self.dialect.numbered {
            self.text.push_str(number);
        } else {
            // A word that is no number is a mistake in a template: the statement then has a null.
            self.places.push(number.parse::<usize>().unwrap_or(0).wrapping_sub(1));
        }
    }

    /// Writes templates with a separator between them.
    pub(crate) fn list<T>(
        &mut self,
        separator: &str,
        items: impl IntoIterator<Item = T>,
        write: impl Fn(&mut Self, T),
    ) {
        for (index, item) in items.into_iter().enumerate() {
            if index > 0 {
                self.text.push_str(separator);
            }
            write(self, item);
        }
    }

    pub(crate) fn pair(&mut self, column: &str, separator: &str, value: &str) {
        // Writing to a string cannot fail.
        let _ = write!(self.text, "{column}{separator}");
        self.template(value);
    }
}
