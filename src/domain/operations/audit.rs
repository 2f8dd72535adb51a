//! What administrators saw and changed: one row a call or command, never changed and never deleted.
//!
//! Changes of balances are written down a second time, with the balances, in the ledger's own chain.
//!
//! A row is written when an act is over. What a stop of the service cuts off is over for nobody, and may be done all the
//! same: so acts under way are known, and those that are left at the end get their row then.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use crate::{
    app::App,
    concurrency::lock::lock_unpoisoned,
    error::Result,
    store::{Pending, Read, Row, Write},
    types::{Listing, Page, Timestamp, UserId},
};

/// The columns in the order in which [`row_of`] reads them.
macro_rules! select_audit {
    ($rest:literal) => {
        concat!("select id, at, actor, action, user_id, reason, outcome, client_ip, request_id from audit ", $rest)
    };
}

/// The outcome of what has begun, and may be done although nobody hears of it: 202.
pub const BEGUN: u16 = 202;
/// Characters of a reason.
pub const LONGEST_REASON: usize = 200;

/// Something that an administrator did.
#[derive(Clone, Debug)]
pub struct Act {
    /// `admin:NAME`, `key:LABEL` or `cli`.
    pub actor: String,
    /// Method and route template, or the command.
    pub action: String,
    /// Whom it was about, if it was about one user.
    pub user: Option<UserId>,
    pub reason: Option<String>,
    /// The answer's status; 200 for a command that was done. [`BEGUN`] for what began and may be done.
    pub outcome: u16,
    pub client_ip: Option<String>,
    pub request_id: String,
}

/// An act as it is kept.
#[derive(Clone, Debug)]
pub struct Recorded {
    pub id: i64,
    pub at: Timestamp,
    pub act: Act,
}

/// Which rows are asked for. The range is half-open.
#[derive(Clone, Debug)]
pub struct Filter {
    /// Only what was about this user.
    pub user: Option<UserId>,
    /// Only what this actor did.
    pub actor: Option<String>,
    pub from: Timestamp,
    pub to: Timestamp,
}

impl Default for Filter {
    fn default() -> Self {
        Self { user: None, actor: None, from: Timestamp(0), to: Timestamp(i64::MAX) }
    }
}

/// Something that an administrator has begun, and what is known of it so far: with this outcome.
pub type Known = Arc<dyn Fn(u16) -> Act + Send + Sync>;

/// Acts that are not over.
#[derive(Default)]
pub struct UnderWay {
    next_number: AtomicU64,
    acts: Mutex<BTreeMap<u64, Undecided>>,
}

struct Undecided {
    known: Known,
    /// A row says that it began.
    is_told: bool,
}

/// An act of which a row is to be written. Dropping it ends nothing: what it began may go on.
pub struct Undertaking {
    number: u64,
    known: Known,
    under_way: Arc<UnderWay>,
}

impl UnderWay {
    /// Something that is about to begin.
    pub fn undertake(self: &Arc<Self>, known: Known) -> Undertaking {
        let number = self.next_number.fetch_add(1, Ordering::Relaxed);
        Undertaking { number, known, under_way: Arc::clone(self) }
    }

    /// Whether nothing is under way.
    pub fn is_empty(&self) -> bool {
        lock_unpoisoned(&self.acts).is_empty()
    }
}

impl Undertaking {
    /// Counts it among what is not over, until [`Self::end`].
    pub fn begin(&self) {
        lock_unpoisoned(&self.under_way.acts)
            .insert(self.number, Undecided { known: Arc::clone(&self.known), is_told: false });
    }

    /// Writes down that it has begun, for what a crash must not hide.
    pub fn tell(&self, app: &App) -> Pending<()> {
        let (act, number, under_way) = ((self.known)(BEGUN), self.number, Arc::clone(&self.under_way));
        app.store.write(move |tx| {
            record_in(tx, &act)?;
            if let Some(undecided) = lock_unpoisoned(&under_way.acts).get_mut(&number) {
                undecided.is_told = true;
            }
            Ok(())
        })
    }

    /// Writes down what came of it.
    pub fn end(&self, app: &App, outcome: u16) -> Pending<()> {
        let (act, number, under_way) = ((self.known)(outcome), self.number, Arc::clone(&self.under_way));
        app.store.write(move |tx| {
            // Here and not by whoever waits for it: a stop that cuts them off is to find one row and not two.
            lock_unpoisoned(&under_way.acts).remove(&number);
            record_in(tx, &act)
        })
    }

    /// It is over, and no row can be written of it.
    pub fn give_up(&self) {
        lock_unpoisoned(&self.under_way.acts).remove(&self.number);
    }
}

/// Writes down what is still under way, of which nobody will hear any more. For the end of a server.
///
/// # Errors
/// Storage errors.
pub fn record_cut_off(app: &App) -> Result<()> {
    if app.acts.is_empty() {
        return Ok(());
    }
    let under_way = Arc::clone(&app.acts);
    let record = move |tx: &Write<'_>| {
        let left = std::mem::take(&mut *lock_unpoisoned(&under_way.acts));
        left.values().filter(|act| !act.is_told).try_for_each(|act| record_in(tx, &(act.known)(BEGUN)))?;
        Ok(left.len())
    };
    let left = app.store.write(record).wait()?;
    if left > 0 {
        tracing::warn!(left, "what administrators had begun was cut off by the stop of the service");
    }
    Ok(())
}

/// Writes an act down.
pub fn record(app: &App, act: Act) -> Pending<()> {
    app.store.write(move |tx| record_in(tx, &act))
}

pub fn record_in(tx: &Write<'_>, act: &Act) -> Result<()> {
    tx.execute(
        "insert into audit (at, actor, action, user_id, reason, outcome, client_ip, request_id) \
         values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        (
            tx.now.0,
            &act.actor,
            &act.action,
            act.user.map(|user| user.0),
            &act.reason,
            act.outcome,
            &act.client_ip,
            &act.request_id,
        ),
    )
    .map(drop)
}

/// Rows, newest first.
pub fn list(app: &App, filter: &Filter, page: Page) -> Result<Listing<Recorded>> {
    app.store.read(|tx| list_in(tx, filter, page))
}

pub fn list_in(tx: &Read<'_>, filter: &Filter, page: Page) -> Result<Listing<Recorded>> {
    let Filter { user, actor, from, to } = filter;
    let (size, offset) = (page.size, page.offset());
    // One statement for each index, so that none has to be chosen by guessing.
    match (user, actor) {
        (Some(user), actor) => Ok(Listing {
            items: tx.all(
                select_audit!(
                    "where user_id = ?1 and (?2 is null or actor = ?2) and at >= ?3 and at < ?4 \
                     order by id desc limit ?5 offset ?6"
                ),
                (user.0, actor, from.0, to.0, size, offset),
                row_of,
            )?,
            total: tx.one(
                "select count(*) from audit where user_id = ?1 and (?2 is null or actor = ?2) and at >= ?3 and at < ?4",
                (user.0, actor, from.0, to.0),
                |row| row.get(0),
            )?,
        }),
        (None, Some(actor)) => Ok(Listing {
            items: tx.all(
                select_audit!("where actor = ?1 and at >= ?2 and at < ?3 order by id desc limit ?4 offset ?5"),
                (actor, from.0, to.0, size, offset),
                row_of,
            )?,
            total: tx.one(
                "select count(*) from audit where actor = ?1 and at >= ?2 and at < ?3",
                (actor, from.0, to.0),
                |row| row.get(0),
            )?,
        }),
        (None, None) => Ok(Listing {
            items: tx.all(
                select_audit!("where at >= ?1 and at < ?2 order by at desc, id desc limit ?3 offset ?4"),
                (from.0, to.0, size, offset),
                row_of,
            )?,
            total: tx.one("select count(*) from audit where at >= ?1 and at < ?2", (from.0, to.0), |row| row.get(0))?,
        }),
    }
}

fn row_of(row: &Row<'_>) -> rusqlite::Result<Recorded> {
    let user: Option<i64> = row.get(4)?;
    Ok(Recorded {
        id: row.get(0)?,
        at: Timestamp(row.get(1)?),
        act: Act {
            actor: row.get(2)?,
            action: row.get(3)?,
            user: user.map(UserId),
            reason: row.get(5)?,
            outcome: row.get(6)?,
            client_ip: row.get(7)?,
            request_id: row.get(8)?,
        },
    })
}
