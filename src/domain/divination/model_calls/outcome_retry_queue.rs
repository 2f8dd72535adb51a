//! Outcomes that could not be written, kept until they can: a full disk must not leave records that run for ever.

use std::sync::{Arc, Mutex};

use super::ModelCalls;
use crate::{
    concurrency::lock::locked,
    error::{Code, Result},
    store::Write,
};

/// Far more than calls can be running: beyond it the disk has been full for so long that only a restart helps.
const MOST: usize = 10_000;

type Finish = Arc<dyn Fn(&Write<'_>) -> Result<()> + Send + Sync>;

/// Writes that finish records and have failed so far.
#[derive(Default)]
pub struct Unwritten(Mutex<Vec<Waiting>>);

struct Waiting {
    finish: Finish,
    /// That it fails for a reason of its own was logged.
    is_told: bool,
}

impl Unwritten {
    /// Keeps a write for later. It must do no harm if the first attempt was written after all.
    pub fn keep(&self, finish: impl Fn(&Write<'_>) -> Result<()> + Send + Sync + 'static) {
        let mut waiting = locked(&self.0);
        if waiting.len() < MOST {
            waiting.push(Waiting { finish: Arc::new(finish), is_told: false });
        }
    }

    fn take(&self) -> Vec<Waiting> {
        std::mem::take(&mut locked(&self.0))
    }

    fn put_back(&self, waiting: impl IntoIterator<Item = Waiting>) {
        locked(&self.0).extend(waiting);
    }
}

/// Tries again to write what could not be written. For the clock.
pub fn write_again(calls: &ModelCalls) -> Result<()> {
    let mut waiting = calls.retry_queue.take().into_iter();
    while let Some(one) = waiting.next() {
        let again = Arc::clone(&one.finish);
        match calls.core.store.write(move |tx| again(tx)).wait() {
            Ok(()) => tracing::info!("the outcome of a model call is written at last"),
            Err(error) if matches!(error.code, Code::StorageFull | Code::Overloaded) => {
                tracing::debug!(%error, "the outcome of a model call can still not be written");
                calls.retry_queue.put_back(std::iter::once(one).chain(waiting));
                break;
            }
            // Only this one, perhaps: the others need not wait for it.
            Err(error) => {
                if !one.is_told {
                    tracing::warn!(%error, "the outcome of a model call cannot be written");
                }
                calls.retry_queue.put_back([Waiting { is_told: true, ..one }]);
            }
        }
    }
    Ok(())
}
