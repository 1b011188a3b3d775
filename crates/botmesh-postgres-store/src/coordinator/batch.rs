//! Reservations and releases that go in one statement, and what it answers.

use std::collections::VecDeque;

use botmesh_core::coordination::CoordinationKey;
use botmesh_core::coordination::transition::{Limits, Operation, Reply, TicketId};
use botmesh_core::id::IncarnationId;
use botmesh_sql::{DriverError, Row};

use super::wire::{grant, microseconds, signed, unexpected};
use crate::protocol::Argument;

/// So many operations go in one statement at most.
const MOST: usize = 64;

/// Operations of one caller in one epoch, each on another key, and whom to answer.
///
/// They are in the order of their keys. Whoever locks several rows locks them in that order, so
/// that no two wait for each other.
#[derive(Debug)]
pub(super) struct Batch<T> {
    parts: Vec<(Operation, T)>,
    epoch: u32,
}

/// What operations that go together have in common.
struct Common {
    caller: IncarnationId,
    /// Nothing is reserved without one.
    epoch: Option<u32>,
}

/// The key, the ticket and, for a reservation, the epoch of an operation that can go with others.
pub(super) fn read(operation: &Operation) -> Option<(&CoordinationKey, &TicketId, Option<u32>)> {
    match operation {
        Operation::Reserve { key, ticket, epoch } => Some((key, ticket, Some(*epoch))),
        Operation::Release { key, ticket } => Some((key, ticket, None)),
        _ => None,
    }
}

/// Whether an operation can go with others.
pub(super) fn is_common(operation: &Operation) -> bool {
    read(operation).is_some()
}

impl Common {
    /// Whether an operation has the same caller and epoch.
    fn admits(&mut self, operation: &Operation) -> bool {
        let Some((_, ticket, epoch)) = read(operation) else { return false };
        let fits = ticket.incarnation == self.caller
            && (epoch.is_none() || self.epoch.is_none() || epoch == self.epoch);
        if fits {
            self.epoch = self.epoch.or(epoch);
        }
        fits
    }
}

/// What is to be sent now.
#[derive(Debug)]
pub(super) struct Taken<T> {
    /// What goes in one statement.
    pub(super) batch: Batch<T>,
    /// Further operations on keys of the batch. Such a key is contended, so they go to the function
    /// that knows about queues.
    pub(super) crowd: Vec<(Operation, T)>,
}

impl<T> Batch<T> {
    /// Takes what can go together from what waits, beginning with the first.
    pub(super) fn take(waiting: &mut VecDeque<(Operation, T)>) -> Option<Taken<T>> {
        let first = waiting.pop_front()?;
        let mut common = read(&first.0)
            .map(|(_, ticket, epoch)| Common { caller: ticket.incarnation.clone(), epoch });
        let (mut parts, mut crowd) = (vec![first], Vec::new());
        while let Some(common) = &mut common
            && parts.len() < MOST
            && let Some(next) = waiting.pop_front_if(|(next, _)| common.admits(next))
        {
            match parts.binary_search_by(|(part, _)| part.key().cmp(&next.0.key())) {
                Ok(_) => crowd.push(next),
                Err(place) => parts.insert(place, next),
            }
        }
        let epoch = common.and_then(|common| common.epoch).unwrap_or(0);
        Some(Taken { batch: Self { parts, epoch }, crowd })
    }

    /// The operations, and whom to answer.
    pub(super) fn into_parts(self) -> Vec<(Operation, T)> {
        self.parts
    }

    /// Whether there is one operation only.
    pub(super) const fn is_single(&self) -> bool {
        self.parts.len() == 1
    }

    /// What is sent.
    pub(super) fn call(&self, limits: &Limits) -> Call<'_> {
        let parts = || self.parts.iter().filter_map(|(operation, _)| read(operation));
        Call {
            caller: parts().next().map_or("", |(_, ticket, _)| ticket.incarnation.as_str()),
            epoch: self.epoch.into(),
            keys: parts().map(|(key, ..)| key.as_str().as_bytes()).collect(),
            tickets: parts().map(|(_, ticket, _)| signed(ticket.sequence)).collect(),
            takes: parts().map(|(.., epoch)| i64::from(epoch.is_some())).collect(),
            held: microseconds(limits.held),
            idle: microseconds(limits.idle),
        }
    }

    /// Reads what was answered: one row for each operation that was executed, in their order.
    pub(super) fn answers(&self, rows: Vec<Row>) -> Result<Vec<Option<Reply>>, DriverError> {
        let mut answers: Vec<Option<Reply>> = self.parts.iter().map(|_| None).collect();
        let mut parts = self.parts.iter().zip(&mut answers);
        for mut row in rows {
            let sequence = row.integer()?;
            let (fence, previous_fence, previous) =
                (row.number()?, row.optional_integer()?, row.optional_text()?);
            let of = parts.find_map(|((operation, _), answer)| {
                let (_, ticket, epoch) = read(operation)?;
                (signed(ticket.sequence) == sequence).then_some((epoch, answer))
            });
            let (epoch, answer) = of.ok_or_else(|| unexpected("an operation that nobody sent"))?;
            *answer = match epoch {
                Some(_) => Some(Reply::Granted(grant(fence, previous_fence, previous)?)),
                // A row that was not there is empty now, which is the same; its ticket held nothing.
                None => previous.map(|_| Reply::Released { next: None }),
            };
        }
        Ok(answers)
    }
}

/// The values of the statement.
#[derive(Debug)]
pub(super) struct Call<'a> {
    caller: &'a str,
    epoch: i64,
    keys: Vec<&'a [u8]>,
    tickets: Vec<i64>,
    /// 1 for what is reserved, 0 for what is released.
    takes: Vec<i64>,
    held: i64,
    idle: i64,
}

impl Call<'_> {
    /// In the order of the statement's placeholders.
    pub(super) fn arguments(&self) -> [Argument<'_>; 7] {
        [
            Argument::Text(self.caller),
            Argument::Integer(self.epoch),
            Argument::Texts(&self.keys),
            Argument::Integers(&self.tickets),
            Argument::Integers(&self.takes),
            Argument::Integer(self.held),
            Argument::Integer(self.idle),
        ]
    }
}

#[cfg(test)]
mod tests;
