//! What does not fit is refused at the start, with what to do.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod support;

use std::time::Duration;

use botmesh_core::id::Fence;
use botmesh_core::store::{CheckpointStore as _, Collection, DocumentStore as _, StoreError, Swap};
use botmesh_mongo_store::{MongoStore, MongoStoreBuilder};
use mongodb::bson::doc;
use mongodb::options::Collation;
use support::server::PrivateServer;
use support::{body, chat, patient};

/// Why the store does not open. Nothing that it says may hold the password of these tests.
async fn refusal(builder: MongoStoreBuilder) -> String {
    match builder.await {
        Err(error @ StoreError::Refused { .. }) => {
            let text = format!("{error} {error:?}");
            assert!(!text.contains("hunter2"), "{text}");
            text
        }
        other => panic!("{other:?}"),
    }
}

/// B7: a wrong password, a missing one and a missing right are told as such, with what to do.
#[tokio::test(flavor = "multi_thread")]
async fn who_may_not_enter_is_told_why() {
    let Some(mut server) = PrivateServer::start(&["--sync-on-commit"]).await else {
        return support::skip();
    };
    let admin = server.client().await.database("admin");
    for (user, roles) in [
        ("bot", doc! { "role": "readWrite", "db": "bots" }),
        ("reader", doc! { "role": "read", "db": "bots" }),
    ] {
        let create = doc! { "createUser": user, "pwd": "right", "roles": [roles] };
        admin.run_command(create).await.unwrap();
    }
    server.kill();
    let mut server = server.with(&["--auth"]);
    server.start_again().await;
    let at = |user: &str| {
        let url = format!("mongodb://{user}127.0.0.1:{}/bots?authSource=admin", server.port);
        patient(MongoStore::connect(url))
    };
    let text = refusal(at("bot:hunter2@")).await;
    assert!(text.contains("the user or the password is wrong"), "{text}");
    let text = refusal(at("nobody:hunter2@")).await;
    assert!(text.contains("the user or the password is wrong"), "{text}");
    let text = refusal(at("")).await;
    assert!(text.contains("lacks a right") && text.contains("readWrite"), "{text}");
    let text = refusal(at("reader:right@")).await;
    assert!(text.contains("lacks a right") && text.contains("readWrite"), "{text}");

    let store = at("bot:hunter2@").credentials("bot", "right").await.unwrap();
    store.set_checkpoint(&chat("a"), body("text"), Fence::new(1)).await.unwrap();
}

/// B7: a secondary is refused, and a set that is none or another one is told as such.
#[tokio::test(flavor = "multi_thread")]
async fn a_secondary_and_a_wrong_replica_set_are_refused() {
    let Some(server) = PrivateServer::start(&[]).await else { return support::skip() };
    let second = Duration::from_secs(1);
    let text =
        refusal(MongoStore::connect(format!("{}/?replicaSet=rs9", server.url())).patience(second))
            .await;
    assert!(text.contains("name it in the URL in place of") && text.contains("rs9"), "{text}");
    let step_down = doc! { "replSetStepDown": 60, "force": true };
    server.client().await.database("admin").run_command(step_down).await.unwrap();
    let direct = format!("{}/?directConnection=true", server.url());
    let text = refusal(patient(MongoStore::connect(direct))).await;
    assert!(text.contains("no primary: give the URL of the replica set"), "{text}");

    let Some(alone) = PrivateServer::start(&["--standalone"]).await else { return support::skip() };
    let wanted = MongoStore::connect(format!("{}/?replicaSet=rs0", alone.url())).patience(second);
    let text = refusal(wanted).await;
    assert!(text.contains("no member of a replica set: start it with `--replSet rs0`"), "{text}");
    let store = patient(MongoStore::connect(alone.url())).await.unwrap();
    let [warning] = &store.warnings()[..] else { panic!("{:?}", store.warnings()) };
    assert!(warning.contains("no member of a replica set"), "{warning}");
    let saved = store.save_document_if(Collection::Chats, "a", "b", None).await.unwrap();
    assert_ne!(saved, Swap::Refused);
}

/// B5: a schema of a newer release is refused with a clear error, and left as it is.
#[tokio::test(flavor = "multi_thread")]
async fn a_newer_schema_is_refused() {
    let Some(open) = support::store() else { return support::skip() };
    let prefix = support::prefix();
    open.clone().prefix(&prefix).await.unwrap();
    let meta = support::rows(&prefix, "meta").await;
    let newer = doc! { "$set": { "version": 999_i64 } };
    meta.update_one(doc! { "_id": "schema" }, newer).await.unwrap();
    let error = open.clone().prefix(&prefix).await.unwrap_err();
    assert!(matches!(error, StoreError::NewerSchema { found: 999, supported: 2, .. }), "{error:?}");
    assert!(error.to_string().contains("upgrade the program"), "{error}");
    open.prefix(support::prefix()).await.unwrap();
}

/// B4: a collection whose collation takes different keys for the same is refused.
#[tokio::test(flavor = "multi_thread")]
async fn a_collection_that_folds_cases_is_refused() {
    let Some(open) = support::store() else { return support::skip() };
    let prefix = support::prefix();
    let database = support::client(&support::url().unwrap()).await.database(support::DATABASE);
    database
        .create_collection(format!("{prefix}documents"))
        .collation(Collation::builder().locale("en").build())
        .await
        .unwrap();
    let text = refusal(open.prefix(&prefix)).await;
    assert!(text.contains("has a collation") && text.contains("another prefix"), "{text}");
}

/// B4: a key of a kibibyte is kept, whatever is in it; what no document can hold is refused before
/// anything is sent, and nothing is cut.
#[tokio::test(flavor = "multi_thread")]
async fn keys_and_bodies_are_kept_whole_or_refused() {
    let Some(open) = support::store() else { return support::skip() };
    let store = open.prefix(support::prefix()).await.unwrap();
    let users = Collection::Users;
    let long = "😀".repeat(255);
    for key in
        [&*format!("{long}abcd"), &format!("{long}abce"), "$set", "a.b", "$$NOW", "\0", "a\0"]
    {
        let saved = store.save_document_if(users, key, key, None).await.unwrap();
        assert_ne!(saved, Swap::Refused, "{key:?}");
        let read = store.load_document(users, key).await.unwrap();
        assert_eq!(read.map(|read| read.body).as_deref(), Some(key));
    }
    // Nobody listens there, so nothing can have been sent.
    let nowhere = MongoStore::connect("mongodb://127.0.0.1:1").build().unwrap();
    let huge = "x".repeat(16 << 20);
    for (key, body) in [("key", &*huge), (&*huge, "body")] {
        let error = nowhere.save_document_if(users, key, body, None).await.unwrap_err();
        assert!(matches!(error, StoreError::Unfit { .. }), "{error:?}");
    }
    let error = nowhere.set_checkpoint(&chat("a"), body(&huge), Fence::new(1)).await.unwrap_err();
    assert!(matches!(error, StoreError::Unfit { what: "body", .. }), "{error:?}");
    let fence = Fence::new(u64::MAX);
    let error = nowhere.set_checkpoint(&chat("a"), body("x"), fence).await.unwrap_err();
    assert!(matches!(error, StoreError::Unfit { what: "fence", .. }), "{error:?}");
}

/// The connection is encrypted, and a server that another authority has certified is refused.
#[tokio::test(flavor = "multi_thread")]
async fn an_encrypted_server_needs_the_right_certificate() {
    let Some(server) = PrivateServer::prepare(&[]) else { return support::skip() };
    let certified = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
    let file = |name: &str, text: &str| {
        let path = server.directory().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let pem = file("cert.pem", &certified.cert.pem());
    let key = file("key.pem", &certified.signing_key.serialize_pem());
    let other = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
    let other = file("other.pem", &other.cert.pem());
    let shown = [&pem, &key].map(|path| path.display().to_string());
    let mut server = server.with(&["--tls-cert-file", &shown[0], "--tls-key-file", &shown[1]]);
    server.start_silently();
    server.wait(&format!("{}/?tls=true&tlsCAFile={}", server.url(), shown[0])).await;

    let open = || patient(MongoStore::connect(server.url()));
    let store = open().root_certificate_file(&pem).await.unwrap();
    store.set_checkpoint(&chat("a"), body("text"), Fence::new(1)).await.unwrap();
    let text = refusal(open().root_certificate_file(&other)).await;
    assert!(text.contains("root_certificate_file"), "{text}");
    let text = refusal(open().root_certificate_file("absent.pem")).await;
    assert!(text.contains("root_certificate_file"), "{text}");
}
