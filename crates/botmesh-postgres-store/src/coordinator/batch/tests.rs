use std::collections::{BTreeSet, VecDeque};

use botmesh_core::LeaderName;
use botmesh_core::coordination::CoordinationKey;
use botmesh_core::coordination::transition::{Operation, TicketId};
use botmesh_core::id::IncarnationId;
use proptest::prelude::*;

use super::{Batch, MOST, Taken, read};

fn key(number: usize) -> CoordinationKey {
    CoordinationKey::from(LeaderName::new(format!("k{number}")).unwrap())
}

fn operation(sequence: usize, key_of: usize, caller: usize, epoch: Option<u32>) -> Operation {
    let incarnation = IncarnationId::new(format!("r#{caller}")).unwrap();
    let ticket = TicketId { incarnation, sequence: sequence as u64 };
    let key = key(key_of);
    match epoch {
        Some(epoch) => Operation::Reserve { key, ticket, epoch },
        None => Operation::Release { key, ticket },
    }
}

/// The place at which an operation came is what stands for who waits.
fn waiting(operations: &[(usize, usize, Option<u32>)]) -> VecDeque<(Operation, usize)> {
    let operations = operations.iter().enumerate();
    operations
        .map(|(place, &(key, caller, epoch))| (operation(place, key, caller, epoch), place))
        .collect()
}

#[test]
fn an_operation_that_comes_alone_goes_alone() {
    let mut queue = waiting(&[(1, 1, Some(0))]);
    assert!(Batch::take(&mut queue).unwrap().batch.is_single());
    assert!(Batch::take(&mut queue).is_none());
}

#[test]
fn many_operations_need_few_statements() {
    let mut queue = waiting(&Vec::from_iter((0..3 * MOST).map(|key| (key, 1, Some(0)))));
    let sizes = std::iter::from_fn(|| Batch::take(&mut queue));
    let sizes = sizes.map(|taken| taken.batch.into_parts().len());
    assert_eq!(Vec::from_iter(sizes), [MOST; 3]);
}

proptest! {
    /// C3: whatever comes together, each statement has one caller, one epoch and each key once, in
    /// the order in which rows are locked, and every operation is sent once. What goes in the
    /// statement came before the others on its key.
    #[test]
    fn statements_hold_what_can_go_together(
        operations in prop::collection::vec(
            (0..20_usize, prop::sample::select(vec![1, 1, 1, 1, 1, 2]),
                prop::sample::select(vec![None, None, Some(1), Some(1), Some(1), Some(2)])),
            0..300,
        ),
    ) {
        let mut queue = waiting(&operations);
        let mut sent = BTreeSet::new();
        while let Some(Taken { batch, crowd }) = Batch::take(&mut queue) {
            let call_epoch = batch.epoch;
            let parts = batch.into_parts();
            prop_assert!(!parts.is_empty() && parts.len() <= MOST);
            let mut caller = None;
            for (operation, place) in &parts {
                let (_, ticket, epoch) = read(operation).unwrap();
                let caller = caller.get_or_insert_with(|| ticket.incarnation.clone());
                prop_assert_eq!(&*caller, &ticket.incarnation);
                prop_assert!(epoch.is_none_or(|epoch| epoch == call_epoch));
                prop_assert!(sent.insert(*place));
            }
            prop_assert!(parts.is_sorted_by(|one, next| one.0.key() < next.0.key()));
            for (operation, place) in crowd {
                let before = parts.iter().find(|(part, _)| part.key() == operation.key());
                prop_assert!(before.is_some_and(|(_, before)| *before < place));
                prop_assert!(sent.insert(place));
            }
        }
        prop_assert_eq!(sent.len(), operations.len(), "nothing is lost");
    }
}
