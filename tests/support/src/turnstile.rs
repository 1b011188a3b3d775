//! Lets few of many tests run at once.

use std::sync::{Condvar, Mutex, PoisonError};

static INSIDE: Mutex<usize> = Mutex::new(0);
static LEFT: Condvar = Condvar::new();

/// Lets a test be one of few that run at once. It gives way when it is dropped.
#[derive(Debug)]
pub struct Pass(());

/// Waits until fewer than `most` tests are inside.
pub fn pass(most: usize) -> Pass {
    let inside = INSIDE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut inside =
        LEFT.wait_while(inside, |inside| *inside >= most).unwrap_or_else(PoisonError::into_inner);
    *inside += 1;
    Pass(())
}

impl Drop for Pass {
    fn drop(&mut self) {
        *INSIDE.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        LEFT.notify_all();
    }
}
