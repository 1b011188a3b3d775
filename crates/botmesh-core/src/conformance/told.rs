//! Compares a coordination backend whose clock is told with the transition function: the same
//! operations at the same times must have the same answers and wake-ups, and leave the same state.
//!
//! Unlike the [comparison by the backend's own clock](super::differential) it reaches what only
//! time brings: leases that run out, clocks that jump, servers that restart, records that expire.

use std::time::Duration;

use async_trait::async_trait;

use super::CaseError;
use super::case::{ensure, ensure_eq};
use crate::coordination::CoordinationKey;
use crate::coordination::transition::{
    At, Ledger, Limits, Operation, Outcome, Reply, ServerTime, StoredSession, StoredSpace,
    StoredTurn, TicketId, Wakeup, step,
};
use crate::id::IncarnationId;

mod action;

use action::Action;

/// Leases that can be halved and divided by three without a rest.
const LEASES: [Duration; 2] = [Duration::from_millis(600), Duration::from_millis(900)];
const REPLICAS: usize = 3;

/// The bounds that the compared backend must use.
#[must_use]
pub fn limits() -> Limits {
    Limits {
        max_queue: 3,
        held: Duration::from_secs(24 * 3600),
        idle: Duration::from_secs(1200),
        grace: LEASES[0],
    }
}

/// When an operation is executed, and by which run of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// What the backend's clock shows.
    pub now: ServerTime,
    /// Another number is another run.
    pub run: u64,
}

/// What a backend answered, and whom it told meanwhile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    /// The answer.
    pub reply: Reply,
    /// The wake-ups; none when they cannot be heard here.
    pub wakeups: Option<Vec<Wakeup>>,
}

/// A backend whose clock the caller tells. Its state is this comparison's alone.
#[async_trait]
pub trait ToldBackend: Send {
    /// Two keys whose sessions are in one table.
    fn keys(&self) -> [CoordinationKey; 2];

    /// Whether records expire by the told clock.
    fn forgets(&self) -> bool {
        true
    }

    /// Executes an operation.
    ///
    /// # Errors
    /// [`CaseError`] when the backend fails.
    async fn execute(&mut self, operation: &Operation, moment: Moment) -> Result<Told, CaseError>;

    /// The sessions, in any order.
    ///
    /// # Errors
    /// As for [`execute`](Self::execute).
    async fn sessions(&mut self) -> Result<Vec<StoredSession>, CaseError>;

    /// The record of a key; none when it is absent or has expired. When it expires, and the fence
    /// of the previous holder, are not compared.
    ///
    /// # Errors
    /// As for [`execute`](Self::execute).
    async fn turn(
        &mut self,
        key: &CoordinationKey,
        moment: Moment,
    ) -> Result<Option<StoredTurn>, CaseError>;

    /// Forgets everything.
    ///
    /// # Errors
    /// As for [`execute`](Self::execute).
    async fn wipe(&mut self) -> Result<(), CaseError>;

    /// Does what must make no difference, such as removing what nobody remembers.
    ///
    /// # Errors
    /// As for [`execute`](Self::execute).
    async fn disturb(&mut self, _moment: Moment) -> Result<(), CaseError> {
        Ok(())
    }
}

/// Executes the operations that `choices` stand for, at times that they stand for too, and
/// compares. Answers how many grants there were. Any bytes make sense, as for
/// [`differential::agrees`](super::differential::agrees).
///
/// # Errors
/// [`CaseError`] when something differs, with what led to it.
pub async fn agrees(backend: &mut dyn ToldBackend, choices: &[u8]) -> Result<u32, CaseError> {
    backend.wipe().await?;
    let mut pair = Pair {
        keys: backend.keys(),
        backend,
        limits: limits(),
        ledger: Ledger::default(),
        now: 1_800_000_000_000_000,
        run: 1,
        callers: (0..REPLICAS).map(|who| Caller::new(who, 0)).collect::<Result<_, _>>()?,
        tickets: Vec::new(),
        sequence: 0,
        granted: 0,
        history: Vec::new(),
    };
    for action in Action::begin().chain(choices.chunks_exact(4).map(Action::read)) {
        pair.act(&action).await?;
    }
    Ok(pair.granted)
}

/// Both sides, and the callers.
struct Pair<'a> {
    backend: &'a mut dyn ToldBackend,
    keys: [CoordinationKey; 2],
    limits: Limits,
    ledger: Ledger,
    now: u64,
    run: u64,
    callers: Vec<Caller>,
    tickets: Vec<(TicketId, CoordinationKey)>,
    sequence: u64,
    granted: u32,
    history: Vec<(u64, Operation)>,
}

struct Caller {
    incarnation: IncarnationId,
    epoch: u32,
}

impl Caller {
    /// A name with all that could be taken for a part of a format.
    fn new(who: usize, number: u64) -> Result<Self, CaseError> {
        let incarnation = IncarnationId::new(format!("{who}|/{{}}'\n-{number}#1"))
            .map_err(|error| CaseError::Violation(error.to_string()))?;
        Ok(Self { incarnation, epoch: 0 })
    }
}

impl Pair<'_> {
    fn moment(&self) -> Moment {
        Moment { now: ServerTime::from_micros(self.now), run: self.run }
    }

    async fn act(&mut self, action: &Action) -> Result<(), CaseError> {
        let operation = match *action {
            Action::Pass { time } => {
                // Nothing that is remembered for good could be compared any more.
                if time < Duration::from_secs(60) || self.backend.forgets() {
                    self.now += u64::try_from(time.as_micros()).unwrap_or_default();
                }
                return Ok(());
            }
            Action::SetBack { time } => {
                self.now -= u64::try_from(time.as_micros()).unwrap_or_default();
                return Ok(());
            }
            Action::Restart => {
                self.run += 1;
                return Ok(());
            }
            Action::Wipe => {
                self.ledger = Ledger::default();
                return self.backend.wipe().await;
            }
            Action::Disturb => return self.backend.disturb(self.moment()).await,
            Action::RenewAll => return self.renew_all().await,
            Action::Register { who, lease } => {
                // Half of the time under the name that it has.
                if (self.now / 1000).is_multiple_of(2) {
                    self.callers[who] = Caller::new(who, self.now)?;
                }
                let incarnation = self.callers[who].incarnation.clone();
                Operation::Register { incarnation, lease: LEASES[lease] }
            }
            Action::Heartbeat { who, bumps, age } => {
                let caller = &mut self.callers[who];
                caller.epoch += u32::from(bumps);
                let (incarnation, epoch) = (caller.incarnation.clone(), caller.epoch);
                Operation::Heartbeat { incarnation, epoch, age }
            }
            Action::Stop { who } => {
                Operation::Stop { incarnation: self.callers[who].incarnation.clone() }
            }
            Action::Ask { who, key, attempts, stale } => {
                let Caller { incarnation, epoch } = &self.callers[who];
                self.sequence += 1;
                let ticket = TicketId { incarnation: incarnation.clone(), sequence: self.sequence };
                let epoch = epoch.saturating_sub(u32::from(stale));
                let key = self.keys[key].clone();
                self.tickets.push((ticket.clone(), key.clone()));
                match attempts {
                    true => Operation::Attempt { key, ticket, epoch },
                    false => Operation::Reserve { key, ticket, epoch },
                }
            }
            Action::Repeat { ticket } => match self.ticket(ticket) {
                Some((ticket, key)) => Operation::Reserve { key, ticket, epoch: u32::MAX },
                None => return Ok(()),
            },
            Action::Poll { ticket } => match self.ticket(ticket) {
                Some((ticket, key)) => Operation::Poll { key, ticket },
                None => return Ok(()),
            },
            Action::Release { ticket } => match self.ticket(ticket) {
                Some((ticket, key)) => Operation::Release { key, ticket },
                None => return Ok(()),
            },
            Action::Touch { ticket } => match self.ticket(ticket) {
                Some((ticket, key)) => Operation::Touch { key, ticket },
                None => return Ok(()),
            },
        };
        self.compare(&operation).await.map(drop)
    }

    async fn renew_all(&mut self) -> Result<(), CaseError> {
        for who in 0..REPLICAS {
            let Caller { incarnation, epoch } = &self.callers[who];
            let (incarnation, epoch) = (incarnation.clone(), *epoch);
            let age = Duration::from_millis(350);
            let heartbeat = Operation::Heartbeat { incarnation, epoch, age };
            if self.compare(&heartbeat).await? == Reply::Expired {
                self.callers[who] = Caller::new(who, self.now)?;
                let incarnation = self.callers[who].incarnation.clone();
                let lease = LEASES[who % LEASES.len()];
                self.compare(&Operation::Register { incarnation, lease }).await?;
            }
        }
        Ok(())
    }

    /// One of the last tickets.
    fn ticket(&self, number: usize) -> Option<(TicketId, CoordinationKey)> {
        self.tickets.iter().rev().nth(number).cloned()
    }

    /// Executes an operation on both sides.
    async fn compare(&mut self, operation: &Operation) -> Result<Reply, CaseError> {
        self.history.push((self.now, operation.clone()));
        let moment = self.moment();
        let run = format!("{:x}", self.run);
        let wanted = step(&mut self.ledger, operation, &At::new(moment.now, &run, &self.limits));
        let found = self.backend.execute(operation, moment).await?;
        let history = &self.history;
        ensure_eq!(found.reply, wanted.reply, "the answer to the last of {history:#?}");
        let granted = matches!(found.reply, Reply::Granted(_) | Reply::Released { next: Some(_) });
        self.granted += u32::from(granted || wanted.wakeup.is_some());
        self.compare_wakeups(&wanted, found.wakeups)?;
        self.compare_state(operation).await?;
        Ok(found.reply)
    }

    fn compare_wakeups(
        &self,
        wanted: &Outcome,
        found: Option<Vec<Wakeup>>,
    ) -> Result<(), CaseError> {
        let Some(mut found) = found else { return Ok(()) };
        // Whoever has no session may be told or not.
        let heard =
            |wakeup: &Wakeup| self.ledger.sessions.get(&wakeup.ticket.incarnation).is_some();
        found.retain(heard);
        let wanted: Vec<Wakeup> =
            wanted.wakeup.iter().filter(|wakeup| heard(wakeup)).cloned().collect();
        ensure_eq!(found, wanted, "the wake-ups after {:#?}", self.history);
        Ok(())
    }

    async fn compare_state(&mut self, operation: &Operation) -> Result<(), CaseError> {
        let mut found = self.backend.sessions().await?;
        found.sort_by(|one, other| one.incarnation.cmp(&other.incarnation));
        let wanted = StoredSpace::from(&self.ledger.sessions).sessions;
        ensure_eq!(found, wanted, "the sessions after {:#?}", self.history);
        let Some(key) = operation.key() else { return Ok(()) };
        let found = self.backend.turn(key, self.moment()).await?;
        let wanted: Option<StoredTurn> = self.ledger.records.get(key).cloned().map(Into::into);
        let Some(found) = found else {
            ensure!(wanted.is_none(), "no record after {:#?}", self.history);
            return Ok(());
        };
        let wanted = wanted.unwrap_or_default();
        let seen = |turn: StoredTurn| {
            let previous = turn.previous.map(|previous| previous.incarnation);
            // The row of a record that has expired may keep its fence, which is more than is asked.
            let fence = if wanted.fence == 0 { 0 } else { turn.fence };
            (turn.holder, fence, previous, turn.queue)
        };
        ensure_eq!(seen(found), seen(wanted.clone()), "the record after {:#?}", self.history);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
