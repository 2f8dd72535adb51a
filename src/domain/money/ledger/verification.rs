//! Verifies that entries, balances and the audit chain agree.
//!
//! Each manual entry must have a row in the audit chain. The verification reads the ledger in batches, so that no
//! snapshot blocks checkpoints for long. That is consistent because entries are only appended, and because one snapshot
//! covers the last batch, the balances and the audit chain. Only a purge removes entries; a running verification then
//! starts again.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    mem,
    time::Duration,
};

use serde::{Deserialize, Serialize};

use super::{
    Asset, Authority, EntryKind, LedgerAccount, changes,
    changes::NewAccountChange,
    last_number_in,
    seals::{self, EntryFields},
};
use crate::{
    core::Core,
    domain::operations::{audit, settings},
    error::{Error, Result},
    keys::ServerKey,
    store::{Read, Row, RowResult, Store, Write, backup::DatabaseCopy},
    types::{Timestamp, UserId, pluralize},
};

/// Entries in one batch.
const BATCH_SIZE: u32 = 50_000;
/// Discrepancies listed in a report. Further ones are only counted.
const LISTED: usize = 1_000;
const DAY: Duration = Duration::from_hours(24);
/// The actor of repairs by the daily verification.
const DAILY_REPAIR: &str = "ledger_verification";
const LAST_VERIFICATION: &str = "ledger.verification";
/// The number of purges of the ledger.
const EMPTIED: &str = "ledger.emptied";

/// A fault in the ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Discrepancy {
    pub code: &'static str,
    /// The account, if the fault is in one.
    pub account: Option<(UserId, Asset)>,
    pub detail: String,
}

/// The result of a verification.
#[derive(Clone, Debug, Default)]
pub struct VerificationReport {
    pub entries: i64,
    pub accounts: i64,
    /// Rows of the audit ledger.
    pub changes: i64,
    /// The first thousand discrepancies.
    pub discrepancies: Vec<Discrepancy>,
    pub discrepancies_found: u64,
    /// Accounts suspended by this verification.
    pub suspended: u64,
    /// Accounts with a discrepancy.
    pub suspects: BTreeSet<(UserId, Asset)>,
    /// The number of purges before the verification.
    emptied: i64,
}

impl VerificationReport {
    pub fn is_consistent(&self) -> bool {
        self.discrepancies_found == 0
    }

    /// Splits off the discrepancies of accounts that were repaired since. Returns the others, and their number with those
    /// that are not listed.
    pub fn without(&self, repaired: &BTreeSet<(UserId, Asset)>) -> (Vec<Discrepancy>, u64) {
        let unlisted = self.discrepancies_found - self.discrepancies.len() as u64;
        let is_repaired = |found: &&Discrepancy| found.account.is_some_and(|account| repaired.contains(&account));
        let others: Vec<_> = self.discrepancies.iter().filter(|found| !is_repaired(found)).cloned().collect();
        let count = unlisted + others.len() as u64;
        (others, count)
    }

    fn note(&mut self, discrepancy: Discrepancy) {
        self.discrepancies_found += 1;
        self.suspects.extend(discrepancy.account);
        if self.discrepancies.len() < LISTED {
            self.discrepancies.push(discrepancy);
        }
    }
}

/// The stored summary of the last verification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verification {
    /// Milliseconds since 1970.
    at: i64,
    pub discrepancies: u64,
    /// Accounts verified.
    #[serde(default)]
    pub accounts: u64,
    /// Accounts that the daily verification repaired.
    #[serde(default)]
    pub repaired: u64,
}

impl Verification {
    pub fn at(self) -> Timestamp {
        Timestamp(self.at)
    }

    /// Returns the time from which the next verification is due.
    pub fn next_due(self) -> Timestamp {
        self.at().plus(DAY)
    }
}

/// The result of repairing an account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccountRepair {
    /// There was nothing to repair.
    Sound,
    /// The balance was recomputed from the entries, and the account is active again.
    Repaired { before: i64, after: i64 },
    /// The entries contradict each other, so only a backup can help. The account is suspended.
    Broken(Vec<Discrepancy>),
}

/// A callback that receives the number of entries read and the total.
pub type VerificationProgress<'watcher> = &'watcher mut dyn FnMut(i64, i64);

/// Verifies the whole ledger, suspends inconsistent accounts, and stores the summary.
///
/// # Errors
/// Storage errors. Discrepancies are part of the report.
pub fn verify(core: &Core, progress: VerificationProgress<'_>) -> Result<VerificationReport> {
    let mut report = inspect(&core.store, progress)?;
    if core.store.read(|tx| Ok(tx.keys().is_none()))? {
        let detail = "the server key does not belong to this database, so changed rows cannot be detected".to_owned();
        report.note(Discrepancy { code: "key_unknown", account: None, detail });
    }
    for &(user, asset) in &report.suspects {
        report.suspended += u64::from(core.store.write(move |tx| suspend_if_wrong_in(tx, user, asset)).wait()?);
    }
    remember(core, &report, report.discrepancies_found, 0)?;
    if !report.is_consistent() {
        tracing::error!(discrepancies = report.discrepancies_found, "the ledger is not consistent");
    }
    Ok(report)
}

/// Verifies the whole ledger without changing anything.
///
/// # Errors
/// Storage errors.
pub fn inspect(store: &Store, progress: VerificationProgress<'_>) -> Result<VerificationReport> {
    walk(|walk| store.read(|tx| walk.read_batch_in(tx)), store.read(last_number_in)?, progress)
}

/// Verifies the ledger of a copy of the database.
///
/// # Errors
/// Storage errors.
pub fn inspect_copy(copy: &DatabaseCopy, progress: VerificationProgress<'_>) -> Result<VerificationReport> {
    walk(|walk| copy.read(|tx| walk.read_batch_in(tx)), copy.read(last_number_in)?, progress)
}

/// Verifies the ledger in a transaction.
///
/// # Errors
/// Storage errors.
pub fn inspect_in(tx: &Read<'_>, progress: VerificationProgress<'_>) -> Result<VerificationReport> {
    walk(|walk| walk.read_batch_in(tx), last_number_in(tx)?, progress)
}

/// Verifies the ledger if the last verification is older than a day, and repairs accounts if that is configured. Returns
/// true if it did.
///
/// # Errors
/// As [`verify`].
pub fn verify_if_due(core: &Core, progress: VerificationProgress<'_>) -> Result<bool> {
    let last = core.store.read(last_in)?;
    if last.is_some_and(|last| last.at().is_within(DAY, core.clock.now())) {
        return Ok(false);
    }
    let report = verify(core, progress)?;
    if core.config.ledger.daily_repair {
        let reason = "the daily verification repairs balances".to_owned();
        let by = Authority { actor: DAILY_REPAIR.to_owned(), reason, request_id: String::new() };
        let repaired = repair_suspended(core, &by, &Asset::ALL, |_| Ok(()))?;
        if !repaired.is_empty() {
            tracing::warn!(accounts = repaired.len(), "the daily verification repaired balances");
            remember(core, &report, report.without(&repaired).1, repaired.len() as u64)?;
        }
    }
    Ok(true)
}

/// Stores the summary of a verification with the numbers of remaining discrepancies and of repaired accounts.
///
/// # Errors
/// Storage errors.
pub fn remember(core: &Core, report: &VerificationReport, discrepancies: u64, repaired: u64) -> Result<()> {
    let (emptied, accounts) = (report.emptied, u64::try_from(report.accounts).unwrap_or(0));
    let put = move |tx: &Write<'_>| {
        // A report on a purged ledger is obsolete.
        let is_of_this = emptied_in(tx)? == emptied;
        if is_of_this { put_in(tx, Verification { at: tx.now.0, discrepancies, accounts, repaired }) } else { Ok(()) }
    };
    core.store.write(put).wait()
}

fn put_in(tx: &Write<'_>, verification: Verification) -> Result<()> {
    settings::put_json_in(tx, LAST_VERIFICATION, &verification)
}

/// Returns the summary of the last verification.
pub fn last_in(tx: &Read<'_>) -> Result<Option<Verification>> {
    settings::find_json_in(tx, LAST_VERIFICATION)
}

/// Resets the summary after a purge, and makes running verifications start again.
pub fn begin_anew_in(tx: &Write<'_>) -> Result<()> {
    settings::increase_in(tx, EMPTIED)?;
    put_in(tx, Verification { at: tx.now.0, discrepancies: 0, accounts: 0, repaired: 0 })
}

fn emptied_in(tx: &Read<'_>) -> Result<i64> {
    settings::number_in(tx, EMPTIED)
}

/// Counts the suspended accounts.
pub fn suspended_in(tx: &Read<'_>) -> Result<i64> {
    tx.one("select count(*) from balances where suspended_at is not null", (), |row| row.get(0))
}

/// Repairs the suspended accounts of these assets whose entries are consistent, and returns them. Calls `renew` in each
/// repair.
///
/// # Errors
/// Storage errors, and those of `renew`.
pub fn repair_suspended(
    core: &Core,
    by: &Authority,
    assets: &[Asset],
    renew: impl Fn(&Write<'_>) -> Result<()> + Clone + Send + 'static,
) -> Result<BTreeSet<(UserId, Asset)>> {
    let mut repaired = BTreeSet::new();
    for &asset in assets {
        for user in core.store.read(|tx| suspended_accounts_in(tx, asset))? {
            let (by, renew) = (by.clone(), renew.clone());
            let repair = move |tx: &Write<'_>| {
                renew(tx)?;
                repair_in(tx, &by, user, asset)
            };
            if matches!(core.store.write(repair).wait()?, AccountRepair::Repaired { .. }) {
                repaired.insert((user, asset));
            }
        }
    }
    Ok(repaired)
}

/// Returns the users whose account of this asset is suspended.
fn suspended_accounts_in(tx: &Read<'_>, asset: Asset) -> Result<Vec<UserId>> {
    tx.all("select user_id from balances where suspended_at is not null and asset = ?1", [asset.name()], |row| {
        row.get(0).map(UserId)
    })
}

/// Recomputes the balance from the entries if they are consistent, and reactivates the account.
pub fn repair_in(tx: &Write<'_>, authority: &Authority, user: UserId, asset: Asset) -> Result<AccountRepair> {
    let account = super::find_account_in(tx, user, asset)?;
    let (entries, discrepancies) = read_account_in(tx, user, asset)?;
    if !discrepancies.is_empty() {
        suspend_in(tx, user, asset)?;
        return Ok(AccountRepair::Broken(discrepancies));
    }
    let before = account.unwrap_or_default();
    let is_sound = before.suspended_at.is_none() && entries.agrees_with(&before);
    if is_sound && (account.is_some() || entries.sequence == 0) {
        return Ok(AccountRepair::Sound);
    }
    let after = i64::try_from(entries.sum).map_err(Error::internal)?;
    let seal = tx.keys().map(|keys| seals::of_account(keys, user, asset, after, entries.sequence));
    tx.execute(
        "insert into balances (user_id, asset, balance, last_sequence, seal) values (?1, ?2, ?3, ?4, ?5) \
         on conflict (user_id, asset) do update set balance = excluded.balance, \
         last_sequence = excluded.last_sequence, seal = excluded.seal, suspended_at = null",
        (user.0, asset.name(), after, entries.sequence, seal),
    )?;
    let changed =
        NewAccountChange { action: "repair", user, asset, balance_before: before.balance, balance_after: after };
    changes::record_in(tx, authority, changed)?;
    Ok(AccountRepair::Repaired { before: before.balance, after })
}

fn walk(
    mut batch: impl FnMut(&mut Walk) -> Result<bool>,
    total: i64,
    progress: VerificationProgress<'_>,
) -> Result<VerificationReport> {
    let mut walk = Walk::default();
    while !batch(&mut walk)? {
        progress(walk.report.entries, total.max(walk.report.entries));
    }
    Ok(walk.report)
}

/// Suspends the account if it still disagrees with its entries. Returns true if it was active.
fn suspend_if_wrong_in(tx: &Write<'_>, user: UserId, asset: Asset) -> Result<bool> {
    let account = super::account_in(tx, user, asset)?;
    let (entries, discrepancies) = read_account_in(tx, user, asset)?;
    if discrepancies.is_empty() && entries.agrees_with(&account) {
        return Ok(false);
    }
    suspend_in(tx, user, asset)
}

pub(super) fn suspend_in(tx: &Write<'_>, user: UserId, asset: Asset) -> Result<bool> {
    super::open_account_in(tx, user, asset)?;
    let suspended = tx.execute(
        "update balances set suspended_at = ?3 where user_id = ?1 and asset = ?2 and suspended_at is null",
        (user.0, asset.name(), tx.now.0),
    )?;
    Ok(suspended == 1)
}

pub(super) fn read_account_in(tx: &Read<'_>, user: UserId, asset: Asset) -> Result<(Entries, Vec<Discrepancy>)> {
    let lines = tx.all(
        "select seq, user_id, asset, sequence, delta, balance_after, kind, ref, created_at, seal from ledger_entries \
         where user_id = ?1 and asset = ?2 order by sequence",
        (user.0, asset.name()),
        |row| line_of(tx, row),
    )?;
    let (mut entries, mut discrepancies) = (Entries::default(), Vec::new());
    for line in &lines {
        entries.take(line, |discrepancy| discrepancies.push(discrepancy));
    }
    Ok((entries, discrepancies))
}

/// The fields of an entry that a verification needs.
pub(super) struct Line {
    seq: i64,
    user: UserId,
    asset: Asset,
    sequence: i64,
    delta: i64,
    balance_after: i64,
    kind: EntryKind,
    has_reference: bool,
    /// False if the entry was changed without the server key.
    is_genuine: bool,
    /// The audit row that a manual entry must have.
    audited_as: Option<Audited>,
}

impl Line {
    /// Returns true if the entry is genuine and an account whose last entry it is has this balance and sequence.
    pub fn leads_to(&self, balance: i64, last_sequence: i64) -> bool {
        self.is_genuine && (self.balance_after, self.sequence) == (balance, last_sequence)
    }
}

/// The fields that an entry shares with its audit row: user, asset, balance before and after, and time.
type Audited = (UserId, Asset, i64, i64, Timestamp);

/// The running totals of an account's entries.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Entries {
    pub sequence: i64,
    balance_after: i64,
    /// Wider than a balance, so that a forged delta cannot overflow it.
    pub sum: i128,
}

impl Entries {
    fn take(&mut self, line: &Line, note: impl FnMut(Discrepancy)) {
        let account = Some((line.user, line.asset));
        let mut found = Vec::new();
        if line.sequence != self.sequence + 1 {
            let detail = format!("entry {} has sequence {} after {}", line.seq, line.sequence, self.sequence);
            found.push(Discrepancy { code: "sequence_gap", account, detail });
        }
        if self.balance_after.checked_add(line.delta) != Some(line.balance_after) {
            let (before, delta, after) = (self.balance_after, line.delta, line.balance_after);
            let detail = format!("entry {}: {before} and {delta} do not make {after}", line.seq);
            found.push(Discrepancy { code: "balance_after_wrong", account, detail });
        }
        if !line.kind.admits(line.delta) {
            let detail = format!("entry {} of kind {} adds {}", line.seq, line.kind.name(), line.delta);
            found.push(Discrepancy { code: "sign_wrong", account, detail });
        }
        if line.kind.needs_reference() && !line.has_reference {
            let detail = format!("entry {} of kind {} names no event", line.seq, line.kind.name());
            found.push(Discrepancy { code: "reference_missing", account, detail });
        }
        // Other faults say more.
        if found.is_empty() && !line.is_genuine {
            let detail = format!("entry {} was not written by this server, or was changed", line.seq);
            found.push(Discrepancy { code: "entry_not_genuine", account, detail });
        }
        found.into_iter().for_each(note);
        self.sequence = line.sequence;
        self.balance_after = line.balance_after;
        self.sum += i128::from(line.delta);
    }

    pub fn agrees_with(&self, account: &LedgerAccount) -> bool {
        i128::from(account.balance) == self.sum && account.last_sequence == self.sequence && !account.is_forged
    }
}

/// The state of a running verification.
#[derive(Default)]
struct Walk {
    last_seq: i64,
    /// Accounts whose balance has not been compared yet.
    accounts: HashMap<(UserId, Asset), Entries>,
    /// Manual entries whose audit row has not been found yet, with their number.
    unaudited: BTreeMap<Audited, i64>,
    report: VerificationReport,
}

impl Walk {
    /// Reads the next batch. After the last one, compares balances and the audit chain in the same snapshot and returns
    /// true.
    fn read_batch_in(&mut self, tx: &Read<'_>) -> Result<bool> {
        let emptied = emptied_in(tx)?;
        if self.report.emptied != emptied {
            *self = Self { report: VerificationReport { emptied, ..VerificationReport::default() }, ..Self::default() };
        }
        let mut read = 0;
        tx.each(
            "select seq, user_id, asset, sequence, delta, balance_after, kind, ref, created_at, seal from ledger_entries \
             where seq > ?1 order by seq limit ?2",
            (self.last_seq, BATCH_SIZE),
            |row| {
                read += 1;
                self.take(&line_of(tx, row)?);
                Ok(())
            },
        )?;
        if read == BATCH_SIZE {
            return Ok(false);
        }
        self.compare_balances_in(tx)?;
        self.follow_chain_in(tx)?;
        Ok(true)
    }

    fn take(&mut self, line: &Line) {
        // A gap at the start of the ledger shows in the accounts.
        if self.last_seq != 0 && line.seq != self.last_seq + 1 {
            let detail = format!("entry {} comes after entry {}", line.seq, self.last_seq);
            self.report.note(Discrepancy { code: "entries_missing", account: None, detail });
        }
        self.last_seq = line.seq;
        self.report.entries += 1;
        self.unaudited.extend(line.audited_as.map(|audited| (audited, line.seq)));
        let entries = self.accounts.entry((line.user, line.asset)).or_default();
        entries.take(line, |discrepancy| self.report.note(discrepancy));
    }

    fn compare_balances_in(&mut self, tx: &Read<'_>) -> Result<()> {
        let mut last = (0, "");
        loop {
            let accounts = tx.all(
                "select user_id, asset, balance, last_sequence, seal from balances where (user_id, asset) > (?1, ?2) \
                 order by user_id, asset limit ?3",
                (last.0, last.1, BATCH_SIZE),
                |row| {
                    let (user, asset) = (UserId(row.get(0)?), row.get_parsed(1, Asset::from_name)?);
                    let (balance, last_sequence, seal) = (row.get(2)?, row.get(3)?, row.get::<Option<Vec<u8>>>(4)?);
                    let expected = |keys: &ServerKey| seals::of_account(keys, user, asset, balance, last_sequence);
                    let is_forged = !seals::is_genuine(tx, seal.as_deref(), expected);
                    Ok((user, asset, LedgerAccount { balance, last_sequence, suspended_at: None, is_forged }))
                },
            )?;
            for (user, asset, account) in &accounts {
                self.compare_balance(*user, *asset, account);
            }
            match accounts.last() {
                Some((user, asset, _)) => last = (user.0, asset.name()),
                None => break,
            }
        }
        for (account, entries) in mem::take(&mut self.accounts) {
            let listed = pluralize(entries.sequence, "entry has", "entries have");
            let detail = format!("{listed} no account and a sum of {}", entries.sum);
            self.report.note(Discrepancy { code: "account_missing", account: Some(account), detail });
        }
        Ok(())
    }

    fn compare_balance(&mut self, user: UserId, asset: Asset, account: &LedgerAccount) {
        self.report.accounts += 1;
        let entries = self.accounts.remove(&(user, asset)).unwrap_or_default();
        if i128::from(account.balance) != entries.sum {
            let detail = format!("the balance is {}; the entries sum to {}", account.balance, entries.sum);
            self.report.note(Discrepancy { code: "balance_wrong", account: Some((user, asset)), detail });
        }
        if account.last_sequence != entries.sequence {
            let (cached, last) = (account.last_sequence, entries.sequence);
            let cached = pluralize(cached, "entry", "entries");
            let detail = format!("the account counts {cached}; the last one is number {last}");
            self.report.note(Discrepancy { code: "last_sequence_wrong", account: Some((user, asset)), detail });
        }
        // Other faults say more.
        if account.is_forged && !self.report.suspects.contains(&(user, asset)) {
            let detail = "the balance was not written by this server, or was changed".to_owned();
            self.report.note(Discrepancy { code: "account_not_genuine", account: Some((user, asset)), detail });
        }
    }

    fn follow_chain_in(&mut self, tx: &Read<'_>) -> Result<()> {
        let (mut last, mut hash) = (0, changes::first_link());
        loop {
            let links = changes::after_in(tx, last, BATCH_SIZE)?;
            if links.is_empty() {
                break;
            }
            for link in links {
                self.report.changes += 1;
                let is_whole = link.hash_of_contents(tx.keys())?.is_none_or(|hash| hash == link.hash);
                if link.id != last + 1 || link.previous_hash != hash || !is_whole {
                    let detail = format!("row {} of the audit ledger does not follow from row {last}", link.id);
                    self.report.note(Discrepancy { code: "audit_chain_broken", account: None, detail });
                }
                let audited = (link.user, link.asset, link.balance_before, link.balance_after, link.created_at);
                self.unaudited.remove(&audited);
                (last, hash) = (link.id, link.hash);
            }
        }
        if let Some(fault) = changes::head_fault_in(tx, last)? {
            let detail = format!("the audit ledger {fault}");
            self.report.note(Discrepancy { code: "audit_chain_broken", account: None, detail });
        }
        audit::faults_in(tx, &mut |detail| {
            self.report.note(Discrepancy { code: "audit_not_genuine", account: None, detail });
        })?;
        for ((user, asset, ..), seq) in mem::take(&mut self.unaudited) {
            let detail = format!("manual entry {seq} has no row in the audit chain");
            self.report.note(Discrepancy { code: "entry_not_audited", account: Some((user, asset)), detail });
        }
        Ok(())
    }
}

pub(super) fn line_of(tx: &Read<'_>, row: &Row<'_>) -> RowResult<Line> {
    let (user, asset) = (UserId(row.get(1)?), row.get_parsed(2, Asset::from_name)?);
    let (sequence, delta, balance_after) = (row.get(3)?, row.get(4)?, row.get::<i64>(5)?);
    let (kind, created_at) = (row.get_parsed(6, EntryKind::from_name)?, Timestamp(row.get(8)?));
    let (reference, seal): (Option<String>, Option<Vec<u8>>) = (row.get(7)?, row.get(9)?);
    let reference = reference.as_deref();
    let fields = EntryFields { user, asset, sequence, delta, balance_after, kind, reference, created_at };
    let is_genuine = seals::is_genuine(tx, seal.as_deref(), |keys| seals::of_entry(keys, &fields));
    let is_by_hand = kind == EntryKind::Adjust;
    let audited_as = is_by_hand.then(|| (user, asset, balance_after.saturating_sub(delta), balance_after, created_at));
    let (seq, has_reference) = (row.get(0)?, reference.is_some());
    Ok(Line { seq, user, asset, sequence, delta, balance_after, kind, has_reference, is_genuine, audited_as })
}
