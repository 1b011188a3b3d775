/// A rule of coordination that tests break, to prove that they would notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BrokenRule {
    /// Checkpoints are written when the turn is over.
    WritesAfterRelease,
    /// What is in memory counts whoever had the chat meanwhile.
    KeepsStaleCopies,
    /// Timers act without the turn of their chat.
    WakesWithoutTurn,
    /// A step may take as long as it likes.
    SettlesNothing,
    /// Messages are sent whether or not the turn has ended.
    SendsWithoutTurn,
}
