//! What administrators saw and changed: one row a call or command, never changed and never deleted.
//!
//! Changes of balances are written down a second time, with the balances, in the ledger's own chain.

use crate::{
    app::App,
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
    /// The answer's status; 200 for a command that was done, 202 for one that began what may go on without it.
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
