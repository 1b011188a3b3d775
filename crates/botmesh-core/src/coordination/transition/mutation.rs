/// A rule of the function that a test breaks on purpose, to prove that it would notice. Nothing
/// is broken outside of tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Mutation {
    /// Grants the youngest ticket first.
    LastInFirstOut,
    /// Releases for whoever asks, holder or not.
    ReleaseForAnybody,
    /// Grants to tickets of the dead.
    GrantToTheDead,
    /// Stops at a ticket of the dead instead of skipping it.
    StopAtTheDead,
    /// Grants with the fence of the grant before.
    FenceNotRaised,
    /// Lets a heartbeat revive a session that has expired.
    ReviveTheExpired,
    /// Takes a key from a holder that lives.
    TakeFromTheLiving,
    /// Queues a repeated reservation again.
    RepeatQueuesAgain,
    /// Accepts reservations that were sent before the caller gave up on their answers.
    AcceptStale,
    /// Grants at once after the backend forgot everything.
    NoGrace,
    /// Does not notice that the clock was set forward.
    TrustTheClock,
    /// Takes for dead by its own clock what expired after the caller's last heartbeat.
    BuryUnconfirmed,
}
