//! What administrators saw and changed: one row a call or command, never changed and never deleted.
//!
//! Changes of balances are written down a second time, with the balances, in the ledger's own chain.

use rusqlite::Row;

use crate::{
    app::App,
    error::Result,
    store::{Pending, Write},
    types::{Listing, Page, Timestamp, UserId},
};

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
    /// The answer's status; 200 for a command that was done.
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

/// Which rows are asked for.
#[derive(Clone, Debug)]
pub enum Filter {
    All,
    About(UserId),
    By(String),
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
    let (size, offset) = (page.size, page.offset());
    app.store.read(|tx| match filter {
        Filter::All => Ok(Listing {
            items: tx.all(
                "select id, at, actor, action, user_id, reason, outcome, client_ip, request_id from audit \
                 order by id desc limit ?1 offset ?2",
                (size, offset),
                row_of,
            )?,
            total: tx.one("select count(*) from audit", (), |row| row.get(0))?,
        }),
        Filter::About(user) => Ok(Listing {
            items: tx.all(
                "select id, at, actor, action, user_id, reason, outcome, client_ip, request_id from audit \
                 where user_id = ?1 order by id desc limit ?2 offset ?3",
                (user.0, size, offset),
                row_of,
            )?,
            total: tx.one("select count(*) from audit where user_id = ?1", [user.0], |row| row.get(0))?,
        }),
        Filter::By(actor) => Ok(Listing {
            items: tx.all(
                "select id, at, actor, action, user_id, reason, outcome, client_ip, request_id from audit \
                 where actor = ?1 order by id desc limit ?2 offset ?3",
                (actor, size, offset),
                row_of,
            )?,
            total: tx.one("select count(*) from audit where actor = ?1", [actor], |row| row.get(0))?,
        }),
    })
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
