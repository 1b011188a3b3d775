//! The scripts: every write that has a condition is one of them, decided by the server in one step.

use std::sync::OnceLock;

use redis::Cmd;

/// A Lua script that a server knows by its digest.
#[derive(Debug)]
pub(crate) struct Script {
    code: &'static str,
    digest: OnceLock<String>,
}

impl Script {
    pub(crate) const fn new(code: &'static str) -> Self {
        Self { code, digest: OnceLock::new() }
    }

    fn digest(&self) -> &str {
        self.digest.get_or_init(|| redis::Script::new(self.code).get_hash().to_owned())
    }

    /// The call by digest.
    pub(crate) fn by_digest<'a>(
        &self,
        keys: impl ExactSizeIterator<Item = &'a str>,
        arguments: impl Iterator<Item = &'a [u8]>,
    ) -> Cmd {
        call("EVALSHA", self.digest(), keys, arguments)
    }

    /// The call by text, which also makes the digest known.
    pub(crate) fn by_text<'a>(
        &self,
        keys: impl ExactSizeIterator<Item = &'a str>,
        arguments: impl Iterator<Item = &'a [u8]>,
    ) -> Cmd {
        call("EVAL", self.code, keys, arguments)
    }
}

/// Enough for most calls, so that their text is allocated once.
const WORDS: usize = 20;
const BYTES: usize = 512;

fn call<'a>(
    command: &str,
    script: &str,
    keys: impl ExactSizeIterator<Item = &'a str>,
    arguments: impl Iterator<Item = &'a [u8]>,
) -> Cmd {
    let mut call = Cmd::with_capacity(WORDS, BYTES);
    call.arg(command).arg(script).arg(keys.len());
    for key in keys {
        call.arg(key);
    }
    for argument in arguments {
        call.arg(argument);
    }
    call
}

/// A script that may write: the server refuses it before its first line when it has no room.
macro_rules! writing {
    ($($file:literal),+) => {
        $crate::script::Script::new(concat!("#!lua\n", $(include_str!($file)),+))
    };
}

/// A script that surely does not write, so it also runs when the server has no room.
macro_rules! reading {
    ($($file:literal),+) => {
        $crate::script::Script::new(concat!(
            "#!lua flags=no-writes\n",
            include_str!("script/clock.lua"),
            include_str!("script/numbers.lua"),
            $(include_str!($file)),+
        ))
    };
}

/// A script over documents, checkpoints, locks or the inbox.
macro_rules! storing {
    ($($file:literal),+) => {
        writing!("script/clock.lua", "script/numbers.lua", "script/revisions.lua", $($file),+)
    };
}

/// A script that frees room, so it also runs when the server has none.
macro_rules! freeing {
    ($($file:literal),+) => {
        $crate::script::Script::new(concat!(
            "#!lua flags=allow-oom\n",
            include_str!("script/clock.lua"),
            include_str!("script/numbers.lua"),
            $(include_str!($file)),+
        ))
    };
}

pub(crate) static PREPARE: Script = writing!("script/prepare.lua");

pub(crate) static DOCUMENT_SAVE: Script = storing!("script/document_save.lua");
pub(crate) static DOCUMENT_REMOVE: Script = storing!("script/document_remove.lua");

pub(crate) static CHECKPOINT_LOAD: Script = reading!("script/checkpoint_load.lua");
pub(crate) static CHECKPOINT_SET: Script =
    storing!("script/checkpoint.lua", "script/checkpoint_set.lua", "script/checkpoint_alone.lua");
pub(crate) static CHECKPOINT_CLEAR: Script =
    storing!("script/checkpoint.lua", "script/checkpoint_clear.lua", "script/checkpoint_alone.lua");
pub(crate) static CHECKPOINT_ADOPT: Script =
    storing!("script/checkpoint.lua", "script/checkpoint_adopt.lua");
pub(crate) static CHECKPOINT_WAKES: Script = storing!("script/checkpoint_wakes.lua");

pub(crate) static LOCK_ACQUIRE: Script = storing!("script/lock_acquire.lua");
pub(crate) static LOCK_RENEW: Script = storing!("script/lock_renew.lua");
pub(crate) static LOCK_RELEASE: Script = storing!("script/lock_release.lua");

pub(crate) static INBOX_ADMIT: Script = storing!("script/inbox.lua", "script/inbox_admit.lua");
pub(crate) static INBOX_BEGIN: Script = storing!("script/inbox.lua", "script/inbox_begin.lua");
pub(crate) static INBOX_COMMIT: Script =
    storing!("script/checkpoint_kept.lua", "script/inbox.lua", "script/inbox_commit.lua");
pub(crate) static INBOX_COMMIT_SET: Script = storing!(
    "script/checkpoint.lua",
    "script/checkpoint_set.lua",
    "script/inbox.lua",
    "script/inbox_commit.lua"
);
pub(crate) static INBOX_COMMIT_CLEAR: Script = storing!(
    "script/checkpoint.lua",
    "script/checkpoint_clear.lua",
    "script/inbox.lua",
    "script/inbox_commit.lua"
);
pub(crate) static INBOX_NOTE: Script =
    storing!("script/inbox.lua", "script/inbox_open.lua", "script/inbox_note.lua");
pub(crate) static INBOX_POSTPONE: Script =
    storing!("script/inbox.lua", "script/inbox_open.lua", "script/inbox_postpone.lua");
pub(crate) static INBOX_BURY: Script =
    storing!("script/inbox.lua", "script/inbox_open.lua", "script/inbox_bury.lua");
pub(crate) static INBOX_RELEASE: Script = storing!("script/inbox.lua", "script/inbox_release.lua");
pub(crate) static INBOX_REVIVE: Script = storing!("script/inbox.lua", "script/inbox_revive.lua");
pub(crate) static INBOX_WAITING: Script = reading!("script/inbox_waiting.lua");
pub(crate) static INBOX_LEASE: Script = storing!("script/inbox.lua", "script/inbox_lease.lua");
pub(crate) static INBOX_DEAD: Script = reading!("script/inbox_dead.lua");
pub(crate) static INBOX_COUNT: Script = reading!("script/inbox_count.lua");
pub(crate) static INBOX_FORGET: Script = freeing!("script/inbox_forget.lua");
pub(crate) static INBOX_FORGET_PLACES: Script =
    freeing!("script/inbox.lua", "script/inbox_forget_places.lua");
