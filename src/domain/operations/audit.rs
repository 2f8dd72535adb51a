//! The audit: one event for every admin request and command, never changed and never deleted.
//!
//! Changes of balances also enter the ledger's hash chain. An event is normally written when its request ends. Requests
//! in flight are tracked, so that a stop of the service still writes an event for each that it interrupts.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use crate::{
    concurrency::lock::lock_unpoisoned,
    core::Core,
    domain::operations::table_head,
    error::Result,
    keys::ServerKey,
    store::{Pending, Read, Row, RowResult, Write},
    types::{PageRequest, Paginated, Timestamp, UserId},
};

/// Selects the columns that [`audit_row`] reads.
macro_rules! select_audit {
    ($rest:literal) => {
        concat!("select id, at, actor, action, user_id, reason, outcome, client_ip, request_id, system_user", $rest)
    };
}

const LAST: &str = "audit.last";
/// Rows sealed in one write.
const BATCH_SIZE: u32 = 1_000;
/// The status of a request that has started and whose outcome may never be known: 202.
pub const STARTED: u16 = 202;
/// Maximum characters of a reason.
pub const MAX_REASON: usize = 200;

/// An action of an administrator or a command.
#[derive(Clone, Debug)]
pub struct AuditEvent {
    /// `admin:NAME`, `key:LABEL`, `cli`, or `unknown` for a sign-in with an unknown name.
    pub actor: String,
    /// Method and route template, or the command.
    pub action: String,
    /// The user concerned, if it is one user.
    pub user: Option<UserId>,
    pub reason: Option<String>,
    /// The response's status, 200 for a successful command, or [`STARTED`].
    pub outcome: u16,
    pub client_ip: Option<String>,
    pub request_id: String,
    /// The system user who ran the command.
    pub system_user: Option<String>,
}

/// A stored audit event.
#[derive(Clone, Debug)]
pub struct StoredAuditEvent {
    pub id: i64,
    pub at: Timestamp,
    pub event: AuditEvent,
}

/// A filter on audit events. The time range is half-open.
#[derive(Clone, Debug)]
pub struct AuditFilter {
    pub user: Option<UserId>,
    pub actor: Option<String>,
    pub from: Timestamp,
    pub to: Timestamp,
}

impl Default for AuditFilter {
    fn default() -> Self {
        Self { user: None, actor: None, from: Timestamp(0), to: Timestamp(i64::MAX) }
    }
}

/// Describes a request as far as it is known, with the given outcome.
pub type DescribeEvent = Arc<dyn Fn(u16) -> AuditEvent + Send + Sync>;

/// The audited requests that have not ended.
pub struct InFlightAudits {
    core: Core,
    next_number: AtomicU64,
    audits: Mutex<BTreeMap<u64, InFlight>>,
}

struct InFlight {
    describe: DescribeEvent,
    /// An event with [`STARTED`] is written.
    is_start_recorded: bool,
}

/// An audited request. Dropping it does not end it, because its work may continue.
pub struct PendingAudit {
    number: u64,
    describe: DescribeEvent,
    in_flight: Arc<InFlightAudits>,
}

impl InFlightAudits {
    pub fn new(core: Core) -> Self {
        Self { core, next_number: AtomicU64::new(0), audits: Mutex::default() }
    }

    /// Prepares the audit of a request. [`PendingAudit::begin`] starts tracking it.
    pub fn prepare(self: &Arc<Self>, describe: DescribeEvent) -> PendingAudit {
        let number = self.next_number.fetch_add(1, Ordering::Relaxed);
        PendingAudit { number, describe, in_flight: Arc::clone(self) }
    }

    pub fn is_empty(&self) -> bool {
        lock_unpoisoned(&self.audits).is_empty()
    }

    /// Writes an event for each request that the stop of the server interrupts.
    ///
    /// # Errors
    /// Storage errors.
    pub fn record_interrupted(self: &Arc<Self>) -> Result<()> {
        if self.is_empty() {
            return Ok(());
        }
        let in_flight = Arc::clone(self);
        let record = move |tx: &Write<'_>| {
            let left = std::mem::take(&mut *lock_unpoisoned(&in_flight.audits));
            let unrecorded = left.values().filter(|audit| !audit.is_start_recorded);
            unrecorded.map(|audit| (audit.describe)(STARTED)).try_for_each(|event| record_in(tx, &event))?;
            Ok(left.len())
        };
        let interrupted = self.core.store.write(record).wait()?;
        if interrupted > 0 {
            tracing::warn!(
                interrupted,
                "the stop interrupted requests of administrators; see the audit events with status 202"
            );
        }
        Ok(())
    }
}

impl PendingAudit {
    /// Tracks the request until [`Self::finish`] or [`Self::abandon`].
    pub fn begin(&self) {
        let entry = InFlight { describe: Arc::clone(&self.describe), is_start_recorded: false };
        lock_unpoisoned(&self.in_flight.audits).insert(self.number, entry);
    }

    /// Writes an event that the request has started, for work that a crash must not hide.
    pub fn record_start(&self) -> Pending<()> {
        let (event, number, in_flight) = ((self.describe)(STARTED), self.number, Arc::clone(&self.in_flight));
        self.in_flight.core.store.write(move |tx| {
            record_in(tx, &event)?;
            if let Some(audit) = lock_unpoisoned(&in_flight.audits).get_mut(&number) {
                audit.is_start_recorded = true;
            }
            Ok(())
        })
    }

    /// Writes the event with the request's outcome.
    pub fn finish(&self, outcome: u16) -> Pending<()> {
        let (event, number, in_flight) = ((self.describe)(outcome), self.number, Arc::clone(&self.in_flight));
        self.in_flight.core.store.write(move |tx| {
            // Removed inside the write, so that a stop in between writes one event and not two.
            lock_unpoisoned(&in_flight.audits).remove(&number);
            record_in(tx, &event)
        })
    }

    /// Stops tracking the request without an event, because none can be written.
    pub fn abandon(&self) {
        lock_unpoisoned(&self.in_flight.audits).remove(&self.number);
    }
}

/// Writes an audit event.
pub fn record(core: &Core, event: AuditEvent) -> Pending<()> {
    core.store.write(move |tx| record_in(tx, &event))
}

pub fn record_in(tx: &Write<'_>, event: &AuditEvent) -> Result<()> {
    let last = last_id_in(tx)?;
    let seal = tx.keys().map(|keys| seal(keys, last + 1, tx.now, event));
    tx.execute(
        "insert into audit (id, at, actor, action, user_id, reason, outcome, client_ip, request_id, system_user, seal) \
         values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
        (
            last + 1,
            tx.now.0,
            &event.actor,
            &event.action,
            event.user.map(|user| user.0),
            &event.reason,
            event.outcome,
            &event.client_ip,
            &event.request_id,
            &event.system_user,
            seal.as_ref().map(|seal| &seal[..]),
        ),
    )?;
    table_head::advance_in(tx, LAST, last, last + 1)
}

fn last_id_in(tx: &Read<'_>) -> Result<i64> {
    tx.one("select coalesce(max(id), 0) from audit", (), |row| row.get(0))
}

fn seal(keys: &ServerKey, id: i64, at: Timestamp, event: &AuditEvent) -> [u8; 16] {
    let (id, at, outcome) = (id.to_string(), at.0.to_string(), event.outcome.to_string());
    // A missing text differs from an empty one.
    let optional = |text: Option<String>| text.map_or_else(String::new, |text| format!("={text}"));
    let user = optional(event.user.map(|user| user.to_string()));
    let [reason, client, system_user] =
        [&event.reason, &event.client_ip, &event.system_user].map(|text| optional(text.clone()));
    let AuditEvent { actor, action, request_id, .. } = event;
    keys.seal_row(&["audit", &id, &at, actor, action, &user, &reason, &outcome, &client, request_id, &system_user])
}

/// Passes every row that is missing or not genuine to a function, in words.
pub fn faults_in(tx: &Read<'_>, note: &mut dyn FnMut(String)) -> Result<()> {
    let mut last = 0;
    tx.each(select_audit!(", seal from audit order by id"), (), |row| {
        let stored = audit_row(row)?;
        if stored.id != last + 1 {
            note(format!("row {} of the audit comes after row {last}", stored.id));
        }
        let seal_found: Option<Vec<u8>> = row.get(10)?;
        let expected = tx.keys().map(|keys| seal(keys, stored.id, stored.at, &stored.event));
        if expected.is_some_and(|expected| seal_found.as_deref() != Some(&expected[..])) {
            note(format!("row {} of the audit was not written by this server, or was changed", stored.id));
        }
        last = stored.id;
        Ok(())
    })?;
    if let Some(fault) = table_head::fault_in(tx, LAST, last)? {
        note(format!("the audit {fault}"));
    }
    Ok(())
}

/// Seals all rows under the present server key, after an operator accepted it.
///
/// # Errors
/// Storage errors.
pub fn seal_all(core: &Core) -> Result<()> {
    let mut next = Some(0);
    while let Some(after) = next {
        next = core.store.write(move |tx| seal_batch_in(tx, after)).wait()?;
    }
    core.store.write(|tx| table_head::put_in(tx, LAST, last_id_in(tx)?)).wait()
}

fn seal_batch_in(tx: &Write<'_>, after: i64) -> Result<Option<i64>> {
    let Some(keys) = tx.keys() else { return Ok(None) };
    let rows =
        tx.all(select_audit!(" from audit where id > ?1 order by id limit ?2"), (after, BATCH_SIZE), audit_row)?;
    for StoredAuditEvent { id, at, event } in &rows {
        let seal = seal(keys, *id, *at, event);
        tx.execute("update audit set seal = ?2 where id = ?1", (id, &seal[..]))?;
    }
    Ok(rows.last().map(|row| row.id))
}

/// Lists audit events, newest first.
pub fn list(core: &Core, filter: &AuditFilter, page: PageRequest) -> Result<Paginated<StoredAuditEvent>> {
    core.store.read(|tx| list_in(tx, filter, page))
}

pub fn list_in(tx: &Read<'_>, filter: &AuditFilter, page: PageRequest) -> Result<Paginated<StoredAuditEvent>> {
    // One statement for each index, so that the planner has no choice.
    match (filter.user, &filter.actor) {
        (Some(user), actor) => list_of_user_in(tx, user, actor.as_deref(), filter, page),
        (None, Some(actor)) => list_of_actor_in(tx, actor, filter, page),
        (None, None) => list_of_time_in(tx, filter, page),
    }
}

fn list_of_user_in(
    tx: &Read<'_>,
    user: UserId,
    actor: Option<&str>,
    filter: &AuditFilter,
    page: PageRequest,
) -> Result<Paginated<StoredAuditEvent>> {
    let (from, to) = (filter.from.0, filter.to.0);
    Ok(Paginated {
        items: tx.all(
            select_audit!(
                " from audit where user_id = ?1 and (actor = ?2 or ?2 is null) and at >= ?3 and at < ?4 \
                 order by id desc limit ?5 offset ?6"
            ),
            (user.0, actor, from, to, page.size, page.offset()),
            audit_row,
        )?,
        total: tx.one(
            "select count(*) from audit where user_id = ?1 and (actor = ?2 or ?2 is null) and at >= ?3 and at < ?4",
            (user.0, actor, from, to),
            |row| row.get(0),
        )?,
    })
}

fn list_of_actor_in(
    tx: &Read<'_>,
    actor: &str,
    filter: &AuditFilter,
    page: PageRequest,
) -> Result<Paginated<StoredAuditEvent>> {
    let (from, to) = (filter.from.0, filter.to.0);
    Ok(Paginated {
        items: tx.all(
            select_audit!(" from audit where actor = ?1 and at >= ?2 and at < ?3 order by id desc limit ?4 offset ?5"),
            (actor, from, to, page.size, page.offset()),
            audit_row,
        )?,
        total: tx.one(
            "select count(*) from audit where actor = ?1 and at >= ?2 and at < ?3",
            (actor, from, to),
            |row| row.get(0),
        )?,
    })
}

/// Returns true if the actor has at least this many events since a time.
pub fn has_rows_since_in(tx: &Read<'_>, actor: &str, count: u32, since: Timestamp) -> Result<bool> {
    let at = "select at from audit where actor = ?1 order by id desc limit 1 offset ?2";
    let oldest: Option<i64> = tx.first(at, (actor, count.saturating_sub(1)), |row| row.get(0))?;
    Ok(oldest.is_some_and(|at| Timestamp(at) > since))
}

fn list_of_time_in(tx: &Read<'_>, filter: &AuditFilter, page: PageRequest) -> Result<Paginated<StoredAuditEvent>> {
    let (from, to) = (filter.from.0, filter.to.0);
    Ok(Paginated {
        items: tx.all(
            select_audit!(" from audit where at >= ?1 and at < ?2 order by at desc, id desc limit ?3 offset ?4"),
            (from, to, page.size, page.offset()),
            audit_row,
        )?,
        total: tx.one("select count(*) from audit where at >= ?1 and at < ?2", (from, to), |row| row.get(0))?,
    })
}

fn audit_row(row: &Row<'_>) -> RowResult<StoredAuditEvent> {
    let user: Option<i64> = row.get(4)?;
    Ok(StoredAuditEvent {
        id: row.get(0)?,
        at: Timestamp(row.get(1)?),
        event: AuditEvent {
            actor: row.get(2)?,
            action: row.get(3)?,
            user: user.map(UserId),
            reason: row.get(5)?,
            outcome: row.get(6)?,
            client_ip: row.get(7)?,
            request_id: row.get(8)?,
            system_user: row.get(9)?,
        },
    })
}
