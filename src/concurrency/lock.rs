//! Locks a mutex that a panic may have poisoned.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks the mutex and ignores poisoning. Every critical section here leaves its data consistent after each statement,
/// so one panic must not fail all later callers.
pub fn lock_unpoisoned<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
