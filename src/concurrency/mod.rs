//! Synchronization primitives: a lock that ignores poisoning, semaphores, a byte budget, and response slots.

pub mod byte_budget;
pub mod lock;
pub mod response_slots;
pub mod semaphore;
