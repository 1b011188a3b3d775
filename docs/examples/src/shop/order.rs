//! An order, from the shelf to the door.

use std::time::Duration;

use botmesh_core::message::{Attachment, AttachmentSource, MediaKind};
use botmesh_core::prelude::*;
use botmesh_core::{Doing, Flow, flow, flow_from, form};
use serde::{Deserialize, Serialize};

use super::catalogue::Product;
use super::customer::{Customer, Placed};

/// More than this is no business for a bot.
const MOST: u32 = 50;

const RECEIPT: &[u8] = include_bytes!("receipt.png");

/// An order that is not placed yet.
#[derive(Serialize, Deserialize)]
pub(super) struct Draft {
    /// Tells this order from all others.
    id: String,
    product: Product,
    count: u32,
    address: Option<Address>,
}

impl Draft {
    fn new() -> Self {
        let id = uuid::Uuid::new_v4().to_string();
        Self { id, product: Product::default(), count: 0, address: None }
    }

    fn placed(&self, number: usize) -> Placed {
        Placed {
            number,
            draft: self.id.clone(),
            product: self.product,
            count: self.count,
            address: self.address.as_ref().map(|to| format!("{}, {}", to.street, to.town)),
        }
    }
}

#[derive(Default, Serialize, Deserialize)]
struct Address {
    street: String,
    town: String,
}

pub(super) fn order() -> Flow<Draft> {
    flow_from("order", Draft::new)
        .enter_on(command("order"))
        .enter_on(button("shop:order"))
        .choose(
            t("shop.order.what"),
            [Product::Coffee, Product::Tea, Product::Cake]
                .map(|product| (t(format!("shop.product.{}", product.key())), product)),
            |draft: &mut Draft, product| draft.product = product,
        )
        .ask_with(
            |draft| {
                question(t("shop.order.count").with("product", draft.product.key()))
                    .retry(3, t("shop.order.count.again"))
            },
            |draft, answer| {
                draft.count = answer.parse()?;
                if draft.count == 0 { Err(Invalid::unexplained()) } else { Ok(()) }
            },
        )
        .branch(|draft| draft.count > MOST, "wholesale")
        .choose(
            t("shop.order.how"),
            [(t("shop.order.pick-up"), false), (t("shop.order.deliver"), true)],
            |draft, deliver| draft.address = deliver.then(Address::default),
        )
        .when(
            |draft| draft.address.is_some(),
            |order| {
                order.call(address(), |_| Address::default(), |draft, to| draft.address = Some(to))
            },
        )
        .do_(place)
        .end()
        .label("wholesale")
        .end_with(t("shop.order.wholesale"))
        .label("lapsed")
        .end_with(t("shop.order.lapsed"))
        .cancellable()
        .cancel_on(["never mind", "olvídalo"])
        .idle(Duration::from_secs(120), t("shop.order.still-there"))
        .timeout(Duration::from_secs(1800))
        .on_timeout("lapsed")
        .persistent()
}

/// Where to deliver.
fn address() -> Flow<Address> {
    flow("address")
        .form(
            form()
                .field("street", t("shop.address.street"), |to: &mut Address, answer| {
                    to.street = answer.text()?;
                    Ok(())
                })
                .field("town", t("shop.address.town"), |to, answer| {
                    to.town = answer.text()?;
                    Ok(())
                })
                .confirm(|to| {
                    t("shop.address.confirm")
                        .with("street", to.street.clone())
                        .with("town", to.town.clone())
                }),
        )
        .persistent()
}

/// Places the order and shows the receipt. A crash in here runs it again: the draft's id sees to
/// it that there is one order in the end.
async fn place(c: Doing<Draft>) -> Result<(), BotError> {
    c.typing().await?;
    let order = c.read(|draft| draft.placed(0));
    let mut number = 0;
    c.update_user(|customer: &mut Customer| {
        let place = |number| Placed { number, ..order.clone() };
        number = customer.place(&order.draft, place);
    })
    .await?;
    let receipt = t("shop.receipt")
        .with("number", number.to_string())
        .with("count", order.count)
        .with("product", order.product.key())
        .with("price", order.product.price(order.count));
    let picture = Attachment::new(MediaKind::Image, AttachmentSource::Bytes(RECEIPT.into()))
        .named("receipt.png")
        .with_mime("image/png");
    c.say(Reply::text(receipt).attach(picture)).await?;
    let next = match order.address {
        Some(address) => t("shop.order.on-its-way").with("address", address),
        None => t("shop.order.ready"),
    };
    c.say(next).await?;
    Ok(())
}
