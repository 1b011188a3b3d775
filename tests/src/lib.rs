#![doc = include_str!("../README.md")]

pub mod backend;
pub mod bots;
pub mod chaos;
pub mod checker;
pub mod driver;
pub mod durable;
mod fleet;
pub mod history;
pub mod nemesis;
pub mod process;
pub mod proxy;
pub mod servers;
pub mod simulation;
pub mod timeline;
pub mod worker;
