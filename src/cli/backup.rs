//! `yarrow backup`: copies of the database.

use std::path::Path;

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::{Common, authority, check, print, progress_bar, record, row, start_logging, table};
use yarrow::{
    app::App,
    clock::Clock,
    data_dir::demand_installation,
    domain::operations::backups::{self, Backup, Findings, Made, Occasion, Rehearsal, manifest::Checksum, offsite},
    error::{Code, Error, Result},
    thread_priority::give_way,
    types::{counted, milliseconds},
};

/// Make, list, verify and prune backups.
#[derive(Debug, Args)]
pub struct BackupArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Make a backup now, look through it, print where it is, and upload it if there is a bucket; exit 5 if what is in
    /// it does not agree with itself. The server may be running.
    Create,
    /// List the backups, newest first.
    List {
        /// Those in the bucket.
        #[arg(long)]
        remote: bool,
    },
    /// Upload what is newer than what is in the bucket, and delete there what no rule keeps.
    Upload,
    /// Bring a backup from the bucket into the directory of backups, and print where it is.
    Fetch {
        /// As `yarrow backup list --remote` shows it.
        name: String,
    },
    /// Rehearse a restore: put a backup into a directory of its own, open it, look through it, delete it again. Exit 5
    /// if something is wrong with it.
    Verify {
        /// File, or name of a listed backup; the newest if not given.
        file: Option<String>,
    },
    /// Delete the backups that no rule of the configuration keeps.
    Prune,
}

pub fn run(common: &Common, args: BackupArgs) -> Result<()> {
    match args.action {
        Action::Create => create(common),
        Action::List { remote: false } => list(common),
        Action::List { remote: true } => list_remote(common),
        Action::Upload => upload(common),
        Action::Fetch { name } => fetch(common, &name),
        Action::Verify { file } => verify(common, file.as_deref()),
        Action::Prune => prune(common),
    }
}

/// A bar that says which part of the work is how far. It hides itself where nobody watches.
pub(super) fn watch(common: &Common) -> impl FnMut(&'static str, u64, u64) {
    let bar = progress_bar(common, 0, "{msg:10} {bar:40} {pos}/{len}, {eta} left");
    move |part, done, total| {
        bar.set_message(part);
        bar.set_length(total);
        bar.set_position(done);
    }
}

fn create(common: &Common) -> Result<()> {
    let app = common.open()?;
    // Once the writer runs: whoever waits for its lock must not wait for somebody who gives way.
    give_way();
    let Made { backup, findings, took } = backups::create(&app, Occasion::Manual, &mut watch(common))?;
    record(&app, "backup create", None, authority(Some(backup.name.clone())))?;
    let uploaded = offsite::upload(&app, &mut watch(common));
    let mut json = shown(&backup, Some(&findings));
    json["tookMs"] = json!(milliseconds(took));
    common.answer(&json, || format!("{}\n{}", backup.path.display(), sentence(&findings)))?;
    uploaded?;
    let fault = "The backup is whole, but what is in it is not consistent; see `yarrow ledger verify`.";
    check(findings.is_sound(), fault)
}

fn sentence(findings: &Findings) -> String {
    let Findings { ledger_entries, ledger_accounts, ledger_discrepancies, dangling_references, .. } = findings;
    let ledger = of_ledger(*ledger_entries, *ledger_accounts, *ledger_discrepancies);
    format!("structure sound, {}; {ledger}", dangling(*dangling_references))
}

fn dangling(references: u64) -> String {
    counted(references, "dangling reference", "dangling references")
}

fn of_ledger(entries: i64, accounts: i64, discrepancies: u64) -> String {
    let (entries, accounts) = (counted(entries, "entry", "entries"), counted(accounts, "account", "accounts"));
    format!("ledger: {entries}, {accounts}, {}", counted(discrepancies, "discrepancy", "discrepancies"))
}

fn shown(backup: &Backup, findings: Option<&Findings>) -> Value {
    json!({
        "name": backup.name, "path": backup.path, "at": backup.at, "occasion": backup.occasion.name(),
        "bytes": backup.bytes, "sound": findings.map(Findings::is_sound), "findings": findings,
    })
}

fn list(common: &Common) -> Result<()> {
    let (config, now) = (common.load()?.config, Clock::default().now());
    // Backups may lie where no installation is, but a mistyped directory has neither.
    if !config.backup_directory().is_dir() {
        demand_installation(&config)?;
    }
    let listed = backups::list(&config)?;
    let found: Vec<_> =
        listed.iter().map(|backup| (backup, backups::findings(&backup.path, now).ok().flatten())).collect();
    let json: Vec<_> = found.iter().map(|(backup, findings)| shown(backup, findings.as_ref())).collect();
    common.answer(&json!({ "items": json, "total": json.len() }), || {
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
    let found = offsite::demand_bucket(&common.load()?.config)?.list()?;
    let json: Vec<_> = found.iter().map(|backup| shown(backup, None)).collect();
    common.answer(&json!({ "items": json, "total": json.len() }), || {
        let rows =
            found.iter().map(|backup| row![backup.name, backup.at, backup.occasion.name(), mebibytes(backup.bytes)]);
        table(["backup", "at", "occasion", "MiB"], rows)
    })
}

fn upload(common: &Common) -> Result<()> {
    let app = common.open()?;
    offsite::demand_bucket(&app.config)?;
    let done = offsite::upload(&app, &mut watch(common))?.unwrap_or_default();
    record(&app, "backup upload", None, authority(None))?;
    let names = |backups: &[Backup]| backups.iter().map(|backup| backup.name.clone()).collect::<Vec<_>>();
    let json = json!({
        "uploaded": names(&done.uploaded), "deleted": names(&done.deleted), "notDeleted": done.not_deleted
    });
    common.answer(&json, || {
        let rest = done.not_deleted.as_ref().map(|why| format!("; others could not be deleted: {why}"));
        format!("{} uploaded, {} deleted there{}", done.uploaded.len(), done.deleted.len(), rest.unwrap_or_default())
    })
}

fn fetch(common: &Common, name: &str) -> Result<()> {
    let config = common.load()?.config;
    let path = offsite::demand_bucket(&config)?.fetch(&config, name, &mut watch(common))?;
    common.answer(&json!({ "path": path }), || path.display().to_string())
}

fn mebibytes(bytes: u64) -> String {
    format!("{}.{}", bytes >> 20, ((bytes & 0xf_ffff) * 10) >> 20)
}

fn verify(common: &Common, file: Option<&str>) -> Result<()> {
    let config = common.load()?.config;
    start_logging(&config.log)?;
    let path = match backups::find(&config, file) {
        // To be told in the same way as a bad one: there is nothing to go back to.
        Err(error) if file.is_none() && error.code == Code::NotFound => {
            return Err(Error::new(Code::ChecksFailed).detail("There is no backup."));
        }
        found => found?,
    };
    let found = match backups::rehearse(&config, &path, &Clock::default(), &mut watch(common)) {
        Err(error) if error.code == Code::BackupUnusable => return tell_unusable(common, &path, error),
        found => found?,
    };
    let Rehearsal { faults, checksum, ledger_entries, ledger_accounts, ledger_discrepancies, restored_in, took } =
        &found;
    let json = json!({
        "path": path, "sound": found.is_sound(), "checksum": checksum.name(), "structure": faults.structure,
        "danglingReferences": faults.dangling, "ledgerEntries": ledger_entries, "ledgerAccounts": ledger_accounts,
        "ledgerDiscrepancies": ledger_discrepancies, "restoredInMs": restored_in.as_millis(),
        "tookMs": took.as_millis(),
    });
    common.answer(&json, || {
        let mut lines = vec![format!("{}", path.display())];
        lines.extend(faults.structure.iter().map(|fault| format!("damaged: {fault}")));
        lines.push(match checksum {
            Checksum::Right => "as it was made, by its checksum".to_owned(),
            Checksum::Wrong => "damaged: its checksum is not the one it was made with".to_owned(),
            Checksum::Unknown => "no checksum beside it".to_owned(),
        });
        lines.push(dangling(faults.dangling));
        lines.push(of_ledger(*ledger_entries, *ledger_accounts, *ledger_discrepancies));
        lines.push(format!("restored in {restored_in:.1?}, verified in {took:.1?}"));
        lines.join("\n")
    })?;
    check(found.is_sound(), "The backup is damaged or inconsistent.")
}

/// A file that cannot even be looked through is as bad as what was looked for.
fn tell_unusable(common: &Common, path: &Path, mut error: Error) -> Result<()> {
    if common.json {
        print(&json!({ "path": path, "sound": false, "error": error.detail }).to_string())?;
    }
    error.code = Code::ChecksFailed;
    Err(error)
}

fn prune(common: &Common) -> Result<()> {
    let app: App = common.open()?;
    let deleted = backups::prune(&app.config, app.clock.now())?;
    record(&app, "backup prune", None, authority(None))?;
    let json: Vec<_> = deleted.iter().map(|backup| shown(backup, None)).collect();
    common.answer(&json!({ "deleted": json }), || {
        let names = deleted.iter().map(|backup| format!("deleted {}", backup.name));
        let count = format!("{} deleted", deleted.len());
        names.chain([count]).collect::<Vec<_>>().join("\n")
    })
}
