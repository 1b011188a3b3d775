//! The table of what platforms can do, as the code says it.

use std::fmt::Write as _;

use botmesh_core::provider::{Capabilities, ChoiceLimits, Provider};
use botmesh_core::terminal::Terminal;
use botmesh_core::testing::TestProvider;
use botmesh_telegram::Telegram;
use botmesh_telegram::testing::FakeTelegram;

const BEGIN: &str = "<!-- capabilities -->\n";
const END: &str = "<!-- /capabilities -->";

type Ability = (&'static str, fn(&Capabilities) -> String, &'static str);

fn word(has: bool) -> String {
    if has { "yes" } else { "no" }.to_owned()
}

fn limits(limits: Option<ChoiceLimits>) -> String {
    match limits {
        None => word(false),
        Some(ChoiceLimits { most: usize::MAX, label: usize::MAX, .. }) => word(true),
        Some(ChoiceLimits { most, label: usize::MAX, .. }) => format!("up to {most}"),
        Some(ChoiceLimits { most, label, .. }) => format!("up to {most} of {label} characters"),
    }
}

const ABILITIES: [Ability; 12] = [
    ("one connection at a time", |able| word(able.exclusive_session), "all replicas are connected"),
    (
        "formatting",
        |able| word(able.formatting),
        "the words; an address behind the words of a link",
    ),
    ("buttons", |able| limits(able.buttons), "a list"),
    ("lists", |able| limits(able.list), "numbered lines; a number or a label is a press"),
    ("media, sent", |able| word(able.media), "`Unsupported`"),
    ("media, downloaded", |able| word(able.download), "`Unsupported`"),
    ("places", |able| word(able.location), "a line with the address of a map"),
    ("edits", |able| word(able.edit), "`Unsupported`"),
    ("deletions", |able| word(able.delete), "`Unsupported`"),
    ("reactions", |able| word(able.react), "`Unsupported`"),
    ("typing", |able| word(able.typing), "nothing is shown"),
    (
        "idempotent sends",
        |able| word(able.idempotent_send),
        "a send that is repeated may come twice",
    ),
];

fn table() -> String {
    let telegram = Telegram::polling(FakeTelegram::TOKEN).build().unwrap();
    let called = Telegram::webhook(FakeTelegram::TOKEN, "https://b.example").build().unwrap();
    let platforms = [
        ("terminal", Terminal::new().capabilities()),
        ("tests", TestProvider::new().capabilities()),
        ("Telegram, polling", telegram.capabilities()),
        ("Telegram, webhook", called.capabilities()),
    ];
    let mut table = String::from("| |");
    for (name, _) in &platforms {
        write!(table, " {name} |").unwrap();
    }
    table.push_str(" without it |\n|---|");
    table.push_str(&"---|".repeat(platforms.len() + 1));
    for (name, has, otherwise) in ABILITIES {
        write!(table, "\n| {name} |").unwrap();
        for (_, able) in &platforms {
            write!(table, " {} |", has(able)).unwrap();
        }
        write!(table, " {otherwise} |").unwrap();
    }
    table + "\n"
}

/// A8: the table in the guide says what the code does. `BOTMESH_UPDATE=1` writes it anew.
#[test]
fn the_table_of_capabilities_is_what_the_code_says() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../guide/platforms.md");
    let text = std::fs::read_to_string(path).unwrap();
    let begin = text.find(BEGIN).expect("the table has a beginning") + BEGIN.len();
    let end = text.find(END).expect("the table has an end");
    let right = table();
    if std::env::var("BOTMESH_UPDATE").is_ok_and(|set| set == "1") {
        std::fs::write(path, format!("{}{right}{}", &text[..begin], &text[end..])).unwrap();
    } else {
        assert_eq!(&text[begin..end], right, "run this test with BOTMESH_UPDATE=1");
    }
}
