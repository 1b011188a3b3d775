//! What tests of bots, stores and providers use (feature `testing`).

mod coordinator;
mod crash_points;
mod crashing_store;
mod dice;
mod faults;
mod hub;
mod journal;
pub mod provider;
mod world;

pub use coordinator::{MemoryBackend, MemoryCoordinator, MemoryCoordinatorBuilder};
pub use crash_points::CrashPoints;
pub use crashing_store::CrashingStore;
pub use dice::Dice;
pub use faults::CoordinationFaults;
pub use hub::MemoryCoordinationHub;
pub use provider::TestProvider;
pub use world::{User, World};
