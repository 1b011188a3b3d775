//! Executes actions and watches every step of the function for broken rules.

use botmesh_core::coordination::transition::{
    At, Ledger, Operation, Reply, TicketId, TurnRecord, step,
};

use crate::protocol::{Place, Replica, Request};
use crate::world::{Action, BEGIN, Coordination, Packet, World, key, known};

const RUN: &str = "run";

impl Coordination {
    /// Replicas that have run for a while and were renewed just now.
    pub fn begin(&self) -> World {
        let keys = self.tickets.iter().flatten().max().map_or(0, |key| usize::from(*key) + 1);
        let mut world = World {
            ledger: Ledger::founded(RUN),
            now: BEGIN - self.lease,
            jumped: 0,
            replicas: Vec::new(),
            network: Default::default(),
            budget: self.budget,
            granted: Default::default(),
            fences: vec![0; keys],
            sessions: Default::default(),
            violation: None,
            seen: Default::default(),
        };
        for (replica, tickets) in (0..).zip(&self.tickets) {
            world.replicas.push(Replica::new(tickets, self.lease, world.now));
            self.execute(&mut world, Request::Register { replica, life: 0 });
        }
        while world.now < BEGIN {
            world.now += 1;
            for number in 0..world.replicas.len() {
                let replica = u8::try_from(number).expect("few");
                let (sent, age) = (world.now, 1);
                let beat = Request::Beat { replica, life: 0, epoch: 0, sent, age };
                self.call(&mut world, beat);
            }
        }
        if self.contended {
            for (replica, tickets) in (0..).zip(&self.tickets) {
                let at = Place { replica, life: 0, ticket: 0, key: tickets[0] };
                self.call(&mut world, Request::Reserve { at, epoch: 0 });
            }
        }
        world
    }

    pub fn call(&self, world: &mut World, request: Request) {
        let reply = self.execute(world, request);
        let now = world.now;
        world.replica(request).answered(request, &reply, now, self.mistake);
    }

    pub fn act(&self, world: &mut World, action: Action) {
        match action {
            Action::Tick => world.now += 1,
            Action::Call(request) => self.call(world, request),
            Action::CallLost(request) => {
                world.budget.losses -= 1;
                self.execute(world, request);
                world.replica(request).sent(request);
            }
            Action::CallLate(request) => {
                world.budget.delays -= 1;
                world.network.insert(Packet::Late(request));
                world.replica(request).sent(request);
            }
            Action::CallSlow(request) => {
                world.budget.delays -= 1;
                if let Reply::Renewed | Reply::Jumped = self.execute(world, request) {
                    world.network.insert(Packet::Confirmation(request));
                }
            }
            Action::Deliver(packet) => self.deliver(world, packet),
            Action::Drop(packet) => {
                world.budget.losses -= 1;
                world.network.remove(&packet);
            }
            Action::Lapse(replica) => world.replicas[usize::from(replica)].lapse(),
            Action::Crash(replica) => {
                world.budget.crashes -= 1;
                let replica = &mut world.replicas[usize::from(replica)];
                replica.lapse();
                replica.up = false;
            }
            Action::Restart(replica) => world.replicas[usize::from(replica)].up = true,
            Action::Cancel(replica, ticket) => {
                world.budget.cancels -= 1;
                world.replicas[usize::from(replica)].cancel(ticket);
            }
            Action::Finish(replica, ticket) => world.replicas[usize::from(replica)].cancel(ticket),
            Action::Wipe => {
                world.budget.wipes -= 1;
                world.ledger = Ledger::default();
            }
            Action::Jump(ticks) => {
                world.budget.jumps -= 1;
                world.jumped += ticks;
            }
        }
    }

    pub fn deliver(&self, world: &mut World, packet: Packet) {
        world.network.remove(&packet);
        match packet {
            Packet::Late(request) => {
                let reply = self.execute(world, request);
                if let (Request::Beat { .. }, Reply::Renewed | Reply::Jumped) = (request, reply) {
                    world.network.insert(Packet::Confirmation(request));
                }
            }
            Packet::Confirmation(request) => {
                let now = world.now;
                world.replica(request).answered(request, &Reply::Renewed, now, self.mistake);
            }
            Packet::Wake { replica, life, ticket } => {
                let replica = &mut world.replicas[usize::from(replica)];
                if replica.life == life && replica.session.is_some() {
                    replica.woken(ticket);
                }
            }
        }
    }

    /// Executes a request at the backend.
    fn execute(&self, world: &mut World, request: Request) -> Reply {
        let operation = self.operation(request);
        let now = Self::server_time(world);
        let at = At::new(now, RUN, &self.limits).mutated(self.mutation);
        let before = operation.key().map(|key| world.record(key));
        let expired = match &operation {
            Operation::Heartbeat { incarnation, age, .. } => {
                let session = world.ledger.sessions.get(incarnation);
                session.is_some_and(|s| s.expires_at <= now && *age >= s.lease / 2)
            }
            _ => false,
        };
        let outcome = step(&mut world.ledger, &operation, &at);
        if expired && outcome.reply == Reply::Renewed {
            world.violation = Some("an expired session was revived");
        }
        if let Request::Register { replica, life } = request
            && matches!(outcome.reply, Reply::Registered { .. })
        {
            world.sessions.insert((replica, life, false));
        }
        world.watch_sessions();
        if let (Some(before), Some(key)) = (before, operation.key()) {
            let after = world.record(key);
            world.watch_record(request, &before, &after);
            let grace = !world.ledger.sessions.grace_left(now).is_zero();
            world.seen.grace |= grace;
            if after.holder().is_none() && after.queue().len() > 0 && !grace {
                let left = !matches!(outcome.reply, Reply::Cancelled | Reply::NotHolder);
                if left && !matches!(outcome.reply, Reply::NoSession | Reply::Stale) {
                    world.violation = Some("a free key has waiting tickets");
                }
            }
        }
        if let (Request::Poll { at }, Reply::Superseded) = (request, &outcome.reply)
            && self.budget.wipes == 0
            && world.waits(at.replica, at.life, at.ticket)
        {
            world.violation = Some("a waiting ticket was forgotten");
        }
        if let Some(wakeup) = &outcome.wakeup {
            let (replica, life) = known(&wakeup.ticket.incarnation);
            let ticket = u8::try_from(wakeup.ticket.sequence).expect("a small number");
            world.network.insert(Packet::Wake { replica, life, ticket });
        }
        outcome.reply
    }
}

impl World {
    fn replica(&mut self, request: Request) -> &mut Replica {
        let replica = match request {
            Request::Register { replica, .. } | Request::Beat { replica, .. } => replica,
            Request::Reserve { at, .. } | Request::Poll { at } | Request::Release { at } => {
                at.replica
            }
        };
        &mut self.replicas[usize::from(replica)]
    }

    fn record(&self, key: &botmesh_core::coordination::CoordinationKey) -> TurnRecord {
        self.ledger.records.get(key).cloned().unwrap_or_default()
    }

    fn waits(&self, replica: u8, life: u8, ticket: u8) -> bool {
        let replica = &self.replicas[usize::from(replica)];
        let phase = replica.tickets[usize::from(ticket)].phase;
        replica.life == life && phase == crate::protocol::Phase::Waiting
    }

    fn lives(&self, ticket: &TicketId) -> bool {
        self.ledger.sessions.get(&ticket.incarnation).is_some()
    }

    /// A session that is gone never comes back.
    fn watch_sessions(&mut self) {
        let gone = self.sessions.iter().filter(|(replica, life, gone)| {
            let incarnation = crate::world::incarnation(*replica, *life);
            let present = self.ledger.sessions.get(&incarnation).is_some();
            present == *gone
        });
        for (replica, life, gone) in gone.copied().collect::<Vec<_>>() {
            if gone {
                self.violation = Some("a session came back");
            }
            self.sessions.remove(&(replica, life, gone));
            self.sessions.insert((replica, life, true));
        }
    }

    fn watch_record(&mut self, request: Request, before: &TurnRecord, after: &TurnRecord) {
        let queue: Vec<_> = after.queue().collect();
        let twice = queue.iter().enumerate().any(|(place, ticket)| {
            queue[..place].contains(ticket) || after.holder() == Some(*ticket)
        });
        if twice {
            self.violation = Some("a ticket waits twice");
        }
        let released = match request {
            Request::Release { at } => Some(at.id()),
            _ => None,
        };
        if let Some(holder) = before.holder()
            && after.holder() != Some(holder)
            && released.as_ref() != Some(holder)
        {
            self.seen.replaced = true;
            if self.lives(holder) {
                self.violation = Some("a key was taken from the living");
            }
        }
        match after.holder() {
            Some(holder) if before.holder() != Some(holder) => {
                self.watch_grant(request, before, after, &holder.clone());
            }
            _ => {}
        }
    }

    fn watch_grant(
        &mut self,
        request: Request,
        before: &TurnRecord,
        after: &TurnRecord,
        to: &TicketId,
    ) {
        let number = match request {
            Request::Reserve { at, .. } | Request::Poll { at } | Request::Release { at } => at.key,
            _ => return,
        };
        debug_assert!(self.ledger.records.contains_key(&key(number)));
        let highest = &mut self.fences[usize::from(number)];
        if after.fence().get() <= *highest {
            self.violation = Some("a fence did not grow");
        }
        *highest = after.fence().get();
        if after.previous().is_some_and(|previous| previous.fence >= after.fence()) {
            self.violation = Some("the previous fence is not lower");
        }
        let (replica, life) = known(&to.incarnation);
        let ticket = u8::try_from(to.sequence).expect("a small number");
        if !self.granted.insert((replica, life, ticket)) {
            self.violation = Some("a ticket was granted twice");
        }
        if !self.lives(to) {
            self.violation = Some("a ticket of the dead was granted");
        }
        for earlier in before.queue().take_while(|waiting| *waiting != to) {
            if self.lives(earlier) {
                self.violation = Some("a ticket was granted out of order");
            }
            self.seen.skipped = true;
        }
    }

    /// Whether no two replicas believe that they may act on one key.
    pub fn one_holder_each(&self) -> bool {
        let mut held = vec![false; self.fences.len()];
        self.replicas.iter().filter(|replica| replica.valid(self.now).is_some()).all(|replica| {
            replica
                .tickets
                .iter()
                .filter(|ticket| ticket.phase.is_held())
                .all(|ticket| !std::mem::replace(&mut held[usize::from(ticket.key)], true))
        })
    }
}
