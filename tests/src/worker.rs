//! One replica at work: it reserves, waits, holds, releases, drops, cancels and leads, checks its
//! guard before each effect as a bot does, and notes all of it.

mod hold;
mod workload;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result};
use botmesh_core::coordination::{
    AcquireTurn, ChatTurn, CoordinationError, Coordinator, Leadership, PreviousHolder, Ticket,
};
use botmesh_core::{ChatKey, LeaderName, ProviderId};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::history::{Call, Event, Recorder, nanos, previous};
use botmesh_core::testing::Dice;
use hold::Guard;
pub use workload::Workload;
use workload::{Ending, Job};

/// The pause after something failed, so that an outage is no busy loop.
const PAUSE: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(60));

/// How often the process shows that it runs, and from when on it counts as stalled.
const TICK: Duration = Duration::from_millis(20);
const STALL: Duration = Duration::from_millis(60);

/// How well a worker behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Habit {
    /// It does nothing under a turn that its guard refuses.
    Honest,
    /// It never asks its guard. The checker must find out.
    IgnoresGuard,
}

/// One worker.
#[derive(Debug)]
pub struct Worker {
    coordinator: Arc<dyn Coordinator>,
    recorder: Arc<Recorder>,
    workload: Workload,
    habit: Habit,
    calls: AtomicU64,
    provider: ProviderId,
}

impl Worker {
    /// A worker over a coordinator that has been started.
    ///
    /// # Errors
    /// Never, unless the name of the provider is refused.
    pub fn new(
        coordinator: Arc<dyn Coordinator>,
        recorder: Arc<Recorder>,
        workload: Workload,
        habit: Habit,
    ) -> Result<Arc<Self>> {
        let provider = ProviderId::new("chaos").context("the provider has no good name")?;
        let calls = AtomicU64::new(0);
        Ok(Arc::new(Self { coordinator, recorder, workload, habit, calls, provider }))
    }

    /// Works until it is told to stop, ends what it began, and stops the coordinator.
    pub async fn run(self: Arc<Self>, lease: Duration, stop: watch::Receiver<bool>) {
        let replica = self.coordinator.replica_id().as_str().to_owned();
        let lease = u64::try_from(lease.as_millis()).unwrap_or(u64::MAX);
        self.recorder.note(Event::Started { replica, lease });
        let mut meter = JoinSet::new();
        meter.spawn(measure_stalls(Arc::clone(&self.recorder)));
        let mut tasks = JoinSet::new();
        for index in 0..self.workload.tasks {
            let dice = Dice::new(self.workload.seed, index);
            tasks.spawn(Arc::clone(&self).work(dice, stop.clone()));
        }
        while tasks.join_next().await.is_some() {}
        // What it could not tell the backend ends with its lease.
        let _ = self.coordinator.stop().await;
        self.recorder.note(Event::Finished);
    }

    async fn work(self: Arc<Self>, mut dice: Dice, mut stop: watch::Receiver<bool>) {
        while !*stop.borrow() {
            let job = self.workload.next(&mut dice);
            if !self.perform(&job).await {
                tokio::time::sleep(dice.between(PAUSE.0, PAUSE.1)).await;
            }
            let pause = dice.between(Duration::ZERO, self.workload.pace * 2);
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                _ = stop.changed() => {}
            }
        }
    }

    /// Answers whether all went as it does without faults.
    async fn perform(&self, job: &Job) -> bool {
        match job {
            Job::Turn { key, hold, ending } => {
                let call = self.call();
                match self.reserve(call, key).await {
                    Some(ticket) => self.turn(call, ticket, *hold, *ending).await,
                    None => false,
                }
            }
            Job::TwoTurns { key, hold } => {
                let (first, second) = (self.call(), self.call());
                let Some(one) = self.reserve(first, key).await else { return false };
                let two = self.reserve(second, key).await;
                let mut fine = self.turn(first, one, *hold, Ending::Release).await;
                if let Some(two) = two {
                    fine &= self.turn(second, two, *hold, Ending::Drop).await;
                }
                fine
            }
            Job::Unused { key } => {
                let call = self.call();
                let Some(ticket) = self.reserve(call, key).await else { return false };
                self.give_up(call, ticket);
                true
            }
            Job::Impatient { key, patience } => {
                let call = self.call();
                let Some(ticket) = self.reserve(call, key).await else { return false };
                match self.acquire(call, ticket, Some(*patience)).await {
                    Ok(Some(turn)) => self.keep(call, turn, Duration::ZERO, Ending::Drop).await,
                    other => other.is_ok(),
                }
            }
            Job::Lead { name, hold, patience, ending } => {
                let call = self.call();
                match self.campaign(call, name, *patience).await {
                    Some(leadership) => self.keep(call, leadership, *hold, *ending).await,
                    None => true,
                }
            }
        }
    }

    fn call(&self) -> Call {
        self.calls.fetch_add(1, Ordering::Relaxed)
    }

    fn fail(&self, call: Call, error: &CoordinationError) {
        let reason = match error {
            CoordinationError::LeaseLost { reason, .. } => format!("lost {reason:?}"),
            CoordinationError::Unavailable { operation, .. } => format!("unavailable {operation}"),
            CoordinationError::Full { .. } => "full".to_owned(),
            other => other.to_string().replace('\n', " "),
        };
        self.recorder.note(Event::Failed { call, reason });
    }

    async fn reserve(&self, call: Call, key: &str) -> Option<Ticket> {
        let chat = ChatKey::new(&self.provider, key).ok()?;
        self.recorder.note(Event::Reserve { call, key: key.to_owned() });
        match self.coordinator.reserve(&chat).await {
            Ok(ticket) => {
                let (sequence, session) = (ticket.sequence(), ticket.session());
                let incarnation = session.incarnation().as_str().to_owned();
                self.recorder.note(Event::Reserved { call, sequence, incarnation });
                Some(ticket)
            }
            Err(error) => {
                self.fail(call, &error);
                None
            }
        }
    }

    fn give_up(&self, call: Call, ticket: Ticket) {
        let at = self.recorder.now();
        let alive = ticket.session().loss().is_none();
        self.recorder.note_at(at, Event::GaveUp { call, alive, timed_out: false });
        drop(ticket);
    }

    async fn turn(&self, call: Call, ticket: Ticket, hold: Duration, ending: Ending) -> bool {
        match self.acquire(call, ticket, None).await {
            Ok(Some(turn)) => self.keep(call, turn, hold, ending).await,
            _ => false,
        }
    }

    /// None when patience ended first; an error when the turn did not come.
    async fn acquire(
        &self,
        call: Call,
        ticket: Ticket,
        patience: Option<Duration>,
    ) -> Result<Option<Held<ChatTurn>>, ()> {
        let (session, wait) = (Arc::clone(ticket.session()), self.workload.wait);
        let begun = self.recorder.now();
        self.recorder.note_at(begun, Event::Wait { call });
        let options = AcquireTurn::new().with_wait(wait);
        let mut acquiring = self.coordinator.acquire_turn(ticket, options);
        let answer = match patience {
            None => Ok(acquiring.as_mut().await),
            Some(patience) => tokio::time::timeout(patience, acquiring.as_mut()).await,
        };
        let (now, alive) = (self.recorder.now(), session.loss().is_none());
        match answer {
            Ok(Ok(turn)) => {
                let before = turn.previous_holder().cloned().zip(turn.previous_fence());
                let before =
                    before.map(|(incarnation, fence)| PreviousHolder { incarnation, fence });
                let held = self.note_grant(call, &turn, before);
                Ok(Some(Held { guard: turn, session: Some(session), checked: now, held }))
            }
            Ok(Err(CoordinationError::TimedOut { .. })) => {
                // The place is given up by now; it surely was not before the longest wait.
                let event = Event::GaveUp { call, alive, timed_out: true };
                self.recorder.note_at(begun + nanos(wait), event);
                Err(())
            }
            Ok(Err(error)) => {
                self.fail(call, &error);
                Err(())
            }
            Err(_) => {
                self.recorder.note_at(now, Event::GaveUp { call, alive, timed_out: false });
                drop(acquiring);
                Ok(None)
            }
        }
    }

    async fn campaign(
        &self,
        call: Call,
        name: &str,
        patience: Option<Duration>,
    ) -> Option<Held<Leadership>> {
        let leader = LeaderName::new(name).ok()?;
        self.recorder.note(Event::Reserve { call, key: format!("lead:{name}") });
        let led = match patience {
            None => self.coordinator.try_lead(&leader).await,
            Some(patience) => {
                let lead = tokio::time::timeout(patience, self.coordinator.lead(&leader)).await;
                lead.map_or(Ok(None), |led| led.map(Some))
            }
        };
        match led {
            Ok(Some(guard)) => {
                let checked = self.recorder.now();
                let held = self.note_grant(call, &guard, None);
                Some(Held { guard, session: None, checked, held })
            }
            Ok(None) => {
                self.recorder.note(Event::Failed { call, reason: "not elected".into() });
                None
            }
            Err(error) => {
                self.fail(call, &error);
                None
            }
        }
    }

    fn note_grant(&self, call: Call, guard: &impl Guard, before: Option<PreviousHolder>) -> bool {
        let at = self.recorder.now();
        let held = self.allows(guard);
        let (fence, previous) = (guard.fence(), previous(before));
        self.recorder.note_at(at, Event::Granted { call, fence, held, previous });
        held
    }

    fn allows(&self, guard: &impl Guard) -> bool {
        self.habit == Habit::IgnoresGuard || guard.allows()
    }
}

use hold::Held;

async fn measure_stalls(recorder: Arc<Recorder>) {
    loop {
        let begun = recorder.now();
        tokio::time::sleep(TICK).await;
        let length = recorder.now().saturating_sub(begun + nanos(TICK));
        if length > nanos(STALL) {
            recorder.note(Event::Stalled { length });
        }
    }
}
