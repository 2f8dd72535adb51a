//! Copies the WAL into the database on a thread of its own, beside the writer.
//!
//! SQLite lets commits append to the WAL while a passive checkpoint copies the part that was there before. So the writer
//! only has to copy and sync the rest before it restarts the WAL.

use std::{
    cell::Cell,
    fs::File,
    mem::ManuallyDrop,
    path::Path,
    sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel},
    thread::JoinHandle,
};

use rusqlite::Connection;

use super::{
    connection,
    wal_checkpoint::{WalPages, checkpoint, stop_after_failed_sync},
};
use crate::{
    error::{Error, Result},
    store::Tuning,
    thread_priority::lower_thread_priority,
};

/// Maximum number of passes over the WAL.
const MAX_PASSES: usize = 4;
/// Pages that may remain for the writer.
const MAX_PAGES_LEFT: i64 = 300;

/// The state of the background checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CheckpointState {
    Idle,
    /// It holds the checkpoint lock: no other checkpoint can run.
    Running,
    /// It copied what it could; the writer completes the checkpoint.
    Done,
}

/// The writer's handle of the checkpoint thread.
pub(super) struct BackgroundCheckpointer {
    requests: Option<SyncSender<WalPages>>,
    done: Receiver<()>,
    state: Cell<CheckpointState>,
    thread: Option<JoinHandle<()>>,
}

impl BackgroundCheckpointer {
    pub(super) fn start(path: &Path, tuning: &Tuning) -> Result<Self> {
        let (requests, received) = sync_channel(1);
        let (finished, done) = sync_channel(1);
        let (path, tuning) = (path.to_owned(), tuning.clone());
        let work = move || run(&path, &tuning, &received, &finished);
        let thread = std::thread::Builder::new().name("checkpointer".into()).spawn(work).map_err(Error::internal)?;
        Ok(Self { requests: Some(requests), done, state: Cell::new(CheckpointState::Idle), thread: Some(thread) })
    }

    pub(super) fn state(&self) -> CheckpointState {
        if self.state.get() == CheckpointState::Running && self.done.try_recv() != Err(TryRecvError::Empty) {
            self.state.set(CheckpointState::Done);
        }
        self.state.get()
    }

    /// Starts a checkpoint. If the thread is gone it is done at once, and the writer copies everything.
    pub(super) fn begin(&self, pages: WalPages) {
        let is_sent = self.requests.as_ref().is_some_and(|requests| requests.try_send(pages).is_ok());
        self.state.set(if is_sent { CheckpointState::Running } else { CheckpointState::Done });
    }

    /// Blocks until the checkpoint is done.
    pub(super) fn wait(&self) {
        if self.state() == CheckpointState::Running {
            // An error means that the thread is gone.
            let _ = self.done.recv();
            self.state.set(CheckpointState::Done);
        }
    }

    /// Returns to idle, once the writer has completed the checkpoint.
    pub(super) fn reset(&self) {
        self.state.set(CheckpointState::Idle);
    }

    /// Stops the thread after its current checkpoint.
    pub(super) fn stop(&mut self) {
        self.requests = None;
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the checkpoint thread panicked");
        }
    }
}

impl Drop for BackgroundCheckpointer {
    fn drop(&mut self) {
        self.stop();
    }
}

fn run(path: &Path, tuning: &Tuning, requests: &Receiver<WalPages>, finished: &SyncSender<()>) {
    // Opened on first use: most processes never need it.
    let mut connection = None;
    while let Ok(pages) = requests.recv() {
        if connection.is_none() {
            connection = CheckpointConnection::open(path, tuning)
                .inspect_err(|error| tracing::warn!(%error, "background checkpoints are not possible"))
                .ok();
        }
        if let Some(connection) = &connection {
            connection.copy(&pages);
        }
        if finished.send(()).is_err() {
            return;
        }
    }
}

struct CheckpointConnection {
    connection: Connection,
    /// Never closed: closing any descriptor of the file drops the POSIX locks of all connections of this process.
    file: ManuallyDrop<File>,
}

impl CheckpointConnection {
    fn open(path: &Path, tuning: &Tuning) -> Result<Self> {
        lower_thread_priority();
        let connection = connection::open_beside(path, tuning)?;
        let file = ManuallyDrop::new(File::open(path).map_err(Error::internal)?);
        Ok(Self { connection, file })
    }

    /// Copies the WAL in ever shorter passes, because callers wait for the pages that remain.
    fn copy(&self, pages: &WalPages) {
        for _ in 0..MAX_PASSES {
            let copied = checkpoint(&self.connection, "pragma wal_checkpoint(passive)");
            // SQLite syncs the database only once the whole WAL is copied, which would sync all of this at once.
            if let Err(error) = self.file.sync_data() {
                stop_after_failed_sync(&error);
            }
            if copied.is_none_or(|copied| pages.get() - copied.pages <= MAX_PAGES_LEFT) {
                return;
            }
        }
    }
}
