//! Priorities of threads for scarce processor time.

/// Lowers the priority of this thread if the system permits it. On Linux every thread has its own priority.
pub fn lower_thread_priority() {
    const NICENESS: i32 = 10;
    if let Err(error) = rustix::process::setpriority_process(None, NICENESS) {
        tracing::debug!(%error, "could not lower the priority of a thread");
    }
}
