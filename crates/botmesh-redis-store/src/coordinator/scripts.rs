//! The transition function as scripts.

use crate::script::Script;

pub(super) struct Scripts {
    pub(super) register: Script,
    pub(super) heartbeat: Script,
    pub(super) stop: Script,
    pub(super) ask: Script,
    pub(super) release: Script,
    pub(super) touch: Script,
}

/// The scripts with the clock in the file.
macro_rules! scripts {
    ($clock:literal) => {
        Scripts {
            register: scripts!(of $clock "../numbers.lua" "read.lua" "sessions.lua" "register.lua"),
            heartbeat: scripts!(of $clock "../numbers.lua" "read.lua" "sessions.lua" "heartbeat.lua"),
            stop: scripts!(of $clock "../numbers.lua" "read.lua" "sessions.lua" "stop.lua"),
            ask: scripts!(of $clock "../numbers.lua" "read.lua" "record.lua" "ask_free.lua" "sessions.lua" "turn.lua" "ask.lua"),
            release: scripts!(of "record.lua" "release_free.lua" $clock "../numbers.lua" "read.lua" "sessions.lua" "turn.lua" "release.lua"),
            touch: scripts!(of $clock "../numbers.lua" "read.lua" "record.lua" "sessions.lua" "turn.lua" "touch.lua"),
        }
    };
    (of $($file:literal)+) => {
        Script::new(concat!(
            "#!lua\n",
            $(include_str!(concat!("../script/coordination/", $file))),+
        ))
    };
}

/// Functions of Lua, each made of what would be a script alone.
macro_rules! function {
    ($head:literal $($file:literal)+) => {
        concat!("local function ", $head, "\n", $(include_str!(concat!("../script/", $file)),)+ "end\n")
    };
}

/// A script of the coordinator that takes a step of the inbox along.
macro_rules! journaled {
    ($file:literal, $($function:expr),+) => {
        Script::new(concat!(
            "#!lua\n",
            include_str!("../script/clock.lua"),
            include_str!("../script/numbers.lua"),
            include_str!("../script/revisions.lua"),
            include_str!("../script/inbox.lua"),
            $($function,)+
            include_str!(concat!("../script/coordination/", $file)),
        ))
    };
}

pub(super) static INGEST: Script = journaled!(
    "ingest.lua",
    function!("reserve()" "coordination/read.lua" "coordination/record.lua" "coordination/ask_free.lua" "coordination/sessions.lua" "coordination/turn.lua" "coordination/ask.lua"),
    function!("admit(KEYS, ARGV)" "inbox_admit.lua")
);

macro_rules! commit {
    ($($file:literal)+) => {
        journaled!(
            "commit.lua",
            function!("release()" "coordination/record.lua" "coordination/release_free.lua" "coordination/read.lua" "coordination/sessions.lua" "coordination/turn.lua" "coordination/release.lua"),
            function!("commit(KEYS, ARGV)" $($file)+ "inbox_commit.lua")
        )
    };
}

pub(super) static COMMIT: Script = commit!("checkpoint_kept.lua");
pub(super) static COMMIT_SET: Script = commit!("checkpoint.lua" "checkpoint_set.lua");
pub(super) static COMMIT_CLEAR: Script = commit!("checkpoint.lua" "checkpoint_clear.lua");

pub(super) static SCRIPTS: Scripts = scripts!("../clock.lua");

/// Told the time by their last argument.
#[cfg(test)]
pub(super) static SCRIPTS_WITH_A_TOLD_CLOCK: Scripts = scripts!("../told_clock.lua");
