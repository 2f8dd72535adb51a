//! Clearing tables by an administrator's will: asked for twice, after a backup, and written down.
//!
//! What is cleared one table at a time goes in slices that nobody waits for. Clearing everything is one transaction:
//! it is done whole or not at all, and for as long as it takes nothing else is written.
//!
//! The surprise: clearing codes leaves the record of what was sent, because budgets are counted from it, and clearing
//! payments leaves what is younger than the law or a dispute may ask for.

use crate::{
    app::App,
    error::Result,
    ops::{
        access_log,
        backups::{self, Occasion},
        codes,
        confirmations::Census,
        payment,
    },
    store::{Read, Write},
};

/// Rows deleted by one operation.
const SLICE: u32 = 500;

/// What `all` leaves: who operates the service, what they did, and how it is set up.
const KEPT: [&str; 13] = [
    "settings",
    "words",
    "word_changes",
    "allowed_phrases",
    "admins",
    "admin_tokens",
    "admin_attempts",
    "api_keys",
    "audit",
    "confirmations",
    "releases",
    "alerts",
    "sandbox_trades",
];

/// What is to be cleared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// Everything but administrators, their audit, words, releases and settings. The ledger goes with it.
    All,
    /// The codes that are live. Budgets for sending stay.
    VerificationCodes,
    /// Finished orders older than the retention floor, with what came in about them.
    PaymentRecords,
    Feedback,
}

impl Target {
    /// The action, for confirmations and in file names.
    pub const fn name(self) -> &'static str {
        match self {
            Self::All => "cleanup all",
            Self::VerificationCodes => "cleanup verification-codes",
            Self::PaymentRecords => "cleanup payment-records",
            Self::Feedback => "cleanup feedback",
        }
    }
}

/// What was cleared, what stayed, and which backup has it.
#[derive(Clone, Debug)]
pub struct Cleared {
    pub deleted: Vec<(String, i64)>,
    pub kept: Vec<(String, i64)>,
    pub backup: String,
}

/// Counts what would go and what would stay. Changes nothing.
///
/// # Errors
/// Storage errors.
pub fn dry_run(app: &App, target: Target) -> Result<Census> {
    let floor = app.clock.now().minus(app.config.retention.payment_records);
    app.store.read(|tx| {
        Ok(match target {
            Target::All => {
                let mut census = Census::default();
                for table in tx.tables()? {
                    let (kept, counted) = (is_kept(&table), counted_in(tx, table)?);
                    if kept { census.keep.push(counted) } else { census.delete.push(counted) }
                }
                census
            }
            Target::VerificationCodes => single("codes", codes::count_in(tx)?),
            Target::PaymentRecords => payment::retention::census_in(tx, floor)?,
            Target::Feedback => Census { delete: feedback_in(tx)?, keep: Vec::new() },
        })
    })
}

/// Makes a backup, then clears. Blocks for as long as that takes.
///
/// # Errors
/// Those of the backup, and nothing is cleared then; storage errors.
pub fn clear(app: &App, target: Target, progress: backups::Progress<'_>) -> Result<Cleared> {
    let kept = dry_run(app, target)?.keep;
    let backup = backups::create(app, Occasion::BeforeCleanup, progress)?.backup.name;
    let floor = app.config.retention.payment_records;
    let deleted = match target {
        Target::All => app.store.write(empty_all_in).wait()?,
        Target::VerificationCodes => vec![("codes".into(), in_slices(app, |tx| codes::clear_in(tx, SLICE))?)],
        Target::PaymentRecords => {
            vec![(
                "payment_orders".into(),
                in_slices(app, move |tx| payment::retention::delete_older_in(tx, floor, SLICE))?,
            )]
        }
        Target::Feedback => app.store.write(empty_feedback_in).wait()?,
    };
    Ok(Cleared { deleted, kept, backup })
}

fn is_kept(table: &str) -> bool {
    KEPT.contains(&table) || table.starts_with("admin_")
}

fn empty_all_in(tx: &Write<'_>) -> Result<Vec<(String, i64)>> {
    let tables: Vec<_> = tx.tables()?.into_iter().filter(|table| !is_kept(table)).collect();
    let counted: Result<Vec<_>> = tables.iter().map(|table| counted_in(tx, table.clone())).collect();
    let counted = counted?;
    tx.empty(&tables)?;
    Ok(counted)
}

/// What is in a table, by its name, and how much of it. Requests are counted, and not the rows that hold thousands each.
fn counted_in(tx: &Read<'_>, table: String) -> Result<(String, i64)> {
    if table == access_log::BLOCKS {
        return Ok((access_log::ENTRIES.to_owned(), access_log::count_in(tx)?));
    }
    let rows = tx.count_rows(&table)?;
    Ok((table, rows))
}

/// The table of feedback and its rows.
fn feedback_in(tx: &Read<'_>) -> Result<Vec<(String, i64)>> {
    let tables = tx.tables()?.into_iter().filter(|table| table == "feedback");
    tables.map(|table| Ok((table.clone(), tx.count_rows(&table)?))).collect()
}

fn empty_feedback_in(tx: &Write<'_>) -> Result<Vec<(String, i64)>> {
    let counted = feedback_in(tx)?;
    let tables: Vec<_> = counted.iter().map(|(table, _)| table.clone()).collect();
    tx.empty(&tables)?;
    Ok(counted)
}

fn single(table: &str, rows: i64) -> Census {
    Census { delete: vec![(table.to_owned(), rows)], keep: Vec::new() }
}

fn in_slices(app: &App, delete: impl Fn(&Write<'_>) -> Result<usize> + Clone + Send + 'static) -> Result<i64> {
    let mut deleted = 0;
    loop {
        let delete = delete.clone();
        match app.store.write(move |tx| delete(tx)).wait()? {
            0 => return Ok(i64::try_from(deleted).unwrap_or(i64::MAX)),
            some => deleted += some,
        }
    }
}
