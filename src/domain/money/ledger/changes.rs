//! The audit ledger: manual changes and repairs of accounts in a hash chain.
//!
//! Each row's hash covers the row and the previous hash, so that a changed, removed or inserted row breaks the chain. It
//! is an HMAC under the server key, so that nobody without the key can compute another chain. The last row has no
//! successor, so its number is stored in the settings.

use serde_json::json;

use super::Asset;
use crate::{
    domain::{Each, operations::table_head},
    error::{Error, Result},
    keys::ServerKey,
    store::{Read, Row, RowResult, Write},
    types::{PageRequest, Paginated, Timestamp, UserId},
};

const LAST: &str = "ledger.audit_last";
const BATCH_SIZE: u32 = 5_000;

/// The operator or job that changes an account, and its reason.
#[derive(Clone, Debug)]
pub struct Authority {
    /// `admin:NAME`, `key:LABEL`, `user:ID`, `cli`, or the name of a job.
    pub actor: String,
    pub reason: String,
    pub request_id: String,
}

/// A row of the audit ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountChange {
    pub id: i64,
    pub actor: String,
    pub action: String,
    pub user: UserId,
    pub asset: Asset,
    pub reason: String,
    pub balance_before: i64,
    pub balance_after: i64,
    pub request_id: String,
    pub created_at: Timestamp,
    pub(super) previous_hash: Vec<u8>,
    pub(super) hash: Vec<u8>,
}

/// The account, action and balances of a change to be recorded.
#[derive(Clone, Copy, Debug)]
pub struct NewAccountChange<'action> {
    pub action: &'action str,
    pub user: UserId,
    pub asset: Asset,
    pub balance_before: i64,
    pub balance_after: i64,
}

/// Appends a change to the chain.
pub fn record_in(tx: &Write<'_>, authority: &Authority, changed: NewAccountChange<'_>) -> Result<()> {
    let last = tx.first("select id, hash from ledger_audit order by id desc limit 1", (), |row| {
        Ok((row.get::<i64>(0)?, row.get::<Vec<u8>>(1)?))
    })?;
    let (last_id, previous_hash) = last.unwrap_or((0, first_link()));
    let mut change = AccountChange {
        id: last_id + 1,
        actor: authority.actor.clone(),
        action: changed.action.to_owned(),
        user: changed.user,
        asset: changed.asset,
        reason: authority.reason.clone(),
        balance_before: changed.balance_before,
        balance_after: changed.balance_after,
        request_id: authority.request_id.clone(),
        created_at: tx.now,
        previous_hash,
        hash: Vec::new(),
    };
    change.hash = change.hash_of_contents(tx.keys())?.unwrap_or_default();
    table_head::advance_in(tx, LAST, last_id, change.id)?;
    insert_in(tx, &change)
}

/// Returns the disagreement of the stored number of the last row with the last row.
pub(super) fn head_fault_in(tx: &Read<'_>, last: i64) -> Result<Option<String>> {
    table_head::fault_in(tx, LAST, last)
}

/// Computes the chain again under the present server key, after an operator accepted it.
pub(super) fn rechain_in(tx: &Write<'_>) -> Result<()> {
    let (mut last, mut hash) = (0, first_link());
    loop {
        let rows = after_in(tx, last, BATCH_SIZE)?;
        if rows.is_empty() {
            return table_head::put_in(tx, LAST, last);
        }
        for mut change in rows {
            change.previous_hash = hash;
            change.hash = change.hash_of_contents(tx.keys())?.unwrap_or_default();
            let sql = "update ledger_audit set previous_hash = ?2, hash = ?3 where id = ?1";
            tx.execute(sql, (change.id, &change.previous_hash, &change.hash))?;
            (last, hash) = (change.id, change.hash);
        }
    }
}

/// Resets the chain after a purge of the whole ledger.
pub fn begin_anew_in(tx: &Write<'_>) -> Result<()> {
    table_head::put_in(tx, LAST, 0)
}

/// Returns the sum by which an operator has raised balances since a time.
pub fn granted_by_in(tx: &Read<'_>, actor: &str, asset: Asset, since: Timestamp) -> Result<i64> {
    tx.one(
        "select coalesce(sum(balance_after - balance_before), 0) from ledger_audit \
         where actor = ?1 and created_at > ?2 and asset = ?3 and balance_after > balance_before",
        (actor, since.0, asset.name()),
        |row| row.get(0),
    )
}

/// Lists the changes of a user's accounts, newest first.
pub fn of_user_in(tx: &Read<'_>, user: UserId, page: PageRequest) -> Result<Paginated<AccountChange>> {
    let items = tx.all(
        "select id, actor, action, user_id, asset, reason, balance_before, balance_after, request_id, created_at, \
         previous_hash, hash from ledger_audit where user_id = ?1 order by id desc limit ?2 offset ?3",
        (user.0, page.size, page.offset()),
        change_of,
    )?;
    let count = "select count(*) from ledger_audit where user_id = ?1";
    Ok(Paginated { items, total: tx.one(count, [user.0], |row| row.get(0))? })
}

/// Exports the changes of a user's accounts, oldest first, without their actors.
pub fn export_changes_in(tx: &Read<'_>, user: UserId, each: Each<'_>) -> Result<()> {
    tx.each(
        "select action, asset, reason, balance_before, balance_after, created_at from ledger_audit \
         where user_id = ?1 order by id",
        [user.0],
        |row| {
            each(json!({
                "action": row.get::<String>(0)?,
                "asset": row.get::<String>(1)?,
                "reason": row.get::<String>(2)?,
                "balanceBefore": row.get::<i64>(3)?,
                "balanceAfter": row.get::<i64>(4)?,
                "createdAt": Timestamp(row.get(5)?),
            }))
        },
    )
}

/// Returns the rows after this id, in order.
pub(super) fn after_in(tx: &Read<'_>, id: i64, limit: u32) -> Result<Vec<AccountChange>> {
    tx.all(
        "select id, actor, action, user_id, asset, reason, balance_before, balance_after, request_id, created_at, \
         previous_hash, hash from ledger_audit where id > ?1 order by id limit ?2",
        (id, limit),
        change_of,
    )
}

/// The previous hash of the first row.
pub(super) fn first_link() -> Vec<u8> {
    vec![0; 32]
}

impl AccountChange {
    /// Returns the HMAC of the fields as a JSON array, which separates them whatever they contain. None without a key.
    pub(super) fn hash_of_contents(&self, keys: Option<&ServerKey>) -> Result<Option<Vec<u8>>> {
        let contents = serde_json::to_string(&(
            &self.previous_hash,
            self.id,
            &self.actor,
            &self.action,
            self.user.0,
            self.asset.name(),
            &self.reason,
            self.balance_before,
            self.balance_after,
            &self.request_id,
            self.created_at.0,
        ));
        let contents = contents.map_err(Error::internal)?;
        Ok(keys.map(|keys| keys.authenticate(&["ledger_audit", &contents]).to_vec()))
    }
}

fn insert_in(tx: &Write<'_>, change: &AccountChange) -> Result<()> {
    tx.execute(
        "insert into ledger_audit (id, actor, action, user_id, asset, reason, balance_before, balance_after, \
         request_id, created_at, previous_hash, hash) values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
        (
            change.id,
            &change.actor,
            &change.action,
            change.user.0,
            change.asset.name(),
            &change.reason,
            change.balance_before,
            change.balance_after,
            &change.request_id,
            change.created_at.0,
            &change.previous_hash,
            &change.hash,
        ),
    )
    .map(drop)
}

fn change_of(row: &Row<'_>) -> RowResult<AccountChange> {
    Ok(AccountChange {
        id: row.get(0)?,
        actor: row.get(1)?,
        action: row.get(2)?,
        user: UserId(row.get(3)?),
        asset: row.get_parsed(4, Asset::from_name)?,
        reason: row.get(5)?,
        balance_before: row.get(6)?,
        balance_after: row.get(7)?,
        request_id: row.get(8)?,
        created_at: Timestamp(row.get(9)?),
        previous_hash: row.get(10)?,
        hash: row.get(11)?,
    })
}
