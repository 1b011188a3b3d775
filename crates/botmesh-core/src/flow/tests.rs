//! Flows, told as chats.

mod answers;
mod chat;
mod checks;
mod machine;
mod signup;
