//! Synchronisation primitives: locks that survive a panic, and semaphores.

pub mod lock;
pub mod response_slots;
pub mod semaphore;
