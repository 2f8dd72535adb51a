//! The ledger: the balances of users and every entry behind them.
//!
//! Entries are never changed or deleted; a correction is another entry. The balance is a cache of the entries. Manual
//! changes are also recorded in a hash chain; see [`changes`].
//!
//! The surprise: an account that disagrees with its entries accepts no posting, not even a credit, because each posting
//! would destroy evidence. Each posting compares the account with its seal and its last entry; a verification compares it
//! with all entries.

pub mod changes;
pub mod consistency;
mod postings;
pub mod seals;
pub mod verification;

use std::ops::Range;

use serde_json::json;

use self::seals::EntryFields;
use crate::{
    core::Core,
    domain::{Each, identity::users::user_exists},
    error::{Code, Result},
    keys::ServerKey,
    store::{Read, Row, RowResult, Write},
    types::{CursorRange, CursorSlice, PageRequest, Paginated, Timestamp, UserId, named_enum},
};

pub use changes::{AccountChange, Authority, export_changes_in};
pub use postings::{PostingSet, post_in, post_once_in};
pub use verification::{
    AccountRepair, Discrepancy, Verification, VerificationProgress, VerificationReport, verify, verify_if_due,
};

/// Selects the columns that [`entry_of`] reads.
macro_rules! select_entries {
    ($rest:literal) => {
        concat!(
            "select seq, user_id, asset, sequence, delta, balance_after, kind, ref, created_at from ledger_entries ",
            $rest
        )
    };
}

use select_entries;

/// The largest adjustment by an operator, up or down.
pub const LARGEST_ADJUSTMENT: i64 = 1_000_000;

/// The largest balance. JavaScript numbers are exact up to here.
pub const LARGEST_BALANCE: i64 = (1 << 53) - 1;

named_enum! {
    /// A currency of the ledger.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum Asset {
        Coin = "coin",
        Point = "point",
    }
}

impl EntryKind {
    /// Returns true if an entry of this kind may have this sign.
    const fn admits(self, delta: i64) -> bool {
        match self {
            Self::Topup
            | Self::SignupBonus
            | Self::InviteBonus
            | Self::InviteeBonus
            | Self::Restored
            | Self::InterpretationRefund
            | Self::PurchaseBonus
            | Self::RefundReversal
            | Self::Import => delta > 0,
            Self::Consume
            | Self::Reset
            | Self::Cast
            | Self::Parked
            | Self::Refund
            | Self::Interpretation
            | Self::PurchaseBonusRefund => delta < 0,
            Self::Adjust | Self::Exchange | Self::TestPurchase => true,
        }
    }

    /// Returns true if each entry of this kind names its event.
    const fn needs_reference(self) -> bool {
        !matches!(self, Self::Topup | Self::Consume | Self::Reset | Self::Adjust)
    }
}

impl Asset {
    /// Returns the error code for a balance that is too small.
    const fn insufficient(self) -> Code {
        match self {
            Self::Coin => Code::InsufficientCoins,
            Self::Point => Code::InsufficientPoints,
        }
    }
}

named_enum! {
    /// The reason for an entry.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum EntryKind {
        Topup = "topup",
        Consume = "consume",
        Reset = "reset",
        Adjust = "adjust",
        SignupBonus = "signup_bonus",
        Cast = "cast",
        InviteBonus = "invite_bonus",
        InviteeBonus = "invitee_bonus",
        Parked = "parked",
        Restored = "restored",
        Refund = "refund",
        Interpretation = "interpretation",
        InterpretationRefund = "interpretation_refund",
        PurchaseBonus = "purchase_bonus",
        PurchaseBonusRefund = "purchase_bonus_refund",
        Exchange = "exchange",
        /// A store undid a refund.
        RefundReversal = "refund_reversal",
        /// A purchase in a store's sandbox, or its refund. It cost nothing.
        TestPurchase = "test_purchase",
        /// A balance of a former backend.
        Import = "import",
    }
}

/// The kinds of negative entries that are no use by the account's owner.
pub const NO_USES: [EntryKind; 4] =
    [EntryKind::Refund, EntryKind::PurchaseBonusRefund, EntryKind::Adjust, EntryKind::Reset];

/// A change of a balance to be posted.
#[derive(Clone, Debug)]
pub struct Posting {
    pub user: UserId,
    pub asset: Asset,
    /// The amount added, or taken if negative. Never zero.
    pub delta: i64,
    pub kind: EntryKind,
    /// The business event, such as `order:2026…`. Another posting of this kind and reference is rejected. Without a
    /// reference, every posting counts.
    pub reference: Option<String>,
}

/// A posted change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerEntry {
    /// The number among all entries, from 1 without gaps.
    pub seq: i64,
    pub user: UserId,
    pub asset: Asset,
    /// The number among the account's entries, from 1 without gaps.
    pub sequence: i64,
    pub delta: i64,
    pub balance_after: i64,
    pub kind: EntryKind,
    pub reference: Option<String>,
    pub created_at: Timestamp,
}

/// A user's account of one asset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LedgerAccount {
    pub balance: i64,
    /// The number of the account's last entry, or 0.
    pub last_sequence: i64,
    /// The time of the suspension, for an account that disagrees with its entries.
    pub suspended_at: Option<Timestamp>,
    /// The row was changed without the server key, or differs from the account's last entry.
    pub is_forged: bool,
}

impl LedgerAccount {
    const fn accepts_postings(&self) -> bool {
        self.suspended_at.is_none() && !self.is_forged
    }

    /// Returns the balance after a change.
    ///
    /// # Errors
    /// `account_inconsistent`; `insufficient_coins` or `insufficient_points`; `balance_too_large`.
    pub fn after(&self, asset: Asset, delta: i64) -> Result<i64> {
        if !self.accepts_postings() {
            return Err(Code::AccountInconsistent.into());
        }
        match self.balance.checked_add(delta) {
            Some(after) if (0..=LARGEST_BALANCE).contains(&after) => Ok(after),
            _ if delta < 0 => Err(asset.insufficient().into()),
            _ => Err(Code::BalanceTooLarge.into()),
        }
    }
}

/// Finds the entry with this kind and reference.
pub fn find_by_reference_in(
    tx: &Read<'_>,
    asset: Asset,
    kind: EntryKind,
    reference: &str,
) -> Result<Option<LedgerEntry>> {
    tx.first(
        select_entries!("where asset = ?1 and kind = ?2 and ref = ?3"),
        (asset.name(), kind.name(), reference),
        entry_of,
    )
}

/// Returns the account, with a zero balance if there is none.
pub fn account_in(tx: &Read<'_>, user: UserId, asset: Asset) -> Result<LedgerAccount> {
    Ok(find_account_in(tx, user, asset)?.unwrap_or_default())
}

/// Returns true for an account that takes entries and agrees with the newest one.
pub fn is_sound_at_first_sight_in(tx: &Read<'_>, user: UserId, asset: Asset) -> Result<bool> {
    Ok(find_account_in(tx, user, asset)?.is_some_and(|account| account.accepts_postings()))
}

/// Returns the account for a change of its balance, with a zero balance if there is none.
///
/// # Errors
/// `account_inconsistent` for a suspended account. One that is forged, or lost its row, is suspended now, whatever becomes
/// of the operation.
pub fn usable_account_in(tx: &Write<'_>, user: UserId, asset: Asset) -> Result<LedgerAccount> {
    let account = match find_account_in(tx, user, asset)? {
        Some(account) => account,
        None => missing_account_in(tx, user, asset)?.0,
    };
    require_usable(tx, user, asset, account).map(|()| account)
}

/// Returns the account of a user without a row, for which there must be no entries, and true if the user exists.
fn missing_account_in(tx: &Read<'_>, user: UserId, asset: Asset) -> Result<(LedgerAccount, bool)> {
    let sql =
        concat!("select exists (select 1 from ledger_entries where user_id = ?1 and asset = ?2), ", user_exists!("?1"));
    let (is_forged, has_user) = tx.one(sql, (user.0, asset.name()), |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok((LedgerAccount { is_forged, ..LedgerAccount::default() }, has_user))
}

fn require_usable(tx: &Write<'_>, user: UserId, asset: Asset, account: LedgerAccount) -> Result<()> {
    if account.accepts_postings() {
        return Ok(());
    }
    if account.suspended_at.is_none() {
        tx.follow_up(move |tx| {
            if verification::suspend_in(tx, user, asset)? {
                tracing::error!(user_id = %user, "an account was changed outside the service and is suspended");
            }
            Ok(())
        });
    }
    Err(Code::AccountInconsistent.into())
}

/// Returns the sum of the account's entries of a kind whose reference ends like this.
pub fn sum_in(tx: &Read<'_>, user: UserId, asset: Asset, kind: EntryKind, reference_end: &str) -> Result<i64> {
    tx.one(
        "select coalesce(sum(delta), 0) from ledger_entries where user_id = ?1 and asset = ?2 and kind = ?3 \
         and (?4 = '' or ref like '%' || ?4)",
        (user.0, asset.name(), kind.name(), reference_end),
        |row| row.get(0),
    )
}

/// Returns true if the user has bought coins or points before.
pub fn has_topup_in(tx: &Read<'_>, user: UserId) -> Result<bool> {
    let found =
        tx.first("select 1 from ledger_entries where user_id = ?1 and kind = 'topup' limit 1", [user.0], |row| {
            row.get::<i64>(0)
        })?;
    Ok(found.is_some())
}

/// Returns the sum that was added to the account after an entry.
pub fn added_after_in(tx: &Read<'_>, entry: &LedgerEntry) -> Result<i64> {
    tx.one(
        "select coalesce(sum(delta), 0) from ledger_entries where user_id = ?1 and asset = ?2 and sequence > ?3 and delta > 0",
        (entry.user.0, entry.asset.name(), entry.sequence),
        |row| row.get(0),
    )
}

/// Returns the sum of the account's entries of each kind after a sequence, with the time of the last one.
pub fn sums_after_in(
    tx: &Read<'_>,
    user: UserId,
    asset: Asset,
    sequence: i64,
) -> Result<Vec<(EntryKind, i64, Timestamp)>> {
    tx.all(
        "select kind, sum(delta), max(created_at) from ledger_entries where user_id = ?1 and asset = ?2 \
         and sequence > ?3 group by kind order by max(sequence)",
        (user.0, asset.name(), sequence),
        |row| Ok((row.get_parsed(0, EntryKind::from_name)?, row.get(1)?, Timestamp(row.get(2)?))),
    )
}

/// Returns the newest of the account's uses after a sequence: negative entries but those of [`NO_USES`].
pub fn uses_after_in(tx: &Read<'_>, user: UserId, asset: Asset, sequence: i64, limit: u32) -> Result<Vec<LedgerEntry>> {
    tx.all(
        select_entries!(
            "where user_id = ?1 and asset = ?2 and sequence > ?3 and delta < 0 \
             and kind not in ('refund', 'purchase_bonus_refund', 'adjust', 'reset') order by sequence desc limit ?4"
        ),
        (user.0, asset.name(), sequence, limit),
        entry_of,
    )
}

const BALANCE: &str = "select balance from balances where user_id = ?1 and asset = ?2";

/// Returns the balance.
pub fn balance(core: &Core, user: UserId, asset: Asset) -> Result<i64> {
    Ok(core.store.read_first(BALANCE, (user.0, asset.name()), |row| row.get(0))?.unwrap_or(0))
}

/// Returns the balance. Only changes check the account's seal.
pub fn balance_in(tx: &Read<'_>, user: UserId, asset: Asset) -> Result<i64> {
    Ok(tx.first(BALANCE, (user.0, asset.name()), |row| row.get(0))?.unwrap_or(0))
}

/// Lists the account's entries, newest first.
pub fn entries(core: &Core, user: UserId, asset: Asset, page: PageRequest) -> Result<Paginated<LedgerEntry>> {
    core.store.read(|tx| {
        let items = tx.all(
            select_entries!("where user_id = ?1 and asset = ?2 order by sequence desc limit ?3 offset ?4"),
            (user.0, asset.name(), page.size, page.offset()),
            entry_of,
        )?;
        // Sequences have no gaps, so the last one is the count.
        Ok(Paginated { items, total: account_in(tx, user, asset)?.last_sequence })
    })
}

/// Returns a page of the account's entries by cursor, newest first.
pub fn entries_in_span(core: &Core, user: UserId, asset: Asset, span: CursorRange) -> Result<CursorSlice<LedgerEntry>> {
    let rows = core.store.read(|tx| {
        tx.all(
            select_entries!("where user_id = ?1 and asset = ?2 and sequence < ?3 order by sequence desc limit ?4"),
            (user.0, asset.name(), span.upper_bound(), span.rows_to_read()),
            entry_of,
        )
    })?;
    Ok(span.slice(rows, |entry| entry.sequence))
}

/// Returns the entries of these kinds, time range and numbers, in order.
pub fn entries_between_in(
    tx: &Read<'_>,
    kinds: [EntryKind; 5],
    (from, to): (Timestamp, Timestamp),
    numbers: Range<i64>,
) -> Result<Vec<LedgerEntry>> {
    tx.all(
        select_entries!(
            "where seq >= ?1 and seq < ?2 and kind in (?3, ?4, ?5, ?6, ?7) \
             and created_at >= ?8 and created_at < ?9 order by seq"
        ),
        (
            numbers.start,
            numbers.end,
            kinds[0].name(),
            kinds[1].name(),
            kinds[2].name(),
            kinds[3].name(),
            kinds[4].name(),
            from.0,
            to.0,
        ),
        entry_of,
    )
}

/// Returns the entries after a number, in order.
pub fn entries_after_in(tx: &Read<'_>, after: i64, limit: u32) -> Result<Vec<LedgerEntry>> {
    tx.all(select_entries!("where seq > ?1 order by seq limit ?2"), (after, limit), entry_of)
}

/// Returns the number of the last entry, or 0.
pub fn last_number_in(tx: &Read<'_>) -> Result<i64> {
    tx.one("select coalesce(max(seq), 0) from ledger_entries", (), |row| row.get(0))
}

/// Exports the account's entries, oldest first. Omits references that are keyed hashes.
pub fn export_in(tx: &Read<'_>, user: UserId, asset: Asset, each: Each<'_>) -> Result<()> {
    let sql = select_entries!("where user_id = ?1 and asset = ?2 order by sequence");
    tx.each(sql, (user.0, asset.name()), |row| {
        let entry = entry_of(row)?;
        let is_telling = |reference: &String| {
            ["session:", "order:", "interpretation:", "apple:", "google:"]
                .iter()
                .any(|prefix| reference.starts_with(prefix))
        };
        each(json!({
            "sequence": entry.sequence,
            "delta": entry.delta,
            "balanceAfter": entry.balance_after,
            "kind": entry.kind.name(),
            "ref": entry.reference.filter(is_telling),
            "createdAt": entry.created_at,
        }))
    })
}

/// Creates the account if there is none. Returns true if it is new.
pub fn open_account_in(tx: &Write<'_>, user: UserId, asset: Asset) -> Result<bool> {
    let seal = tx.keys().map(|keys| seals::of_account(keys, user, asset, 0, 0));
    let made = tx.execute(
        "insert into balances (user_id, asset, balance, last_sequence, seal) values (?1, ?2, 0, 0, ?3) \
         on conflict (user_id, asset) do nothing",
        (user.0, asset.name(), seal),
    )?;
    Ok(made == 1)
}

/// Selects an account with its last entry, and whether its user exists.
const ACCOUNT: &str = concat!(
    "select last.seq, last.user_id, last.asset, last.sequence, last.delta, last.balance_after, last.kind, last.ref, \
     last.created_at, last.seal, account.balance, account.last_sequence, account.suspended_at, account.seal, \
     account.user_id, ",
    user_exists!("account.user_id"),
    " from balances as account left join ledger_entries as last on last.user_id = account.user_id \
     and last.asset = account.asset and last.sequence = (select max(sequence) from ledger_entries \
     where user_id = account.user_id and asset = account.asset) where account.user_id = ?1 and account.asset = ?2"
);

fn find_account_in(tx: &Read<'_>, user: UserId, asset: Asset) -> Result<Option<LedgerAccount>> {
    tx.first(ACCOUNT, (user.0, asset.name()), |row| account_of(tx, asset, row))
}

fn account_of(tx: &Read<'_>, asset: Asset, row: &Row<'_>) -> RowResult<LedgerAccount> {
    let (balance, last_sequence, suspended_at): (i64, i64, Option<i64>) = (row.get(10)?, row.get(11)?, row.get(12)?);
    let seal: Option<Vec<u8>> = row.get(13)?;
    let user = UserId(row.get(14)?);
    let is_like_last = match row.get::<Option<i64>>(0)? {
        Some(_) => verification::line_of(tx, row)?.leads_to(balance, last_sequence),
        None => (balance, last_sequence) == (0, 0),
    };
    let expected = |keys: &ServerKey| seals::of_account(keys, user, asset, balance, last_sequence);
    let is_forged = !is_like_last || !seals::is_genuine(tx, seal.as_deref(), expected);
    Ok(LedgerAccount { balance, last_sequence, suspended_at: suspended_at.map(Timestamp), is_forged })
}

impl LedgerEntry {
    fn sealed_fields(&self) -> EntryFields<'_> {
        EntryFields {
            user: self.user,
            asset: self.asset,
            sequence: self.sequence,
            delta: self.delta,
            balance_after: self.balance_after,
            kind: self.kind,
            reference: self.reference.as_deref(),
            created_at: self.created_at,
        }
    }
}

fn entry_of(row: &Row<'_>) -> RowResult<LedgerEntry> {
    Ok(LedgerEntry {
        seq: row.get(0)?,
        user: UserId(row.get(1)?),
        asset: row.get_parsed(2, Asset::from_name)?,
        sequence: row.get(3)?,
        delta: row.get(4)?,
        balance_after: row.get(5)?,
        kind: row.get_parsed(6, EntryKind::from_name)?,
        reference: row.get(7)?,
        created_at: Timestamp(row.get(8)?),
    })
}
