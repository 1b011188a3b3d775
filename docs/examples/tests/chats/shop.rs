use std::time::Duration;

use botmesh_core::message::{AttachmentSource, MediaKind, Outgoing};
use botmesh_core::testing::{User, World};
use botmesh_examples::shop::shop;

fn labels(message: &Outgoing) -> Vec<&str> {
    message.buttons.iter().map(|button| &*button.label).collect()
}

/// Orders two coffees to be picked up.
async fn order_coffee(user: &mut User) {
    user.says("/order").await.hears("What would you like?");
    user.presses("Coffee").await.hears("How many coffees?");
    user.says("2").await.hears("Shall we deliver it?");
    user.presses("I pick it up").await;
}

#[tokio::test(start_paused = true)]
async fn an_order_from_the_menu_to_the_receipt() {
    let world = World::new(shop).await;
    let mut ana = world.user("ana");
    let menu = ana.says("/start").await.hears_something();
    assert_eq!(menu.text, "Welcome to the corner shop! What can I do for you?");
    assert_eq!(labels(&menu), ["Order something", "Where is my order?", "My orders", "Language"]);
    let shelf = ana.presses("Order something").await.hears_something();
    assert_eq!(labels(&shelf), ["Coffee", "Tea", "Cake"]);
    ana.presses("Cake").await.hears("How many pieces of cake?");
    ana.says("some").await.hears("A number, please, such as 2.");
    ana.says("3").await.hears("Shall we deliver it?");
    ana.presses("Deliver it").await.hears("Which street and number?");
    ana.says("Main Street 5").await.hears("Which town?");
    ana.says("Cali").await.hears("Main Street 5, Cali: is that right?");
    let receipt = ana.presses("Yes").await.hears_something();
    assert_eq!(receipt.text, "Order 1: 3 × cake, 12.60 €.");
    assert_eq!(receipt.attachments.len(), 1);
    assert_eq!(receipt.attachments[0].kind, MediaKind::Image);
    let AttachmentSource::Bytes(picture) = &receipt.attachments[0].source else { panic!() };
    assert!(picture.starts_with(b"\x89PNG"));
    ana.hears("It is on its way to Main Street 5, Cali.").hears_nothing();
}

#[tokio::test(start_paused = true)]
async fn the_address_can_be_corrected() {
    let world = World::new(shop).await;
    let mut ana = world.user("ana");
    ana.says("/order").await.hears("What would you like?");
    ana.says("tea").await.hears("How many teas?");
    ana.says("1").await.hears("Shall we deliver it?");
    ana.says("2").await.hears("Which street and number?");
    ana.says("Main Street 5").await.hears("Which town?");
    ana.says("Calli").await.hears("Main Street 5, Calli: is that right?");
    ana.presses("Change").await.hears("Which street and number?");
    ana.says("Main Street 5").await.hears("Which town?");
    ana.says("Cali").await.hears("Main Street 5, Cali: is that right?");
    ana.presses("Yes").await.hears("Order 1: 1 × tea, 2.80 €.");
}

#[tokio::test(start_paused = true)]
async fn a_large_order_takes_the_other_branch() {
    let world = World::new(shop).await;
    let mut ana = world.user("ana");
    ana.says("/order").await.hears("What would you like?");
    ana.presses("Tea").await.hears("How many teas?");
    ana.says("51").await.hears("That is a lot! Please call us, and we find a good price.");
    ana.says("/orders").await.hears("You have not ordered anything yet.");
}

/// A10: the whole shop speaks both languages, and changes in the middle of an order.
#[tokio::test(start_paused = true)]
async fn the_language_changes_in_the_middle_of_an_order_and_is_kept() {
    let mut world = World::new(shop).await;
    let mut ana = world.user("ana");
    ana.says("/language").await.hears("Which language shall we speak?");
    ana.presses("Español").await.hears("Ahora hablamos español.");
    let shelf = ana.says("/order").await.hears_something();
    assert_eq!(shelf.text, "¿Qué te gustaría?");
    assert_eq!(labels(&shelf), ["Café", "Té", "Torta"]);
    ana.presses("Té").await.hears("¿Cuántos tés?");
    world.restart().await;
    ana.says("muchos").await.hears("Un número, por favor; por ejemplo, 2.");
    ana.says("/en").await.hears("We speak English now.");
    ana.says("2").await.hears("Shall we deliver it?");
    ana.says("/es").await.hears("Ahora hablamos español.");
    ana.says("lo recojo").await.hears("Pedido 1: 2 × té, 5.60 €.");
    ana.hears("Estará listo en diez minutos.");
    ana.says("/order").await.hears("¿Qué te gustaría?");
    ana.says("olvídalo").await.hears("De acuerdo, cancelado.");
    ana.says("/orders").await.hears("Tienes un pedido:").hears("1: 2 × té, 5.60 €");
    ana.says("/track").await.hears("¿De qué pedido hablas?");
    ana.says("7").await.hears("No conozco ese pedido. ¿Qué número tiene?");
    ana.says("salir").await.hears("De acuerdo, cancelado.");
}

/// A5: cancel words end an order at any of its questions, also in the flow that it calls.
#[tokio::test(start_paused = true)]
async fn an_order_is_cancelled_at_any_question() {
    let world = World::new(shop).await;
    for (number, word) in ["cancel", "STOP", "never mind"].into_iter().enumerate() {
        let mut user = world.user(&format!("user-{number}"));
        user.says("/order").await.hears("What would you like?");
        user.presses("Tea").await.hears("How many teas?");
        user.says("1").await.hears("Shall we deliver it?");
        user.presses("Deliver it").await.hears("Which street and number?");
        user.says(word).await.hears("All right, cancelled.");
        user.says("/orders").await.hears("You have not ordered anything yet.");
    }
}

/// A5: the watchdog asks once, and in the end the order goes back.
#[tokio::test(start_paused = true)]
async fn silence_is_noticed_and_then_the_order_lapses() {
    let world = World::new(shop).await;
    let mut ana = world.user("ana");
    ana.says("/order").await.hears("What would you like?");
    world.advance(Duration::from_secs(120)).await;
    ana.hears("Are you still there? Your order waits for you.");
    world.advance(Duration::from_secs(1679)).await;
    ana.hears_nothing();
    world.advance(Duration::from_secs(1)).await;
    ana.hears("I have put your order back on the shelf. Say /order to begin again.");
    ana.says("tea").await.hears("Say /start to see what I can do.");
}

#[tokio::test(start_paused = true)]
async fn a_button_that_is_pressed_twice_orders_once() {
    let world = World::new(shop).await;
    let mut ana = world.user("ana");
    order_coffee(&mut ana).await;
    ana.hears("Order 1: 2 × coffee, 7.00 €.").hears("It is ready for you in ten minutes.");
    ana.presses("I pick it up").await.hears("This button no longer works.");
    ana.presses("Coffee").await.hears("This button no longer works.");
    ana.says("/orders").await.hears("You have one order:").hears("1: 2 × coffee, 7.00 €");
    ana.hears_nothing();
}

#[tokio::test(start_paused = true)]
async fn the_conversation_tells_where_an_order_is() {
    let world = World::new(shop).await;
    let mut ana = world.user("ana");
    ana.says("/track").await.hears("You have not ordered anything yet.");
    order_coffee(&mut ana).await;
    ana.hears("Order 1: 2 × coffee, 7.00 €.").hears("It is ready for you in ten minutes.");
    let which = ana.says("/track").await.hears_something();
    assert_eq!((&*which.text, labels(&which)), ("Which order do you mean?", vec!["1"]));
    ana.says("2").await.hears("I know no such order. Which number does it have?");
    ana.presses("1").await.hears("Order 1 waits for you at the counter.");
    let mut bob = world.user("bob");
    bob.says("/track").await.hears("You have not ordered anything yet.");
}

/// A7: the shop goes on at the same question after a crash at each, in the sub-flow too.
#[tokio::test(start_paused = true)]
async fn an_order_survives_a_crash_at_each_of_its_questions() {
    let mut world = World::new(shop).await;
    let mut ana = world.user("ana");
    ana.says("/order").await.hears("What would you like?");
    let answers = [
        ("Coffee", "How many coffees?"),
        ("2", "Shall we deliver it?"),
        ("Deliver it", "Which street and number?"),
        ("Main Street 5", "Which town?"),
        ("Cali", "Main Street 5, Cali: is that right?"),
        ("yes", "Order 1: 2 × coffee, 7.00 €."),
    ];
    for (answer, next) in answers {
        world.restart().await;
        ana.hears_nothing();
        ana.says(answer).await.hears(next);
    }
    ana.hears("It is on its way to Main Street 5, Cali.").hears_nothing();
    world.restart().await;
    ana.says("/orders").await.hears("You have one order:");
}

/// A7: a crash while the order is being placed leaves one order, not two.
#[tokio::test(start_paused = true)]
async fn a_crash_after_the_order_was_placed_does_not_place_it_twice() {
    let mut world = World::new(shop).await;
    let mut ana = world.user("ana");
    ana.says("/order").await.hears("What would you like?");
    ana.presses("Coffee").await.hears("How many coffees?");
    ana.says("2").await.hears("Shall we deliver it?");
    world.platform().delay_sends(Duration::from_secs(10));
    let platform = world.platform().clone();
    platform.says(ana.chat(), "1").await.unwrap();
    tokio::time::sleep(Duration::from_secs(5)).await;
    world.crash();
    world.platform().delay_sends(Duration::ZERO);
    world.restart().await;
    ana.hears_nothing();
    // The step runs again before whatever comes next is looked at.
    ana.says("/orders").await.hears("Order 1: 2 × coffee, 7.00 €.");
    ana.hears("It is ready for you in ten minutes.");
    ana.hears("You have one order:").hears("1: 2 × coffee, 7.00 €");
    ana.hears_nothing();
}

#[tokio::test(start_paused = true)]
async fn a_chat_that_is_too_fast_is_told_once_and_others_are_served() {
    let world = World::new(shop).await;
    let (mut ana, mut bob) = (world.user("ana"), world.user("bob"));
    ana.says_at_once(std::iter::repeat_n("x", 25)).await;
    for _ in 0..20 {
        ana.hears("Say /start to see what I can do.");
    }
    ana.hears("One thing at a time, please: I am still reading.").hears_nothing();
    bob.says("x").await.hears("Say /start to see what I can do.");
    world.advance(Duration::from_secs(10)).await;
    ana.says("x").await.hears("Say /start to see what I can do.");
}
