//! Checks of the database, the server key and the ledger.

use std::time::Duration;

use super::{CheckFact, Installation, Services, database_server};
use crate::{
    domain::{
        divination::history,
        money::ledger::{Verification, verification},
        operations::{
            account_erasures,
            health::{HealthSnapshot, Recovery},
            server_key::{self, KeyMatch},
        },
    },
    error::Result,
    store::SCHEMA_VERSION,
    types::UserId,
};

pub(super) fn database(installation: &Installation<'_>) -> Result<Vec<CheckFact>> {
    const LONG_WAL: u64 = 256 << 20;
    let services = match &installation.services {
        Ok(services) => services,
        Err(error) => return Ok(vec![CheckFact::DatabaseClosed { error: error.describe() }]),
    };
    let store = &services.core.store;
    if let Some(report) = store.server_report()? {
        return Ok(database_server::checks(services.core, report, schema(services)?));
    }
    let faults = store.require_file()?.faults()?;
    let (wal_bytes, rows) = (store.writer_load().wal_bytes, faults.dangling);
    let mebibytes = wal_bytes >> 20;
    Ok(vec![
        if faults.structure.is_empty() {
            CheckFact::StructureSound {}
        } else {
            let recovery = Recovery::find(services.core);
            CheckFact::StructureDamaged { faults: faults.structure, recovery }
        },
        if rows == 0 { CheckFact::ReferencesSound {} } else { CheckFact::ReferencesDangling { rows } },
        schema(services)?,
        if wal_bytes < LONG_WAL { CheckFact::WalShort { mebibytes } } else { CheckFact::WalLong { mebibytes } },
    ])
}

/// Compares the schema with the program's: a missing trigger or index shows nowhere else.
fn schema(services: &Services<'_>) -> Result<CheckFact> {
    let faults = services.core.store.schema_faults()?;
    Ok(if faults.is_empty() {
        CheckFact::SchemaVersion { version: SCHEMA_VERSION }
    } else {
        CheckFact::SchemaIncomplete { faults }
    })
}

pub(super) fn keys(installation: &Installation<'_>) -> Result<Vec<CheckFact>> {
    let Some(services) = installation.services() else { return Ok(Vec::new()) };
    let core = services.core;
    Ok(vec![match core.store.read(|tx| server_key::compare_in(tx, &core.keys))? {
        KeyMatch::Same => CheckFact::KeyMatches {},
        KeyMatch::Unknown => CheckFact::KeyUnrecorded {},
        KeyMatch::Different => CheckFact::KeyDiffers {},
    }])
}

/// Reports what is left of deleted accounts and history records.
pub(super) fn erasure(installation: &Installation<'_>) -> Result<Vec<CheckFact>> {
    const EXPECTED: Duration = Duration::from_mins(10);
    let Some(services) = installation.services() else { return Ok(Vec::new()) };
    let ((accounts, first), (users, oldest)) =
        services.core.store.read(|tx| Ok((account_erasures::summary_in(tx)?, history::marked_in(tx)?)))?;
    let now = services.core.clock.now();
    Ok(vec![
        match first {
            None => CheckFact::AccountsErased {},
            Some(since) if since.is_near(EXPECTED, now) => CheckFact::AccountsLeft { accounts, since },
            Some(since) => CheckFact::AccountsLate { accounts, since },
        },
        match oldest {
            None => CheckFact::RecordsErased {},
            Some(since) if since.is_near(EXPECTED, now) => CheckFact::RecordsLeft { users, since },
            Some(since) => CheckFact::RecordsLate { users, since },
        },
    ])
}

/// Compares the stored sums of history records with the records.
pub(super) fn history_sums(installation: &Installation<'_>) -> Result<Vec<CheckFact>> {
    let Some(services) = installation.services() else { return Ok(Vec::new()) };
    let (mut last, mut wrong) = (UserId(0), Vec::new());
    while let (Some(next), users) = services.core.store.read(|tx| history::compare_in(tx, last))? {
        last = next;
        wrong.extend(users);
    }
    let first = wrong.iter().take(10).map(ToString::to_string).collect();
    Ok(vec![match wrong.len() {
        0 => CheckFact::SumsRight {},
        users => CheckFact::SumsWrong { users, first },
    }])
}

pub(super) fn ledger(installation: &Installation<'_>) -> Result<Vec<CheckFact>> {
    let Some(services) = installation.services() else { return Ok(Vec::new()) };
    let report = verification::inspect(&services.core.store, &mut |_, _| ())?;
    let health = HealthSnapshot::collect(services.health)?;
    Ok(vec![
        match report.discrepancies_found {
            0 => CheckFact::EntriesAgree { entries: report.entries },
            discrepancies => CheckFact::EntriesDisagree { discrepancies },
        },
        match health.accounts_suspended {
            0 => CheckFact::NoAccountSuspended {},
            accounts => CheckFact::AccountsSuspended { accounts },
        },
        match health.ledger.map(Verification::at) {
            None => CheckFact::LedgerUnverified {},
            Some(at) => CheckFact::LedgerVerified { at },
        },
        match health.payments_in_review {
            0 => CheckFact::PaymentsDecided {},
            payments => CheckFact::PaymentsUndecided { payments },
        },
    ])
}
