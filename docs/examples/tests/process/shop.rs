use crate::chat::Chat;

/// A7: the shop, killed with -9 at each question of an order, goes on at the same.
#[test]
fn an_order_that_is_killed_at_each_question_goes_on_at_the_same() {
    let directory = tempfile::tempdir().unwrap();
    let database = directory.path().join("shop.db");
    let mut chat = Chat::start("shop", &database);
    let answers: [(&str, &[&str]); 6] = [
        ("/order", &["bot> What would you like?", "  [1] Coffee", "  [2] Tea", "  [3] Cake"]),
        ("1", &["bot> How many coffees?"]),
        ("2", &["bot> Shall we deliver it?", "  [1] I pick it up", "  [2] Deliver it"]),
        ("2", &["bot> Which street and number?"]),
        ("Main Street 5", &["bot> Which town?"]),
        (
            "Cali",
            &[
                "bot> Main Street 5, Cali: is that right?",
                "  [1] Yes",
                "  [2] Change",
                "  [3] Cancel",
            ],
        ),
    ];
    let mut asked: &[&str] = &[];
    for (answer, question) in answers {
        chat.types(answer);
        assert_next(&mut chat, asked, question);
        chat.kill();
        chat = Chat::start("shop", &database);
        asked = question;
    }
    chat.types("1");
    assert_next(
        &mut chat,
        asked,
        &[
            "bot> [image] Order 1: 2 × coffee, 7.00 €. <receipt.png: 178 bytes>",
            "bot> It is on its way to Main Street 5, Cali.",
        ],
    );
    let (status, ..) = chat.ends();
    assert!(status.success());
    chat = Chat::start("shop", &database);
    chat.types("/orders").shows("bot> You have one order:").shows("bot> 1: 2 × coffee, 7.00 €");
    let (status, shown, errors) = chat.ends();
    assert!(status.success());
    assert_eq!((shown, errors), (vec![], vec![]));
}

/// The next lines are these; before them the question `asked` may come once more, when the
/// process was killed before the store knew that it was out.
fn assert_next(chat: &mut Chat, asked: &[&str], expected: &[&str]) {
    let mut first = chat.next();
    if asked.first() == Some(&&*first) {
        for line in &asked[1..] {
            chat.shows(line);
        }
        first = chat.next();
    }
    assert_eq!(Some(&&*first), expected.first());
    for line in &expected[1..] {
        chat.shows(line);
    }
}

/// A11: the same shop on a pipe, in Spanish.
#[test]
fn a_piped_script_walks_through_the_shop_in_spanish() {
    let directory = tempfile::tempdir().unwrap();
    let mut chat = Chat::start("shop", &directory.path().join("shop.db"));
    chat.types_bytes("/es\n/order\ntorta\n1\nlo recojo\n/track\n1\n".as_bytes());
    let (status, shown, errors) = chat.ends();
    assert!(status.success());
    assert_eq!(errors, Vec::<String>::new());
    let expected = [
        "bot> Ahora hablamos español.",
        "bot> ¿Qué te gustaría?",
        "  [1] Café",
        "  [2] Té",
        "  [3] Torta",
        "bot> ¿Cuántos pedazos de torta?",
        "bot> ¿Te lo llevamos?",
        "  [1] Lo recojo",
        "  [2] A domicilio",
        "bot> [image] Pedido 1: 1 × torta, 4.20 €. <receipt.png: 178 bytes>",
        "bot> Estará listo en diez minutos.",
        "bot> ¿De qué pedido hablas?",
        "  [1] 1",
        "bot> El pedido 1 te espera en el mostrador.",
    ];
    assert_eq!(shown, expected);
}
