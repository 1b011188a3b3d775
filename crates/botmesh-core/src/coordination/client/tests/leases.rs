//! Replicas whose leases differ.

use super::*;

const LONG: Duration = Duration::from_secs(60);

fn with(
    hub: &MemoryCoordinationHub,
    lease: Duration,
    grace: Option<Duration>,
) -> MemoryCoordinator {
    let mut settings = CoordinatorSettings::builder().lease(lease);
    if let Some(grace) = grace {
        settings = settings.grace(grace);
    }
    MemoryCoordinator::builder(hub).settings(settings.build().unwrap()).build()
}

/// C5: leases that differ between replicas are reported at the start, unless the settings allow
/// for them.
#[tokio::test(start_paused = true)]
async fn leases_that_differ_are_reported_at_the_start() {
    let (shortest, longest) = (LEASE, LONG);
    let differ = CoordinatorEvent::LeasesDiffer { shortest, longest };
    for (second, grace, told) in
        [(LONG, None, true), (LONG, Some(LONG), false), (LEASE, None, false)]
    {
        let hub = MemoryCoordinationHub::new();
        let first = with(&hub, LEASE, None);
        first.start().await.unwrap();
        let second = with(&hub, second, grace);
        let mut events = second.subscribe();
        second.start().await.unwrap();
        let event = events.try_recv().ok();
        assert_eq!(event, told.then(|| differ.clone()));
    }
}

/// C3: after the backend has lost everything, nobody gets a chat while a replica that is cut off
/// believes in a longer lease.
#[tokio::test(start_paused = true)]
async fn a_wiped_backend_waits_for_the_longest_lease_that_settings_name() {
    let hub = MemoryCoordinationHub::new();
    let long = with(&hub, LONG, None);
    let short = with(&hub, LEASE, Some(LONG));
    long.start().await.unwrap();
    short.start().await.unwrap();
    let turn = take(&long).await;
    let guard = turn.guard();
    long.faults().freeze();
    hub.restart(true);
    let wiped = Instant::now();
    loop {
        let Ok(ticket) = short.reserve(&chat()).await else { continue };
        match short.acquire_turn(ticket, AcquireTurn::new()).await {
            Ok(_) => break,
            Err(CoordinationError::LeaseLost { .. }) => {}
            Err(other) => panic!("{other:?}"),
        }
    }
    assert!(guard.check().is_err(), "two act on one chat");
    assert!(wiped.elapsed() <= LONG + LEASE, "{:?}", wiped.elapsed());
    drop(turn);
}
