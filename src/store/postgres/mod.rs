//! The PostgreSQL engine: one or more copies of the service on one database.
//!
//! Reads run on pooled connections, each in a read-only snapshot. Writes go through one connection of each copy, which
//! takes a lock that all copies share; see `committer.rs`.

/// The server's clock in milliseconds, as SQL.
macro_rules! server_clock {
    () => {
        "cast(floor(extract(epoch from clock_timestamp()) * 1000) as bigint)"
    };
}

mod committer;
mod connection;
mod copies;
mod copy;
mod driver;
mod errors;
mod report;
mod schema;
mod session;
mod snapshots;
mod values;

use std::{
    cell::RefCell,
    sync::{Arc, Mutex, OnceLock},
    time::{Duration, Instant},
};

use secrecy::SecretString;
use tokio::runtime::{Handle, RuntimeFlavor};

use self::{
    committer::{Committer, State},
    connection::{Address, Connector, Pooled, pool},
    copies::{CopyStatus, Membership},
    snapshots::Snapshots,
};
pub use self::{
    connection::without_password,
    report::{OLDEST_VERSION as OLDEST_SERVER_VERSION, ServerReport},
};
pub(super) use self::{
    copies::running_copies_in,
    copy::{ServerCopySide, ServerRows},
    session::{AwaitedRows, Session},
};
use super::{
    Read, Row, RowResult, SchemaPolicy, SnapshotId, SqlParameters, Tuning,
    sqlite::before_blocking,
    transaction::{Access, ErasedRead},
    writer::{Writer, log_if_slow},
};
use crate::{
    clock::Clock,
    concurrency::lock::lock_unpoisoned,
    error::{Error, Result},
    keys::ServerKey,
};
pub(super) use tokio_postgres::Row as ServerRow;

/// Returns true if the error reports damage in the files of the database.
pub(super) fn is_damage(error: &Error) -> bool {
    let source = error.source.as_ref().and_then(|source| source.downcast_ref::<errors::ServerFailure>());
    source.is_some_and(|failure| errors::is_damage(&failure.0))
}

/// The use of a database server by this copy of the service, and the other copies.
#[derive(Clone, Copy, Debug)]
pub struct ServerLoad {
    /// Open connections for reads.
    pub readers: u32,
    pub idle_readers: u32,
    pub max_readers: u32,
    /// Running copies of the service, with this one.
    pub copies: u32,
    /// True if this copy runs the jobs that must run once.
    pub is_leader: bool,
}

/// A database on a server. Clones share it.
#[derive(Clone)]
pub(super) struct ServerStore {
    shared: Arc<Shared>,
}

struct Shared {
    snapshots: Arc<Snapshots>,
    readers: r2d2::Pool<Pooled>,
    writer: Writer,
    clock: Clock,
    keys: Arc<OnceLock<ServerKey>>,
    slow: Duration,
    max_readers: u32,
    connector: Arc<Connector>,
    /// Identifies this process among the copies of the service.
    copy: String,
    status: Arc<CopyStatus>,
    /// Set while this process is a server.
    membership: Mutex<Option<Membership>>,
}

impl ServerStore {
    /// `copy` names this process among the copies of the service. A process that follows a killed one has its name.
    pub(super) fn open(
        url: &SecretString,
        copy: String,
        tuning: &Tuning,
        clock: Clock,
        policy: SchemaPolicy,
    ) -> Result<Self> {
        let connector = Arc::new(Connector::new(Address::parse(url)?));
        schema::prepare(&connector.open()?, policy)?;
        let keys = Arc::<OnceLock<ServerKey>>::default();
        let snapshots = Arc::new(Snapshots::new());
        let writer = {
            let (connector, clock, keys) = (Arc::clone(&connector), clock.clone(), Arc::clone(&keys));
            let (copy, now, snapshots) = (copy.clone(), clock.now(), Arc::clone(&snapshots));
            Writer::start(tuning, move |queue| {
                Committer { connector, queue, clock, keys, copy, snapshots, state: RefCell::new(State::new(now)) }
                    .run();
            })?
        };
        let shared = Shared {
            snapshots,
            readers: pool(&connector, tuning),
            writer,
            clock,
            keys,
            slow: tuning.slow,
            max_readers: tuning.readers,
            connector,
            copy,
            status: Arc::default(),
            membership: Mutex::default(),
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    pub(super) fn set_keys(&self, keys: ServerKey) {
        let _ = self.shared.keys.set(keys);
    }

    /// Makes this process one of the copies that serve, until it is closed.
    pub(super) fn join_copies(&self) -> Result<()> {
        let (connector, status) = (Arc::clone(&self.shared.connector), Arc::clone(&self.shared.status));
        let outdated = self.shared.writer.superseded_flag();
        let membership = Membership::begin(connector, status, outdated, self.shared.copy.clone())?;
        *lock_unpoisoned(&self.shared.membership) = Some(membership);
        Ok(())
    }

    pub(super) fn copy_name(&self) -> &str {
        &self.shared.copy
    }

    pub(super) fn status(&self) -> &CopyStatus {
        &self.shared.status
    }

    pub(super) fn close(&self) {
        drop(lock_unpoisoned(&self.shared.membership).take());
        self.shared.writer.stop();
    }

    pub(super) fn load(&self) -> ServerLoad {
        let pool = self.shared.readers.state();
        ServerLoad {
            readers: pool.connections,
            idle_readers: pool.idle_connections,
            max_readers: self.shared.max_readers,
            copies: self.shared.status.others() + 1,
            is_leader: self.shared.status.is_leader(),
        }
    }

    pub(super) fn writer(&self) -> &Writer {
        &self.shared.writer
    }

    pub(super) fn read(&self, name: &'static str, operation: ErasedRead<'_>) -> Result<()> {
        let begun = Instant::now();
        let read = || {
            let session = self.session()?;
            session.defer("begin isolation level repeatable read, read only");
            let (reading, id) = (EndOfRead(&session), self.snapshot_id());
            let read = Read::new(Access::Server(reading.0), self.shared.clock.now()).with_snapshot_id(id);
            operation(&read.with_keys(self.shared.keys.get()))
        };
        let outcome = on_blocking_thread(read);
        log_if_slow(name, begun.elapsed(), self.shared.slow);
        outcome
    }

    /// Returns the first row of one statement, which needs no transaction to see one state.
    pub(super) fn read_first<T>(
        &self,
        sql: &str,
        params: &impl SqlParameters,
        row: impl FnOnce(&Row<'_>) -> RowResult<T>,
    ) -> Result<Option<T>> {
        let (name, begun) = (std::any::type_name_of_val(&row), Instant::now());
        let found = on_blocking_thread(|| {
            let session = self.session()?;
            let found = Access::Server(&session).first(sql, params, row);
            session.end_statement();
            found
        });
        log_if_slow(name, begun.elapsed(), self.shared.slow);
        found
    }

    pub(super) fn snapshot_id(&self) -> SnapshotId {
        self.shared.snapshots.current()
    }

    pub(super) fn watch(&self, sql: &'static str) {
        self.shared.snapshots.watch(sql);
    }

    /// Takes a connection that is not known to be lost: a restart of the server closes all idle ones.
    fn session(&self) -> Result<r2d2::PooledConnection<Pooled>> {
        for _ in 0..=self.shared.max_readers {
            let session = self.shared.readers.get().map_err(|error| errors::unreachable_server().caused_by(error))?;
            // A server that was restarted has ended the connection meanwhile.
            session.receive_if_idle();
            if !session.is_lost() {
                return Ok(session);
            }
        }
        Err(errors::unreachable_server())
    }

    pub(super) fn size(&self) -> Result<u64> {
        let sql = "select pg_database_size(current_database())";
        let size = on_blocking_thread(|| Access::Server(&*self.session()?).first(sql, &(), |row| row.get(0)))?;
        Ok(size.map_or(0, i64::unsigned_abs))
    }

    /// Begins a transaction that reads one state of the database while others write.
    pub(super) fn snapshot(&self) -> Result<ServerCopySide> {
        ServerCopySide::open_snapshot(&self.shared.connector)
    }

    pub(super) fn report(&self) -> Result<ServerReport> {
        on_blocking_thread(|| report::read(&*self.session()?))
    }

    pub(super) fn schema_faults(&self) -> Result<Vec<String>> {
        on_blocking_thread(|| schema::faults(&*self.session()?))
    }
}

/// Runs work that waits for the server. The runtime starts another worker if this thread is one.
fn on_blocking_thread<T>(work: impl FnOnce() -> T) -> T {
    let is_of_runtime =
        Handle::try_current().is_ok_and(|runtime| runtime.runtime_flavor() == RuntimeFlavor::MultiThread);
    if is_of_runtime {
        before_blocking();
        tokio::task::block_in_place(work)
    } else {
        work()
    }
}

/// Ends a read on drop, even after a panic.
struct EndOfRead<'session>(&'session Session);

impl Drop for EndOfRead<'_> {
    fn drop(&mut self) {
        self.0.end_read();
    }
}
