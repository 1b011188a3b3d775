/// 64-bit FNV-1a: the same in each process and release, unlike the hashes of tables.
#[derive(Clone, Copy)]
pub(crate) struct StableHash(u64);

impl StableHash {
    pub(crate) const fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    pub(crate) const fn get(self) -> u64 {
        self.0
    }

    /// The hash of one text.
    pub(crate) fn of(text: &str) -> u64 {
        let mut hash = Self::new();
        hash.bytes(text.as_bytes());
        hash.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// F2: the hash is the published FNV-1a.
    #[test]
    fn the_hash_is_fnv_1a() {
        for (text, expected) in [
            ("", 0xcbf2_9ce4_8422_2325),
            ("a", 0xaf63_dc4c_8601_ec8c),
            ("foobar", 0x8594_4171_f739_67e8),
        ] {
            assert_eq!(StableHash::of(text), expected, "{text}");
        }
    }
}
