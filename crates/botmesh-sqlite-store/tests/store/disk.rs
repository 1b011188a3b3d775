use std::path::Path;

use botmesh_core::Fence;
use botmesh_core::store::{CheckpointStore, Store as _, StoreError, Swap};
use botmesh_sqlite_store::SqliteStore;

use crate::{body, chat};

/// B7: a full disk is a typed error; smaller writes of the same moment still land, and the store
/// goes on when there is room again.
#[tokio::test]
async fn a_full_disk_is_an_error_of_the_writes_that_do_not_fit_and_of_no_other() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("bot.db");
    let store = SqliteStore::builder(&path).max_bytes(300_000).open().await.unwrap();
    let conditional = store.conditional_checkpoints().unwrap();
    let large = "x".repeat(1_000_000);
    let (one, two, three) = (chat("one"), chat("two"), chat("three"));
    let fence = Fence::new(1);
    let (small, too_large, other) = tokio::join!(
        conditional.set_checkpoint_if(&one, body("small"), None, fence),
        conditional.set_checkpoint_if(&two, body(&large), None, fence),
        conditional.set_checkpoint_if(&three, body("small"), None, fence),
    );
    assert!(matches!(small, Ok(Swap::Applied(_))), "{small:?}");
    assert!(matches!(other, Ok(Swap::Applied(_))), "{other:?}");
    let error = too_large.unwrap_err();
    assert!(matches!(error, StoreError::Full { .. }), "{error:?}");
    assert_eq!(store.load_checkpoint(&two).await.unwrap(), None, "nothing was written");

    let mut written = 0;
    let filling = "x".repeat(10_000);
    let error = loop {
        let key = chat(&format!("filling {written}"));
        match store.set_checkpoint(&key, body(&filling), fence).await {
            Ok(_) => written += 1,
            Err(error) => break error,
        }
        assert!(written < 1_000, "a limit of 300 kB lets {written} times 10 kB in");
    };
    assert!(matches!(error, StoreError::Full { .. }), "{error:?}");
    for number in 0..written {
        store.clear_checkpoint(&chat(&format!("filling {number}"))).await.unwrap();
    }
    store.set_checkpoint(&two, body(&filling), fence).await.unwrap();
}

async fn refusal(path: &Path) -> String {
    match SqliteStore::open(path).await.unwrap_err() {
        error @ StoreError::Refused { .. } => error.to_string(),
        other => panic!("not refused but {other:?}"),
    }
}

/// A path that cannot be used names itself and the remedy.
#[tokio::test]
async fn an_unusable_path_says_what_is_wrong_with_it() {
    let directory = tempfile::tempdir().unwrap();
    let missing = directory.path().join("missing");
    let text = refusal(&missing.join("bot.db")).await;
    let wanted = format!("there is no directory {}: create it", missing.display());
    assert!(text.contains(&wanted), "{text}");

    let text = refusal(directory.path()).await;
    let wanted = format!("{} is a directory: name a file in it", directory.path().display());
    assert!(text.contains(&wanted), "{text}");

    let file = directory.path().join("notes.txt");
    std::fs::write(&file, "These are notes, and they are much longer than a header.\n".repeat(99))
        .unwrap();
    let text = refusal(&file).await;
    let wanted = format!("{} is not an SQLite database: choose another path", file.display());
    assert!(text.contains(&wanted), "{text}");
    let text = refusal(&file.join("bot.db")).await;
    assert!(text.contains(&format!("{} is not a directory", file.display())), "{text}");
    assert!(std::fs::read_to_string(&file).unwrap().starts_with("These are notes"));
}

/// A directory in which nobody, not even root, can create a file.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn an_unwritable_directory_says_which_rights_are_needed() {
    let text = refusal(Path::new("/proc/self/fdinfo/bot.db")).await;
    assert!(text.contains("/proc/self/fdinfo/bot.db cannot be opened for writing"), "{text}");
    assert!(text.contains("give this user the right to write"), "{text}");
}

/// B4: strange names of files are names of files, not URIs or patterns.
#[tokio::test]
async fn strange_file_names_are_taken_as_they_are() {
    let directory = tempfile::tempdir().unwrap();
    for name in ["a b.db", "ü😀.db", "100%25.db", "q?mode=memory", "#x", "file:y", ":memory:"] {
        let path = directory.path().join(name);
        let store = SqliteStore::open(&path).await.unwrap();
        store.set_checkpoint(&chat("a"), body(name), Fence::new(1)).await.unwrap();
        store.close().await;
        assert!(path.is_file(), "{name:?}");
        let read = SqliteStore::open(&path).await.unwrap().load_checkpoint(&chat("a")).await;
        assert_eq!(read.unwrap().unwrap().body, name);
    }
}
