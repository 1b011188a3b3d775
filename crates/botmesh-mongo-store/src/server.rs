//! What a server says of itself, and whether it fits.

use std::time::Duration;

use botmesh_core::store::StoreError;
use mongodb::Client;
use mongodb::bson::{Document, doc};

use crate::failure::{OLDEST, refused};
use crate::settings::{Settings, Source};
use crate::store::{MongoStore, Repeat};

const OPERATION: &str = "connecting";

/// How long a server is asked why it is no primary.
const QUESTION: Duration = Duration::from_secs(2);

const IS_SECONDARY: &str = "the server is no primary: give the URL of the replica set with all \
     its members, as in `mongodb://h1,h2,h3/bots?replicaSet=rs0`, without `directConnection=true`";

/// What matters of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServerInfo {
    version: String,
    is_writable: bool,
    is_replicated: bool,
    is_persistent: bool,
}

/// Asks the primary.
pub(crate) async fn examine(store: &MongoStore) -> Result<ServerInfo, StoreError> {
    let hello = ask(store, doc! { "hello": 1 }).await?;
    let build = ask(store, doc! { "buildInfo": 1 }).await?;
    // Needs a right that a bot's user need not have; then the usual engine is assumed.
    let engine = ask(store, doc! { "serverStatus": 1, "repl": 0, "metrics": 0, "locks": 0 }).await;
    Ok(ServerInfo::read(&hello, &build, engine.ok().as_ref()))
}

async fn ask(store: &MongoStore, question: Document) -> Result<Document, StoreError> {
    let question = &question;
    let attempt = || async move {
        let database = store.connections().database().await?;
        store.connections().run(database.run_command(question.clone()).into_future()).await
    };
    store.insist(OPERATION, Repeat::Freely, attempt).await.map(|(answer, _)| answer)
}

/// Tells whether what was given as a replica set is none, or another one.
pub(crate) async fn why_no_primary(settings: &Settings) -> Option<StoreError> {
    let Source::Address(address) = &settings.source else { return None };
    let mut options = settings.client_options(address).await.ok()?;
    let wanted = options.repl_set_name.take()?;
    options.hosts.truncate(1);
    options.direct_connection = Some(true);
    options.server_selection_timeout = Some(QUESTION);
    let client = Client::with_options(options).ok()?;
    let asking = client.database(&address.database);
    let asking = asking.run_command(doc! { "hello": 1 }).into_future();
    let hello = tokio::time::timeout(QUESTION * 2, asking).await.ok()?.ok()?;
    client.shutdown().immediate(true).await;
    match hello.get_str("setName") {
        Ok(name) if name == wanted => None,
        Ok(name) => Some(refused(
            OPERATION,
            format!(
                "the server belongs to the replica set {name:?}: name it in the URL in place of {wanted:?}"
            ),
        )),
        Err(_) => Some(refused(
            OPERATION,
            format!(
                "the server is no member of a replica set: start it with `--replSet {wanted}` and \
                 run `rs.initiate()` once, or leave `replicaSet` out of the URL"
            ),
        )),
    }
}

impl ServerInfo {
    fn read(hello: &Document, build: &Document, status: Option<&Document>) -> Self {
        let is_sharded = hello.get_str("msg").is_ok_and(|kind| kind == "isdbgrid");
        let engine = status.and_then(|status| status.get_document("storageEngine").ok());
        let is_persistent = engine.and_then(|engine| engine.get_bool("persistent").ok());
        Self {
            version: build.get_str("version").unwrap_or_default().to_owned(),
            is_writable: hello.get_bool("isWritablePrimary").unwrap_or(false)
                && !hello.get_bool("readOnly").unwrap_or(false),
            is_replicated: is_sharded || hello.contains_key("setName"),
            is_persistent: is_persistent.unwrap_or(true),
        }
    }

    /// Whether it keeps its data on a disk.
    pub(crate) const fn is_persistent(&self) -> bool {
        self.is_persistent
    }

    /// Refuses a server that cannot do what is needed.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        let number = |version: &str| {
            let mut parts = version.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
            (parts.next().unwrap_or(0), parts.next().unwrap_or(0))
        };
        if number(&self.version) < number(OLDEST) {
            let version = &self.version;
            let reason =
                format!("its version is {version}: upgrade it to MongoDB {OLDEST} or newer");
            return Err(refused(OPERATION, reason));
        }
        if !self.is_writable {
            return Err(refused(OPERATION, IS_SECONDARY));
        }
        Ok(())
    }

    /// What works, but not as it should.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if !self.is_replicated {
            warnings.push(
                "the server is no member of a replica set: its data are on one machine only, and \
                 coordinators poll where they would be told; a set of one member is enough for that"
                    .to_owned(),
            );
        }
        if !self.is_persistent {
            warnings.push(
                "the server keeps its data in memory (storage engine inMemory): it forgets them \
                 when it ends"
                    .to_owned(),
            );
        }
        warnings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(hello: &Document, version: &str) -> ServerInfo {
        ServerInfo::read(hello, &doc! { "version": version }, None)
    }

    /// B5: a server that is too old is refused with what to do.
    #[test]
    fn versions_are_compared_by_their_numbers() {
        let primary = doc! { "isWritablePrimary": true, "setName": "rs0" };
        for old in ["6.0.27", "4.4.29", "", "5.0"] {
            let text = info(&primary, old).check().unwrap_err().to_string();
            assert!(text.contains(&format!("its version is {old}: upgrade it")), "{text}");
        }
        for fit in ["7.0.0", "8.2.11", "10.0.1-rc0"] {
            info(&primary, fit).check().unwrap();
        }
    }

    #[test]
    fn only_who_takes_writes_fits() {
        for hello in [
            doc! { "isWritablePrimary": false, "secondary": true, "setName": "rs0" },
            doc! { "isWritablePrimary": true, "readOnly": true },
            doc! {},
        ] {
            let text = info(&hello, "8.0.0").check().unwrap_err().to_string();
            assert!(text.contains("no primary: give the URL of the replica set"), "{text}");
        }
    }

    #[test]
    fn a_standalone_and_an_engine_in_memory_are_warned_about() {
        let sharded = doc! { "isWritablePrimary": true, "msg": "isdbgrid" };
        assert_eq!(info(&sharded, "8.0.0").warnings(), Vec::<String>::new());
        let alone = doc! { "isWritablePrimary": true };
        assert!(info(&alone, "8.0.0").warnings()[0].contains("no member of a replica set"));
        let status = doc! { "storageEngine": { "name": "inMemory", "persistent": false } };
        let info = ServerInfo::read(&sharded, &doc! {}, Some(&status));
        assert!(info.warnings()[0].contains("in memory") && !info.is_persistent());
    }
}
