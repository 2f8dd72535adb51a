//! Synchronization primitives: a lock that ignores poisoning, semaphores, a byte pool and a log throttle.

pub mod byte_pool;
pub mod fair_semaphore;
pub mod lock;
pub mod log_throttle;
pub mod semaphore;
