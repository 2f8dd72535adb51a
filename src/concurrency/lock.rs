//! Locks that outlive a panic.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks it, also after somebody panicked with it in hand: what is kept under a lock here is whole after every
/// statement, and nobody is to fail for ever because somebody failed once.
pub fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
