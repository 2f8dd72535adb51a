//! The writer thread on a PostgreSQL server.
//!
//! All copies of the service write one after the other: the first statement of a commit locks one row. So operations see
//! the same state as on a file, and none has to be repeated. If the connection is lost while a commit is under way, the
//! number of this copy's last commit tells whether it happened.

use std::{
    cell::RefCell,
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

use super::{
    connection::Connector,
    errors::{is_connection_lost, unreachable_server},
    session::{Session, TransactionState},
    snapshots::Snapshots,
};
use crate::{
    clock::Clock,
    error::{Code, Error, Result},
    keys::ServerKey,
    store::{
        Write,
        transaction::Access,
        writer::{Job, Jobs, Queue, TransactionKind, batch_length},
    },
    types::Timestamp,
};

/// The time for which the outcome of a commit is looked for after the connection was lost.
const OUTCOME_DEADLINE: Duration = Duration::from_secs(10);
const OUTCOME_POLL: Duration = Duration::from_millis(200);

const LOCK: &str = concat!(
    "with mark as (insert into store_copies (copy, batch, seen_at) values (?1, ?2, ",
    server_clock!(),
    ") on conflict (copy) do update set batch = excluded.batch, seen_at = excluded.seen_at) \
     update store_state set commits = commits + 1 where id = 0 returning ",
    server_clock!()
);

/// Plans are kept. Many are made while a table is nearly empty and a scan looks cheapest, and the server's statistics lag
/// behind the table's growth. This only penalises scans: a statement without an index still scans. The penalty would
/// make the server compile such a plan, so compilation is off.
const LOOKUPS_BY_INDEX: &str = "set enable_seqscan = off; set jit = off";

pub(super) struct Committer {
    pub(super) connector: Arc<Connector>,
    pub(super) queue: Queue,
    pub(super) clock: Clock,
    pub(super) keys: Arc<OnceLock<ServerKey>>,
    /// Identifies this process among the copies of the service.
    pub(super) copy: String,
    pub(super) snapshots: Arc<Snapshots>,
    pub(super) state: RefCell<State>,
}

pub(super) struct State {
    session: Option<Session>,
    /// The number of the last commit of this copy.
    batch: i64,
}

impl State {
    /// Numbers commits from the current time on, so that no number of an earlier process of this name comes again.
    pub(super) fn new(now: Timestamp) -> Self {
        Self { session: None, batch: now.0 }
    }
}

impl Committer {
    pub(super) fn run(self) {
        while let Ok(first) = self.queue.jobs.recv() {
            self.queue.commit_batch(first, |jobs| self.commit_some(jobs));
        }
        self.forget_copy();
    }

    /// Commits operations and replies to them. Stops at the first one that needs a transaction of its own, and returns
    /// the rest.
    fn commit_some(&self, mut jobs: Jobs) -> Jobs {
        let rest = jobs.split_off(batch_length(&jobs));
        match self.begin() {
            Ok((session, now)) => {
                let mut not_run = self.commit_on(session, now, jobs);
                not_run.extend(rest);
                not_run
            }
            Err(error) => {
                self.queue.note_refusal();
                jobs.extend(rest);
                self.queue.reply(jobs, Some(error));
                Vec::new()
            }
        }
    }

    /// Begins a transaction and takes the write lock of all copies. A connection that was lost while it was idle is
    /// replaced.
    fn begin(&self) -> Result<(Session, Timestamp)> {
        let mut state = self.state.borrow_mut();
        state.batch += 1;
        let batch = state.batch;
        if let Some(session) = state.session.take_if(|session| !session.is_lost()) {
            match self.lock(&session, batch) {
                Ok(now) => return Ok((session, now)),
                Err(error) if !session.is_lost() => {
                    drop(session.roll_back());
                    state.session = Some(session);
                    return Err(error);
                }
                Err(_) => {}
            }
        }
        let session = self.connector.open()?;
        session.run(LOOKUPS_BY_INDEX)?;
        let now = self.lock(&session, batch)?;
        Ok((session, now))
    }

    fn lock(&self, session: &Session, batch: i64) -> Result<Timestamp> {
        session.defer("begin isolation level read committed");
        let now = Access::Server(session).first(LOCK, &(self.copy.as_str(), batch), |row| row.get(0))?;
        let now = now.ok_or_else(missing_lock)?;
        Ok(self.clock.at_database(Timestamp(now)))
    }

    fn commit_on(&self, session: Session, now: Timestamp, mut jobs: Jobs) -> Jobs {
        let transaction = Write::new(Access::Server(&session), now).with_keys(self.keys.get());
        let run = |set: &mut [Box<dyn Job>], is_isolated| run_set(&session, set, is_isolated, &transaction);
        let (done, outcome) = self.queue.run_jobs(&mut jobs, &transaction, run);
        let not_run = jobs.split_off(done.len());
        let outcome = outcome.and_then(|()| self.commit(&session));
        self.queue.note_round_trips(session.take_round_trips());
        // A commit that failed may have happened. Reads that follow the reply must not use what was cached before it.
        self.snapshots.advance(outcome.as_ref().ok().copied().flatten());
        match outcome {
            Ok(_) => self.queue.reply(jobs, None),
            Err(error) => {
                self.queue.note_failure(&jobs, &error);
                if !session.is_lost() {
                    drop(session.roll_back());
                }
                self.queue.reply_to_failed(jobs, &done, error);
            }
        }
        if !session.is_lost() {
            self.state.borrow_mut().session = Some(session);
        }
        not_run
    }

    /// Commits, and returns the watched number as the transaction saw it.
    fn commit(&self, session: &Session) -> Result<Option<i64>> {
        match session.run_for_row(&self.snapshots.commit()) {
            Ok(row) => Ok(row.into_iter().flatten().next().and_then(|number| number.parse().ok())),
            Err(error) if is_connection_lost(&error) => self.find_outcome(error).map(|()| None),
            // A foreign key that fails at commit time belongs to no single caller.
            Err(error) => Err(Error::internal(error)),
        }
    }

    /// Finds out whether a commit happened whose answer was lost.
    fn find_outcome(&self, lost: tokio_postgres::Error) -> Result<()> {
        let batch = self.state.borrow().batch;
        tracing::warn!(error = %lost, "the connection was lost during a commit; looking for its outcome");
        let begun = Instant::now();
        loop {
            match self.last_batch() {
                Ok(found) if found == batch => return Ok(()),
                Ok(_) => return Err(lost.into()),
                Err(error) if begun.elapsed() > OUTCOME_DEADLINE => {
                    return Err(Error::new(Code::OutcomeUnknown).caused_by(error));
                }
                Err(_) => std::thread::sleep(OUTCOME_POLL),
            }
        }
    }

    /// Returns the number of this copy's last commit. It waits for the lock, which a commit under way still holds.
    fn last_batch(&self) -> Result<i64> {
        let session = self.connector.open()?;
        session.defer("begin isolation level read committed");
        let access = Access::Server(&session);
        access.first("select commits from store_state where id = 0 for update", &(), |_| Ok(()))?;
        let last = "select batch from store_copies where copy = ?1";
        let last = access.first(last, &[self.copy.as_str()], |row| row.get(0))?.unwrap_or(0);
        session.run("rollback")?;
        Ok(last)
    }

    /// Removes the row of a command when it ends. A row that remains after a crash is harmless.
    fn forget_copy(&self) {
        if let Some(session) = self.state.borrow_mut().session.take()
            && let Err(error) = Access::Server(&session)
                .execute("delete from store_copies where copy = ?1 and is_server = 0", &[self.copy.as_str()])
        {
            tracing::warn!(%error, "the row of this copy could not be removed");
        }
    }
}

/// Returns the error for a database without the row that each commit locks.
pub(super) fn missing_lock() -> Error {
    Error::internal("the row of the write lock is missing")
}

/// Runs operations that form a set in a savepoint. Returns false if they were rolled back. An error means that the whole
/// transaction is lost.
fn run_set(session: &Session, set: &mut [Box<dyn Job>], is_isolated: bool, transaction: &Write<'_>) -> Result<bool> {
    let Some((first, others)) = set.split_first_mut() else { return Ok(true) };
    transaction.begin_operation();
    if first.kind() == TransactionKind::Vacuum {
        return Err(Code::UnsupportedByDatabase.into());
    }
    if first.kind() == TransactionKind::Exclusive {
        // It waits for its preparation, which may take long.
        session.defer("set local idle_in_transaction_session_timeout = 0");
    }
    session.defer("savepoint operation");
    let mut keeps_changes = first.run(others, transaction);
    if is_isolated
        && keeps_changes
        && let Err(error) = session.flush()
    {
        first.fail(error.into());
        keeps_changes = false;
    }
    if session.is_lost() {
        return Err(unreachable_server());
    }
    if session.transaction() == TransactionState::Lost {
        return Err(Error::internal("a deferred statement of the transaction failed"));
    }
    if !keeps_changes {
        session.defer("rollback to operation");
    } else if session.transaction() == TransactionState::Failed {
        return Err(Error::internal("an operation kept its changes after a failed statement"));
    }
    session.defer("release operation");
    Ok(keeps_changes)
}
