//! The consistency check of one account.

use super::{
    Asset,
    verification::{self, Discrepancy},
};
use crate::{error::Result, store::Read, types::UserId};

/// The consistency of an account with its entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccountConsistency {
    Sound,
    /// It has no balance and no entries.
    Missing,
    /// The balance or the last sequence differs from the entries.
    Wrong {
        balance: i64,
        entries: i128,
    },
    /// It is consistent but suspended.
    Suspended,
    /// The entries contradict each other.
    Broken(Vec<Discrepancy>),
}

/// Checks the account. Reads all its entries.
pub fn consistency_in(tx: &Read<'_>, user: UserId, asset: Asset) -> Result<AccountConsistency> {
    let account = super::find_account_in(tx, user, asset)?;
    let (entries, discrepancies) = verification::read_account_in(tx, user, asset)?;
    Ok(match account {
        _ if !discrepancies.is_empty() => AccountConsistency::Broken(discrepancies),
        None if entries.sequence == 0 => AccountConsistency::Missing,
        None => AccountConsistency::Wrong { balance: 0, entries: entries.sum },
        Some(account) if !entries.agrees_with(&account) => {
            AccountConsistency::Wrong { balance: account.balance, entries: entries.sum }
        }
        Some(account) if account.suspended_at.is_some() => AccountConsistency::Suspended,
        Some(_) => AccountConsistency::Sound,
    })
}
