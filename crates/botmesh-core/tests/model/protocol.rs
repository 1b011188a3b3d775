//! What a replica does: the protocol of the client, without its timers.

use botmesh_core::coordination::transition::{Reply, TicketId};

use crate::world::{ClientMistake, MARGIN, incarnation};

#[derive(Clone, Debug, Hash, PartialEq, Eq)]
pub struct Replica {
    pub up: bool,
    /// In ticks.
    pub lease: u32,
    /// The number of the present incarnation.
    pub life: u8,
    pub session: Option<Session>,
    pub tickets: Vec<Ticket>,
}

#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub struct Session {
    pub deadline: u32,
    pub epoch: u32,
    pub renewed: u32,
}

#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub struct Ticket {
    pub key: u8,
    pub phase: Phase,
}

#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub enum Phase {
    Fresh,
    /// Sent in this epoch, without an answer.
    Asked(u32),
    Waiting,
    Held,
    /// Given up, not confirmed. What was sent in the epoch must not be executed any more.
    Closing(Option<u32>),
    Done,
}

impl Phase {
    pub fn is_held(self) -> bool {
        self == Self::Held
    }

    pub fn can_cancel(self) -> bool {
        matches!(self, Self::Asked(_) | Self::Waiting)
    }

    pub fn is_open(self) -> bool {
        !matches!(self, Self::Fresh | Self::Done)
    }
}

/// One ticket of one life of a replica.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    pub replica: u8,
    pub life: u8,
    pub ticket: u8,
    pub key: u8,
}

impl Place {
    pub fn id(self) -> TicketId {
        let incarnation = incarnation(self.replica, self.life);
        TicketId { incarnation, sequence: u64::from(self.ticket) }
    }
}

#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq, PartialOrd, Ord)]
pub enum Request {
    Register { replica: u8, life: u8 },
    Beat { replica: u8, life: u8, epoch: u32, sent: u32, age: u32 },
    Reserve { at: Place, epoch: u32 },
    Poll { at: Place },
    Release { at: Place },
}

impl Replica {
    pub fn new(keys: &[u8], lease: u32, now: u32) -> Self {
        let tickets = keys.iter().map(|&key| Ticket { key, phase: Phase::Fresh }).collect();
        let session = Some(Session { deadline: now + lease - MARGIN, epoch: 0, renewed: now });
        Self { up: true, lease, life: 0, session, tickets }
    }

    /// The session, while the replica may act under it.
    pub fn valid(&self, now: u32) -> Option<Session> {
        self.session.filter(|session| now < session.deadline)
    }

    pub fn has_lapsed(&self, now: u32) -> bool {
        self.session.is_some_and(|session| now >= session.deadline)
    }

    pub fn open(&self) -> impl Iterator<Item = (u8, Phase)> {
        let numbered = (0..).zip(&self.tickets).map(|(number, ticket)| (number, ticket.phase));
        numbered.filter(|(_, phase)| phase.is_open())
    }

    /// What it may send now.
    pub fn requests(&self, replica: u8, now: u32, mistake: Option<ClientMistake>) -> Vec<Request> {
        let mut requests = Vec::new();
        let life = self.life;
        if self.up && self.session.is_none() {
            requests.push(Request::Register { replica, life });
        }
        let Some(session) = self.valid(now) else { return requests };
        let beat = |epoch| {
            let (sent, age) = (now, now - session.renewed);
            Request::Beat { replica, life, epoch, sent, age }
        };
        if session.renewed < now {
            requests.push(beat(session.epoch));
        }
        let mut fence_off = false;
        let mut fresh = false;
        for (ticket, Ticket { key, phase }) in (0..).zip(self.tickets.iter().copied()) {
            let at = Place { replica, life, ticket, key };
            match phase {
                // In their order.
                Phase::Fresh if !fresh => {
                    fresh = true;
                    requests.push(Request::Reserve { at, epoch: session.epoch });
                }
                Phase::Asked(epoch)
                    if epoch < session.epoch || mistake == Some(ClientMistake::RepeatsUnfenced) =>
                {
                    requests.push(Request::Reserve { at, epoch: session.epoch });
                }
                Phase::Asked(_) => fence_off = true,
                Phase::Waiting if mistake != Some(ClientMistake::NeverPolls) => {
                    requests.push(Request::Poll { at });
                }
                Phase::Closing(Some(epoch)) if epoch >= session.epoch => fence_off = true,
                Phase::Closing(_) => requests.push(Request::Release { at }),
                _ => {}
            }
        }
        if fence_off {
            requests.push(beat(session.epoch + 1));
        }
        requests
    }

    /// Notes that a request was sent and that its answer will not come.
    pub fn sent(&mut self, request: Request) {
        match request {
            Request::Register { .. } => self.life += 1,
            Request::Reserve { at, epoch } => {
                self.tickets[usize::from(at.ticket)].phase = Phase::Asked(epoch);
            }
            Request::Beat { .. } | Request::Poll { .. } | Request::Release { .. } => {}
        }
    }

    /// Takes the answer to a request.
    pub fn answered(
        &mut self,
        request: Request,
        reply: &Reply,
        now: u32,
        mistake: Option<ClientMistake>,
    ) {
        match request {
            Request::Register { life, .. } if life == self.life => {
                if let Reply::Registered { .. } = reply {
                    let deadline = now + self.lease - MARGIN;
                    self.session = Some(Session { deadline, epoch: 0, renewed: now });
                } else {
                    self.life += 1;
                }
            }
            Request::Beat { life, epoch, sent, .. } if life == self.life => match reply {
                Reply::Renewed | Reply::Jumped => {
                    let from = match mistake {
                        Some(ClientMistake::DeadlineFromReply) => now,
                        _ => sent,
                    };
                    if let Some(session) = &mut self.session
                        && now < session.deadline
                    {
                        session.deadline = session.deadline.max(from + self.lease - MARGIN);
                        session.renewed = session.renewed.max(sent);
                        session.epoch = session.epoch.max(epoch);
                    }
                }
                _ => self.lapse(),
            },
            Request::Reserve { at, epoch } if at.life == self.life => {
                let phase = match reply {
                    Reply::Granted(_) => Phase::Held,
                    Reply::Queued { .. } => Phase::Waiting,
                    Reply::Stale => Phase::Asked(epoch),
                    // Its heartbeat will tell what became of the session.
                    _ => Phase::Fresh,
                };
                self.tickets[usize::from(at.ticket)].phase = phase;
            }
            Request::Poll { at } if at.life == self.life => {
                let ticket = &mut self.tickets[usize::from(at.ticket)];
                match reply {
                    Reply::Granted(_) => ticket.phase = Phase::Held,
                    Reply::Superseded => ticket.phase = Phase::Done,
                    _ => {}
                }
            }
            Request::Release { at } if at.life == self.life => {
                self.tickets[usize::from(at.ticket)].phase = Phase::Done;
                if let Reply::Released { next: Some((next, _)) } = reply {
                    self.woken(u8::try_from(*next).expect("a small number"));
                }
            }
            _ => {}
        }
    }

    /// Takes a wake-up for a ticket of this life.
    pub fn woken(&mut self, ticket: u8) {
        let phase = &mut self.tickets[usize::from(ticket)].phase;
        match phase {
            Phase::Asked(_) | Phase::Waiting => *phase = Phase::Held,
            // Nobody has it any more: the key is given back.
            Phase::Done => *phase = Phase::Closing(None),
            _ => {}
        }
    }

    pub fn cancel(&mut self, ticket: u8) {
        let phase = &mut self.tickets[usize::from(ticket)].phase;
        *phase = match *phase {
            Phase::Asked(epoch) => Phase::Closing(Some(epoch)),
            _ => Phase::Closing(None),
        };
    }

    /// Drops the session and all that was held under it.
    pub fn lapse(&mut self) {
        self.session = None;
        self.life += 1;
        for ticket in &mut self.tickets {
            if ticket.phase.is_open() {
                ticket.phase = Phase::Done;
            }
        }
    }
}
