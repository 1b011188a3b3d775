//! What must come of every state once nothing goes wrong any more.

use crate::protocol::Phase;
use crate::world::{Coordination, Packet, World};

impl Coordination {
    /// Whether every ticket of a replica that runs comes to its end when from now on heartbeats
    /// are in time, turns are short, and waiting tickets poll once a tick. All pushes are lost.
    pub fn heal(&self, world: &World) -> Result<(), &'static str> {
        if world.violation.is_some() || world.replicas.iter().all(|r| r.open().next().is_none()) {
            return Ok(());
        }
        let mut world = world.clone();
        while let Some(packet) = world.network.pop_first() {
            if !matches!(packet, Packet::Wake { .. }) {
                self.deliver(&mut world, packet);
            }
        }
        // Grace, the lease of the dead, that of a newcomer, and a turn for each.
        for _ in 0..4 * self.lease {
            self.progress(&mut world);
            if let Some(violation) = world.violation {
                return Err(violation);
            }
            let open = |phase| !matches!(phase, Phase::Fresh | Phase::Done);
            if world.replicas.iter().all(|r| !r.open().any(|(_, phase)| open(phase))) {
                return Ok(());
            }
            world.now += 1;
        }
        Err("a live waiter is not granted")
    }

    fn progress(&self, world: &mut World) {
        for number in 0..world.replicas.len() {
            let replica = &mut world.replicas[number];
            if replica.has_lapsed(world.now) {
                replica.lapse();
            }
        }
        // Requests depend on the answers to those before: heartbeats first, then reservations,
        // polls and releases, each round until nothing is new.
        for round in 0..3 {
            for number in 0..world.replicas.len() {
                let replica = u8::try_from(number).expect("few");
                let now = world.now;
                for (ticket, phase) in world.replicas[number].open().collect::<Vec<_>>() {
                    if phase.is_held() {
                        world.replicas[number].cancel(ticket);
                    }
                }
                for request in world.replicas[number].requests(replica, now, self.mistake) {
                    let fresh = match request {
                        crate::protocol::Request::Reserve { at, .. } => {
                            let phase =
                                world.replicas[number].tickets[usize::from(at.ticket)].phase;
                            phase == Phase::Fresh
                        }
                        _ => false,
                    };
                    if !fresh && (round == 0 || !is_beat(request)) {
                        self.call(world, request);
                    }
                }
                world.network.retain(|packet| !matches!(packet, Packet::Wake { .. }));
            }
        }
    }
}

fn is_beat(request: crate::protocol::Request) -> bool {
    matches!(request, crate::protocol::Request::Beat { .. })
}
