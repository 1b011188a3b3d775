//! Two replicas that bury the same one at the same time.

use super::*;

const LEASE: Duration = Duration::from_secs(10);

fn ticket(name: &str, sequence: u64) -> TicketId {
    TicketId { incarnation: IncarnationId::new(name).unwrap(), sequence }
}

/// Tells a replica that the clock shows so many seconds, and what it does then.
async fn at(replica: &mut ToldPostgres, seconds: u64, operation: &Operation) -> Reply {
    let moment = Moment { now: ServerTime::from_micros(seconds * 1_000_000), run: 1 };
    replica.execute(operation, moment).await.unwrap().reply
}

async fn command(replica: &mut ToldPostgres, text: &'static str) {
    replica.listener.execute(sqlx::raw_sql(text)).await.unwrap();
}

/// C4, C16: who finds a session dead that another one is burying waits neither for it, which may
/// want a row that it holds itself, nor in vain: it asks again soon.
#[tokio::test]
async fn two_that_bury_the_same_session_do_not_wait_for_each_other() {
    let Some(url) = url() else { return };
    let store = store(&url).await;
    let mut one = ToldPostgres::new(&store, &url, How::InTurn).await;
    let mut other = ToldPostgres::new(&store, &url, How::InTurn).await;
    let keys = one.keys();
    let reserve = |key: usize, name: &str, sequence: u64| Operation::Reserve {
        key: keys[key].clone(),
        ticket: ticket(name, sequence),
        epoch: 0,
    };
    let heartbeat = |name: &str, seconds: u64| Operation::Heartbeat {
        incarnation: IncarnationId::new(name).unwrap(),
        epoch: 0,
        age: Duration::from_secs(seconds),
    };
    for name in ["a", "b", "dead"] {
        let incarnation = IncarnationId::new(name).unwrap();
        let reply = at(&mut one, 1000, &Operation::Register { incarnation, lease: LEASE }).await;
        assert!(matches!(reply, Reply::Registered { .. }), "{reply:?}");
        assert_eq!(at(&mut one, 1009, &heartbeat(name, 9)).await, Reply::Renewed);
    }
    for key in 0..2 {
        let reply = at(&mut one, 1012, &reserve(key, "dead", key as u64)).await;
        assert!(matches!(reply, Reply::Granted(_)), "{reply:?}");
    }
    for (moment, age) in [(1018, 9), (1025, 7)] {
        for name in ["a", "b"] {
            assert_eq!(at(&mut one, moment, &heartbeat(name, age)).await, Reply::Renewed);
        }
    }
    command(&mut one, "BEGIN").await;
    let buries = at(&mut one, 1026, &reserve(0, "a", 1)).await;
    assert!(matches!(buries, Reply::Granted(_)), "{buries:?}");
    let asks = at(&mut other, 1026, &reserve(1, "b", 1)).await;
    assert_eq!(asks, Reply::Queued { ahead: 1, remaining: Duration::ZERO });
    command(&mut one, "COMMIT").await;
    let poll = Operation::Poll { key: keys[1].clone(), ticket: ticket("b", 1) };
    let asks = at(&mut other, 1026, &poll).await;
    assert!(matches!(asks, Reply::Granted(_)), "{asks:?}");
}
