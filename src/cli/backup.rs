//! `yarrow backup`: backups of the database.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::{Common, check, cli_authority, progress_bar, record_audit, row, system_user::system_user, table};
use crate::{
    app::App,
    clock::Clock,
    config::Directory,
    domain::operations::{
        backups::{
            self, Backup, CreatedBackup, Findings, Occasion, RestoreTest,
            follow::{self, LatestTest, MachineFiles, PulledChanges, Standby},
            manifest::Checksum,
            offsite,
            origin::Origin,
        },
        data_dir::ensure_initialized,
    },
    error::{Code, Error, Result},
    thread_priority::lower_thread_priority,
    types::{Timestamp, milliseconds, pluralize},
};

/// Create, list, verify, upload and prune backups
#[derive(Debug, Args)]
pub struct BackupArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Create a backup, verify it and print its path; exit 5 if its data is inconsistent
    ///
    /// Also uploads it if a bucket is configured. The server may be running.
    Create,
    /// List backups, newest first
    List {
        /// List the backups in the bucket
        #[arg(long)]
        remote: bool,
    },
    /// Upload new backups to the bucket and prune the bucket
    Upload,
    /// Download a backup from the bucket and print its path
    Fetch {
        /// Backup name, from `yarrow backup list --remote`
        name: String,
    },
    /// Restore a backup into a temporary directory and verify it; exit 5 if it is damaged or missing
    Verify {
        /// File or backup name; default: the newest backup
        file: Option<String>,
        /// Assemble and verify the newest state in the bucket
        #[arg(long, conflicts_with = "file")]
        latest: bool,
        /// With --latest: the newest state until this time, such as 2026-01-02T03:04:05Z
        #[arg(long, value_name = "TIME", requires = "latest", value_parser = parse_time)]
        at: Option<Timestamp>,
    },
    /// Pull the newest backup and all changes from the bucket again and again, until Ctrl-C
    ///
    /// For a warm standby: `yarrow restore --latest --data-dir DIR` then downloads only what is missing.
    Follow {
        /// Data directory of the standby
        directory: PathBuf,
        /// Pull once
        #[arg(long)]
        once: bool,
    },
    /// Let this machine take over from the one that ships its changes to the bucket
    ///
    /// For a machine that stopped taking writes because another one had taken over. The other one then stops.
    TakeOver {
        /// Skip the confirmation
        #[arg(long)]
        yes: bool,
    },
    /// Delete backups past the configured retention
    Prune,
}

pub fn run(common: &Common, args: BackupArgs) -> Result<()> {
    match args.action {
        Action::Create => create(common),
        Action::List { remote: false } => list(common),
        Action::List { remote: true } => list_remote(common),
        Action::Upload => upload(common),
        Action::Fetch { name } => fetch(common, &name),
        Action::Verify { latest: true, at, .. } => verify_latest(common, at),
        Action::Verify { file, .. } => verify(common, file.as_deref()),
        Action::Follow { directory, once } => pull(common, directory, once),
        Action::TakeOver { yes } => take_over(common, yes),
        Action::Prune => prune(common),
    }
}

/// Returns a progress callback that shows the current step and its position.
pub(super) fn show_progress(common: &Common) -> impl FnMut(&'static str, u64, u64) {
    let bar = progress_bar(common, 0, "{msg:10} {bar:40} {pos}/{len}, {eta} left");
    move |step, position, total| {
        bar.set_message(step);
        bar.set_length(total);
        bar.set_position(position);
    }
}

fn create(common: &Common) -> Result<()> {
    let app = common.open()?;
    // Only after the open: a low priority while holding the write lock would delay the server.
    lower_thread_priority();
    let CreatedBackup { backup, findings, took } =
        backups::create(&app.backups, Occasion::Manual, &mut show_progress(common))?;
    record_audit(&app, "backup create", None, cli_authority(Some(backup.name.clone())))?;
    let uploaded = offsite::upload(&app.backups, &mut show_progress(common));
    let mut json = to_json(&backup, Some(&findings));
    json["tookMs"] = json!(milliseconds(took));
    common.output(&json, || format!("{}\n{}", backup.path.display(), summary(&findings)))?;
    uploaded?;
    let detail = "The backup is complete, but its data is inconsistent. Run `yarrow ledger verify`.";
    check(findings.is_sound(), detail)
}

fn summary(findings: &Findings) -> String {
    let Findings { ledger_entries, ledger_accounts, ledger_discrepancies, dangling_references, .. } = findings;
    let ledger = ledger_summary(*ledger_entries, *ledger_accounts, *ledger_discrepancies);
    format!("structure sound, {}; {ledger}", dangling(*dangling_references))
}

fn dangling(references: u64) -> String {
    pluralize(references, "dangling reference", "dangling references")
}

fn ledger_summary(entries: i64, accounts: i64, discrepancies: u64) -> String {
    let (entries, accounts) = (pluralize(entries, "entry", "entries"), pluralize(accounts, "account", "accounts"));
    format!("ledger: {entries}, {accounts}, {}", pluralize(discrepancies, "discrepancy", "discrepancies"))
}

fn to_json(backup: &Backup, findings: Option<&Findings>) -> Value {
    json!({
        "name": backup.name, "path": backup.path, "at": backup.at, "occasion": backup.occasion.name(),
        "bytes": backup.bytes, "sound": findings.map(Findings::is_sound), "findings": findings,
    })
}

fn list(common: &Common) -> Result<()> {
    let (config, now) = (common.load()?.config, Clock::default().now());
    // Backups can exist without a data directory. With neither, the directory is probably mistyped.
    if !config.backup_directory().is_dir() {
        ensure_initialized(&config)?;
    }
    let listed = backups::list(&config, now)?;
    let found: Vec<_> =
        listed.iter().map(|backup| (backup, backups::findings(&backup.path, now).ok().flatten())).collect();
    let json: Vec<_> = found.iter().map(|(backup, findings)| to_json(backup, findings.as_ref())).collect();
    common.output(&json!({ "items": json, "total": json.len() }), || {
        let rows = found.iter().map(|(backup, findings)| {
            let state = match findings {
                None => "unreadable",
                Some(findings) if findings.is_sound() => "sound",
                Some(_) => "inconsistent",
            };
            row![backup.name, backup.at, backup.occasion.name(), mebibytes(backup.bytes), state]
        });
        table(["backup", "at", "occasion", "MiB", "contents"], rows)
    })
}

fn list_remote(common: &Common) -> Result<()> {
    let backups = offsite::require_bucket(&common.load()?.config)?.list()?;
    let json: Vec<_> = backups.iter().map(|backup| to_json(backup, None)).collect();
    common.output(&json!({ "items": json, "total": json.len() }), || {
        let rows =
            backups.iter().map(|backup| row![backup.name, backup.at, backup.occasion.name(), mebibytes(backup.bytes)]);
        table(["backup", "at", "occasion", "MiB"], rows)
    })
}

fn upload(common: &Common) -> Result<()> {
    let app = common.open()?;
    offsite::require_bucket(&app.core.config)?;
    let outcome = offsite::upload(&app.backups, &mut show_progress(common))?.unwrap_or_default();
    record_audit(&app, "backup upload", None, cli_authority(None))?;
    let names = |backups: &[Backup]| backups.iter().map(|backup| backup.name.clone()).collect::<Vec<_>>();
    let json = json!({
        "uploaded": names(&outcome.uploaded), "deleted": names(&outcome.deleted), "notDeleted": outcome.not_deleted
    });
    common.output(&json, || {
        let rest = outcome.not_deleted.as_ref().map(|reason| format!("; some could not be deleted: {reason}"));
        format!(
            "{} uploaded, {} deleted from the bucket{}",
            outcome.uploaded.len(),
            outcome.deleted.len(),
            rest.unwrap_or_default()
        )
    })
}

fn fetch(common: &Common, name: &str) -> Result<()> {
    let config = common.load()?.config;
    let path = offsite::require_bucket(&config)?.fetch(&config, name, &mut show_progress(common))?;
    common.output(&json!({ "path": path }), || path.display().to_string())
}

fn mebibytes(bytes: u64) -> String {
    format!("{}.{}", bytes >> 20, ((bytes & 0xf_ffff) * 10) >> 20)
}

fn verify(common: &Common, file: Option<&str>) -> Result<()> {
    let config = common.load()?.config;
    common.start_logging(&config.log)?;
    let path = match backups::find(&config, file, Clock::default().now()) {
        // A missing backup counts as a damaged one.
        Err(error) if file.is_none() && error.code == Code::NotFound => {
            return Err(Error::new(Code::ChecksFailed).english_detail("There is no backup."));
        }
        path => path?,
    };
    let test = match backups::test_restore(&config, &path, &Clock::default(), &mut show_progress(common)) {
        Err(error) if error.code == Code::BackupUnusable => return report_unusable(common, &path, error),
        test => test?,
    };
    let RestoreTest { faults, checksum, ledger_entries, ledger_accounts, ledger_discrepancies, restored_in, took } =
        &test;
    let json = json!({
        "path": path, "sound": test.is_sound(), "checksum": checksum.name(), "structure": faults.structure,
        "danglingReferences": faults.dangling, "ledgerEntries": ledger_entries, "ledgerAccounts": ledger_accounts,
        "ledgerDiscrepancies": ledger_discrepancies, "restoredInMs": restored_in.as_millis(),
        "tookMs": took.as_millis(),
    });
    common.output(&json, || {
        let mut lines = vec![format!("{}", path.display())];
        lines.extend(faults.structure.iter().map(|fault| format!("damaged: {fault}")));
        lines.push(match checksum {
            Checksum::Right => "checksum matches".to_owned(),
            Checksum::Wrong => "damaged: checksum differs".to_owned(),
            Checksum::Unknown => "no checksum file".to_owned(),
        });
        lines.push(dangling(faults.dangling));
        lines.push(ledger_summary(*ledger_entries, *ledger_accounts, *ledger_discrepancies));
        lines.push(format!("restored in {restored_in:.1?}, verified in {took:.1?}"));
        lines.join("\n")
    })?;
    check(test.is_sound(), "The backup is damaged or inconsistent.")
}

fn verify_latest(common: &Common, at: Option<Timestamp>) -> Result<()> {
    let config = common.load()?.config;
    common.start_logging(&config.log)?;
    let test = match follow::test_latest(&config, at, &Clock::default(), &mut show_progress(common)) {
        // A missing state counts as a damaged one.
        Err(mut error) if matches!(error.code, Code::BackupUnusable | Code::NotFound) => {
            error.code = Code::ChecksFailed;
            return Err(error);
        }
        test => test?,
    };
    common.output(&latest_to_json(&test), || {
        let mut lines = vec![describe_latest(&test)];
        lines.extend(test.faults.structure.iter().map(|fault| format!("damaged: {fault}")));
        lines.push(dangling(test.faults.dangling));
        lines.push(ledger_summary(test.ledger_entries, test.ledger_accounts, test.ledger_discrepancies));
        lines.join("\n")
    })?;
    let gap = test.state.gap.as_deref().unwrap_or_default();
    check(gap.is_empty(), format!("The state is not the newest: {gap}."))?;
    check(test.is_sound(), "The newest state is damaged or inconsistent.")
}

/// Describes an assembled state in one line.
pub(super) fn describe_latest(test: &LatestTest) -> String {
    let state = &test.state;
    let changes = pluralize(state.changes as u64, "change set", "change sets");
    format!("the state of {} ({} and {changes}) in {:.1?}", state.at, state.base, test.took)
}

pub(super) fn latest_to_json(test: &LatestTest) -> Value {
    let state = &test.state;
    json!({
        "at": state.at, "base": state.base, "changes": state.changes, "last": state.object_name(), "gap": state.gap,
        "sound": test.is_consistent(), "structure": test.faults.structure, "danglingReferences": test.faults.dangling,
        "ledgerEntries": test.ledger_entries, "ledgerAccounts": test.ledger_accounts,
        "ledgerDiscrepancies": test.ledger_discrepancies, "tookMs": milliseconds(test.took),
    })
}

fn pull(common: &Common, directory: PathBuf, once: bool) -> Result<()> {
    let mut config = common.load()?.config;
    common.start_logging(&config.log)?;
    config.paths.data_dir = Directory(directory);
    let mut standby = Standby::new(&config)?;
    let pause = config.backup.follow.max(Duration::from_secs(1));
    loop {
        match standby.pull(Clock::default().now(), &mut show_progress(common)) {
            Ok(pulled) if once || pulled.objects > 0 => {
                let PulledChanges { base, objects, at } = &pulled;
                let json = json!({ "base": base, "objects": objects, "at": at });
                let state = at.map_or_else(|| "nothing".to_owned(), |at| format!("the state of {at}"));
                common
                    .output(&json, || format!("pulled {state}, {}", pluralize(*objects as u64, "object", "objects")))?;
            }
            Err(error) if once => return Err(error),
            // The bucket or the network may return.
            Err(error) => tracing::warn!(%error, "changes could not be pulled"),
            Ok(_) => {}
        }
        if once {
            return Ok(());
        }
        std::thread::sleep(pause);
    }
}

fn take_over(common: &Common, yes: bool) -> Result<()> {
    let config = common.load()?.config;
    common.start_logging(&config.log)?;
    ensure_initialized(&config)?;
    let bucket = offsite::require_bucket(&config)?;
    common.confirm(yes, "Let this machine take over? The one that ships its changes now will stop taking writes.")?;
    let last =
        follow::take_over(&bucket, &Origin::at_hand(&config)?, &MachineFiles::new(config.data_dir()), system_user())?;
    let json = json!({ "term": last.as_ref().map(|last| last.term), "machine": last.map(|last| last.claim.machine) });
    common.output(&json, || "this machine takes over: at once if its server runs, else when it starts".to_owned())
}

/// Reports a file that cannot be read as a failed check.
fn report_unusable(common: &Common, path: &Path, mut error: Error) -> Result<()> {
    if common.json {
        common.print(&json!({ "path": path, "sound": false, "error": error.detail }).to_string())?;
    }
    error.code = Code::ChecksFailed;
    Err(error)
}

fn prune(common: &Common) -> Result<()> {
    let app: App = common.open()?;
    let deleted = backups::prune(&app.core.config, app.core.clock.now())?;
    record_audit(&app, "backup prune", None, cli_authority(None))?;
    let json: Vec<_> = deleted.iter().map(|backup| to_json(backup, None)).collect();
    common.output(&json!({ "deleted": json }), || {
        let names = deleted.iter().map(|backup| format!("deleted {}", backup.name));
        let count = format!("{} deleted", deleted.len());
        names.chain([count]).collect::<Vec<_>>().join("\n")
    })
}

/// Reads a time of a restore.
pub(super) fn parse_time(text: &str) -> Result<Timestamp, String> {
    Timestamp::from_rfc3339(text).ok_or_else(|| "must be a time such as 2026-01-02T03:04:05Z".to_owned())
}
