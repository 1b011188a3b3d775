//! How seldom and how soon waiting tickets poll.

use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn numbered(number: u32) -> ChatKey {
    ChatKey::decode(&format!("test:{number}")).unwrap()
}

/// C14: a wake-up that is lost while the path for wake-ups stands costs one poll: 100 ms at first,
/// a tenth of the wait later.
#[tokio::test(start_paused = true)]
async fn a_lost_wake_up_costs_one_poll() {
    for (waited, most) in [
        (Duration::from_millis(1), 150),
        (Duration::from_millis(350), 150),
        (SECOND * 5, 600),
        (SECOND * 60, 2_050),
    ] {
        let hub = MemoryCoordinationHub::new();
        let a = started(&hub, "a").await;
        let b = started(&hub, "b").await;
        b.faults().drop_pushes(true);
        let turn = take(&a).await;
        let ticket = b.reserve(&chat()).await.unwrap();
        let next = tokio::spawn(async move { b.acquire_turn(ticket, AcquireTurn::new()).await });
        tokio::time::sleep(waited).await;
        turn.release().await.unwrap();
        let released = Instant::now();
        drop(next.await.unwrap().unwrap());
        let took = released.elapsed().as_millis();
        assert!(took <= most, "{took} ms after a wait of {waited:?}");
    }
}

/// C14: a release that finds a ticket of its own replica hands the turn over in its answer: that
/// costs no poll, also where nobody pushes.
#[tokio::test(start_paused = true)]
async fn a_replica_hands_over_to_itself_without_a_poll() {
    let hub = MemoryCoordinationHub::new();
    let a = Arc::new(started(&hub, "a").await);
    a.faults().drop_pushes(true);
    let turn = take(&a).await;
    let ticket = a.reserve(&chat()).await.unwrap();
    let next = Arc::clone(&a);
    let next = tokio::spawn(async move { next.acquire_turn(ticket, AcquireTurn::new()).await });
    tokio::time::sleep(SECOND * 3).await;
    let (released, before) = (Instant::now(), hub.operations());
    turn.release().await.unwrap();
    drop(next.await.unwrap().unwrap());
    assert_eq!((released.elapsed(), hub.operations() - before), (Duration::ZERO, 1));
}

/// C14: while wake-ups arrive a replica polls 200 times a second at most, however many chats it
/// waits for.
#[tokio::test(start_paused = true)]
async fn many_waiting_tickets_poll_seldom() {
    let hub = MemoryCoordinationHub::new();
    let a = started(&hub, "a").await;
    let b = Arc::new(started(&hub, "b").await);
    let mut turns = Vec::new();
    for number in 0..1_000 {
        let ticket = a.reserve(&numbered(number)).await.unwrap();
        turns.push(a.acquire_turn(ticket, AcquireTurn::new()).await.unwrap());
        let (b, ticket) = (Arc::clone(&b), b.reserve(&numbered(number)).await.unwrap());
        tokio::spawn(async move { b.acquire_turn(ticket, AcquireTurn::new()).await });
    }
    let before = hub.operations();
    tokio::time::sleep(SECOND * 10).await;
    let polls = hub.operations() - before;
    let heartbeats = 10;
    assert!(polls <= 10 * 200 + heartbeats, "{polls}");
    drop(turns);
}

/// C14: a standby that waits to lead for long costs next to nothing.
#[tokio::test(start_paused = true)]
async fn a_standby_polls_seldom() {
    let hub = MemoryCoordinationHub::new();
    let a = started(&hub, "a").await;
    let b = started(&hub, "b").await;
    let name = LeaderName::new("provider:test").unwrap();
    let leads = a.lead(&name).await.unwrap();
    let standby = tokio::spawn(async move { b.lead(&name).await.map(|_| b) });
    tokio::time::sleep(SECOND * 60).await;
    let before = hub.operations();
    tokio::time::sleep(SECOND * 600).await;
    let (polls, heartbeats) = (hub.operations() - before, 2 * 600 / 5);
    assert!(polls <= 300 + heartbeats + 10, "{polls}");
    leads.release().await.unwrap();
    standby.await.unwrap().unwrap();
}
