//! The state of the model, and what can happen next.

use std::collections::BTreeSet;
use std::time::Duration;

use botmesh_core::coordination::CoordinationKey;
use botmesh_core::coordination::transition::{Ledger, Limits, Mutation, Operation, ServerTime};
use botmesh_core::{IncarnationId, LeaderName};
use stateright::{Model, Property};

use crate::protocol::{Replica, Request};

/// A lease in ticks, of which one is the time between two heartbeats.
const LEASE: u32 = 3;
/// How much earlier a replica ends its own lease.
pub const MARGIN: u32 = 1;
/// The replicas have run for this long when the exploration begins.
pub const BEGIN: u32 = 10;
const TICK: Duration = Duration::from_millis(1);

/// A mistake of the client, to prove that the model would notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientMistake {
    /// Counts its lease from the arrival of the confirmation.
    DeadlineFromReply,
    /// Relies on pushes.
    NeverPolls,
    /// Repeats a reservation while the first one may yet be executed.
    RepeatsUnfenced,
}

/// What is explored.
#[derive(Clone, Debug)]
pub struct Coordination {
    pub name: &'static str,
    /// The keys of the tickets of each replica.
    pub tickets: Vec<Vec<u8>>,
    pub lease: u32,
    /// Whether each replica has reserved its first ticket when the exploration begins.
    pub contended: bool,
    pub ticks: u32,
    pub budget: Budget,
    pub mutation: Option<Mutation>,
    pub mistake: Option<ClientMistake>,
    pub limits: Limits,
}

/// How often something may go wrong.
#[derive(Clone, Copy, Debug, Default, Hash, PartialEq, Eq)]
pub struct Budget {
    /// Answers and wake-ups that are lost.
    pub losses: u8,
    /// Requests that are executed, or confirmed, late.
    pub delays: u8,
    pub crashes: u8,
    pub cancels: u8,
    pub wipes: u8,
    pub jumps: u8,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq)]
pub struct World {
    pub ledger: Ledger,
    pub now: u32,
    /// How far the backend's clock is ahead.
    pub jumped: u32,
    pub replicas: Vec<Replica>,
    pub network: BTreeSet<Packet>,
    pub budget: Budget,
    /// The tickets that were ever granted, as replica, life, ticket.
    pub granted: BTreeSet<(u8, u8, u8)>,
    /// The highest fence of each key.
    pub fences: Vec<u64>,
    /// The incarnations that were registered, and whether they are gone.
    pub sessions: BTreeSet<(u8, u8, bool)>,
    pub violation: Option<&'static str>,
    /// What has been seen, so that a run can show that it explored what it is about.
    pub seen: Seen,
}

#[derive(Clone, Copy, Debug, Default, Hash, PartialEq, Eq)]
pub struct Seen {
    pub replaced: bool,
    pub skipped: bool,
    pub grace: bool,
}

/// What is under way.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq, PartialOrd, Ord)]
pub enum Packet {
    Late(Request),
    /// A heartbeat was executed; its confirmation is under way.
    Confirmation(Request),
    Wake {
        replica: u8,
        life: u8,
        ticket: u8,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Tick,
    /// A request is executed and answered.
    Call(Request),
    /// A request is executed, and its answer is lost.
    CallLost(Request),
    /// A request is given up by its sender, and may be executed later.
    CallLate(Request),
    /// A heartbeat is executed and confirmed later.
    CallSlow(Request),
    Deliver(Packet),
    Drop(Packet),
    /// A replica notices that its lease has run out.
    Lapse(u8),
    Crash(u8),
    Restart(u8),
    /// A ticket is given up before it is granted.
    Cancel(u8, u8),
    /// The work under a turn is done.
    Finish(u8, u8),
    Wipe,
    /// The backend's clock is set forward by so many ticks.
    Jump(u32),
}

impl Coordination {
    pub fn new(name: &'static str, tickets: &[&[u8]], ticks: u32, budget: Budget) -> Self {
        let limits =
            Limits { max_queue: 10, held: TICK * 10_000, idle: TICK * 1_000, grace: TICK * LEASE };
        let tickets = tickets.iter().map(|keys| keys.to_vec()).collect();
        let (lease, contended) = (LEASE, false);
        Self {
            name,
            tickets,
            lease,
            contended,
            ticks,
            budget,
            mutation: None,
            mistake: None,
            limits,
        }
    }

    pub fn with_lease(mut self, ticks: u32) -> Self {
        self.lease = ticks;
        self.limits.grace = TICK * ticks;
        self
    }

    pub fn contended(mut self) -> Self {
        self.contended = true;
        self
    }

    pub fn server_time(world: &World) -> ServerTime {
        ServerTime::from_micros(1_000_000).plus(TICK * (world.now + world.jumped))
    }

    pub fn operation(&self, request: Request) -> Operation {
        match request {
            Request::Register { replica, life } => Operation::Register {
                incarnation: incarnation(replica, life),
                lease: TICK * self.lease,
            },
            Request::Beat { replica, life, epoch, age, .. } => Operation::Heartbeat {
                incarnation: incarnation(replica, life),
                epoch,
                age: TICK * age,
            },
            Request::Reserve { at, epoch } => {
                Operation::Reserve { key: key(at.key), ticket: at.id(), epoch }
            }
            Request::Poll { at } => Operation::Poll { key: key(at.key), ticket: at.id() },
            Request::Release { at } => Operation::Release { key: key(at.key), ticket: at.id() },
        }
    }
}

pub fn incarnation(replica: u8, life: u8) -> IncarnationId {
    let text = format!("{}{}", char::from(b'a' + replica), char::from(b'0' + life));
    IncarnationId::new(text).expect("two letters")
}

/// Replica and life of an incarnation.
pub fn known(incarnation: &IncarnationId) -> (u8, u8) {
    let text = incarnation.as_str().as_bytes();
    (text[0] - b'a', text[1] - b'0')
}

pub fn key(number: u8) -> CoordinationKey {
    LeaderName::new(char::from(b'x' + number).to_string()).expect("a letter").into()
}

impl Model for Coordination {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        vec![self.begin()]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        if world.violation.is_some() {
            return;
        }
        let budget = &world.budget;
        if world.now < BEGIN + self.ticks {
            actions.push(Action::Tick);
        }
        for (number, replica) in (0..).zip(&world.replicas) {
            for request in replica.requests(number, world.now, self.mistake) {
                actions.push(Action::Call(request));
                if budget.losses > 0 && !matches!(request, Request::Poll { .. }) {
                    actions.push(Action::CallLost(request));
                }
                if budget.delays > 0 && !matches!(request, Request::Poll { .. }) {
                    actions.push(Action::CallLate(request));
                    if matches!(request, Request::Beat { .. }) {
                        actions.push(Action::CallSlow(request));
                    }
                }
            }
            if replica.has_lapsed(world.now) {
                actions.push(Action::Lapse(number));
            }
            if !replica.up {
                actions.push(Action::Restart(number));
            } else if budget.crashes > 0 {
                actions.push(Action::Crash(number));
            }
            for (ticket, phase) in replica.open() {
                if phase.is_held() {
                    actions.push(Action::Finish(number, ticket));
                } else if budget.cancels > 0 && phase.can_cancel() {
                    actions.push(Action::Cancel(number, ticket));
                }
            }
        }
        for packet in &world.network {
            actions.push(Action::Deliver(*packet));
            if budget.losses > 0 && matches!(packet, Packet::Wake { .. }) {
                actions.push(Action::Drop(*packet));
            }
        }
        if budget.wipes > 0 {
            actions.push(Action::Wipe);
        }
        if budget.jumps > 0 {
            actions.extend((1..=2 * self.lease).map(Action::Jump));
        }
    }

    fn next_state(&self, world: &World, action: Action) -> Option<World> {
        let mut next = world.clone();
        self.act(&mut next, action);
        (next != *world).then_some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("no step breaks a rule", |_, world: &World| world.violation.is_none()),
            Property::always("a key has one holder that may act", |_, world: &World| {
                world.one_holder_each()
            }),
            Property::always("a live waiter is granted", |model: &Self, world: &World| {
                model.heal(world).is_ok()
            }),
            Property::sometimes("a dead holder is replaced", |_, world: &World| {
                world.seen.replaced
            }),
            Property::sometimes("a dead ticket is skipped", |_, world: &World| world.seen.skipped),
        ]
    }
}
