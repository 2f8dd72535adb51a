//! Outcomes that could not be stored, held in memory until they can be: a full disk must not leave records in the state
//! "running".

use std::sync::{Arc, Mutex};

use crate::{
    concurrency::lock::lock_unpoisoned,
    error::{Code, Result},
    store::{Store, Write},
};

/// Far above the number of running calls. Once it is reached, the disk has been full for so long that only a restart
/// helps.
const CAPACITY: usize = 10_000;

type StoreOutcome = Arc<dyn Fn(&Write<'_>) -> Result<()> + Send + Sync>;

/// Writes that finish call records and have failed so far.
#[derive(Default)]
pub struct OutcomeRetryQueue(Mutex<Vec<QueuedOutcome>>);

struct QueuedOutcome {
    store: StoreOutcome,
    /// A failure other than a full disk or a full queue was logged.
    is_logged: bool,
}

impl OutcomeRetryQueue {
    /// Queues a write for a later attempt. The write must be harmless if the first attempt did succeed.
    pub fn push(&self, store: impl Fn(&Write<'_>) -> Result<()> + Send + Sync + 'static) {
        let mut queued = lock_unpoisoned(&self.0);
        if queued.len() < CAPACITY {
            queued.push(QueuedOutcome { store: Arc::new(store), is_logged: false });
        }
    }

    /// Tries each queued write once; stops at the first that finds the disk or the write queue full.
    pub(super) fn retry(&self, store: &Store) {
        let mut queued = std::mem::take(&mut *lock_unpoisoned(&self.0)).into_iter();
        while let Some(outcome) = queued.next() {
            let attempt = Arc::clone(&outcome.store);
            match store.write(move |tx| attempt(tx)).wait() {
                Ok(()) => tracing::info!("stored the outcome of a model call after a retry"),
                Err(error) if matches!(error.code, Code::StorageFull | Code::Overloaded) => {
                    tracing::debug!(%error, "cannot store the outcome of a model call yet");
                    lock_unpoisoned(&self.0).extend(std::iter::once(outcome).chain(queued));
                    return;
                }
                // The failure may concern this outcome alone, so the others are still tried.
                Err(error) => {
                    if !outcome.is_logged {
                        tracing::warn!(%error, "cannot store the outcome of a model call");
                    }
                    lock_unpoisoned(&self.0).push(QueuedOutcome { is_logged: true, ..outcome });
                }
            }
        }
    }
}
