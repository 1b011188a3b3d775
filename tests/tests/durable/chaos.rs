//! A short run of chaos with durability.

use std::path::Path;
use std::time::Duration;

use botmesh_tests::durable::chaos::{DurableChaos, Outcome};
use botmesh_tests::servers::Layout;

async fn run(seconds: u64, change: impl FnOnce(&mut DurableChaos)) -> Option<Outcome> {
    let program = Path::new(env!("CARGO_BIN_EXE_durable")).to_owned();
    let mut chaos = DurableChaos::new(program, 4, Duration::from_secs(seconds));
    (chaos.layout, chaos.people) = (Layout::Single, 10);
    change(&mut chaos);
    if !chaos.layout.is_installed() {
        let required = std::env::var("BOTMESH_REQUIRE_BACKENDS").is_ok_and(|set| set == "1");
        assert!(!required, "redis-server is absent, and BOTMESH_REQUIRE_BACKENDS=1 wants it");
        println!("skipped: redis-server is absent");
        return None;
    }
    Some(chaos.run().await.unwrap())
}

/// G1, G2, G4, G7: replicas that are killed, frozen and cut off lose nothing that they accepted,
/// keep the order of each chat, and a platform that recognises sends shows nothing twice.
#[tokio::test]
async fn faults_lose_nothing_and_repeat_nothing_where_sends_are_recognised() {
    let Some(Outcome { report, directory }) = run(10, |chaos| chaos.recognises = true).await else {
        return;
    };
    println!("{report}");
    assert!(report.violations.is_empty(), "the notes are in {}\n{report}", directory.display());
    // Less than this would prove nothing.
    assert!(report.accepted > 100 && report.fault_count() >= 3, "{report}");
}
