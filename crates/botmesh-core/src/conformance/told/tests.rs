//! The function agrees with itself, and a function with a broken rule does not.

use proptest::prelude::*;

use super::*;
use crate::conformance::differential;
use crate::coordination::transition::Mutation;
use crate::id::LeaderName;

/// The transition function as a backend.
struct Function {
    ledger: Ledger,
    broken: Option<Mutation>,
}

#[async_trait]
impl ToldBackend for Function {
    fn keys(&self) -> [CoordinationKey; 2] {
        ["one", "two"].map(|name| LeaderName::new(name).unwrap().into())
    }

    async fn execute(&mut self, operation: &Operation, moment: Moment) -> Result<Told, CaseError> {
        let (run, limits) = (moment.run.to_string(), limits());
        let at = At::new(moment.now, &run, &limits).mutated(self.broken);
        let Outcome { reply, wakeup } = step(&mut self.ledger, operation, &at);
        Ok(Told { reply, wakeups: Some(wakeup.into_iter().collect()) })
    }

    async fn sessions(&mut self) -> Result<Vec<StoredSession>, CaseError> {
        Ok(StoredSpace::from(&self.ledger.sessions).sessions)
    }

    async fn turn(
        &mut self,
        key: &CoordinationKey,
        _: Moment,
    ) -> Result<Option<StoredTurn>, CaseError> {
        Ok(self.ledger.records.get(key).cloned().map(Into::into))
    }

    async fn wipe(&mut self) -> Result<(), CaseError> {
        self.ledger = Ledger::default();
        Ok(())
    }
}

fn run(broken: Option<Mutation>, choices: &[u8]) -> Result<u32, CaseError> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(agrees(&mut Function { ledger: Ledger::default(), broken }, choices))
}

proptest! {
    #[test]
    fn any_bytes_are_a_sequence(choices in prop::collection::vec(any::<u8>(), 0..600)) {
        prop_assert!(run(None, &choices).is_ok());
    }
}

#[test]
fn sequences_come_to_many_grants() {
    let granted: u32 =
        (0..50).map(|seed| run(None, &differential::choices(seed, 140)).unwrap()).sum();
    assert!(granted > 50 * 3, "only {granted} grants");
}

#[test]
fn a_function_with_a_broken_rule_does_not_agree() {
    for mutation in [
        Mutation::LastInFirstOut,
        Mutation::ReleaseForAnybody,
        Mutation::GrantToTheDead,
        Mutation::StopAtTheDead,
        Mutation::FenceNotRaised,
        Mutation::ReviveTheExpired,
        Mutation::TakeFromTheLiving,
        Mutation::RepeatQueuesAgain,
        Mutation::AcceptStale,
        Mutation::NoGrace,
        Mutation::TrustTheClock,
        Mutation::BuryUnconfirmed,
    ] {
        let disagrees =
            (0..300).any(|seed| run(Some(mutation), &differential::choices(seed, 200)).is_err());
        assert!(disagrees, "{mutation:?} is not noticed");
    }
}
