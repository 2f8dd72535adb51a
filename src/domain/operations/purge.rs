//! The purge of tables on an administrator's request: confirmed, backed up and audited.
//!
//! A purge deletes only what its backup contains. Purging a single table deletes the backed-up rows that have not
//! changed since, in small writes. Purging everything cannot leave newer rows behind, because rows refer to each other.
//! It is one transaction that blocks other writes from the start of the backup. The network log, which is another file and
//! in no backup, is emptied after it, with the stored events of the server's log; other copies of the service then do the
//! same with theirs.
//!
//! The surprise: purging codes keeps the record of sent codes, from which budgets are counted. Purging payments keeps
//! everything within the legal retention.

use crate::{
    core::Core,
    domain::{
        identity::{codes, tokens},
        messaging::feedback,
        money::{
            ledger,
            payments::{report, retention},
            purchases,
        },
        operations::{
            backups::{self, Backups, Occasion},
            confirmations::DeletionPreview,
            free_space_scrub,
            network_log::{self, NetworkLog},
            server_log, settings,
        },
    },
    error::Result,
    store::{Read, Write, backup::DatabaseCopy},
    types::{Timestamp, named_enum},
};

/// The time of the last purge of everything, in milliseconds.
const LOGS_PURGED: &str = "purge.logs_purged_at";
const ORDERS: &str = "payment_orders";
const PURCHASES: &str = "store_purchases";
/// Rows deleted in one write.
const BATCH_SIZE: u32 = 100;

/// The tables that `all` preserves: administrators, audit, confirmations, words, releases and settings; the trades of
/// the simulated payment provider; and the number that invalidates cached tokens.
const PRESERVED_TABLES: [&str; 11] = [
    "settings",
    "words",
    "word_changes",
    "allowed_phrases",
    "admins",
    "api_keys",
    "audit",
    "confirmations",
    "releases",
    "sandbox_trades",
    "token_changes",
];

named_enum! {
    /// The target of a purge, named as in confirmations.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum PurgeTarget {
        /// All tables except the preserved ones, including the ledger.
        All = "cleanup all",
        /// Pending codes. The record of sent codes stays.
        VerificationCodes = "cleanup verification-codes",
        /// Finished orders past their retention, with their callbacks and refunds.
        PaymentRecords = "cleanup payment-records",
        Feedback = "cleanup feedback",
    }
}

/// The result of a purge.
#[derive(Clone, Debug)]
pub struct PurgeResult {
    pub deleted: Vec<(String, i64)>,
    pub kept: Vec<(String, i64)>,
    pub backup: String,
}

/// Counts the rows that a purge would delete and keep.
///
/// # Errors
/// Storage errors.
pub fn dry_run(core: &Core, log: &NetworkLog, target: PurgeTarget) -> Result<DeletionPreview> {
    let floor = core.clock.now().minus(core.config.retention.payment_records);
    let requests = if target == PurgeTarget::All { network_log::count(log)? } else { 0 };
    core.store.read(|tx| {
        Ok(match target {
            PurgeTarget::All => {
                let mut preview = DeletionPreview::default();
                for table in tx.tables()? {
                    let (kept, counts) = (is_preserved(&table), row_count_in(tx, table)?);
                    if kept { preview.keep.push(counts) } else { preview.delete.push(counts) }
                }
                insert_sorted(&mut preview.delete, requests);
                preview
            }
            PurgeTarget::VerificationCodes => single("codes", codes::count_in(tx)?),
            PurgeTarget::PaymentRecords => {
                let mut preview = retention::preview_in(tx, floor)?;
                let (old, kept) = purchases::retention::preview_in(tx, floor)?;
                preview.delete.push((PURCHASES.to_owned(), old));
                preview.keep.push((PURCHASES.to_owned(), kept));
                preview
            }
            PurgeTarget::Feedback => single("feedback", feedback::count_in(tx)?),
        })
    })
}

/// Makes a backup and then purges. Blocks.
///
/// # Errors
/// Those of the backup, and nothing is deleted then; storage errors.
pub fn run(
    backups: &Backups,
    log: &NetworkLog,
    target: PurgeTarget,
    progress: backups::BackupProgress<'_>,
) -> Result<PurgeResult> {
    let core = &backups.core;
    let kept = dry_run(core, log, target)?.keep;
    let floor = core.clock.now().minus(core.config.retention.payment_records);
    let (deleted, backup) = match target {
        PurgeTarget::All => purge_all(backups, log, progress)?,
        PurgeTarget::VerificationCodes => purge_table(
            backups,
            "codes",
            progress,
            |tx, last| codes::list_after_in(tx, last, BATCH_SIZE),
            codes::delete_in,
        )?,
        PurgeTarget::PaymentRecords => purge_payments(backups, progress, floor)?,
        PurgeTarget::Feedback => purge_table(
            backups,
            "feedback",
            progress,
            |tx, last| feedback::list_after_in(tx, last, BATCH_SIZE),
            feedback::delete_in,
        )?,
    };
    Ok(PurgeResult { deleted, kept, backup })
}

/// The numbers of deleted rows by table, and the name of the backup.
type Deleted = (Vec<(String, i64)>, String);

fn purge_all(backups: &Backups, log: &NetworkLog, progress: backups::BackupProgress<'_>) -> Result<Deleted> {
    let (made, mut deleted) = backups::create_before(backups, Occasion::BeforeCleanup, progress, truncate_all_in)?;
    let requests = purge_logs(log)?;
    insert_sorted(&mut deleted, i64::try_from(requests).unwrap_or(i64::MAX));
    Ok((deleted, made.backup.name))
}

fn purge_logs(log: &NetworkLog) -> Result<usize> {
    let requests = network_log::delete_all(log)?;
    server_log::clear(log)?;
    Ok(requests)
}

/// Empties the logs of this process if another copy of the service has purged everything since they were last emptied.
///
/// # Errors
/// Storage errors; the next call tries again.
pub fn follow_other_copies(log: &NetworkLog) -> Result<()> {
    let purged_at = Timestamp(log.core.store.read(|tx| settings::number_in(tx, LOGS_PURGED))?);
    let is_due = (Timestamp(1)..=log.core.clock.now()).contains(&purged_at);
    if is_due && network_log::purged_at(log)?.is_none_or(|done| done < purged_at) {
        purge_logs(log)?;
    }
    Ok(())
}

/// Adds the entries of the network log to the counts of tables, which are sorted by name.
fn insert_sorted(counts: &mut Vec<(String, i64)>, requests: i64) {
    let place = counts.partition_point(|(table, _)| table.as_str() < network_log::TABLE);
    counts.insert(place, (network_log::TABLE.to_owned(), requests));
}

/// Makes a backup and deletes its rows of one table, in batches, unless they have changed since.
fn purge_table<BackedUpRow: Clone + Send + 'static>(
    backups: &Backups,
    table: &str,
    progress: backups::BackupProgress<'_>,
    next: impl Fn(&Read<'_>, Option<&BackedUpRow>) -> Result<Vec<BackedUpRow>>,
    delete: fn(&Write<'_>, &[BackedUpRow]) -> Result<usize>,
) -> Result<Deleted> {
    let backup = backups::create(backups, Occasion::BeforeCleanup, progress)?.backup;
    let copy = DatabaseCopy::open(&backup.path, backups.core.clock.now())?;
    let deleted = delete_backed_up(backups, &copy, next, delete)?;
    Ok((vec![(table.to_owned(), deleted)], backup.name))
}

/// Purges orders and purchases, both from one backup.
fn purge_payments(backups: &Backups, progress: backups::BackupProgress<'_>, floor: Timestamp) -> Result<Deleted> {
    let backup = backups::create(backups, Occasion::BeforeCleanup, progress)?.backup;
    let copy = DatabaseCopy::open(&backup.path, backups.core.clock.now())?;
    let orders = |tx: &Read<'_>, last: Option<&_>| retention::finished_after_in(tx, floor, last, BATCH_SIZE);
    let orders = delete_backed_up(backups, &copy, orders, retention::delete_in)?;
    let bought = |tx: &Read<'_>, last: Option<&_>| purchases::retention::finished_after_in(tx, floor, last, BATCH_SIZE);
    let bought = delete_backed_up(backups, &copy, bought, purchases::retention::delete_in)?;
    Ok((vec![(ORDERS.to_owned(), orders), (PURCHASES.to_owned(), bought)], backup.name))
}

fn delete_backed_up<BackedUpRow: Clone + Send + 'static>(
    backups: &Backups,
    copy: &DatabaseCopy,
    next: impl Fn(&Read<'_>, Option<&BackedUpRow>) -> Result<Vec<BackedUpRow>>,
    delete: fn(&Write<'_>, &[BackedUpRow]) -> Result<usize>,
) -> Result<i64> {
    let (mut deleted, mut last) = (0, None);
    loop {
        let rows = copy.read(|tx| next(tx, last.as_ref()))?;
        last = rows.last().cloned();
        if last.is_none() {
            return Ok(deleted);
        }
        let delete = move |tx: &Write<'_>| free_space_scrub::request_if_deleted_in(tx, delete(tx, &rows)?);
        deleted += i64::try_from(backups.core.store.write(delete).wait()?).unwrap_or(0);
    }
}

fn is_preserved(table: &str) -> bool {
    PRESERVED_TABLES.contains(&table) || table.starts_with("admin_")
}

fn truncate_all_in(tx: &Write<'_>) -> Result<Vec<(String, i64)>> {
    let tables: Vec<_> = tx.tables()?.into_iter().filter(|table| !is_preserved(table)).collect();
    let counts: Result<Vec<_>> = tables.iter().map(|table| row_count_in(tx, table.clone())).collect();
    let counts = counts?;
    tx.empty(&tables)?;
    tokens::invalidate_cached_in(tx)?;
    ledger::changes::begin_anew_in(tx)?;
    ledger::verification::begin_anew_in(tx)?;
    report::begin_anew_in(tx)?;
    free_space_scrub::request_in(tx)?;
    settings::put_in(tx, LOGS_PURGED, &tx.now.0.to_string())?;
    Ok(counts)
}

fn row_count_in(tx: &Read<'_>, table: String) -> Result<(String, i64)> {
    let rows = tx.count_rows(&table)?;
    Ok((table, rows))
}

fn single(table: &str, rows: i64) -> DeletionPreview {
    DeletionPreview { delete: vec![(table.to_owned(), rows)], keep: Vec::new() }
}
