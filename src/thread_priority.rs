//! Priorities of threads when processor time is scarce.

/// Lowers the priority of this thread, if the system lets it; on Linux it is each thread's own.
pub fn lower_thread_priority() {
    const NICENESS: i32 = 10;
    if let Err(error) = rustix::process::setpriority_process(None, NICENESS) {
        tracing::debug!(%error, "a thread cannot give way to others");
    }
}
