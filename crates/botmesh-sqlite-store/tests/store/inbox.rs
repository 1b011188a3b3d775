use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use botmesh_core::Fence;
use botmesh_core::id::{MessageId, Position};
use botmesh_core::store::{
    Admission, Begun, CheckpointChange, CheckpointStore, Commit, Committed, InboxStore, NewRecord,
    Store as _, StoreError,
};
use botmesh_sqlite_store::{SqliteStore, SqliteStoreBuilder, Synchronous};

use crate::{body, chat};

const MINUTE: Duration = Duration::from_secs(60);

async fn admit(
    inbox: &dyn InboxStore,
    name: &str,
    number: u64,
    body: &str,
) -> Result<Position, StoreError> {
    let (chat, message) = (chat(name), MessageId::new(number.to_string()).unwrap());
    let (message, body) = (Some(&message), Some(body));
    let new = NewRecord { chat: &chat, message, body, lease: MINUTE, most: 9_999 };
    match inbox.admit(new).await? {
        Admission::New { position, .. } => Ok(position),
        other => panic!("{other:?}"),
    }
}

/// Tells a child process which file to write to.
const FILE: &str = "BOTMESH_TEST_KILLED_PROCESSOR";

/// The part of the child in the test below; without its file it has nothing to do.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_processor() {
    let Some(path) = std::env::var_os(FILE) else { return };
    let store = SqliteStore::open(path).await.unwrap();
    let tasks: Vec<_> = (0..8)
        .map(|task| {
            let store = store.clone();
            tokio::spawn(async move {
                let (name, inbox) = (task.to_string(), store.inbox().unwrap());
                let chat = chat(&name);
                let mut expected = None;
                for number in 1_u64.. {
                    let text = number.to_string();
                    let position = admit(inbox, &name, number, &text).await.unwrap();
                    println!("admitted {task} {number}");
                    let fence = Fence::new(1);
                    inbox.begin(&chat, fence, MINUTE).await.unwrap();
                    let checkpoint = CheckpointChange::Set { write: body(&text), expected };
                    let commit = Commit { chat: &chat, position, fence, checkpoint };
                    let committed = inbox.commit(commit).await.unwrap();
                    let Committed::Applied(revision) = committed else { panic!("{committed:?}") };
                    expected = revision;
                    // One call, so that lines of different tasks do not mix.
                    let line = format!("ended {task} {number}\n");
                    std::io::stdout().write_all(line.as_bytes()).unwrap();
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
}

/// Kills a process that processes messages without pause, and gives what was confirmed: for each
/// chat the last message that was admitted, and the last that was ended.
fn kill_after(path: &Path, ended_at_least: usize) -> Vec<(u64, u64)> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "inbox::killed_processor", "--nocapture"])
        .env(FILE, path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut confirmed = vec![(0, 0); 8];
    let mut count = 0;
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let Ok(line) = line else { break };
        let words: Vec<_> = line.split(' ').collect();
        let [what, task, number] = words[..] else { continue };
        let (Ok(task), Ok(number)) = (task.parse::<usize>(), number.parse()) else { continue };
        match what {
            "admitted" => confirmed[task].0 = number,
            "ended" => {
                confirmed[task].1 = number;
                count += 1;
            }
            _ => continue,
        }
        if count == ended_at_least {
            // SIGKILL; what it has written to the pipe until then is still read.
            child.kill().unwrap();
        }
    }
    child.wait().unwrap();
    assert!(count >= ended_at_least, "the processor ended after {count} messages");
    confirmed
}

/// G3, G7: after `kill -9` at whatever moment, what was admitted is there, and each record has ended
/// together with its checkpoint or is pending beside the one before.
#[tokio::test]
async fn records_and_checkpoints_survive_kill_9_together() {
    for ended_at_least in [1, 100, 500] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("bot.db");
        let confirmed = kill_after(&path, ended_at_least);
        let store = SqliteStore::open(&path).await.unwrap();
        let inbox = store.inbox().unwrap();
        for (task, (admitted, ended)) in confirmed.into_iter().enumerate() {
            let chat = chat(&task.to_string());
            let row = store.load_checkpoint(&chat).await.unwrap();
            let stored: u64 = row.map_or(0, |row| row.body.parse().unwrap());
            assert!(stored == ended || stored == ended + 1, "{stored} after {ended}");
            match inbox.begin(&chat, Fence::new(2), MINUTE).await.unwrap() {
                Begun::Record(record) => {
                    assert_eq!(record.body, (stored + 1).to_string());
                    assert!(!record.has_more);
                }
                Begun::Nothing => assert!(stored >= admitted, "{admitted} was lost"),
                other => panic!("{other:?}"),
            }
        }
    }
}

/// B7: a full disk is told as such, of the records that do not fit and of no other, and nothing is
/// there in part.
#[tokio::test]
async fn an_inbox_on_a_full_disk_says_so_and_loses_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("bot.db");
    let store = SqliteStore::builder(&path).max_bytes(300_000).open().await.unwrap();
    let inbox = store.inbox().unwrap();
    let (large, key) = ("x".repeat(1_000_000), chat("a"));
    let (one, two, three) = tokio::join!(
        admit(inbox, "a", 1, "1"),
        admit(inbox, "b", 2, &large),
        admit(inbox, "a", 3, "3"),
    );
    let mut small = [one.unwrap(), three.unwrap()];
    small.sort_unstable();
    assert!(matches!(two, Err(StoreError::Full { .. })), "{two:?}");
    let fence = Fence::new(1);
    assert_eq!(inbox.begin(&chat("b"), fence, MINUTE).await.unwrap(), Begun::Nothing);
    let checkpoint = CheckpointChange::Set { write: body(&large), expected: None };
    let commit = |checkpoint| Commit { chat: &key, position: small[0], fence, checkpoint };
    let error = inbox.commit(commit(checkpoint)).await.unwrap_err();
    assert!(matches!(error, StoreError::Full { .. }), "{error:?}");
    assert_eq!(store.load_checkpoint(&key).await.unwrap(), None, "half a commit");
    let begun = inbox.begin(&key, fence, MINUTE).await.unwrap();
    assert!(matches!(begun, Begun::Record(record) if record.position == small[0]));
    let checkpoint = CheckpointChange::Set { write: body("fits"), expected: None };
    let committed = inbox.commit(commit(checkpoint)).await.unwrap();
    assert!(matches!(committed, Committed::Applied(Some(_))), "{committed:?}");
}

/// G7: an inbox tells what may be lost after all.
#[tokio::test]
async fn an_inbox_tells_what_endangers_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("bot.db");
    let dangers = async |builder: SqliteStoreBuilder| {
        let store = builder.open().await.unwrap();
        store.inbox().unwrap().dangers().await.unwrap()
    };
    assert!(dangers(SqliteStore::in_memory()).await[0].contains("in memory"));
    assert!(dangers(SqliteStore::builder(&path)).await[0].contains("power failure"));
    let full = SqliteStore::builder(&path).synchronous(Synchronous::Full);
    assert_eq!(dangers(full).await, [""; 0]);
}
