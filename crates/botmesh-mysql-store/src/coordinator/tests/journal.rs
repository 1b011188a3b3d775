//! Reservations that go with the admission of a message.

use std::sync::Arc;

use botmesh_core::ChatKey;
use botmesh_core::store::NewRecord;
use sqlx::{Connection as _, MySqlConnection, Row as _};

use super::*;

/// Another connection to the database of a store.
struct Beside {
    connection: MySqlConnection,
    prefix: String,
}

impl Beside {
    async fn run(&mut self, text: &str) {
        let text = text.replace("{p}", &self.prefix);
        self.connection.execute(sqlx::raw_sql(AssertSqlSafe(text))).await.unwrap();
    }

    /// Whether a statement that begins so is being executed.
    async fn is_running(&mut self, begin: &str) -> bool {
        let begin = begin.replace("{p}", &self.prefix);
        let found = format!(
            "SELECT COUNT(*) FROM information_schema.processlist
            WHERE id <> CONNECTION_ID() AND info LIKE '{begin}%'"
        );
        let row = self.connection.fetch_one(sqlx::raw_sql(AssertSqlSafe(found))).await.unwrap();
        row.get::<i64, _>(0) > 0
    }
}

/// C4, C7, G9: when a replica is told that nothing of an earlier epoch is executed any more, a
/// reservation that went with a message and is still under way takes nothing, or it was waited for.
#[test]
fn an_epoch_waits_for_the_messages_before_it() {
    let Some(url) = url() else { return };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let prefix = prefix();
        let store = MysqlStore::connect(&url).prefix(prefix.clone()).max_connections(3);
        let store = store.await.unwrap();
        schema::prepare(&store).await.unwrap();
        let driver = store.sql.driver().clone();
        let backend = MysqlBackend::new(driver, differential::limits(), RESPONSE);
        let backend = Arc::new(backend.journaling(Arc::clone(&store.sql)));
        let connection = MySqlConnection::connect(&url).await.unwrap();
        let mut beside = Beside { connection, prefix };
        let (incarnation, lease) = (IncarnationId::new("a#1").unwrap(), Duration::from_secs(600));
        let register = Operation::Register { incarnation: incarnation.clone(), lease };
        backend.send(&register).await.unwrap();
        beside.run("UPDATE {p}coordination_space SET grace_until = 0").await;

        // The key waits for somebody who has its row.
        let chat = ChatKey::decode("suite:k").unwrap();
        let key = CoordinationKey::from(&chat);
        beside
            .run(&format!(
                "START TRANSACTION; INSERT INTO {{p}}coordination_turns
                    (name, revision, fence, expires_at, used) VALUES ('{}', 1, 1, 0, 0)",
                key.as_str()
            ))
            .await;
        let ingesting = tokio::spawn({
            let (backend, incarnation) = (Arc::clone(&backend), incarnation.clone());
            async move {
                let record =
                    NewRecord { chat: &chat, message: None, body: Some("hi"), lease, most: 9 };
                let ticket = TicketId { incarnation, sequence: 1 };
                let reserve = Operation::Reserve { key, ticket, epoch: 0 };
                backend.journal().unwrap().ingest(record, &reserve).await.unwrap()
            }
        });
        while !beside.is_running("INSERT INTO {p}coordination_turns").await {}
        let raising = tokio::spawn(async move {
            let heartbeat = Operation::Heartbeat { incarnation, epoch: 1, age: Duration::ZERO };
            backend.send(&heartbeat).await.unwrap()
        });
        while !raising.is_finished() && !beside.is_running("UPDATE {p}coordination_space").await {}
        let was_raised = raising.is_finished();
        beside.run("COMMIT").await;
        let arrival = ingesting.await.unwrap();
        assert_eq!(raising.await.unwrap(), Reply::Renewed);
        match arrival.reply {
            Some(Reply::Granted(_)) => assert!(!was_raised, "granted after its epoch was over"),
            Some(Reply::Stale) => {}
            other => panic!("{other:?}"),
        }
    });
}
