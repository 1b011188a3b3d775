//! Short runs of chaos with durability.

use std::path::Path;
use std::time::Duration;

use botmesh_test_support::absent;
use botmesh_tests::durable::chaos::{DurableChaos, Home, Outcome};
use botmesh_tests::servers::Layout;

async fn run(home: Home) -> Option<Outcome> {
    if !home.is_installed() {
        absent::skip(&format!("{home} is absent"));
        return None;
    }
    let program = Path::new(env!("CARGO_BIN_EXE_durable")).to_owned();
    let mut chaos = DurableChaos::new(program, 4, Duration::from_secs(10));
    (chaos.home, chaos.people, chaos.recognises) = (home, 10, true);
    Some(chaos.run().await.unwrap())
}

fn breaks_no_promise(Outcome { report, directory }: &Outcome) {
    println!("{report}");
    assert!(report.violations.is_empty(), "the notes are in {}\n{report}", directory.display());
    // Less than this would prove nothing.
    assert!(report.accepted > 100 && report.fault_count() >= 3, "{report}");
}

/// G1, G2, G4, G7: replicas that are killed, frozen and cut off lose nothing that they accepted,
/// keep the order of each chat, and a platform that recognises sends shows nothing twice.
#[tokio::test]
async fn faults_lose_nothing_and_repeat_nothing_where_sends_are_recognised() {
    let Some(outcome) = run(Home::Server(Layout::Single)).await else { return };
    breaks_no_promise(&outcome);
}

/// G1, G2, G4, G7: nor does a replica that is alone with its file.
#[tokio::test]
async fn faults_lose_nothing_and_repeat_nothing_on_a_file() {
    let Some(outcome) = run(Home::File).await else { return };
    breaks_no_promise(&outcome);
}
