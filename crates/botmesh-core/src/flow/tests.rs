//! Flows, told as chats.

mod answers;
mod chat;
mod checks;
mod doing;
mod machine;
mod signup;
mod stored;
mod walks;
