use std::fmt::{Display, Write as _};

/// The arguments of a script call, one after the other in one text: there are many, and each would
/// be an allocation.
#[derive(Debug, Clone)]
pub(crate) struct Words {
    text: String,
    ends: Vec<usize>,
}

impl Words {
    /// Room for `words` words of some `bytes` in all.
    pub(crate) fn with_capacity(words: usize, bytes: usize) -> Self {
        Self { text: String::with_capacity(bytes), ends: Vec::with_capacity(words) }
    }

    /// Adds a word.
    pub(crate) fn push(&mut self, word: &str) {
        self.text.push_str(word);
        self.ends.push(self.text.len());
    }

    /// Adds a word as it is displayed.
    pub(crate) fn push_display(&mut self, word: impl Display) {
        // A text takes whatever is written into it.
        let _ = write!(self.text, "{word}");
        self.ends.push(self.text.len());
    }

    /// Adds all words of another list.
    pub(crate) fn extend(&mut self, words: &Self) {
        let begin = self.text.len();
        self.text.push_str(&words.text);
        self.ends.extend(words.ends.iter().map(|end| begin + end));
    }

    /// The words in their order.
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = &str> + Clone {
        let mut begin = 0;
        self.ends.iter().map(move |&end| {
            let word = self.text.get(begin..end).unwrap_or_default();
            begin = end;
            word
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn words_are_read_as_they_were_added(words in prop::collection::vec(".{0,8}", 0..6)) {
            let mut all = Words::with_capacity(1, 1);
            for (number, word) in words.iter().enumerate() {
                match number % 2 {
                    0 => all.push(word),
                    _ => all.push_display(word),
                }
            }
            prop_assert_eq!(&all.iter().collect::<Vec<_>>(), &words);
            prop_assert_eq!(all.iter().len(), all.ends.len());
            let mut twice = all.clone();
            twice.extend(&all);
            prop_assert_eq!(twice.iter().collect::<Vec<_>>(), [&words[..], &words[..]].concat());
        }
    }
}
