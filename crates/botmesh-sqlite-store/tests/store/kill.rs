use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use botmesh_core::store::Store as _;
use botmesh_core::store::{CheckpointStore, Collection, DocumentStore, Swap};
use botmesh_core::{Fence, Revision};
use botmesh_sqlite_store::SqliteStore;

use crate::{body, chat};

/// Tells a child process which file to write to.
const FILE: &str = "BOTMESH_TEST_KILLED_WRITER";

/// The part of the child in the test below; without its file it has nothing to do.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_writer() {
    let Some(path) = std::env::var_os(FILE) else { return };
    let store = std::sync::Arc::new(SqliteStore::open(path).await.unwrap());
    let tasks: Vec<_> = (0..16)
        .map(|task| {
            let store = std::sync::Arc::clone(&store);
            tokio::spawn(async move {
                for number in 0_u64.. {
                    let key = chat(&format!("{task}"));
                    let text = number.to_string();
                    let fence = Fence::new(number + 1);
                    let revision = store.set_checkpoint(&key, body(&text), fence).await.unwrap();
                    let name = format!("{task}/{number}");
                    let saved = store.save_document_if(Collection::Users, &name, &text, None).await;
                    assert!(matches!(saved, Ok(Swap::Applied(_))));
                    // One call, so that lines of different tasks do not mix.
                    let line = format!("confirmed {task} {number} {revision}\n");
                    std::io::stdout().write_all(line.as_bytes()).unwrap();
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
}

fn start_writer(path: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "kill::killed_writer", "--nocapture"])
        .env(FILE, path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Kills a process that writes without pause, and gives what was confirmed: for each task the last
/// number and its revision.
fn kill_after(path: &Path, confirmed_at_least: usize) -> Vec<Option<(u64, u64)>> {
    let mut child = start_writer(path);
    let mut confirmed = vec![None; 16];
    let mut count = 0;
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let Ok(line) = line else { break };
        let Some((_, numbers)) = line.split_once("confirmed ") else { continue };
        let numbers: Vec<u64> = numbers.split(' ').filter_map(|text| text.parse().ok()).collect();
        let [task, number, revision] = numbers[..] else { continue };
        confirmed[usize::try_from(task).unwrap()] = Some((number, revision));
        count += 1;
        if count == confirmed_at_least {
            // SIGKILL; what it has written to the pipe until then is still read.
            child.kill().unwrap();
        }
    }
    child.wait().unwrap();
    assert!(count >= confirmed_at_least, "the writer ended after {count} writes");
    confirmed
}

/// B1: what was confirmed is there after `kill -9`, at whatever moment it struck.
#[tokio::test]
async fn what_was_confirmed_survives_kill_9() {
    for confirmed_at_least in [1, 150, 700] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("bot.db");
        let confirmed = kill_after(&path, confirmed_at_least);
        let store = SqliteStore::open(&path).await.unwrap();
        for (task, last) in confirmed.into_iter().enumerate() {
            let Some((last, revision)) = last else { continue };
            let row = store.load_checkpoint(&chat(&task.to_string())).await.unwrap().unwrap();
            let number: u64 = row.body.parse().unwrap();
            assert!(number == last || number == last + 1, "task {task}: {number} after {last}");
            assert!(row.revision >= Revision::new(revision));
            assert_eq!(row.fence, Fence::new(number + 1));
            for number in 0..=last {
                let name = format!("{task}/{number}");
                let read = store.load_document(Collection::Users, &name).await.unwrap();
                assert_eq!(read.map(|read| read.body), Some(number.to_string()), "{name}");
            }
        }
        // And the file is whole: it can be written by the next process at once.
        let lock = store
            .locks()
            .unwrap()
            .acquire_lock_fenced("k", std::time::Duration::from_secs(1))
            .await;
        assert!(lock.unwrap().is_some());
    }
}
