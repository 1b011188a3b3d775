//! Connections that are encrypted.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod support;

use std::time::Duration;

use botmesh_core::coordination::Coordinator as _;
use botmesh_core::store::{Collection, DocumentStore as _, StoreError, Swap};
use botmesh_redis_store::RedisStore;
use botmesh_test_support::replica::take;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use support::PrivateServer;
use support::replica::replica;

/// B7: a server is trusted by its certificate, whose authority is given, and not without it; a
/// server that wants a certificate is shown one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn encrypted_connections_trust_the_given_authority_only() {
    let authority_key = KeyPair::generate().unwrap();
    let mut authority = CertificateParams::new(Vec::<String>::new()).unwrap();
    // By its default name it would look like the certificates that it issues.
    authority.distinguished_name.push(DnType::CommonName, "authority");
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let root = authority.self_signed(&authority_key).unwrap().pem();
    let issuer = Issuer::new(authority, authority_key);
    let issue = |names: &[&str]| {
        let key = KeyPair::generate().unwrap();
        let names = names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let certificate = CertificateParams::new(names).unwrap().signed_by(&key, &issuer).unwrap();
        (certificate.pem(), key.serialize_pem())
    };
    let (server_certificate, server_key) = issue(&["127.0.0.1"]);
    let (certificate, key) = issue(&["bot"]);
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let files = [
        file("server.crt", &server_certificate),
        file("server.key", &server_key),
        file("ca.crt", &root),
    ];
    let port = support::free_port();
    let encrypted_port = port.to_string();
    let arguments = [
        ["--tls-port", &encrypted_port],
        ["--tls-cert-file", &files[0]],
        ["--tls-key-file", &files[1]],
        ["--tls-ca-cert-file", &files[2]],
    ];
    let Some(_server) = PrivateServer::start(arguments.as_flattened()) else {
        return support::skip();
    };
    let patience = Duration::from_millis(500);
    let url = format!("rediss://127.0.0.1:{port}");
    let with_root = || RedisStore::connect(&url).patience(patience).root_certificate(root.clone());
    let whole = || with_root().client_certificate(certificate.clone(), key.clone());

    let store = whole().await.unwrap();
    let swap = store.save_document_if(Collection::Users, "a", "secret", None).await.unwrap();
    assert_ne!(swap, Swap::Refused);
    let coordinator = replica(whole()).await;
    take(&coordinator, "k").await.release().await.unwrap();
    coordinator.stop().await.unwrap();

    for (what, builder) in [
        ("no certificate shown", with_root()),
        ("an unknown authority", RedisStore::connect(&url).patience(patience)),
    ] {
        match builder.await {
            Err(StoreError::Unavailable { .. } | StoreError::Backend { .. }) => {}
            other => panic!("{what}: {other:?}"),
        }
    }
}
