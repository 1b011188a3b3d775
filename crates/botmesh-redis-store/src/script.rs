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

/// A script over documents, checkpoints or locks.
macro_rules! storing {
    ($($file:literal),+) => {
        writing!("script/clock.lua", "script/numbers.lua", "script/revisions.lua", $($file),+)
    };
}

pub(crate) static PREPARE: Script = writing!("script/prepare.lua");

pub(crate) static DOCUMENT_SAVE: Script = storing!("script/document_save.lua");
pub(crate) static DOCUMENT_REMOVE: Script = storing!("script/document_remove.lua");

pub(crate) static CHECKPOINT_LOAD: Script = Script::new(concat!(
    "#!lua flags=no-writes\n",
    include_str!("script/clock.lua"),
    include_str!("script/numbers.lua"),
    include_str!("script/checkpoint_load.lua")
));
pub(crate) static CHECKPOINT_SET: Script =
    storing!("script/checkpoint.lua", "script/checkpoint_set.lua");
pub(crate) static CHECKPOINT_CLEAR: Script =
    storing!("script/checkpoint.lua", "script/checkpoint_clear.lua");
pub(crate) static CHECKPOINT_ADOPT: Script =
    storing!("script/checkpoint.lua", "script/checkpoint_adopt.lua");
pub(crate) static CHECKPOINT_WAKES: Script = storing!("script/checkpoint_wakes.lua");

pub(crate) static LOCK_ACQUIRE: Script = storing!("script/lock_acquire.lua");
pub(crate) static LOCK_RENEW: Script = storing!("script/lock_renew.lua");
pub(crate) static LOCK_RELEASE: Script = storing!("script/lock_release.lua");
