//! What there is to buy.

use serde::{Deserialize, Serialize};

/// One of the things on the shelf.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Product {
    #[default]
    Coffee,
    Tea,
    Cake,
}

impl Product {
    /// The word for it that the texts know.
    pub(super) const fn key(self) -> &'static str {
        match self {
            Self::Coffee => "coffee",
            Self::Tea => "tea",
            Self::Cake => "cake",
        }
    }

    const fn cents(self) -> u32 {
        match self {
            Self::Coffee => 350,
            Self::Tea => 280,
            Self::Cake => 420,
        }
    }

    /// What `count` of it cost.
    pub(super) fn price(self, count: u32) -> String {
        let cents = u64::from(self.cents()) * u64::from(count);
        format!("{}.{:02}", cents / 100, cents % 100)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_price_has_two_digits_of_cents_and_no_limit() {
        assert_eq!(Product::Coffee.price(2), "7.00");
        assert_eq!(Product::Tea.price(3), "8.40");
        assert_eq!(Product::Cake.price(u32::MAX), "18038862639.00");
    }
}
