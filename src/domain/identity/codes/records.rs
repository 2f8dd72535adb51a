//! Stored codes and sends, for support, purge and retention. Never reveals a code.

use super::{AddressHmac, DAY};
use crate::{
    error::Result,
    store::{Read, Write},
    types::Timestamp,
};

/// A code that can still be verified.
#[derive(Clone, Debug)]
pub struct LiveCode {
    pub purpose: String,
    pub tries_left: u32,
    pub expires_at: Timestamp,
}

/// A message that was sent or may have been sent.
#[derive(Clone, Debug)]
pub struct CodeSend {
    pub sent_at: Timestamp,
    /// The network that requested it.
    pub client_network: String,
}

pub fn list_live_in(tx: &Read<'_>, recipient: &AddressHmac) -> Result<Vec<LiveCode>> {
    tx.all(
        "select purpose, tries_left, expires_at from codes where address = ?1 and expires_at > ?2 order by purpose",
        (&recipient.0, tx.now.0),
        |row| Ok(LiveCode { purpose: row.get(0)?, tries_left: row.get(1)?, expires_at: Timestamp(row.get(2)?) }),
    )
}

/// Returns the last messages to an address, newest first.
pub fn list_sends_in(tx: &Read<'_>, recipient: &AddressHmac, limit: u32) -> Result<Vec<CodeSend>> {
    tx.all(
        "select sent_at, client_network from code_sends where address = ?1 order by sent_at desc limit ?2",
        (&recipient.0, limit),
        |row| Ok(CodeSend { sent_at: Timestamp(row.get(0)?), client_network: row.get(1)? }),
    )
}

pub fn count_in(tx: &Read<'_>) -> Result<i64> {
    tx.one("select count(*) from codes", (), |row| row.get(0))
}

/// A stored code, distinguishable from a later code for the same address.
#[derive(Clone, Debug)]
pub struct StoredCode {
    address: String,
    purpose: String,
    code_hmac: Vec<u8>,
    expires_at: i64,
}

/// Returns up to `limit` codes after the given one, in a stable order.
pub fn list_after_in(tx: &Read<'_>, after: Option<&StoredCode>, limit: u32) -> Result<Vec<StoredCode>> {
    list_expired_by_in(tx, i64::MAX, after, limit)
}

/// Returns codes that expired more than a day ago, after the given one. Scans all codes, because an index by expiry
/// would cost every sign-in a page write.
pub fn list_expired_after_in(tx: &Read<'_>, after: Option<&StoredCode>, limit: u32) -> Result<Vec<StoredCode>> {
    list_expired_by_in(tx, tx.now.minus(DAY).0, after, limit)
}

fn list_expired_by_in(tx: &Read<'_>, time: i64, after: Option<&StoredCode>, limit: u32) -> Result<Vec<StoredCode>> {
    let (address, purpose) = after.map_or(("", ""), |code| (&code.address, &code.purpose));
    tx.all(
        "select address, purpose, code_hmac, expires_at from codes \
         where (address, purpose) > (?1, ?2) and expires_at <= ?3 order by address, purpose limit ?4",
        (address, purpose, time, limit),
        |row| {
            Ok(StoredCode {
                address: row.get(0)?,
                purpose: row.get(1)?,
                code_hmac: row.get(2)?,
                expires_at: row.get(3)?,
            })
        },
    )
}

/// Deletes these codes, valid ones included. Returns the number that still existed. Sends stay counted.
pub fn delete_in(tx: &Write<'_>, codes: &[StoredCode]) -> Result<usize> {
    tx.execute_each(
        "delete from codes where address = ?1 and purpose = ?2 and code_hmac = ?3 and expires_at = ?4",
        codes.iter().map(|code| (&code.address, &code.purpose, &code.code_hmac, code.expires_at)),
    )
}
