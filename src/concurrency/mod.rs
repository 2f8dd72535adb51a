//! Synchronisation primitives: locks that survive a panic, semaphores, and sliding-window counters.

pub mod lock;
pub mod response_slots;
pub mod semaphore;
pub mod sliding_window;
