//! Reservations and releases of keys for which others compete, which go in one statement to the
//! functions that know about queues.

use std::collections::VecDeque;

use botmesh_core::coordination::transition::{Limits, Operation, Reply};
use botmesh_sql::{DriverError, Row};

use super::batch::read;
use super::wire::{decode_row, microseconds, signed, unexpected};
use crate::protocol::Argument;

/// So many operations go in one statement at most: none is answered before all are decided.
const MOST: usize = 32;

/// Operations in the order of their keys, those on one key in the order in which they came.
#[derive(Debug)]
pub(super) struct Crowd<T>(Vec<(Operation, T)>);

impl<T> Crowd<T> {
    /// Takes the first of what waits; none when nothing does.
    pub(super) fn take(waiting: &mut VecDeque<(Operation, T)>) -> Option<Self> {
        let count = waiting.len().min(MOST);
        let mut parts: Vec<_> = waiting.drain(..count).collect();
        // Whoever locks several rows locks them in this order, so that no two wait for each other.
        parts.sort_by(|(one, _), (other, _)| one.key().cmp(&other.key()));
        (count > 0).then_some(Self(parts))
    }

    /// The operations, and whom to answer.
    pub(super) fn into_parts(self) -> Vec<(Operation, T)> {
        self.0
    }

    /// Whether there is one operation only.
    pub(super) const fn is_single(&self) -> bool {
        self.0.len() == 1
    }

    /// What is sent.
    pub(super) fn call(&self, limits: &Limits) -> Call<'_> {
        let parts = || self.0.iter().filter_map(|(operation, _)| read(operation));
        Call {
            takes: parts().map(|(.., epoch)| i64::from(epoch.is_some())).collect(),
            keys: parts().map(|(key, ..)| key.as_str().as_bytes()).collect(),
            callers: parts().map(|(_, of, _)| of.incarnation.as_str().as_bytes()).collect(),
            tickets: parts().map(|(_, ticket, _)| signed(ticket.sequence)).collect(),
            epochs: parts().map(|(.., epoch)| epoch.unwrap_or(0).into()).collect(),
            most: limits.max_queue.into(),
            held: microseconds(limits.held),
            idle: microseconds(limits.idle),
            grace: microseconds(limits.grace),
        }
    }

    /// Reads what was answered: one row for each operation, in their order.
    pub(super) fn answers(&self, rows: Vec<Row>) -> Result<Vec<Reply>, DriverError> {
        if rows.len() != self.0.len() {
            return Err(unexpected("there are not as many answers as operations"));
        }
        rows.into_iter().map(decode_row).collect()
    }
}

/// The values of the statement.
#[derive(Debug)]
pub(super) struct Call<'a> {
    /// 1 for what is reserved, 0 for what is released.
    takes: Vec<i64>,
    keys: Vec<&'a [u8]>,
    callers: Vec<&'a [u8]>,
    tickets: Vec<i64>,
    epochs: Vec<i64>,
    most: i64,
    held: i64,
    idle: i64,
    grace: i64,
}

impl Call<'_> {
    /// In the order of the statement's placeholders.
    pub(super) fn arguments(&self) -> [Argument<'_>; 9] {
        [
            Argument::Integers(&self.takes),
            Argument::Texts(&self.keys),
            Argument::Texts(&self.callers),
            Argument::Integers(&self.tickets),
            Argument::Integers(&self.epochs),
            Argument::Integer(self.most),
            Argument::Integer(self.held),
            Argument::Integer(self.idle),
            Argument::Integer(self.grace),
        ]
    }
}
