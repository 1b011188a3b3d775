use std::collections::BTreeMap;
use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use botmesh_sql::{Dialect, Driver as _, TablePrefix};
use botmesh_test_support::absent;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection};
use tokio::task::JoinSet;

use super::*;
use crate::PostgresStore;

/// Notes a number for a chat, in which statement, and whether with others. One below zero is
/// refused, and zero waits for whoever has locked the table `{p}held`.
const FUNCTIONS: &str = "CREATE TABLE {p}noted (place BIGSERIAL, chat BYTEA, number BIGINT,
        statement BIGINT DEFAULT txid_current(), is_alone BIGINT);
    CREATE TABLE {p}held (nothing BIGINT);
    CREATE FUNCTION {p}note(of_chat BYTEA, told BIGINT, is_alone BIGINT) RETURNS BIGINT
    LANGUAGE plpgsql AS $$ BEGIN
        IF told < 0 THEN RAISE EXCEPTION 'not this one'; END IF;
        IF told = 0 THEN PERFORM FROM {p}held; END IF;
        INSERT INTO {p}noted (chat, number, is_alone) VALUES (of_chat, told, is_alone);
        RETURN told;
    END $$";
const ALONE: &str = "SELECT {p}note({1}, {2}, 1)";
const TOGETHER: &str = "SELECT {p}note(asked.chat, asked.number, 0)
    FROM unnest({1}, {2}) AS asked (chat, number)";

struct Noting {
    group: Group,
    names: TablePrefix,
    behind: PgConnection,
}

impl Noting {
    /// `behind` leads to the server itself.
    async fn new(url: &str, behind: &str) -> Self {
        let prefix = format!("t{}_", &uuid::Uuid::new_v4().simple().to_string()[..12]);
        let store = PostgresStore::connect(url).prefix(prefix).max_connections(4).build().unwrap();
        let names = store.sql.prefix().clone();
        let render = |template: &str| Dialect::POSTGRES.statement(template, &names);
        let mut behind = PgConnection::connect(behind).await.unwrap();
        let functions = render(FUNCTIONS).text().to_string();
        behind.execute(sqlx::raw_sql(AssertSqlSafe(functions))).await.unwrap();
        let (alone, together) = (render(ALONE), render(TOGETHER));
        let sending = Sending { alone, together, is_patient: true };
        let driver = store.sql.driver().clone();
        // Whether there is a pooler is found out before anything is counted.
        driver.read(&render("SELECT 1"), Vec::new()).await.unwrap();
        Self { group: Group::new(driver, sending), names, behind }
    }

    /// A server of the tests.
    async fn direct() -> Option<Self> {
        let url = absent::server("BOTMESH_TEST_POSTGRES_URL")?;
        Some(Self::new(&url, &url).await)
    }

    /// Sends all at the same moment, and counts what was answered right.
    async fn send_all(&self, requests: impl IntoIterator<Item = (String, i64)>) -> usize {
        let mut sent = JoinSet::new();
        for (chat, number) in requests {
            let group = self.group.clone();
            sent.spawn(async move { note(&group, &chat, number).await });
        }
        sent.join_all().await.into_iter().filter(|right| *right).count()
    }

    /// What was noted, in its order: chat, number, statement, whether alone.
    async fn noted(&mut self) -> Vec<(String, i64, i64, bool)> {
        let read = "SELECT convert_from(chat, 'UTF8'), number, statement, is_alone = 1
            FROM {p}noted ORDER BY place";
        let read = Dialect::POSTGRES.statement(read, &self.names).text().to_string();
        sqlx::query_as(AssertSqlSafe(read)).fetch_all(&mut self.behind).await.unwrap()
    }

    async fn run(&mut self, text: &str) {
        let text = Dialect::POSTGRES.statement(text, &self.names).text().to_string();
        self.behind.execute(sqlx::raw_sql(AssertSqlSafe(text))).await.unwrap();
    }

    /// Waits until so many statements wait for the table that is locked.
    async fn waiting(&mut self, statements: i64) {
        let read = "SELECT count(*) FROM pg_locks WHERE NOT granted
            AND relation = '{p}held'::regclass";
        let read = Dialect::POSTGRES.statement(read, &self.names).text().to_string();
        while sqlx::query_scalar::<_, i64>(AssertSqlSafe(read.clone()))
            .fetch_one(&mut self.behind)
            .await
            .unwrap()
            < statements
        {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

/// Whether the answer is the one of this request; false when it is refused.
async fn note(group: &Group, chat: &str, number: i64) -> bool {
    let request = vec![chat.into(), Value::Integer(number)];
    match group.send(request, &Handle::current()).await {
        Ok(mut row) => {
            assert_eq!(row.integer().unwrap(), number, "the answer of somebody else");
            true
        }
        Err(failure) => {
            assert!(number < 0 && failure.is_answered(), "{failure:?}");
            false
        }
    }
}

fn numbered(numbers: std::ops::RangeInclusive<i64>) -> impl Iterator<Item = (String, i64)> {
    numbers.map(|number| (format!("test:{number}"), number))
}

async fn many_need_few_statements(mut noting: Noting) {
    assert_eq!(noting.send_all(numbered(1..=400)).await, 400);
    let noted = noting.noted().await;
    assert_eq!(noted.len(), 400);
    let mut statements: BTreeMap<i64, Vec<String>> = BTreeMap::new();
    for (chat, _, statement, _) in noted {
        statements.entry(statement).or_default().push(chat);
    }
    assert!(statements.len() < 100, "{} statements for 400 requests", statements.len());
    for chats in statements.values() {
        assert!(chats.is_sorted() && chats.len() <= MOST, "{chats:?}");
    }
}

/// G9: many requests of one moment need few statements, and each has its own answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_requests_of_one_moment_need_few_statements() {
    let Some(noting) = Noting::direct().await else { return };
    many_need_few_statements(noting).await;
}

/// G9: so they do through a pooler, where statements are not prepared.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_requests_of_one_moment_need_few_statements_through_a_pooler() {
    let Some(url) = absent::server("BOTMESH_TEST_POSTGRES_URL") else { return };
    let pooler = std::env::var("BOTMESH_TEST_POSTGRES_POOLER_URL").unwrap();
    many_need_few_statements(Noting::new(&pooler, &url).await).await;
}

/// G9: a request that comes alone waits for nobody, and goes in a statement of its own.
#[tokio::test]
async fn a_request_that_comes_alone_goes_alone() {
    let Some(mut noting) = Noting::direct().await else { return };
    for number in 1..=3 {
        assert!(note(&noting.group, "test:a", number).await);
    }
    let noted = noting.noted().await;
    let numbers = noted.iter().map(|(_, number, _, is_alone)| (*number, *is_alone));
    assert_eq!(Vec::from_iter(numbers), [(1, true), (2, true), (3, true)]);
}

/// G9: requests of one chat that go together are executed in the order in which they came.
#[tokio::test]
async fn requests_of_one_chat_keep_their_order() {
    let Some(mut noting) = Noting::direct().await else { return };
    let group = &noting.group;
    let sent = (1..=60).map(|number| {
        let chat = if number % 3 == 0 { "test:b" } else { "test:a" };
        note(group, chat, number)
    });
    // On one thread all have come before any is sent.
    assert!(all(sent).await.into_iter().all(|right| right));
    let noted = noting.noted().await;
    assert!(noted.iter().all(|(_, _, statement, _)| *statement == noted[0].2), "{noted:?}");
    assert!(noted.is_sorted_by_key(|(chat, number, ..)| (chat.clone(), *number)), "{noted:?}");
}

/// Polls all of them in their order, until all have ended.
async fn all<T>(futures: impl IntoIterator<Item = impl Future<Output = T>>) -> Vec<T> {
    let mut futures: Vec<_> = futures.into_iter().map(|one| (Box::pin(one), None)).collect();
    poll_fn(move |context| {
        for (future, done) in &mut futures {
            if done.is_none()
                && let Poll::Ready(value) = future.as_mut().poll(context)
            {
                *done = Some(value);
            }
        }
        if futures.iter().any(|(_, done)| done.is_none()) {
            return Poll::Pending;
        }
        Poll::Ready(futures.iter_mut().filter_map(|(_, done)| done.take()).collect())
    })
    .await
}

/// G9: a request that the server refuses fails alone, and spoils it for none of those with which it
/// went.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_is_refused_fails_alone() {
    let Some(mut noting) = Noting::direct().await else { return };
    let refused = (-3..=-1).map(|number| (format!("test:{number}"), number));
    assert_eq!(noting.send_all(numbered(1..=100).chain(refused)).await, 100);
    let mut numbers: Vec<i64> = noting.noted().await.into_iter().map(|noted| noted.1).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, Vec::from_iter(1..=100), "each once");
}

/// G9, B7: who gives up before the request was sent takes it back; who does so later does not, and
/// disturbs none of those with which it went.
#[tokio::test]
async fn callers_that_give_up_take_no_others_with_them() {
    let Some(mut noting) = Noting::direct().await else { return };
    noting.run("BEGIN; LOCK {p}held").await;
    let group = noting.group.clone();
    // Two statements are under way, and wait.
    let mut held = JoinSet::new();
    for chat in ["test:a", "test:b"] {
        let sent = group.clone();
        held.spawn(async move { note(&sent, chat, 0).await });
        noting.waiting(i64::try_from(held.len()).unwrap()).await;
    }
    held.abort_all();
    while held.join_next().await.is_some() {}
    // What comes meanwhile goes together, but for one that nobody waits for.
    let third = note(&group, "test:c", 1);
    let fourth = {
        let group = group.clone();
        async move { note(&group, "test:d", 2).await }
    };
    let mut given_up = Box::pin(note(&group, "test:e", 3));
    let opened = async {
        assert!(poll_fn(|context| Poll::Ready(given_up.as_mut().poll(context))).await.is_pending());
        drop(given_up);
        noting.run("COMMIT").await;
    };
    assert_eq!(tokio::join!(third, fourth, opened), (true, true, ()));
    let noted = noting.noted().await;
    let mut numbers: Vec<(i64, bool)> = noted.iter().map(|noted| (noted.1, noted.3)).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, [(0, true), (0, true), (1, false), (2, false)]);
}

/// G9, G3: when the connection breaks, whoever's request was in the statement is told that nobody knows
/// its outcome, and nothing is sent twice.
#[tokio::test]
async fn an_unknown_outcome_is_told_to_each_whose_request_went_with_it() {
    let Some(mut noting) = Noting::direct().await else { return };
    noting.run("BEGIN; LOCK {p}held").await;
    let group = noting.group.clone();
    let sent = ["test:a", "test:b", "test:c"].map(|chat| {
        let request = vec![chat.into(), Value::Integer(0)];
        let group = &group;
        async move { group.send(request, &Handle::current()).await }
    });
    let cut = async {
        noting.waiting(1).await;
        noting
            .run(
                "SELECT pg_terminate_backend(pid) FROM pg_locks
                    WHERE NOT granted AND relation = '{p}held'::regclass;
                COMMIT",
            )
            .await;
    };
    let (answers, ()) = tokio::join!(all(sent), cut);
    for answer in answers {
        let failure = answer.unwrap_err();
        assert!(!failure.is_unexecuted() && failure.is_transient(), "{failure:?}");
    }
    assert_eq!(noting.noted().await, []);
}

/// What waits, as the number of each chat and the length of its text.
fn waiting(requests: &[(usize, usize)]) -> VecDeque<Part> {
    let part = |&(chat, length): &(usize, usize)| {
        let request = vec![Value::Text(format!("test:{chat}")), Value::Text("x".repeat(length))];
        (request, oneshot::channel().0)
    };
    requests.iter().map(part).collect()
}

fn taken(queue: &mut VecDeque<Part>) -> Vec<usize> {
    std::iter::from_fn(|| take(queue)).map(|parts| parts.len()).collect()
}

#[test]
fn a_statement_has_a_bound_in_requests_and_in_bytes() {
    let mut small = waiting(&vec![(1, 10); 3 * MOST]);
    assert_eq!(taken(&mut small), [MOST; 3]);
    let mut large = waiting(&[(1, MOST_BYTES / 3); 5]);
    assert_eq!(taken(&mut large), [2, 2, 1]);
    // One that is larger than that goes alone.
    let mut huge = waiting(&[(1, 10), (2, 2 * MOST_BYTES), (3, 10)]);
    assert_eq!(taken(&mut huge), [1, 1, 1]);
    assert!(take(&mut VecDeque::new()).is_none());
}
