//! The copies of the service on one database: which ones run, and which one runs the jobs.
//!
//! Each server renews its row every few seconds. One of them is the leader, which runs the jobs that must run once. If it
//! stops, another one takes over at once; if it is killed, when its term has ended.

use std::{
    ops::ControlFlow,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU32, Ordering},
        mpsc::{RecvTimeoutError, Sender, channel},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use super::{committer::missing_lock, connection::Connector, schema, session::Session};
use crate::{
    concurrency::lock::lock_unpoisoned,
    error::{Error, Result},
    store::{transaction::Access, value::SqlValue},
    types::random_hex,
};

const RENEWED_EVERY: Duration = Duration::from_secs(3);
/// A leader that does not renew its lease for this long can be replaced.
const LEASE_MS: i64 = 15_000;
/// The leader stops its jobs earlier, so that two copies never lead at once.
const LEASE_OF_JOBS: Duration = Duration::from_secs(10);
/// A copy that was not seen for this long is forgotten.
const FORGOTTEN_AFTER_MS: i64 = 24 * 60 * 60 * 1000;
/// A copy that was not seen for this long does not run any more.
const GONE_AFTER_MS: i64 = 15_000;
const GONE_AFTER: Duration = Duration::from_millis(GONE_AFTER_MS.unsigned_abs());

/// The state of a copy: whether it leads, and how many others run.
#[derive(Default)]
pub(in crate::store) struct CopyStatus {
    lead: Mutex<Option<Lead>>,
    others: AtomicU32,
}

/// The time in which this copy leads.
#[derive(Clone, Copy)]
struct Lead {
    since: Instant,
    until: Instant,
}

/// The thread that renews the row of this copy. It gives up the lead when it is dropped.
pub(super) struct Membership {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl CopyStatus {
    /// Returns true if this copy runs the jobs that must run once.
    pub(in crate::store) fn is_leader(&self) -> bool {
        self.lead().is_some()
    }

    /// Returns true if this copy has been the leader for as long as another copy takes to be seen as gone.
    pub(in crate::store) fn leads_steadily(&self) -> bool {
        self.lead().is_some_and(|lead| lead.since.elapsed() >= GONE_AFTER)
    }

    fn lead(&self) -> Option<Lead> {
        lock_unpoisoned(&self.lead).filter(|lead| Instant::now() < lead.until)
    }

    /// Returns the number of other running copies.
    pub(in crate::store) fn others(&self) -> u32 {
        self.others.load(Ordering::Relaxed)
    }

    /// Writes the row of this copy, and takes the lead if no other copy has it. Returns false once this process may not
    /// write any more: a newer version has migrated the schema, or another process has this copy's name.
    fn renew(&self, session: &Session, copy: &str, process: &str, begins: bool) -> Result<bool> {
        let begun = Instant::now();
        let access = Access::Server(session);
        session.defer("begin isolation level read committed");
        let now = concat!("update store_state set commits = commits where id = 0 returning ", server_clock!());
        let now: i64 = access.first(now, &(), |row| row.get(0))?.ok_or_else(missing_lock)?;
        let is_mine = if begins {
            access.execute(
                "insert into store_copies (copy, batch, process, is_server, seen_at) values (?1, 0, ?2, 1, ?3) \
                 on conflict (copy) do update set process = excluded.process, is_server = 1, seen_at = excluded.seen_at",
                &(copy, process, now),
            )?
        } else {
            access.execute(
                "update store_copies set seen_at = ?3 where copy = ?1 and process = ?2",
                &(copy, process, now),
            )?
        };
        access.execute("delete from store_copies where seen_at < ?1", &[now - FORGOTTEN_AFTER_MS])?;
        access.execute(
            "update store_state set leader = ?1, leader_until = ?2 where id = 0 \
             and (leader = ?1 or leader_until is null or leader_until < ?3)",
            &(copy, now + LEASE_MS, now),
        )?;
        let (leads, version): (bool, u32) = access
            .first(
                "select coalesce(leader = ?1, false), schema_version from store_state where id = 0",
                &[copy],
                |row| Ok((row.get(0)?, row.get(1)?)),
            )?
            .ok_or_else(missing_lock)?;
        let others = running_copies_in(access)?.into_iter().filter(|name| name != copy).count();
        session.run("commit")?;
        let since = self.lead().map_or(begun, |lead| lead.since);
        *lock_unpoisoned(&self.lead) = leads.then(|| Lead { since, until: begun + LEASE_OF_JOBS });
        self.others.store(u32::try_from(others).map_err(Error::internal)?, Ordering::Relaxed);
        Ok(version as usize <= schema::VERSION && is_mine == 1)
    }
}

impl Membership {
    /// Makes this process one of the running copies. Sets `is_outdated` once it may not write any more.
    pub(super) fn begin(
        connector: Arc<Connector>,
        status: Arc<CopyStatus>,
        is_outdated: Arc<AtomicBool>,
        copy: String,
    ) -> Result<Self> {
        let (session, process) = (connector.open()?, random_hex::<16>()?);
        status.renew(&session, &copy, &process, true)?;
        let (stop, stopped) = channel::<()>();
        let thread = std::thread::Builder::new().name("copies".into()).spawn(move || {
            let mut session = Some(session);
            while stopped.recv_timeout(RENEWED_EVERY) == Err(RecvTimeoutError::Timeout) {
                let open = session.take_if(|session| !session.is_lost()).map_or_else(|| connector.open(), Ok);
                let renewed = open.and_then(|open| {
                    let may_write = status.renew(&open, &copy, &process, false)?;
                    session = Some(open);
                    Ok(may_write)
                });
                match renewed {
                    Ok(true) => {}
                    Ok(false) if is_outdated.swap(true, Ordering::Relaxed) => {}
                    Ok(false) => tracing::error!(
                        "a newer version has migrated the database, or another process has the name of this copy; \
                         this one stops writing"
                    ),
                    Err(error) => tracing::warn!(%error, "this copy could not announce itself"),
                }
            }
            if let Some(session) = session
                && let Err(error) = leave(&session, &copy, &process)
            {
                tracing::warn!(%error, "this copy could not give up the lead");
            }
        });
        Ok(Self { stop: Some(stop), thread: Some(thread.map_err(Error::internal)?) })
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the thread of the copies has panicked");
        }
    }
}

/// Returns the names of the copies that run, including this one.
pub(in crate::store) fn running_copies_in(access: Access<'_>) -> Result<Vec<String>> {
    let mut copies = Vec::new();
    let running = concat!("select copy from store_copies where is_server = 1 and seen_at > ", server_clock!(), " - ?1");
    let all = access.query(running, &[SqlValue::Integer(GONE_AFTER_MS)], &mut |row| {
        copies.push(row.get(0)?);
        Ok(ControlFlow::Continue(()))
    });
    all.map(|_| copies)
}

/// Lets another copy lead at once.
fn leave(session: &Session, copy: &str, process: &str) -> Result<()> {
    let access = Access::Server(session);
    access.execute("update store_state set leader = null, leader_until = null where leader = ?1", &[copy])?;
    access.execute("delete from store_copies where copy = ?1 and process = ?2", &[copy, process]).map(drop)
}
