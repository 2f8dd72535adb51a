//! Codes as an administrator sees them: that there are some, and never which.

use super::Recipient;
use crate::{
    error::Result,
    store::{Read, Write},
    types::Timestamp,
};

/// A code that would be taken.
#[derive(Clone, Debug)]
pub struct LiveCode {
    pub purpose: String,
    pub tries_left: u32,
    pub expires_at: Timestamp,
}

/// A message that was sent, or may have been.
#[derive(Clone, Debug)]
pub struct SentCode {
    pub sent_at: Timestamp,
    /// Where it was asked for.
    pub client_network: String,
}

pub fn live_in(tx: &Read<'_>, recipient: &Recipient) -> Result<Vec<LiveCode>> {
    tx.all(
        "select purpose, tries_left, expires_at from codes where address = ?1 and expires_at > ?2 order by purpose",
        (&recipient.0, tx.now.0),
        |row| Ok(LiveCode { purpose: row.get(0)?, tries_left: row.get(1)?, expires_at: Timestamp(row.get(2)?) }),
    )
}

/// The last messages to an address, newest first.
pub fn sent_in(tx: &Read<'_>, recipient: &Recipient, limit: u32) -> Result<Vec<SentCode>> {
    tx.all(
        "select sent_at, client_network from code_sends where address = ?1 order by sent_at desc limit ?2",
        (&recipient.0, limit),
        |row| Ok(SentCode { sent_at: Timestamp(row.get(0)?), client_network: row.get(1)? }),
    )
}
pub fn count_in(tx: &Read<'_>) -> Result<i64> {
    tx.one("select count(*) from codes", (), |row| row.get(0))
}

/// Deletes up to `limit` codes, live ones too. What was sent stays counted.
pub fn clear_in(tx: &Write<'_>, limit: u32) -> Result<usize> {
    tx.execute(
        "delete from codes where (address, purpose) in \
         (select address, purpose from codes order by expires_at limit ?1)",
        [limit],
    )
}
