use std::time::Duration;

/// Random numbers of a seed (SplitMix64): the same on every machine.
#[derive(Debug, Clone)]
pub struct Dice(u64);

impl Dice {
    /// Dice of their own for one part of a run, so that parts do not disturb each other.
    #[must_use]
    pub const fn new(seed: u64, part: u64) -> Self {
        let mut dice = Self(seed ^ part.wrapping_mul(0xd6e8_feb8_6659_fd93));
        dice.next();
        dice
    }

    const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`; 0 when that is 0.
    pub const fn below(&mut self, end: u64) -> u64 {
        self.next() % if end == 0 { 1 } else { end }
    }

    /// An index of a list of this length; 0 when it is empty.
    pub fn pick(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).unwrap_or(0)
    }

    /// One of these; none when there are none.
    pub fn choose<'a, T>(&mut self, choices: &'a [T]) -> Option<&'a T> {
        choices.get(self.pick(choices.len()))
    }

    /// True so many times of a thousand.
    pub const fn happens(&mut self, per_mille: u64) -> bool {
        self.below(1000) < per_mille
    }

    /// A time of so many milliseconds, both ends included.
    pub const fn millis(&mut self, from: u64, to: u64) -> Duration {
        Duration::from_millis(from + self.below(to - from + 1))
    }

    /// A time between two, both included.
    pub fn between(&mut self, least: Duration, most: Duration) -> Duration {
        let span = u64::try_from(most.saturating_sub(least).as_micros()).unwrap_or(u64::MAX);
        least + Duration::from_micros(self.below(span.saturating_add(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_numbers_and_its_parts_give_others() {
        let numbers = |mut dice: Dice| [dice.below(100), dice.below(1_000_000), dice.below(10)];
        assert_eq!(numbers(Dice::new(7, 1)), numbers(Dice::new(7, 1)));
        assert_ne!(numbers(Dice::new(7, 1)), numbers(Dice::new(7, 2)));
        assert_ne!(numbers(Dice::new(7, 1)), numbers(Dice::new(8, 1)));
    }

    #[test]
    fn what_is_chosen_lies_within_its_bounds() {
        let mut dice = Dice::new(1, 0);
        let (least, most) = (Duration::from_millis(3), Duration::from_millis(5));
        assert!((0..1000).all(|_| (least..=most).contains(&dice.between(least, most))));
        assert_eq!(dice.choose::<u8>(&[]), None);
        assert!((0..100).all(|_| dice.choose(&[1, 2]).is_some()));
    }
}
