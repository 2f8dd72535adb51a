//! Options of the store.

use std::time::Duration;

/// Options of the store that operators can set.
#[derive(Clone, Debug)]
pub struct Tuning {
    /// Bytes of the file mapped into memory. 0 disables the map, because an I/O error under it kills the process.
    pub mmap_size: u64,
    /// Page cache of each connection, in KiB.
    pub cache_kib: u32,
    /// Read-only connections: one for each worker thread, the rest for long operations.
    pub readers: u32,
    /// Maximum number of operations that wait for the writer. More are refused.
    pub queue: usize,
    /// Maximum number of operations in a commit. It bounds how long the first one waits for the last.
    pub commit_size: usize,
    /// Slower reads and commits are logged.
    pub slow: Duration,
}

impl Tuning {
    /// For a command or test that uses the store alone and briefly.
    pub const SMALL: Self =
        Self { mmap_size: 0, cache_kib: 1024, readers: 2, queue: 64, commit_size: 64, slow: Duration::from_secs(1) };
}
