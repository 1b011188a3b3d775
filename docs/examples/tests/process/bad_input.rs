use std::path::Path;
use std::process::Stdio;

use botmesh_core::store::CheckpointStore;
use botmesh_core::terminal::Terminal;
use botmesh_sqlite_store::SqliteStore;
use sqlx::{ConnectOptions as _, SqliteConnection};

use crate::chat::{Chat, command};

/// What the store says of a file that is locked for longer than it waits.
const HELD: &str = "another process held it for longer than 5s";

/// Starts `signup` with a database that it cannot use; returns what it says on standard error.
fn refusal(database: &Path) -> String {
    let output = command("signup", database).stdin(Stdio::null()).output().unwrap();
    assert!(!output.status.success(), "{output:?}");
    assert_eq!(output.stdout, b"");
    String::from_utf8(output.stderr).unwrap()
}

/// What another process does that holds the file.
async fn other(path: &Path) -> SqliteConnection {
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(path);
    options.create_if_missing(true).connect().await.unwrap()
}

async fn run(connection: &mut SqliteConnection, statement: &'static str) {
    sqlx::raw_sql(statement).execute(connection).await.unwrap();
}

/// Waits until the file says that the question is out.
async fn question_is_stored(path: &Path) {
    let store = SqliteStore::open(path).await.unwrap();
    let terminal = Terminal::new();
    loop {
        let checkpoint = store.load_checkpoint(terminal.chat_key()).await.unwrap();
        if checkpoint.is_some_and(|checkpoint| checkpoint.body.contains("\"asked\":1")) {
            return store.close().await;
        }
    }
}

#[test]
fn invalid_utf_8_on_the_pipe_is_reported_and_the_chat_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    let mut chat = Chat::start("signup", &directory.path().join("signup.db"));
    chat.types_bytes(b"/signup\n\xff\xfe\nAna\n");
    chat.shows("bot> What is your name?").shows("bot> How old are you?");
    let report = chat.next_error();
    assert_eq!(report, "terminal: line 2 is not valid UTF-8 and was skipped: send text as UTF-8");
    let (status, shown, errors) = chat.ends();
    assert!(status.success());
    assert_eq!((shown, errors), (vec![], vec![]));
}

#[test]
fn a_database_path_that_cannot_be_used_is_told_with_the_remedy() {
    let directory = tempfile::tempdir().unwrap();
    let missing = directory.path().join("missing");
    let said = refusal(&missing.join("signup.db"));
    let remedy = format!("there is no directory {}: create it", missing.display());
    assert!(said.starts_with("Error: ") && said.contains(&remedy), "{said}");
    let said = refusal(directory.path());
    assert!(said.contains("is a directory: name a file in it"), "{said}");
    let text = directory.path().join("notes.txt");
    std::fs::write(&text, "not a database, but long enough to look like one".repeat(100)).unwrap();
    let said = refusal(&text);
    assert!(said.contains("is not an SQLite database: choose another path"), "{said}");
}

#[tokio::test]
async fn a_database_that_another_process_holds_is_told_at_the_start() {
    let directory = tempfile::tempdir().unwrap();
    let database = directory.path().join("signup.db");
    let mut other = other(&database).await;
    run(&mut other, "BEGIN EXCLUSIVE").await;
    let said = tokio::task::spawn_blocking(move || refusal(&database)).await.unwrap();
    assert!(said.starts_with("Error: ") && said.contains(HELD), "{said}");
}

/// The answer is not taken, the operator is told, and the user answers again.
#[tokio::test]
async fn a_database_that_is_locked_for_a_while_costs_the_answer_and_nothing_else() {
    let directory = tempfile::tempdir().unwrap();
    let database = directory.path().join("signup.db");
    let mut chat = Chat::start("signup", &database);
    chat.types("/signup").shows("bot> What is your name?");
    // What follows a question in the store would otherwise meet the lock, instead of the answer.
    question_is_stored(&database).await;
    let mut other = other(&database).await;
    run(&mut other, "BEGIN IMMEDIATE").await;
    chat.types("Ana");
    let failure = chat.next_error();
    assert!(failure.starts_with("the conversation signup failed: "), "{failure}");
    assert!(failure.contains(HELD), "{failure}");
    run(&mut other, "ROLLBACK").await;
    chat.types("Ana");
    chat.shows("bot> How old are you?");
    chat.types("36").shows("bot> Nice to meet you, Ana (36).");
    let (status, shown, errors) = chat.ends();
    assert!(status.success());
    assert_eq!((shown, errors), (vec![], vec![]));
}
