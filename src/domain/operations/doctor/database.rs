//! Checks of the database, the server key and the ledger.

use std::time::Duration;

use super::{Check, Installation, Services, Verdict, database_server};
use crate::{
    domain::{
        divination::history,
        money::ledger::verification,
        operations::{
            account_erasures,
            health::{self, HealthSnapshot},
            server_key::{self, KeyMatch},
        },
    },
    error::Result,
    store::SCHEMA_VERSION,
    types::{Timestamp, UserId, pluralize},
};

pub(super) fn database(installation: &Installation<'_>) -> Result<Vec<Check>> {
    const GROUP: &str = "database";
    const LARGE_WAL: u64 = 256 << 20;
    let services = match &installation.services {
        Ok(services) => services,
        Err(error) => return Ok(vec![Check::new(GROUP, "opening", Verdict::Fail, error.describe())]),
    };
    let store = &services.core.store;
    if let Some(report) = store.server_report()? {
        return database_server::checks(*services, &report);
    }
    let faults = store.require_file()?.faults()?;
    let wal_bytes = store.writer_load().wal_bytes;
    let dangling = pluralize(faults.dangling, "row refers to a missing row", "rows refer to a missing row");
    Ok(vec![
        structure(services, &faults.structure),
        Check::holds(
            GROUP,
            "references",
            (faults.dangling == 0, "all refer to existing rows"),
            (Verdict::Fail, dangling),
        ),
        schema(services)?,
        Check::holds(
            GROUP,
            "write-ahead log",
            (wal_bytes < LARGE_WAL, format!("{} MiB", wal_bytes >> 20)),
            (Verdict::Warn, format!("{} MiB: a long read has kept it from being truncated", wal_bytes >> 20)),
        ),
    ])
}

fn structure(services: &Services<'_>, faults: &[String]) -> Check {
    if faults.is_empty() {
        return Check::new("database", "structure", Verdict::Pass, "sound");
    }
    let damage = health::damage_detail(Some(&faults.join("; ")));
    let advice = health::recovery_advice(services.core);
    Check::new("database", "structure", Verdict::Fail, format!("{damage} {advice}"))
}

/// Compares the schema with the program's: a missing trigger or index shows nowhere else.
pub(super) fn schema(services: &Services<'_>) -> Result<Check> {
    let faults = services.core.store.schema_faults()?;
    Ok(Check::holds(
        "database",
        "schema",
        (faults.is_empty(), format!("version {SCHEMA_VERSION}")),
        (Verdict::Fail, format!("{}: restore a backup, or recreate it as in schema.sql", faults.join(", "))),
    ))
}

pub(super) fn keys(installation: &Installation<'_>) -> Result<Vec<Check>> {
    let Some(services) = installation.services() else { return Ok(Vec::new()) };
    let core = services.core;
    let (verdict, detail) = match core.store.read(|tx| server_key::compare_in(tx, &core.keys))? {
        KeyMatch::Same => (Verdict::Pass, "the key of this database"),
        KeyMatch::Unknown => (Verdict::Pass, "will be recorded at the next start"),
        KeyMatch::Different => (
            Verdict::Fail,
            "not the key of this database: parked points, spent bonuses and second factors are not recognised. \
             Restore the former key, or accept this one with `yarrow doctor --accept-key`",
        ),
    };
    Ok(vec![Check::new("keys", "server key", verdict, detail)])
}

/// Reports what is left of deleted accounts and history records.
pub(super) fn erasure(installation: &Installation<'_>) -> Result<Vec<Check>> {
    const EXPECTED: Duration = Duration::from_mins(10);
    let Some(services) = installation.services() else { return Ok(Vec::new()) };
    let store = &services.core.store;
    let (accounts, records) = store.read(|tx| Ok((account_erasures::summary_in(tx)?, history::marked_in(tx)?)))?;
    let now = services.core.clock.now();
    let check = |name, (left, since): (i64, Option<Timestamp>), one, many| {
        let Some(since) = since else { return Check::new("erasure", name, Verdict::Pass, "nothing is left to delete") };
        let detail = format!("{} left to delete since {since}", pluralize(left, one, many));
        Check::holds(
            "erasure",
            name,
            (since.is_near(EXPECTED, now), detail.clone()),
            (Verdict::Warn, format!("{detail}: start the server, or see its log for the job `erasure`")),
        )
    };
    Ok(vec![
        check("deleted accounts", accounts, "account has rows", "accounts have rows"),
        check("deleted history records", records, "user has records", "users have records"),
    ])
}

/// Compares the stored sums of history records with the records.
pub(super) fn history_sums(installation: &Installation<'_>) -> Result<Vec<Check>> {
    let Some(services) = installation.services() else { return Ok(Vec::new()) };
    let (mut last, mut wrong) = (UserId(0), Vec::new());
    while let (Some(next), found) = services.core.store.read(|tx| history::compare_in(tx, last))? {
        last = next;
        wrong.extend(found);
    }
    let users = wrong.iter().take(10).map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let detail = format!("wrong for {}: {users}; run `yarrow sync users`", pluralize(wrong.len(), "user", "users"));
    Ok(vec![Check::holds("history", "sums", (wrong.is_empty(), "those of the records"), (Verdict::Fail, detail))])
}

pub(super) fn ledger(installation: &Installation<'_>) -> Result<Vec<Check>> {
    const GROUP: &str = "ledger";
    let Some(services) = installation.services() else { return Ok(Vec::new()) };
    let report = verification::inspect(&services.core.store, &mut |_, _| ())?;
    let health = HealthSnapshot::collect(services.health)?;
    let (found, suspended) = (report.discrepancies_found, health.accounts_suspended);
    let verified = health.ledger.map_or_else(|| "not yet".to_owned(), |last| last.at().to_string());
    let review = health.payments_in_review;
    let agreeing = pluralize(report.entries, "entry agrees", "entries agree");
    let discrepancies = pluralize(found, "discrepancy", "discrepancies");
    Ok(vec![
        Check::holds(
            GROUP,
            "entries",
            (found == 0, format!("{agreeing} with every balance and the audit chain")),
            (Verdict::Fail, format!("{discrepancies}; run `yarrow ledger verify`")),
        ),
        Check::holds(
            GROUP,
            "accounts",
            (suspended == 0, "none is suspended"),
            (Verdict::Fail, format!("{suspended} suspended; run `yarrow sync users`")),
        ),
        Check::new(GROUP, "daily verification", Verdict::Pass, format!("last: {verified}")),
        Check::holds(
            GROUP,
            "payments",
            (review == 0, "none needs a decision"),
            (Verdict::Warn, format!("{review} need a decision; see `yarrow payments list --state review`")),
        ),
    ])
}
