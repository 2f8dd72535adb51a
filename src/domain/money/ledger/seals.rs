//! Seals of ledger rows: HMACs under the server key, by which a verification finds rows that were changed in the file.

use std::ops::ControlFlow;

use super::{Asset, EntryKind, changes};
use crate::{
    core::Core,
    domain::operations::steps,
    error::Result,
    keys::ServerKey,
    store::{Read, Write},
    types::{Timestamp, UserId},
};

/// Rows sealed in one write.
const BATCH_SIZE: i64 = 1_000;

/// The fields of an entry that its seal covers. `seq` is not one of them: the number in the account is.
pub(super) struct EntryFields<'entry> {
    pub user: UserId,
    pub asset: Asset,
    pub sequence: i64,
    pub delta: i64,
    pub balance_after: i64,
    pub kind: EntryKind,
    pub reference: Option<&'entry str>,
    pub created_at: Timestamp,
}

/// Returns the seal of an entry.
pub(super) fn of_entry(keys: &ServerKey, entry: &EntryFields<'_>) -> [u8; 16] {
    let mut texts = [itoa::Buffer::new(); 5];
    let numbers = [entry.user.0, entry.sequence, entry.delta, entry.balance_after, entry.created_at.0];
    let [user, sequence, delta, after, at] = write_all(&mut texts, numbers);
    // A missing reference differs from an empty one.
    let reference = entry.reference.map_or_else(String::new, |reference| format!("={reference}"));
    let (asset, kind) = (entry.asset.name(), entry.kind.name());
    keys.seal_row(&["ledger_entries", user, asset, sequence, delta, after, kind, &reference, at])
}

/// Returns the seal of an account.
pub(super) fn of_account(keys: &ServerKey, user: UserId, asset: Asset, balance: i64, last_sequence: i64) -> [u8; 16] {
    let mut texts = [itoa::Buffer::new(); 3];
    let [user, balance, last] = write_all(&mut texts, [user.0, balance, last_sequence]);
    keys.seal_row(&["balances", user, asset.name(), balance, last])
}

fn write_all<const COUNT: usize>(texts: &mut [itoa::Buffer; COUNT], numbers: [i64; COUNT]) -> [&str; COUNT] {
    let mut numbers = numbers.into_iter();
    texts.each_mut().map(|text| text.format(numbers.next().unwrap_or_default()))
}

/// Returns true if a stored seal is right, or if no key is known.
pub(super) fn is_genuine(tx: &Read<'_>, stored: Option<&[u8]>, seal: impl FnOnce(&ServerKey) -> [u8; 16]) -> bool {
    tx.keys().is_none_or(|keys| stored == Some(&seal(keys)[..]))
}

/// Seals all rows of the ledger under the present server key, after an operator accepted it.
///
/// # Errors
/// Storage errors. Rows that were sealed meanwhile stay so; repeating it completes the rest.
pub fn seal_all(core: &Core) -> Result<()> {
    let mut next = ControlFlow::Continue(0);
    while let ControlFlow::Continue(after) = next {
        next = core.store.write(move |tx| seal_entries_in(tx, after)).wait()?;
    }
    let accounts = core.store.read(|tx| {
        tx.all("select user_id, asset from balances", (), |row| {
            Ok((UserId(row.get(0)?), row.get_parsed(1, Asset::from_name)?))
        })
    })?;
    steps::for_each(core, &|| true, accounts, |tx, (user, asset)| seal_account_in(tx, *user, *asset))?;
    core.store.write(changes::rechain_in).wait()
}

fn seal_entries_in(tx: &Write<'_>, after: i64) -> Result<ControlFlow<(), i64>> {
    let Some(keys) = tx.keys() else { return Ok(ControlFlow::Break(())) };
    let entries =
        tx.all(super::select_entries!("where seq > ?1 order by seq limit ?2"), (after, BATCH_SIZE), super::entry_of)?;
    for entry in &entries {
        let seal = of_entry(keys, &entry.sealed_fields());
        tx.execute("update ledger_entries set seal = ?2 where seq = ?1", (entry.seq, &seal[..]))?;
    }
    Ok(entries.last().map_or(ControlFlow::Break(()), |entry| ControlFlow::Continue(entry.seq)))
}

fn seal_account_in(tx: &Write<'_>, user: UserId, asset: Asset) -> Result<()> {
    let (Some(keys), Some(account)) = (tx.keys(), super::find_account_in(tx, user, asset)?) else { return Ok(()) };
    let seal = of_account(keys, user, asset, account.balance, account.last_sequence);
    let sql = "update balances set seal = ?3 where user_id = ?1 and asset = ?2";
    tx.execute(sql, (user.0, asset.name(), &seal[..])).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seal_covers_every_field() {
        let keys = ServerKey::from_bytes(&[1; 32]);
        let entry = || EntryFields {
            user: UserId(1),
            asset: Asset::Coin,
            sequence: 2,
            delta: -3,
            balance_after: 4,
            kind: EntryKind::Consume,
            reference: None,
            created_at: Timestamp(5),
        };
        let changed = [
            EntryFields { user: UserId(2), ..entry() },
            EntryFields { asset: Asset::Point, ..entry() },
            EntryFields { sequence: 3, ..entry() },
            EntryFields { delta: 3, ..entry() },
            EntryFields { balance_after: 5, ..entry() },
            EntryFields { kind: EntryKind::Cast, ..entry() },
            EntryFields { reference: Some(""), ..entry() },
            EntryFields { created_at: Timestamp(6), ..entry() },
        ];
        let seal = of_entry(&keys, &entry());
        assert_eq!(of_entry(&keys, &entry()), seal);
        assert!(changed.iter().all(|changed| of_entry(&keys, changed) != seal));
        assert_ne!(of_entry(&ServerKey::from_bytes(&[2; 32]), &entry()), seal);
    }
}
