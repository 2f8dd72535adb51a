//! A queued operation, whatever it answers, and the answers of a commit.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::{
    error::{Error, Result},
    store::{Write, is_damage},
};

/// The answers of one commit. Whoever drops them gives them.
pub struct CommitReplies {
    pub(super) jobs: Vec<Box<dyn Job>>,
    /// Why nothing of the commit counts.
    pub(super) lost: Option<Error>,
}

impl Drop for CommitReplies {
    fn drop(&mut self) {
        for job in self.jobs.drain(..) {
            job.answer(self.lost.as_ref());
        }
    }
}

/// Takes the answers of a commit to where those are who wait for them.
pub type ReplyDispatcher = Box<dyn Fn(CommitReplies) + Send + Sync>;

/// How an operation that fails is undone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store) enum Kind {
    /// By the savepoint that it gets. SQLite keeps every page that is changed after one in memory as it was before.
    Savepoint,
    /// Not at all: it changes nothing before it is sure to succeed.
    NoSavepoint,
    /// With its transaction: it is the only one of its commit, so that whoever reads while it runs sees all that was
    /// written before it.
    Exclusive,
}

/// A queued operation, whatever it answers.
pub(super) trait Job: Send {
    fn kind(&self) -> Kind;

    /// Runs the operation and says whether what it changed is to stay.
    fn run(&mut self, transaction: &Write<'_>) -> bool;

    /// Whether it failed because the file is damaged.
    fn met_damage(&self) -> bool;

    /// Where the operation is written.
    fn name(&self) -> &'static str;

    /// Tells the caller the outcome; `lost` is why nothing of the commit counts.
    fn answer(self: Box<Self>, lost: Option<&Error>);
}

pub(super) struct Operation<T, F> {
    pub(super) kind: Kind,
    pub(super) work: Option<F>,
    pub(super) outcome: Option<Result<T>>,
    pub(super) reply: oneshot::Sender<Result<T>>,
}

impl<T, F> Job for Operation<T, F>
where
    T: Send,
    F: FnOnce(&Write<'_>) -> Result<T> + Send,
{
    fn kind(&self) -> Kind {
        self.kind
    }

    fn run(&mut self, transaction: &Write<'_>) -> bool {
        let Some(operation) = self.work.take() else { return false };
        let outcome = catch_unwind(AssertUnwindSafe(|| operation(transaction)))
            .unwrap_or_else(|_| Err(Error::internal("an operation panicked on the writer thread")));
        let keeps = match &outcome {
            Ok(_) => true,
            Err(error) => error.keeps_changes,
        };
        self.outcome = Some(outcome);
        keeps
    }

    fn met_damage(&self) -> bool {
        matches!(&self.outcome, Some(Err(error)) if is_damage(error))
    }

    fn name(&self) -> &'static str {
        std::any::type_name::<F>()
    }

    fn answer(self: Box<Self>, lost: Option<&Error>) {
        let outcome = match (self.outcome, lost) {
            (Some(Err(error)), None) => Err(error),
            (Some(Err(error)), Some(_)) if !error.keeps_changes => Err(error),
            (_, Some(lost)) => Err(lost.again()),
            (Some(Ok(value)), None) => Ok(value),
            (None, None) => Err(Error::internal("an operation was answered before it ran")),
        };
        // A caller that has gone away does not want the answer.
        drop(self.reply.send(outcome));
    }
}
