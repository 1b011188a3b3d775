//! What the shop keeps of a customer.

use botmesh_core::Text;
use botmesh_core::prelude::*;
use serde::{Deserialize, Serialize};

use super::catalogue::Product;

/// All that is stored for one user.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Customer {
    pub(super) orders: Vec<Placed>,
}

/// An order that was placed.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Placed {
    /// Counts the orders of the customer from 1.
    pub(super) number: usize,
    /// Which conversation placed it; no conversation places two.
    pub(super) draft: String,
    pub(super) product: Product,
    pub(super) count: u32,
    /// Where it goes; none when it is picked up.
    pub(super) address: Option<String>,
}

impl Customer {
    /// Notes an order and returns its number. A draft that was placed before is not placed again.
    pub(super) fn place(&mut self, draft: &str, order: impl FnOnce(usize) -> Placed) -> usize {
        if let Some(placed) = self.orders.iter().find(|placed| placed.draft == draft) {
            return placed.number;
        }
        let number = self.orders.len() + 1;
        self.orders.push(order(number));
        number
    }

    pub(super) fn order(&self, number: usize) -> Option<&Placed> {
        self.orders.iter().find(|order| order.number == number)
    }
}

impl Placed {
    /// One line about it.
    pub(super) fn describe(&self) -> Text {
        t("shop.orders.line")
            .with("number", self.number.to_string())
            .with("count", self.count)
            .with("product", self.product.key())
            .with("price", self.product.price(self.count))
            .into()
    }
}
