//! The signup that the examples of replicas hand over.

use botmesh_core::prelude::*;
use botmesh_core::{Flow, flow};
use serde::{Deserialize, Serialize};

/// What the signup has learned so far.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Signup {
    name: String,
    age: u8,
}

/// Asks for a name and an age; goes on with any replica.
#[must_use]
pub fn signup() -> Flow<Signup> {
    flow("signup")
        .enter_on(command("signup"))
        .ask("What is your name?", |signup: &mut Signup, answer| {
            signup.name = answer.text()?;
            Ok(())
        })
        .ask(question("How old are you?").retry(3, "A number, please."), |signup, answer| {
            signup.age = answer.parse()?;
            Ok(())
        })
        .say(|signup| format!("Nice to meet you, {} ({}).", signup.name, signup.age))
        .persistent()
}
