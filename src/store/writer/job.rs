//! Queued operations and the replies of a commit.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::{
    error::{Error, Result},
    store::{Write, is_damage},
};

/// The replies of one commit. They are sent on drop.
pub struct CommitReplies {
    pub(super) jobs: Vec<Box<dyn Job>>,
    /// The error that failed the whole commit.
    pub(super) failure: Option<Error>,
}

impl Drop for CommitReplies {
    fn drop(&mut self) {
        for job in self.jobs.drain(..) {
            job.reply(self.failure.as_ref());
        }
    }
}

/// Moves the replies of a commit to the threads on which callers wait for them.
pub type ReplyDispatcher = Box<dyn Fn(CommitReplies) + Send + Sync>;

/// The transaction that an operation needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store) enum TransactionKind {
    /// A savepoint in a shared transaction. SQLite keeps the old content of each page changed after it in memory.
    Savepoint,
    /// A shared transaction without a savepoint: the operation does not fail after its first change.
    NoSavepoint,
    /// A shared transaction from which the operation reads nothing, so that a failed commit does not concern it.
    Probe,
    /// A transaction of its own, so that readers meanwhile see everything written before it.
    Exclusive,
    /// A VACUUM before the operation, which cannot run inside a transaction.
    Vacuum,
}

impl TransactionKind {
    /// Returns true if the operation shares its transaction with others.
    pub(in crate::store) fn is_shared(self) -> bool {
        matches!(self, Self::Savepoint | Self::NoSavepoint | Self::Probe)
    }
}

/// A queued operation with its result type erased.
pub(in crate::store) trait Job: Send {
    fn kind(&self) -> TransactionKind;

    /// Runs the operation. Returns true if its changes are to be committed.
    fn run(&mut self, transaction: &Write<'_>) -> bool;

    /// Returns true if the operation failed because the file is damaged.
    fn found_damage(&self) -> bool;

    /// Returns the type name of the operation, which contains the function that queued it.
    fn name(&self) -> &'static str;

    /// Sends the outcome to the caller. `failure` is the error that failed the whole commit.
    fn reply(self: Box<Self>, failure: Option<&Error>);
}

pub(super) struct Operation<T, F> {
    pub(super) kind: TransactionKind,
    pub(super) work: Option<F>,
    pub(super) outcome: Option<Result<T>>,
    pub(super) reply: oneshot::Sender<Result<T>>,
}

impl<T, F> Job for Operation<T, F>
where
    T: Send,
    F: FnOnce(&Write<'_>) -> Result<T> + Send,
{
    fn kind(&self) -> TransactionKind {
        self.kind
    }

    fn run(&mut self, transaction: &Write<'_>) -> bool {
        let Some(operation) = self.work.take() else { return false };
        let outcome = catch_unwind(AssertUnwindSafe(|| operation(transaction)))
            .unwrap_or_else(|_| Err(Error::internal("an operation panicked on the writer thread")));
        let keeps_changes = match &outcome {
            Ok(_) => true,
            Err(error) => error.keeps_changes,
        };
        self.outcome = Some(outcome);
        keeps_changes
    }

    fn found_damage(&self) -> bool {
        matches!(&self.outcome, Some(Err(error)) if is_damage(error))
    }

    fn name(&self) -> &'static str {
        std::any::type_name::<F>()
    }

    fn reply(self: Box<Self>, failure: Option<&Error>) {
        let outcome = match failure {
            Some(failure) => Err(error_after(self.outcome.and_then(Result::err), failure)),
            None => self.outcome.unwrap_or_else(|| Err(Error::internal("an operation was replied to before it ran"))),
        };
        // The caller may be gone.
        drop(self.reply.send(outcome));
    }
}

/// Returns the error of an operation whose commit failed: its own, unless its changes were to be kept.
fn error_after(own: Option<Error>, failure: &Error) -> Error {
    own.filter(|error| !error.keeps_changes).unwrap_or_else(|| failure.without_source())
}
