//! What follows from a record, whatever happens between its writes.

use proptest::prelude::*;

use super::*;

const PERIOD: u64 = 1000;

fn every() -> Schedule {
    Schedule::every(Duration::from_millis(PERIOD)).unwrap()
}

fn at(millis: u64) -> Timestamp {
    Timestamp::from_millis(1_800_000_000_000 + millis)
}

fn retry() -> Retry {
    Retry::new(3).first(Duration::from_millis(100)).longest(Duration::from_millis(150))
}

fn run(record: &Record, misfire: Misfire, now: u64) -> (Record, Occurrence) {
    match record.next(&every(), misfire, &retry(), at(now)) {
        Step::Run(record, occurrence) => (record, occurrence),
        other => panic!("{other:?}"),
    }
}

/// H3: a job that begins owes nothing of the time before.
#[test]
fn a_new_job_waits_for_its_first_moment() {
    let record = Record::begin(&every(), at(1));
    let step = record.next(&every(), Misfire::Once, &retry(), at(1));
    assert_eq!(step, Step::Wait(at(1000)));
    let (record, occurrence) = run(&record, Misfire::Once, 1000);
    assert_eq!(occurrence, Occurrence { slot: at(1000), attempt: 1, skipped: 0 });
    let step = record.settled().next(&every(), Misfire::Once, &retry(), at(1001));
    assert_eq!(step, Step::Wait(at(2000)));
}

/// H3: of what was missed nothing, the latest, or the latest few are run.
#[test]
fn missed_moments_are_dealt_with_as_the_policy_says() {
    let record = Record::begin(&every(), at(1));
    // 1000 to 9000 have passed, the last of them long enough ago.
    let step = record.next(&every(), Misfire::Skip, &retry(), at(9700));
    let Step::Skip(skipped, told) = step else { panic!("{step:?}") };
    assert_eq!(told, Skipped { until: at(9000), count: 9 });
    assert_eq!(skipped.next(&every(), Misfire::Skip, &retry(), at(9700)), Step::Wait(at(10_000)));
    // In time it is run, whatever was before.
    let (_, occurrence) = run(&record, Misfire::Skip, 9100);
    assert_eq!(occurrence, Occurrence { slot: at(9000), attempt: 1, skipped: 8 });
    let (_, occurrence) = run(&record, Misfire::Once, 9700);
    assert_eq!(occurrence, Occurrence { slot: at(9000), attempt: 1, skipped: 8 });
    let (mut record, occurrence) = run(&record, Misfire::CatchUp { most: 3 }, 9700);
    assert_eq!(occurrence, Occurrence { slot: at(7000), attempt: 1, skipped: 6 });
    for slot in [8000, 9000] {
        let (next, occurrence) = run(&record.settled(), Misfire::CatchUp { most: 3 }, 9800);
        assert_eq!(occurrence, Occurrence { slot: at(slot), attempt: 1, skipped: 0 });
        record = next;
    }
}

/// H3: what failed is repeated with growing pauses, and given up in the end.
#[test]
fn failures_are_repeated_with_back_off() {
    let record = Record::begin(&every(), at(1));
    let (record, _) = run(&record, Misfire::Once, 1000);
    let (record, pause) = record.failed(&retry(), at(1010));
    assert_eq!(pause, Some(Duration::from_millis(100)));
    assert_eq!(record.next(&every(), Misfire::Once, &retry(), at(1050)), Step::Wait(at(1110)));
    let (record, occurrence) = run(&record, Misfire::Once, 1110);
    assert_eq!(occurrence.attempt, 2);
    let (record, pause) = record.failed(&retry(), at(1120));
    assert_eq!(pause, Some(Duration::from_millis(150)));
    let (record, occurrence) = run(&record, Misfire::Once, 1270);
    assert_eq!(occurrence.attempt, 3);
    let (record, pause) = record.failed(&retry(), at(1280));
    assert_eq!(pause, None);
    assert_eq!(record.next(&every(), Misfire::Once, &retry(), at(1280)), Step::Wait(at(2000)));
}

/// H3: an attempt whose process died counts, so that it does not kill one after the other.
#[test]
fn an_attempt_that_was_cut_off_counts() {
    let record = Record::begin(&every(), at(1));
    let (mut record, _) = run(&record, Misfire::Once, 1000);
    for attempt in [2, 3] {
        let (next, occurrence) = run(&record, Misfire::Once, 1000);
        assert_eq!(occurrence, Occurrence { slot: at(1000), attempt, skipped: 0 });
        record = next;
    }
    let step = record.next(&every(), Misfire::Once, &retry(), at(1000));
    let Step::GiveUp(record, occurrence) = step else { panic!("{step:?}") };
    assert_eq!(occurrence.attempt, 3);
    assert_eq!(record.next(&every(), Misfire::Once, &retry(), at(1000)), Step::Wait(at(2000)));
}

/// H1: what is due once is run once, also when its moment has passed before anybody knew of it.
#[test]
fn a_single_moment_is_run_once_and_late_if_need_be() {
    let once = Schedule::at(at(0));
    let record = Record::begin(&once, at(86_400_000));
    let step = record.next(&once, Misfire::Once, &retry(), at(86_400_000));
    let Step::Run(record, occurrence) = step else { panic!("{step:?}") };
    assert_eq!(occurrence.slot, at(0));
    let record = record.settled();
    assert_eq!(record.next(&once, Misfire::Once, &retry(), at(86_400_000)), Step::Done);
    // Another moment is another occurrence.
    let later = Schedule::at(at(5));
    let record = record.resume(&later, at(86_400_000));
    let step = record.next(&later, Misfire::Once, &retry(), at(86_400_000));
    assert!(matches!(step, Step::Run(..)), "{step:?}");
}

/// H1: with another schedule the past is left alone.
#[test]
fn another_schedule_begins_anew() {
    let record = Record::begin(&every(), at(1));
    let other = Schedule::every(Duration::from_millis(100)).unwrap();
    let record = record.resume(&other, at(5_000));
    let step = record.next(&other, Misfire::CatchUp { most: 100 }, &retry(), at(5_000));
    assert_eq!(step, Step::Wait(at(5_100)));
}

#[test]
fn a_record_survives_being_stored() {
    let (record, _) = run(&Record::begin(&every(), at(1)), Misfire::Once, 1000);
    let (failed, _) = record.failed(&retry(), at(1010));
    for record in [record.clone(), record.settled(), failed] {
        let text = serde_json::to_string(&record).unwrap();
        assert_eq!(serde_json::from_str::<Record>(&text).unwrap(), record, "{text}");
    }
}

/// What happens to one step.
#[derive(Debug, Clone, Copy)]
enum Fate {
    Succeeds,
    Fails,
    /// The process dies before the result is written.
    Dies,
}

proptest! {
    /// H1, H3: whatever fails and dies, no occurrence succeeds twice, they come in their order, and
    /// with enough catching up none is left out but those that were given up.
    #[test]
    fn no_occurrence_is_run_twice_or_forgotten(
        fates in prop::collection::vec(
            (prop_oneof![3 => Just(Fate::Succeeds), 1 => Just(Fate::Fails), 1 => Just(Fate::Dies)],
             prop::sample::select(vec![0_u64, 40, 100, 999, 2500, 7000]),
             // Clocks of other replicas, behind and ahead.
             0_u64..4000),
            1..60),
    ) {
        let misfire = Misfire::CatchUp { most: 10_000 };
        let mut record = Record::begin(&every(), at(10_000));
        let (mut time, mut seen, mut latest) = (10_000, Vec::new(), 0);
        for (fate, passes, ahead) in fates {
            time += passes;
            let now = at(time + ahead);
            latest = latest.max(time + ahead);
            match record.next(&every(), misfire, &retry(), now) {
                Step::Run(begun, occurrence) => {
                    prop_assert_eq!(occurrence.skipped, 0);
                    record = match fate {
                        Fate::Succeeds => {
                            seen.push(occurrence.slot);
                            begun.settled()
                        }
                        Fate::Fails => {
                            let (record, again) = begun.failed(&retry(), now);
                            if again.is_none() {
                                seen.push(occurrence.slot);
                            }
                            record
                        }
                        Fate::Dies => begun,
                    };
                }
                Step::GiveUp(next, occurrence) => {
                    seen.push(occurrence.slot);
                    record = next;
                }
                Step::Wait(until) => prop_assert!(until > now),
                other => prop_assert!(false, "{other:?}"),
            }
        }
        let all: Vec<_> = (11..).map(|slot| at(slot * PERIOD)).take(seen.len()).collect();
        prop_assert_eq!(seen, all);
    }
}
