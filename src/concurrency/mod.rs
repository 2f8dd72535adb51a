//! Synchronization primitives: a lock that ignores poisoning, semaphores, and response slots.

pub mod lock;
pub mod response_slots;
pub mod semaphore;
