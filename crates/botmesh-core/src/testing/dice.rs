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

    /// True so many times of a thousand.
    pub const fn happens(&mut self, per_mille: u64) -> bool {
        self.below(1000) < per_mille
    }

    /// A time of so many milliseconds, both ends included.
    pub const fn millis(&mut self, from: u64, to: u64) -> Duration {
        Duration::from_millis(from + self.below(to - from + 1))
    }
}
