//! Synchronization primitives: a lock that ignores poisoning, semaphores, a byte budget, response slots and a log throttle.

pub mod byte_budget;
pub mod fair_semaphore;
pub mod lock;
pub mod log_throttle;
pub mod response_slots;
pub mod semaphore;
