//! Postings: each writes an entry and updates the balance. Those of a set are decided in memory, one after the other, and
//! then written together.

use std::collections::{BTreeMap, btree_map::Entry};

use super::{
    ACCOUNT, Asset, EntryKind, LedgerAccount, Posting, account_of, find_by_reference_in, missing_account_in,
    require_usable,
    seals::{self, EntryFields},
};
use crate::{
    error::{Code, Error, Result},
    store::{Read, Write},
    types::UserId,
};

/// The accounts of several users, and the entries to be written.
pub struct PostingSet {
    asset: Asset,
    accounts: BTreeMap<UserId, PostedAccount>,
    entries: Vec<NewEntry>,
}

struct PostedAccount {
    account: LedgerAccount,
    /// False for an account that is left after its user was deleted.
    has_user: bool,
    is_changed: bool,
}

struct NewEntry {
    user: UserId,
    sequence: i64,
    delta: i64,
    balance_after: i64,
    kind: EntryKind,
    reference: Option<String>,
    seal: Option<[u8; 16]>,
}

impl PostingSet {
    /// Reads the accounts of these users.
    ///
    /// # Errors
    /// Storage errors.
    pub fn load_in(tx: &Read<'_>, asset: Asset, users: impl Iterator<Item = UserId> + Clone) -> Result<Self> {
        let mut accounts = BTreeMap::new();
        tx.each_of(ACCOUNT, users.clone().map(|user| (user.0, asset.name())), |row| {
            let (user, has_user) = (UserId(row.get(14)?), row.get(15)?);
            accounts.insert(user, PostedAccount { account: account_of(tx, asset, row)?, has_user, is_changed: false });
            Ok(())
        })?;
        for user in users {
            if let Entry::Vacant(missing) = accounts.entry(user) {
                let (account, has_user) = missing_account_in(tx, user, asset)?;
                missing.insert(PostedAccount { account, has_user, is_changed: false });
            }
        }
        Ok(Self { asset, accounts, entries: Vec::new() })
    }

    /// Returns true if the user exists.
    pub fn has_user(&self, user: UserId) -> bool {
        self.accounts.get(&user).is_some_and(|posted| posted.has_user)
    }

    /// Decides a posting that counts each time, and returns the balance after it. [`Self::store_in`] writes it.
    ///
    /// # Errors
    /// As [`post_in`].
    pub fn post(&mut self, tx: &Write<'_>, posting: Posting) -> Result<i64> {
        let Posting { user, asset, delta, kind, reference } = posting;
        let posted = self.accounts.get_mut(&user).filter(|_| asset == self.asset && delta != 0);
        let posted = posted.ok_or_else(|| Error::internal("a posting that changes nothing, or of another set"))?;
        require_usable(tx, user, asset, posted.account)?;
        let balance_after = posted.account.after(asset, delta)?;
        let (sequence, created_at) = (posted.account.last_sequence + 1, tx.now);
        let fields = EntryFields {
            user,
            asset,
            sequence,
            delta,
            balance_after,
            kind,
            reference: reference.as_deref(),
            created_at,
        };
        let seal = tx.keys().map(|keys| seals::of_entry(keys, &fields));
        self.entries.push(NewEntry { user, sequence, delta, balance_after, kind, reference, seal });
        posted.account = LedgerAccount { balance: balance_after, last_sequence: sequence, ..posted.account };
        posted.is_changed = true;
        Ok(balance_after)
    }

    /// Writes the entries in the order of their postings, and the balances after them.
    ///
    /// # Errors
    /// Storage errors.
    pub fn store_in(self, tx: &Write<'_>) -> Result<()> {
        let asset = self.asset.name();
        let at = tx.now.0;
        let entries =
            self.entries.iter().map(|NewEntry { user, sequence, delta, balance_after, kind, reference, seal }| {
                (user.0, asset, *sequence, *delta, *balance_after, kind.name(), reference, at, seal)
            });
        tx.insert_all_later(
            "insert into ledger_entries (user_id, asset, sequence, delta, balance_after, kind, ref, created_at, seal) \
             values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
            entries,
        )?;
        let changed = self.accounts.iter().filter(|(_, posted)| posted.is_changed);
        let balances =
            changed.map(|(user, PostedAccount { account: LedgerAccount { balance, last_sequence, .. }, .. })| {
                let seal = tx.keys().map(|keys| seals::of_account(keys, *user, self.asset, *balance, *last_sequence));
                (user.0, asset, *balance, *last_sequence, seal)
            });
        tx.insert_all_later(
            "insert into balances (user_id, asset, balance, last_sequence, seal) values (?1, ?2, ?3, ?4, ?5) \
             on conflict (user_id, asset) do update set balance = excluded.balance, \
             last_sequence = excluded.last_sequence, seal = excluded.seal",
            balances,
        )
    }
}

/// Posts a change and returns the balance after it.
///
/// # Errors
/// `insufficient_coins` or `insufficient_points` if the balance would fall below zero; `already_posted` for a known
/// reference; `balance_too_large`; `account_inconsistent` as for [`usable_account_in`](super::usable_account_in). Nothing is
/// changed then.
pub fn post_in(tx: &Write<'_>, posting: Posting) -> Result<i64> {
    if let Some(reference) = &posting.reference
        && find_by_reference_in(tx, posting.asset, posting.kind, reference)?.is_some()
    {
        return Err(Code::AlreadyPosted.into());
    }
    post_new_in(tx, posting)
}

fn post_new_in(tx: &Write<'_>, posting: Posting) -> Result<i64> {
    let mut set = PostingSet::load_in(tx, posting.asset, std::iter::once(posting.user))?;
    let balance = set.post(tx, posting)?;
    set.store_in(tx).map(|()| balance)
}

/// Posts a change unless its reference was posted before. Returns true if it is new.
///
/// # Errors
/// Those of [`post_in`] except `already_posted`; `internal` for a posting without a reference.
pub fn post_once_in(tx: &Write<'_>, posting: Posting) -> Result<bool> {
    let Some(reference) = &posting.reference else {
        return Err(Error::internal("a posting that counts once needs a reference"));
    };
    match find_by_reference_in(tx, posting.asset, posting.kind, reference)? {
        Some(_) => Ok(false),
        None => post_new_in(tx, posting).map(|_| true),
    }
}
