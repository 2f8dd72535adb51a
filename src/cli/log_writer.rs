//! Writes log lines to standard error without blocking on a reader that has stopped.
//!
//! A stopped pager or a hung log collector fills the pipe, and then every thread that logs would block. So each line is
//! written only if the pipe has capacity within a short wait; otherwise it is dropped. The next line that can be written
//! is preceded by the number of dropped lines. Chunks are `PIPE_BUF` bytes, which a pipe accepts whole.

use std::{
    io::{self, Write},
    sync::Mutex,
    time::Duration,
};

use crate::concurrency::lock::lock_unpoisoned;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// `PIPE_BUF` of Linux. `poll` reports a pipe as writable only if it can take this many bytes.
const CHUNK_BYTES: usize = 4096;
/// Longest wait for capacity, before lines are dropped.
const MAX_WAIT: Duration = Duration::from_millis(100);

/// Lines dropped since the last line that was written.
static DROPPED_LINES: Mutex<u64> = Mutex::new(0);

/// A writer that receives one whole line per call.
pub struct LogWriter {
    /// Formats the line that reports dropped lines.
    pub format_dropped: fn(u64) -> String,
}

impl Write for LogWriter {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let mut dropped = lock_unpoisoned(&DROPPED_LINES);
        let wait = if *dropped > 0 { Duration::ZERO } else { MAX_WAIT };
        if !is_writable(wait) {
            *dropped += 1;
            return Ok(line.len());
        }
        if *dropped > 0 {
            io::stderr().write_all((self.format_dropped)(*dropped).as_bytes())?;
            *dropped = 0;
        }
        for chunk in line.chunks(CHUNK_BYTES) {
            if !is_writable(MAX_WAIT) {
                *dropped += 1;
                break;
            }
            io::stderr().write_all(chunk)?;
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns true if standard error accepts a chunk within this time, or if it cannot be polled.
fn is_writable(wait: Duration) -> bool {
    let standard_error = io::stderr();
    let wait = Timespec { tv_sec: 0, tv_nsec: i64::from(wait.subsec_nanos()) };
    poll(&mut [PollFd::new(&standard_error, PollFlags::OUT)], Some(&wait)).map_or(true, |ready| ready > 0)
}
