//! Receipts of queued writes.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use oneshot::AsyncReceiver;

use super::sqlite::is_worker;
use crate::error::{Error, Result};

/// A receipt for a queued write. It resolves once the write is on disk. HTTP awaits it, the command line blocks on it.
/// Dropping it does not cancel the write.
#[must_use = "a dropped receipt hides the failure of its write"]
pub struct Pending<T>(State<T>);

enum State<T> {
    /// Known at once: nothing had to be written, or the write was refused.
    Ready(Option<Result<T>>),
    Queued(AsyncReceiver<Result<T>>),
}

impl<T> Pending<T> {
    pub(super) fn queued(receiver: oneshot::Receiver<Result<T>>) -> Self {
        Self(State::Queued(receiver.into_future()))
    }

    /// Creates a receipt that is already resolved.
    pub fn ready(outcome: Result<T>) -> Self {
        Self(State::Ready(Some(outcome)))
    }

    /// Blocks until the write is done. Runtime workers must await instead: they may have to deliver the reply.
    ///
    /// # Errors
    /// Errors of the operation, storage errors. `internal` on a runtime worker.
    pub fn wait(self) -> Result<T> {
        if is_worker() {
            return Err(Error::internal("a worker thread would wait for a reply that it may have to deliver"));
        }
        pollster::block_on(self)
    }
}

impl<T> Future for Pending<T> {
    type Output = Result<T>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            State::Ready(outcome) => Poll::Ready(
                outcome.take().unwrap_or_else(|| Err(Error::internal("a receipt was polled after its end"))),
            ),
            State::Queued(receiver) => Pin::new(receiver).poll(context).map(|outcome| {
                outcome.unwrap_or_else(|_| Err(Error::internal("the writer stopped before it replied")))
            }),
        }
    }
}

impl<T> Unpin for Pending<T> {}
