//! Numbers from a seed, the same in every run.

use std::time::Duration;

/// SplitMix64: small, fast, and good enough to choose faults and keys.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// The sequence of `seed`.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A sequence of its own for part `index` of a run.
    #[must_use]
    pub fn part(seed: u64, index: u64) -> Self {
        let mut parent = Self(seed ^ index.wrapping_mul(0xA076_1D64_78BD_642F));
        Self(parent.number())
    }

    /// The next number.
    pub const fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, which is at least one.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.number() % bound.max(1)
    }

    /// One of `choices`; none when there are none.
    pub fn choose<'a, T>(&mut self, choices: &'a [T]) -> Option<&'a T> {
        let index = self.below(choices.len() as u64);
        choices.get(usize::try_from(index).ok()?)
    }

    /// A time between two.
    pub fn between(&mut self, least: Duration, most: Duration) -> Duration {
        let span = most.saturating_sub(least).as_micros();
        least + Duration::from_micros(self.below(u64::try_from(span).unwrap_or(u64::MAX) + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_numbers_and_its_parts_give_others() {
        let numbers = |mut random: Random| [random.number(), random.number(), random.below(10)];
        assert_eq!(numbers(Random::new(7)), numbers(Random::new(7)));
        assert_ne!(numbers(Random::part(7, 1)), numbers(Random::part(7, 2)));
        let (least, most) = (Duration::from_millis(3), Duration::from_millis(5));
        let mut random = Random::new(1);
        assert!((0..1000).all(|_| (least..=most).contains(&random.between(least, most))));
    }
}
