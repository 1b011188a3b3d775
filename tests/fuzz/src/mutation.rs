//! Inputs that are like others, where there is no fuzzer.

/// Makes inputs out of seeds; the same seed makes the same.
#[derive(Debug, Clone)]
pub struct Mutation(u64);

/// What a number or a text may be cut off or led astray by.
const WORDS: &[&[u8]] = &[
    b"null",
    b"true",
    b"{}",
    b"[]",
    b"\"",
    b"\\u0000",
    b"\\ud800",
    b"-1",
    b"1e999",
    b"\xff",
    b"{",
    b"9223372036854775808",
    b"0.1",
    b"\xf0\x9f\xa6\x80",
    b":",
    b"%",
    b"~",
    b"\n",
    b"[[[[[[[[",
];

impl Mutation {
    /// The sequence of this seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// One of the seeds, or two that were put together, with a few changes.
    #[must_use]
    pub fn next(&mut self, seeds: &[Vec<u8>]) -> Vec<u8> {
        let mut input = self.choose(seeds).cloned().unwrap_or_default();
        if self.below(4) == 0 {
            let other = self.choose(seeds).cloned().unwrap_or_default();
            input.truncate(self.below(input.len() + 1));
            input.extend_from_slice(&other[self.below(other.len() + 1)..]);
        }
        for _ in 0..=self.below(4) {
            self.change(&mut input);
        }
        input
    }

    fn change(&mut self, input: &mut Vec<u8>) {
        let at = self.below(input.len() + 1);
        let end = (at + 1 + self.below(16)).min(input.len());
        match self.below(6) {
            0 => input.truncate(at),
            1 => drop(input.drain(at..end)),
            2 => {
                let piece = input[at..end].to_vec();
                let to = self.below(input.len() + 1);
                input.splice(to..to, piece);
            }
            3 => {
                let word = self.choose(WORDS).copied().unwrap_or_default();
                input.splice(at..at, word.iter().copied());
            }
            4 => {
                let word = self.choose(WORDS).copied().unwrap_or_default();
                input.splice(at..end, word.iter().copied());
            }
            _ => {
                if let Some(byte) = input.get_mut(at) {
                    *byte ^= 1 << (self.0 % 8);
                }
            }
        }
    }

    fn choose<'a, T>(&mut self, choices: &'a [T]) -> Option<&'a T> {
        let index = self.below(choices.len());
        choices.get(index)
    }

    /// A number below `bound`; 0 when that is 0. (SplitMix64.)
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^= mixed >> 31;
        usize::try_from(mixed % (bound.max(1) as u64)).unwrap_or(0)
    }
}
