//! Queued operations and the replies of a commit.

use std::{
    any::{Any, TypeId},
    marker::PhantomData,
    panic::{AssertUnwindSafe, catch_unwind},
};

use crate::{
    error::{Error, Result},
    store::{Write, is_damage},
    types::UserId,
};

/// A write that is plain data, so that the waiting ones of its kind run as one set, and again one by one if the database
/// refuses the set.
pub trait GroupedWrite: Send + Sized + 'static {
    type Outcome: Send + 'static;
    type Done: Send + 'static;

    /// Returns the user whose rows it changes. It changes those of no other, so writes of several users may run in any
    /// order.
    fn user(&self) -> UserId;

    /// Runs the first ones of a set, at least one, and returns what each would return if they ran one after the other. It
    /// leaves the rest, which runs next, if its result depends on more than the first ones. One that is refused must change
    /// nothing.
    ///
    /// # Errors
    /// Storage errors. Nothing of the set remains then.
    fn run_in(tx: &Write<'_>, set: &[&Self]) -> Result<Vec<Result<Self::Outcome>>>;

    /// Makes the answer of an outcome, after the commit.
    fn complete(self, outcome: Self::Outcome) -> Self::Done;
}

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
pub(in crate::store) trait Job: Any + Send {
    fn kind(&self) -> TransactionKind;

    /// Returns the type and the user of a [`GroupedWrite`].
    fn set(&self) -> Option<(TypeId, UserId)>;

    /// Runs the operation, with others of its set. Returns true if its changes are to be committed.
    fn run(&mut self, others: &mut [Box<dyn Job>], transaction: &Write<'_>) -> bool;

    /// Replaces the outcome, because the changes were rolled back.
    fn fail(&mut self, error: Error);

    /// Returns true if the operation failed because the file is damaged.
    fn found_damage(&self) -> bool;

    /// Returns the type name of the operation, which contains the function that queued it.
    fn name(&self) -> &'static str;

    /// Sends the outcome to the caller. `failure` is the error that failed the whole commit.
    fn reply(self: Box<Self>, failure: Option<&Error>);
}

/// The work of a queued operation: a closure, or a [`GroupedWrite`].
pub(super) trait Work: Send + Sized + 'static {
    type Outcome: Send + 'static;
    type Done: Send + 'static;

    fn set(&self) -> Option<(TypeId, UserId)>;

    fn name() -> &'static str;

    /// Runs operations that form a set. Returns true if their changes are to be committed.
    fn run(set: &mut [&mut Operation<Self>], transaction: &Write<'_>) -> bool;

    fn complete(self, outcome: Self::Outcome) -> Self::Done;
}

pub(super) struct Operation<W: Work> {
    pub(super) kind: TransactionKind,
    pub(super) work: W,
    pub(super) outcome: Option<Result<W::Outcome>>,
    pub(super) reply: oneshot::Sender<Result<W::Done>>,
}

/// A closure, which runs once and alone.
pub(super) struct Closure<T, F> {
    function: Option<F>,
    done: PhantomData<fn() -> T>,
}

impl<T, F> Closure<T, F> {
    pub(super) const fn new(function: F) -> Self {
        Self { function: Some(function), done: PhantomData }
    }
}

impl<T, F> Work for Closure<T, F>
where
    T: Send + 'static,
    F: FnOnce(&Write<'_>) -> Result<T> + Send + 'static,
{
    type Outcome = T;
    type Done = T;

    fn set(&self) -> Option<(TypeId, UserId)> {
        None
    }

    fn name() -> &'static str {
        std::any::type_name::<F>()
    }

    fn run(set: &mut [&mut Operation<Self>], transaction: &Write<'_>) -> bool {
        let [operation] = set else { return false };
        let Some(function) = operation.work.function.take() else { return false };
        let outcome = catch_panic(|| function(transaction));
        let keeps_changes = match &outcome {
            Ok(_) => true,
            Err(error) => error.keeps_changes,
        };
        operation.outcome = Some(outcome);
        keeps_changes
    }

    fn complete(self, outcome: T) -> T {
        outcome
    }
}

/// A [`GroupedWrite`], which may run again.
pub(super) struct Grouped<W>(pub(super) W);

impl<W: GroupedWrite> Work for Grouped<W> {
    type Outcome = W::Outcome;
    type Done = W::Done;

    fn set(&self) -> Option<(TypeId, UserId)> {
        Some((TypeId::of::<W>(), self.0.user()))
    }

    fn name() -> &'static str {
        std::any::type_name::<W>()
    }

    fn run(set: &mut [&mut Operation<Self>], transaction: &Write<'_>) -> bool {
        let (alone, several);
        let writes: &[&W] = if let [operation] = &*set {
            alone = [&operation.work.0];
            &alone
        } else {
            several = set.iter().map(|operation| &operation.work.0).collect::<Vec<_>>();
            &several
        };
        let run_all = || {
            let mut outcomes = W::run_in(transaction, writes)?;
            while let Some(rest) = writes.get(outcomes.len()..).filter(|rest| !rest.is_empty()) {
                let more = W::run_in(transaction, rest)?;
                if more.is_empty() {
                    return Err(Error::internal("a set of writes did not run"));
                }
                outcomes.extend(more);
            }
            Ok(outcomes)
        };
        match (catch_panic(run_all), set) {
            (Ok(outcomes), set) => {
                set.iter_mut().zip(outcomes).for_each(|(operation, outcome)| operation.outcome = Some(outcome));
                true
            }
            (Err(error), [alone]) => {
                alone.outcome = Some(Err(error));
                false
            }
            (Err(_), _) => false,
        }
    }

    fn complete(self, outcome: W::Outcome) -> W::Done {
        self.0.complete(outcome)
    }
}

impl<W: Work> Job for Operation<W> {
    fn kind(&self) -> TransactionKind {
        self.kind
    }

    fn set(&self) -> Option<(TypeId, UserId)> {
        self.work.set()
    }

    fn run(&mut self, others: &mut [Box<dyn Job>], transaction: &Write<'_>) -> bool {
        if others.is_empty() {
            return W::run(&mut [self], transaction);
        }
        let others = others.iter_mut().filter_map(|other| (&mut **other as &mut dyn Any).downcast_mut());
        W::run(&mut std::iter::once(self).chain(others).collect::<Vec<_>>(), transaction)
    }

    fn fail(&mut self, error: Error) {
        self.outcome = Some(Err(error));
    }

    fn found_damage(&self) -> bool {
        matches!(&self.outcome, Some(Err(error)) if is_damage(error))
    }

    fn name(&self) -> &'static str {
        W::name()
    }

    fn reply(self: Box<Self>, failure: Option<&Error>) {
        let Self { work, outcome, reply, .. } = *self;
        let outcome = match failure {
            Some(failure) => Err(error_after(outcome.and_then(Result::err), failure)),
            None => outcome.unwrap_or_else(|| Err(Error::internal("an operation was replied to before it ran"))),
        };
        // The caller may be gone.
        drop(reply.send(outcome.map(|outcome| work.complete(outcome))));
    }
}

fn catch_panic<T>(run: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(run))
        .unwrap_or_else(|_| Err(Error::internal("an operation panicked on the writer thread")))
}

/// Returns the error of an operation whose commit failed: its own, unless its changes were to be kept.
fn error_after(own: Option<Error>, failure: &Error) -> Error {
    own.filter(|error| !error.keeps_changes).unwrap_or_else(|| failure.without_source())
}
