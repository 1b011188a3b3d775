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

pub(super) static SCRIPTS: Scripts = scripts!("../clock.lua");

/// Told the time by their last argument.
#[cfg(test)]
pub(super) static SCRIPTS_WITH_A_TOLD_CLOCK: Scripts = scripts!("../told_clock.lua");
