//! Whether one account agrees with its entries, without changing anything.

use super::{
    Asset,
    verification::{self, Discrepancy},
};
use crate::{error::Result, store::Read, types::UserId};

/// What an account is worth.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Soundness {
    Sound,
    /// There is no account and no entry.
    Missing,
    /// The cached balance, or the number of entries in it, is not what the entries say.
    Wrong {
        balance: i64,
        entries: i128,
    },
    /// It is right and closed.
    Suspended,
    /// The entries contradict each other.
    Broken(Vec<Discrepancy>),
}

/// Reads all entries of the account.
pub fn soundness_in(tx: &Read<'_>, user: UserId, asset: Asset) -> Result<Soundness> {
    let account = super::find_account_in(tx, user, asset)?;
    let (entries, discrepancies) = verification::read_account_in(tx, user, asset)?;
    Ok(match account {
        _ if !discrepancies.is_empty() => Soundness::Broken(discrepancies),
        None if entries.sequence == 0 => Soundness::Missing,
        None => Soundness::Wrong { balance: 0, entries: entries.sum },
        Some(account) if !entries.agrees_with(&account) => {
            Soundness::Wrong { balance: account.balance, entries: entries.sum }
        }
        Some(account) if account.suspended_at.is_some() => Soundness::Suspended,
        Some(_) => Soundness::Sound,
    })
}
