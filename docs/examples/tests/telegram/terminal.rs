//! The same conversation on the terminal.

use std::process::Stdio;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::Command;

use crate::process::{PATIENCE, example};
use crate::story::{Act, STORY, plain};

/// A8: the shop, unchanged, on the terminal: a button is pressed by its label.
#[tokio::test]
async fn the_shop_sells_a_cake_on_the_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let mut shop = Command::new(example("shop"))
        .env("BOTMESH_DB", folder.path().join("shop.db"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut keyboard = shop.stdin.take().unwrap();
    let mut screen = BufReader::new(shop.stdout.take().unwrap()).lines();
    for (act, answers) in STORY {
        let (Act::Says(typed) | Act::Presses(typed)) = act;
        keyboard.write_all(format!("{typed}\n").as_bytes()).await.unwrap();
        for answer in *answers {
            let shown = async {
                loop {
                    let line = plain(&screen.next_line().await.unwrap().expect("the shop ended"));
                    // Buttons and pictures have lines of their own.
                    if line.contains(answer) {
                        return;
                    }
                }
            };
            let shown = tokio::time::timeout(PATIENCE, shown).await;
            assert!(shown.is_ok(), "{answer:?} was not shown after {act:?}");
        }
    }
}
