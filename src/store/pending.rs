//! The receipt for a write that is queued.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use oneshot::AsyncReceiver;

use super::snapshot;
use crate::error::{Error, Result};

/// What a queued write will answer once it is on disk. HTTP awaits it, the command line waits for it; whoever drops
/// it does not stop the write.
#[must_use = "a write that nobody waits for may fail unseen"]
pub struct Pending<T>(State<T>);

enum State<T> {
    /// The answer was known at once: nothing had to be written, or the write was refused.
    Ready(Option<Result<T>>),
    Queued(AsyncReceiver<Result<T>>),
}

impl<T> Pending<T> {
    pub(super) fn queued(receiver: oneshot::Receiver<Result<T>>) -> Self {
        Self(State::Queued(receiver.into_future()))
    }

    /// An answer for which nothing has to be written.
    pub fn ready(answer: Result<T>) -> Self {
        Self(State::Ready(Some(answer)))
    }

    /// Waits on this thread. Not for worker threads of the server, which await: they take the answers to their callers.
    ///
    /// # Errors
    /// Those of the operation, and storage errors.
    pub fn wait(self) -> Result<T> {
        debug_assert!(!snapshot::is_worker(), "a worker thread waits for an answer that it may have to take to itself");
        pollster::block_on(self)
    }
}

impl<T> Future for Pending<T> {
    type Output = Result<T>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            State::Ready(answer) => {
                Poll::Ready(answer.take().unwrap_or_else(|| Err(Error::internal("a receipt was asked twice"))))
            }
            State::Queued(receiver) => Pin::new(receiver)
                .poll(context)
                .map(|answer| answer.unwrap_or_else(|_| Err(Error::internal("the writer ended before it answered")))),
        }
    }
}

impl<T> Unpin for Pending<T> {}
