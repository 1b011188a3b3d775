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
            register: scripts!(@session $clock "../script/coordination/register.lua"),
            heartbeat: scripts!(@session $clock "../script/coordination/heartbeat.lua"),
            stop: scripts!(@session $clock "../script/coordination/stop.lua"),
            ask: scripts!(@turn $clock "../script/coordination/ask.lua"),
            release: scripts!(@turn $clock "../script/coordination/release.lua"),
            touch: scripts!(@turn $clock "../script/coordination/touch.lua"),
        }
    };
    (@session $clock:literal $($file:literal)+) => {
        Script::new(concat!(
            "#!lua\n",
            include_str!($clock),
            include_str!("../script/numbers.lua"),
            include_str!("../script/coordination/sessions.lua"),
            $(include_str!($file)),+
        ))
    };
    (@turn $clock:literal $file:literal) => {
        scripts!(@session $clock "../script/coordination/turn.lua" $file)
    };
}

pub(super) static SCRIPTS: Scripts = scripts!("../script/clock.lua");

/// Told the time by their last argument.
#[cfg(test)]
pub(super) static SCRIPTS_WITH_A_TOLD_CLOCK: Scripts = scripts!("../script/told_clock.lua");
