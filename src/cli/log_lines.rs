//! Log lines on standard error, which never wait long for whoever reads them.
//!
//! A reader that stands still without going away (a stopped pager, a log collector that hangs) fills the pipe between,
//! and then every thread that has something to say would stand still with it. So each piece is written only if there is
//! room for it; after a short wait what follows is lost, until there is room again, and then it is said how much was.
//! Pieces are as small as a pipe takes at once, so that none is begun that would have to wait.

use std::{
    io::{self, Write},
    sync::Mutex,
    time::Duration,
};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use yarrow::concurrency::lock::lock_unpoisoned;

/// What a pipe takes at once or not at all: `PIPE_BUF` of Linux, and the least that `poll` calls room.
const PIECE: usize = 4096;
/// How long the first piece waits for which there is no room.
const PATIENCE: Duration = Duration::from_millis(100);

/// Lines that were lost since the last that was not.
static LOST: Mutex<u64> = Mutex::new(0);

/// Takes one line, whole.
pub struct LogLines {
    /// How it is said that lines were lost.
    pub told_lost: fn(u64) -> String,
}

impl Write for LogLines {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let mut lost = lock_unpoisoned(&LOST);
        let patience = if *lost > 0 { Duration::ZERO } else { PATIENCE };
        if !has_room(patience) {
            *lost += 1;
            return Ok(line.len());
        }
        if *lost > 0 {
            io::stderr().write_all((self.told_lost)(*lost).as_bytes())?;
            *lost = 0;
        }
        for piece in line.chunks(PIECE) {
            if !has_room(PATIENCE) {
                *lost += 1;
                break;
            }
            io::stderr().write_all(piece)?;
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Whether a piece can be written without waiting, now or soon. What cannot be told about is written to.
fn has_room(patience: Duration) -> bool {
    let standard_error = io::stderr();
    let patience = Timespec { tv_sec: 0, tv_nsec: i64::from(patience.subsec_nanos()) };
    poll(&mut [PollFd::new(&standard_error, PollFlags::OUT)], Some(&patience)).map_or(true, |ready| ready > 0)
}
