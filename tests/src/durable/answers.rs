//! What a bot answers, and what can be told from the answers of a chat.

/// The answer to these words.
#[must_use]
pub fn to(words: &str) -> String {
    format!("re {words}")
}

/// How the answers of a chat differ from one answer to each message in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Differences {
    /// What was never answered.
    pub lost: Vec<String>,
    /// What was answered for the first time after something that was said later.
    pub out_of_order: Vec<String>,
    /// What was answered once more, as often as it was.
    pub repeated: Vec<String>,
    /// What nobody had asked for.
    pub strange: Vec<String>,
}

impl Differences {
    /// Compares what was heard in a chat with what was said in it.
    #[must_use]
    pub fn find(said: &[String], heard: &[String]) -> Self {
        let mut found = Self::default();
        let mut answered: Vec<usize> = Vec::new();
        for answer in heard {
            let Some(place) = said.iter().position(|words| to(words) == *answer) else {
                found.strange.push(answer.clone());
                continue;
            };
            if answered.contains(&place) {
                found.repeated.push(answer.clone());
                continue;
            }
            if answered.iter().any(|earlier| *earlier > place) {
                found.out_of_order.push(answer.clone());
            }
            answered.push(place);
        }
        let is_lost = |place: &usize| !answered.contains(place);
        found.lost.extend((0..said.len()).filter(is_lost).map(|place| said[place].clone()));
        found
    }

    /// Whether everything was answered in order, if some of it more than once.
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        self.lost.is_empty() && self.out_of_order.is_empty() && self.strange.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(all: &[&str]) -> Vec<String> {
        all.iter().map(|one| (*one).to_owned()).collect()
    }

    #[test]
    fn each_difference_is_told_by_its_name() {
        let said = words(&["a", "b", "c"]);
        let find = |heard: &[&str]| Differences::find(&said, &words(heard));
        assert_eq!(find(&["re a", "re b", "re c"]), Differences::default());
        let twice = find(&["re a", "re a", "re b", "re c"]);
        assert!(twice.is_whole() && twice.repeated == ["re a"], "{twice:?}");
        assert_eq!(find(&["re a", "re c"]).lost, ["b"]);
        assert_eq!(find(&["re b", "re a", "re c"]).out_of_order, ["re a"]);
        assert_eq!(find(&["re a", "re b", "re c", "hm"]).strange, ["hm"]);
    }
}
