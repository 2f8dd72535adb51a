//! Copies the write-ahead log into the database on a thread of its own, while the writer goes on.
//!
//! SQLite lets commits append to the log while a passive checkpoint copies what was in it before. So only what came in
//! the meantime is left for the writer to copy and to sync before it begins at the log's start again.

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
    Tuning, connection,
    writer::{LogPages, checkpoint, stop_after_failed_sync},
};
use crate::{
    error::{Error, Result},
    thread_priority::give_way,
};

/// Times that it goes over the log at most, and pages that may be left for the writer.
const PASSES: usize = 4;
const PAGES_LEFT: i64 = 300;

/// How far the checkpointer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CheckpointState {
    Idle,
    /// It holds the lock of checkpoints: nobody else can copy now.
    Running,
    /// It has copied what was in the log when it began, or could not; both are for the writer to see to.
    Done,
}

/// The writer's side of it.
pub(super) struct BackgroundCheckpointer {
    requests: Option<SyncSender<LogPages>>,
    answers: Receiver<()>,
    progress: Cell<CheckpointState>,
    thread: Option<JoinHandle<()>>,
}

impl BackgroundCheckpointer {
    pub(super) fn start(path: &Path, tuning: &Tuning) -> Result<Self> {
        let (requests, asked) = sync_channel(1);
        let (done, answers) = sync_channel(1);
        let (path, tuning) = (path.to_owned(), tuning.clone());
        let work = move || copy_when_asked(&path, &tuning, &asked, &done);
        let thread =
            std::thread::Builder::new().name("log-checkpointer".into()).spawn(work).map_err(Error::internal)?;
        Ok(Self { requests: Some(requests), answers, progress: Cell::new(CheckpointState::Idle), thread: Some(thread) })
    }

    pub(super) fn progress(&self) -> CheckpointState {
        if self.progress.get() == CheckpointState::Running && self.answers.try_recv() != Err(TryRecvError::Empty) {
            self.progress.set(CheckpointState::Done);
        }
        self.progress.get()
    }

    /// Begins to copy. Without its thread it is done at once, and the writer copies everything.
    pub(super) fn begin(&self, pages: LogPages) {
        let is_asked = self.requests.as_ref().is_some_and(|requests| requests.try_send(pages).is_ok());
        self.progress.set(if is_asked { CheckpointState::Running } else { CheckpointState::Done });
    }

    /// Waits until it is done.
    pub(super) fn wait(&self) {
        // An error says that the thread is gone, and with it what it did.
        if self.progress() == CheckpointState::Running {
            let _ = self.answers.recv();
            self.progress.set(CheckpointState::Done);
        }
    }

    /// The writer has seen to what was left.
    pub(super) fn reset(&self) {
        self.progress.set(CheckpointState::Idle);
    }

    /// Lets it end what it does.
    pub(super) fn stop(&mut self) {
        self.requests = None;
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the thread that copies the log had panicked");
        }
    }
}

impl Drop for BackgroundCheckpointer {
    fn drop(&mut self) {
        self.stop();
    }
}

fn copy_when_asked(path: &Path, tuning: &Tuning, asked: &Receiver<LogPages>, done: &SyncSender<()>) {
    // Opened when it is first needed: most processes never are so busy.
    let mut hands = None;
    while let Ok(pages) = asked.recv() {
        if hands.is_none() {
            hands = CheckpointConnection::open(path, tuning)
                .inspect_err(|error| tracing::warn!(%error, "the log cannot be copied beside the writer"))
                .ok();
        }
        if let Some(hands) = &hands {
            hands.copy(&pages);
        }
        if done.send(()).is_err() {
            return;
        }
    }
}

struct CheckpointConnection {
    connection: Connection,
    /// Never closed: that would end the locks which the connections of this process have on the same file.
    file: ManuallyDrop<File>,
}

impl CheckpointConnection {
    fn open(path: &Path, tuning: &Tuning) -> Result<Self> {
        give_way();
        let connection = connection::open_beside(path, tuning)?;
        let file = ManuallyDrop::new(File::open(path).map_err(Error::internal)?);
        Ok(Self { connection, file })
    }

    /// What comes in while it copies is for the next pass, which is shorter: callers wait for what is left in the end.
    fn copy(&self, pages: &LogPages) {
        for _ in 0..PASSES {
            let copied = checkpoint(&self.connection, "pragma wal_checkpoint(passive)");
            // SQLite syncs the database once all of the log is copied, and by then would sync all of this.
            if let Err(error) = self.file.sync_data() {
                stop_after_failed_sync(&error);
            }
            if copied.is_none_or(|copied| pages.get() - copied.pages <= PAGES_LEFT) {
                return;
            }
        }
    }
}
