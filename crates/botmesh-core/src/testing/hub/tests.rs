use super::*;
use crate::coordination::transition::{Reply, TicketId};
use crate::coordination::{CoordinatorSettings, Grant};
use crate::id::LeaderName;

fn key(name: &str) -> CoordinationKey {
    LeaderName::new(name).unwrap().into()
}

struct User {
    hub: MemoryCoordinationHub,
    limits: Limits,
    incarnation: IncarnationId,
    sequence: u64,
}

impl User {
    fn new(hub: MemoryCoordinationHub) -> Self {
        let limits = Limits::from(&CoordinatorSettings::default());
        let incarnation = IncarnationId::new("a#1").unwrap();
        let register =
            Operation::Register { incarnation: incarnation.clone(), lease: limits.grace };
        assert!(matches!(hub.execute(&register, &limits).reply, Reply::Registered { .. }));
        Self { hub, limits, incarnation, sequence: 0 }
    }

    fn take(&mut self, name: &str) -> Grant {
        self.sequence += 1;
        let ticket = TicketId { incarnation: self.incarnation.clone(), sequence: self.sequence };
        let reserve = Operation::Reserve { key: key(name), ticket, epoch: 0 };
        match self.hub.execute(&reserve, &self.limits).reply {
            Reply::Granted(grant) => grant,
            other => panic!("{other:?}"),
        }
    }

    fn give(&mut self, name: &str) {
        let ticket = self.hub.record(key(name)).unwrap().holder().unwrap().clone();
        let release = Operation::Release { key: key(name), ticket };
        let reply = self.hub.execute(&release, &self.limits).reply;
        assert_eq!(reply, Reply::Released { next: None });
    }
}

/// C13: idle keys above the limit are forgotten, the least recently used first; held ones never
/// are, fences stay monotonic, and a recreated key reports no previous holder.
#[tokio::test(start_paused = true)]
async fn idle_keys_above_the_limit_are_forgotten_the_least_recently_used_first() {
    let mut user = User::new(MemoryCoordinationHub::with_max_idle_keys(2));
    user.take("held");
    let mut last = Vec::new();
    for name in ["a", "b", "a", "c"] {
        last.push(user.take(name).fence);
        user.give(name);
    }
    let remembered = ["held", "a", "b", "c"].map(|name| user.hub.record(key(name)).is_some());
    assert_eq!(remembered, [true, true, false, true]);
    assert_eq!(user.hub.keys(), 3);
    assert_eq!(user.take("a").previous.unwrap().fence, last[2]);

    // Time stands still in this test, so only the floor can keep the fence growing.
    for _ in 0..100 {
        last.push(user.take("b").fence);
        user.give("b");
    }
    for name in ["x", "y", "z"] {
        user.take(name);
        user.give(name);
    }
    let again = user.take("b");
    assert_eq!(again.previous, None);
    assert!(again.fence > *last.last().unwrap());
}

/// C13: the memory of a hub stays bounded however many chats it has seen.
#[tokio::test(start_paused = true)]
async fn the_memory_of_a_hub_is_bounded() {
    let mut user = User::new(MemoryCoordinationHub::with_max_idle_keys(50));
    for chat in 0..1_000 {
        let name = format!("chat {chat}");
        user.take(&name);
        user.give(&name);
    }
    let hub = user.hub.0.lock();
    assert_eq!(hub.ledger.records.len(), 50);
    assert_eq!((hub.idle.len(), hub.idle_since.len()), (50, 50));
}
