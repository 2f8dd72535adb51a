//! Backups in an S3 bucket: upload, download, pruning and faults.

use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use rusqlite::Connection;
use serde_json::json;
use tempfile::TempDir;

use yarrow::providers::{
    FailureKind,
    object_storage::{ObjectStorage, ObjectStorageSettings},
};

use crate::support::{
    CommandOutput, Setup, eventually,
    fake_s3::{self, FakeS3, Fault},
    filler_statement, peak_memory,
};

const PHONE: &str = "13800138000";

/// A data directory that no process uses, and a configuration with the bucket.
struct Fixture {
    temp_dir: TempDir,
    bucket: FakeS3,
    settings: String,
}

impl Fixture {
    fn new(more_settings: &str) -> Self {
        let (temp_dir, bucket) = (tempfile::tempdir().unwrap(), FakeS3::new());
        let mut server = Setup::default().on(&temp_dir.path().join("data")).with("BACKUP_EVERY", "0 s").start();
        server.sign_in(PHONE);
        assert_eq!(server.terminate(), Some(0));
        let file = temp_dir.path().join("yarrow.toml");
        std::fs::write(&file, format!("{}{more_settings}", bucket.settings())).unwrap();
        Self { temp_dir, bucket, settings: file.to_str().unwrap().to_owned() }
    }

    fn directory(&self) -> PathBuf {
        self.temp_dir.path().join("data")
    }

    fn run_on(&self, directory: &Path, arguments: &[&str]) -> CommandOutput {
        CommandOutput::run(directory, &[arguments, &["--config", &self.settings]].concat(), "")
    }

    fn run(&self, arguments: &[&str]) -> CommandOutput {
        self.run_on(&self.directory(), arguments)
    }

    /// Makes the next backup large enough for a multipart upload.
    fn grow(&self) {
        let database = Connection::open(self.directory().join("yarrow.db")).unwrap();
        database.execute_batch(&filler_statement(7000)).unwrap();
    }
}

#[test]
fn uploads_a_backup_and_restores_it_on_another_machine() {
    let fixture = Fixture::new("");
    let created = fixture.run(&["backup", "create"]).expect(0).json();
    let name = created["name"].as_str().unwrap();
    let stored = fixture.bucket.objects();
    assert_eq!(stored.keys().collect::<Vec<_>>(), [&format!("yarrow/{name}"), &format!("yarrow/{name}.json")]);
    assert_eq!(stored[&format!("yarrow/{name}")], std::fs::read(created["path"].as_str().unwrap()).unwrap());

    let elsewhere = fixture.temp_dir.path().join("elsewhere");
    let listed = fixture.run_on(&elsewhere, &["backup", "list", "--remote"]).expect(0).json();
    assert_eq!(listed["items"][0]["name"], name, "{listed}");
    fixture.run_on(&elsewhere, &["backup", "fetch", name]).expect(0);
    let verified = fixture.run_on(&elsewhere, &["backup", "verify", name]).expect(0).json();
    assert_eq!(verified["checksum"], "right", "{verified}");
    let refused = fixture.run_on(&elsewhere, &["restore", name, "--yes"]).expect(1).stderr();
    assert!(refused.contains("no server key is at hand"), "{refused}");
    fixture.run_on(&elsewhere, &["restore", name, "--yes", "--unproven"]).expect(0);
    let database = Connection::open(elsewhere.join("yarrow.db")).unwrap();
    let phone: String = database.query_row("select phone_number from users", [], |row| row.get(0)).unwrap();
    assert_eq!(phone, PHONE);
    fixture.run_on(&elsewhere, &["backup", "fetch", "yarrow-20200101T000000.000Z-manual.db"]).expect(4);
}

#[test]
fn uploads_a_large_backup_in_parts_despite_faults() {
    let fixture = Fixture::new("");
    fixture.grow();
    fixture.bucket.fail(2);
    let created = fixture.run(&["backup", "create"]).expect(0).json();
    let bytes = std::fs::read(created["path"].as_str().unwrap()).unwrap();
    assert!(bytes.len() > 17 << 20);
    let stored = fixture.bucket.objects();
    assert_eq!(stored.len(), 2);
    assert!(stored.values().any(|object| *object == bytes), "the uploaded file differs");
}

#[test]
fn prunes_the_bucket_by_the_same_rules() {
    let fixture = Fixture::new("keep_hourly = 2\nkeep_daily = 0\n");
    fixture.bucket.put("yarrow/yarrow-20200101T000000.000Z-scheduled.db", b"old");
    fixture.bucket.put("yarrow/not-one-of-ours.txt", b"kept");
    fixture.bucket.put("yarrow-20200101T000000.000Z-scheduled.db", b"elsewhere");
    for _ in 0..3 {
        fixture.run(&["backup", "create"]).expect(0);
    }
    let names: Vec<_> = fixture.bucket.objects().into_keys().collect();
    assert_eq!(names.iter().filter(|name| name.ends_with("-manual.db")).count(), 2, "{names:?}");
    assert_eq!(names.iter().filter(|name| name.ends_with("-manual.db.json")).count(), 2, "{names:?}");
    assert_eq!(names.len(), 6, "{names:?}");
}

#[test]
fn a_bucket_that_forbids_deletion_accepts_backups() {
    let fixture = Fixture::new("keep_hourly = 1\nkeep_daily = 0\n");
    fixture.bucket.keep_all();
    for _ in 0..4 {
        fixture.run(&["backup", "create"]).expect(0);
    }
    assert_eq!(fixture.bucket.objects().len(), 8, "{:?}", fixture.bucket.objects().keys());
    let uploaded = fixture.run(&["backup", "upload"]).expect(0).json();
    assert_eq!((&uploaded["uploaded"], &uploaded["deleted"]), (&json!([]), &json!([])));
    assert!(uploaded["notDeleted"].as_str().unwrap().contains("AccessDenied"), "{uploaded}");
    let alerts = fixture.run(&["alerts", "list"]).expect(0).json();
    let upload = alerts["items"].as_array().unwrap().iter().find(|item| item["rule"] == "backup_upload_failed");
    assert_eq!(upload.unwrap()["firing"], false, "{alerts}");
}

#[test]
fn a_backup_dated_in_the_future_blocks_no_upload() {
    let fixture = Fixture::new("");
    let created = fixture.run(&["backup", "create"]).expect(0).json();
    let (path, name) = (Path::new(created["path"].as_str().unwrap()), "yarrow-20990101T000000.000Z-scheduled.db");
    std::fs::copy(path, path.with_file_name(name)).unwrap();
    fixture.bucket.put(&format!("yarrow/{name}"), b"from the future");
    let next = fixture.run(&["backup", "create"]).expect(0).json();
    let key = format!("yarrow/{}", Path::new(next["path"].as_str().unwrap()).file_name().unwrap().to_str().unwrap());
    assert!(fixture.bucket.objects().contains_key(&key), "{:?}", fixture.bucket.objects().keys());
}

#[test]
fn keeps_the_newest_sound_backup_in_the_bucket() {
    let fixture = Fixture::new("keep_hourly = 1\nkeep_daily = 0\n");
    fixture.run(&["coins", "grant", PHONE, "5"]).expect(0);
    let sound = fixture.run(&["backup", "create"]).expect(0).json();
    let break_it = "update balances set balance = balance + 1 where balance > 0";
    Connection::open(fixture.directory().join("yarrow.db")).unwrap().execute(break_it, []).unwrap();
    for _ in 0..4 {
        fixture.run(&["backup", "create"]).expect(5);
        // The state in the bucket counts, not the local one.
        for entry in std::fs::read_dir(fixture.directory().join("backups")).unwrap().flatten() {
            if entry.file_name().to_str().unwrap().starts_with(sound["name"].as_str().unwrap()) {
                std::fs::remove_file(entry.path()).unwrap();
            }
        }
    }
    let names: Vec<_> = fixture.bucket.objects().into_keys().collect();
    assert!(names.contains(&format!("yarrow/{}", sound["name"].as_str().unwrap())), "{names:?}");
    assert_eq!(names.len(), 6, "{names:?}");
}

#[test]
fn rejects_a_backup_changed_in_the_bucket() {
    let fixture = Fixture::new("");
    let created = fixture.run(&["backup", "create"]).expect(0).json();
    let name = created["name"].as_str().unwrap();
    let key = format!("yarrow/{name}");
    let mut bytes = fixture.bucket.objects()[&key].clone();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    fixture.bucket.put(&key, &bytes);
    let elsewhere = fixture.temp_dir.path().join("elsewhere");
    let refused = fixture.run_on(&elsewhere, &["backup", "fetch", name]).expect(1);
    assert!(refused.stderr().contains("The size or checksum of the downloaded"), "{}", refused.stderr());
    let left = std::fs::read_dir(elsewhere.join("backups")).unwrap().flatten().count();
    assert_eq!(left, 1, "only the lock remains");
}

#[test]
fn doctor_checks_the_bucket() {
    let fixture = Fixture::new("");
    let bucket = |found: serde_json::Value| {
        let checks = found["checks"].as_array().unwrap().clone();
        checks.into_iter().find(|check| check["name"] == "backup bucket").unwrap()["verdict"].clone()
    };
    fixture.run(&["backup", "create"]).expect(0);
    assert_eq!(bucket(fixture.run(&["doctor"]).json()), "pass");
    let wrong = std::fs::read_to_string(&fixture.settings).unwrap().replace("wJalr", "wrong");
    std::fs::write(&fixture.settings, wrong).unwrap();
    assert_eq!(bucket(fixture.run(&["doctor"]).expect(5).json()), "fail");
}

#[test]
fn a_rejecting_bucket_keeps_the_backup_and_records_the_failure() {
    let fixture = Fixture::new("");
    let wrong = std::fs::read_to_string(&fixture.settings).unwrap().replace("wJalr", "wrong");
    std::fs::write(&fixture.settings, wrong).unwrap();
    let refused = fixture.run(&["backup", "create"]).expect(1);
    assert!(refused.stderr().contains("SignatureDoesNotMatch"), "{}", refused.stderr());
    assert!(fixture.bucket.objects().is_empty());
    assert_eq!(fixture.run(&["backup", "list"]).expect(0).json()["total"], 1);
    let alerts = fixture.run(&["alerts", "list"]).expect(0).json();
    let upload =
        alerts["items"].as_array().unwrap().iter().find(|item| item["rule"] == "backup_upload_failed").unwrap();
    assert_eq!(upload["firing"], true, "{alerts}");
    assert!(!refused.stderr().contains("wrongXUtn"), "a secret was printed");
}

#[test]
fn a_running_server_uploads_on_its_own() {
    let fixture = Fixture::new("");
    let mut server = Setup::default()
        .with_fast_jobs()
        .on(&fixture.directory())
        .with("CONFIG", &fixture.settings)
        .with("BACKUP_EVERY", "1 hour")
        .start();
    eventually("a backup in the bucket", || {
        fixture.bucket.objects().keys().any(|name| name.ends_with("-scheduled.db"))
    });
    assert_eq!(server.terminate(), Some(0));
}

#[test]
fn upload_records_dated_in_the_future_block_no_upload() {
    let fixture = Fixture::new("");
    let setup = Setup::default()
        .with_fast_jobs()
        .on(&fixture.directory())
        .with("CONFIG", &fixture.settings)
        .with("BACKUP_EVERY", "1 s");
    let server = setup.start();
    let uploaded = || fixture.bucket.objects().into_keys().filter(|name| name.ends_with("-scheduled.db")).count();
    eventually("an upload is recorded", || {
        server.value("select count(*) = 1 from settings where name = 'backup.upload'")
    });
    let ahead = "'$.at', 4070908800000, '$.name', 'yarrow-20990101T000000.000Z-scheduled.db'";
    let failed = r#"{"at":4070908800000,"code":"provider_failed","detail":""}"#;
    server.edit(&format!(
        "update settings set value = json_set(value, {ahead}) where name = 'backup.upload'; \
         insert into settings (name, value, updated_at) values ('backup.upload_failure', '{failed}', 1)"
    ));
    let before = uploaded();
    eventually("the next backup is uploaded", || uploaded() > before);
    let alerts = fixture.run(&["alerts", "list"]).expect(0).json();
    let upload = alerts["items"].as_array().unwrap().iter().find(|item| item["rule"] == "backup_upload_failed");
    assert_eq!(upload.unwrap()["firing"], false, "{alerts}");
}

#[test]
fn pauses_uploads_to_a_bucket_with_incomplete_listings() {
    let fixture = Fixture::new("");
    fixture.bucket.inject_fault(Fault::ListsNothing);
    let refused = fixture.run(&["backup", "create"]).expect(1);
    assert!(refused.stderr().contains("did not store all of"), "{}", refused.stderr());
    let sent = || fixture.bucket.provider.requests().iter().filter(|request| request.method == "PUT").count();
    let before = sent();
    let mut server = Setup::default()
        .with_fast_jobs()
        .on(&fixture.directory())
        .with("CONFIG", &fixture.settings)
        .with("BACKUP_EVERY", "1 s")
        // Its end is the end of a backup that it makes.
        .in_own_process()
        .start();
    // Several runs of the upload job.
    std::thread::sleep(std::time::Duration::from_secs(2));
    assert_eq!(sent(), before);
    assert_eq!(server.terminate(), Some(0));
    // Once listings are complete, the next upload succeeds.
    fixture.bucket.inject_fault(Fault::None);
    fixture.run(&["backup", "upload"]).expect(0);
    assert_eq!(fixture.run(&["backup", "upload"]).expect(0).json()["uploaded"], json!([]));
}

#[test]
fn uploads_a_partially_stored_backup_again() {
    let fixture = Fixture::new("");
    fixture.bucket.inject_fault(Fault::StoresHalf);
    let refused = fixture.run(&["backup", "create"]).expect(1);
    assert!(refused.stderr().contains("did not store all of"), "{}", refused.stderr());
    fixture.bucket.inject_fault(Fault::None);
    let uploaded = fixture.run(&["backup", "upload"]).expect(0).json();
    let newest = fixture.run(&["backup", "list"]).expect(0).json()["items"][0].clone();
    assert_eq!(uploaded["uploaded"], json!([newest["name"]]));
    let stored = fixture.bucket.objects()[&format!("yarrow/{}", newest["name"].as_str().unwrap())].clone();
    assert_eq!(stored, std::fs::read(newest["path"].as_str().unwrap()).unwrap());
    assert_eq!(fixture.run(&["backup", "upload"]).expect(0).json()["uploaded"], json!([]));
}

#[test]
fn rejects_a_truncated_listing() {
    let fixture = Fixture::new("");
    for _ in 0..2 {
        fixture.run(&["backup", "create"]).expect(0);
    }
    fixture.bucket.inject_fault(Fault::CutsLists);
    for command in [["backup", "upload"].as_slice(), &["backup", "list", "--remote"]] {
        let refused = fixture.run(command).expect(1);
        assert!(refused.stderr().contains("list_not_understood"), "{}", refused.stderr());
    }
}

#[test]
fn lists_all_pages_of_a_server_that_gives_no_tokens() {
    let fixture = Fixture::new("");
    for _ in 0..3 {
        fixture.run(&["backup", "create"]).expect(0);
    }
    let listed = |fault| {
        fixture.bucket.inject_fault(fault);
        fixture.run(&["backup", "list", "--remote"]).expect(0).json()["items"].clone()
    };
    // Each backup has a manifest: three pages.
    assert_eq!(listed(Fault::ListsByMarker), listed(Fault::None));
    assert_eq!(listed(Fault::ListsByMarker).as_array().unwrap().len(), 3);
    assert!(fixture.bucket.provider.requests().iter().any(|request| request.target.contains("marker=yarrow")));
}

#[test]
fn signs_every_attempt_anew() {
    let fixture = Fixture::new("");
    fixture.bucket.inject_fault(Fault::Refuses(503, "SlowDown"));
    fixture.run(&["backup", "create"]).expect(1);
    let sent = fixture.bucket.provider.requests().into_iter().filter(|request| request.method == "PUT");
    let signed_at: Vec<_> = sent
        .map(|request| request.target.split("X-Amz-Date=").nth(1).unwrap().split('&').next().unwrap().to_owned())
        .collect();
    // More time passes between the first and third attempt than a signature is valid.
    assert_eq!(signed_at.len(), 3);
    assert_ne!(signed_at[0], signed_at[2]);
}

#[test]
fn reports_errors_of_the_bucket() {
    let fixture = Fixture::new("");
    fixture.run(&["backup", "create"]).expect(0);
    for (status, code) in [(507, "QuotaExceeded"), (500, "InternalError")] {
        fixture.bucket.inject_fault(Fault::Refuses(status, code));
        let reported = fixture.run(&["backup", "create"]).expect(1);
        assert!(reported.stderr().contains(code), "{}", reported.stderr());
        assert!(!reported.stderr().contains("in time"), "{}", reported.stderr());
    }
}

#[test]
fn reports_parts_that_cannot_be_deleted() {
    let fixture = Fixture::new("");
    fixture.grow();
    fixture.bucket.keep_all();
    fixture.bucket.inject_fault(Fault::CompletesNothing);
    let arguments = ["backup", "create", "--config", &fixture.settings];
    let refused = CommandOutput::run_in_own_process(&fixture.directory(), &[], &arguments, "").expect(1);
    assert!(refused.stderr().contains("an incomplete upload could not be removed"), "{}", refused.stderr());
}

#[test]
fn rejects_a_file_with_too_many_parts_before_upload() {
    let bucket = FakeS3::new();
    let storage = ObjectStorage::new(&ObjectStorageSettings {
        endpoint: bucket.provider.url(),
        bucket: "backups".into(),
        region: fake_s3::REGION.into(),
        bucket_in_path: true,
        access_key_id: fake_s3::KEY_ID.into(),
        secret_access_key: fake_s3::KEY.into(),
    });
    let file = tempfile::NamedTempFile::new().unwrap();
    file.as_file().set_len((10_000 * (16 << 20)) + 1).unwrap();
    let failure = storage.unwrap().put("large", file.path(), &mut |_, _| ()).unwrap_err();
    assert_eq!((failure.kind, failure.code.as_str()), (FailureKind::Refused, "file_too_large"));
    assert_eq!(bucket.provider.requests().len(), 0);
}

#[test]
fn a_hanging_bucket_does_not_block_backups() {
    let fixture = Fixture::new("");
    fixture.bucket.inject_fault(Fault::TakesLong(600_000));
    let server = Setup::default()
        .with_fast_jobs()
        .on(&fixture.directory())
        .with("CONFIG", &fixture.settings)
        .with("BACKUP_EVERY", "1 s")
        .start();
    let is_asked = || fixture.bucket.provider.requests().iter().any(|request| request.method == "PUT");
    eventually("an upload hangs", is_asked);
    let count = || fixture.run(&["backup", "list"]).expect(0).json()["total"].as_i64().unwrap();
    let before = count();
    eventually("another backup is made", || count() > before);
    drop(server);
}

/// Runs a command against a hostile bucket and checks its exit code, memory and time.
fn expect_limited(fixture: &Fixture, fault: Fault, arguments: &[&str], exit_code: i32) {
    fixture.bucket.inject_fault(fault);
    let started_at = Instant::now();
    let arguments = [arguments, &["--config", &fixture.settings]].concat();
    let (ended, peak) = peak_memory(&fixture.directory(), &arguments);
    let took = started_at.elapsed();
    println!("{fault:?}, {arguments:?}: {} MiB, {took:?}", peak >> 20);
    assert_eq!(ended, Some(exit_code), "{fault:?}, {arguments:?}");
    assert!(peak < 200 << 20, "{fault:?}, {arguments:?}: {peak} bytes");
    assert!(took < Duration::from_mins(2), "{fault:?}, {arguments:?}: {took:?}");
}

#[test]
fn a_bucket_without_end_takes_neither_memory_nor_time() {
    let fixture = Fixture::new("");
    let created = fixture.run(&["backup", "create"]).expect(0).json();
    let name = created["name"].as_str().unwrap();
    for fault in [Fault::ListsWithoutEnd, Fault::EmptyPages, Fault::EndlessPage] {
        for command in [&["backup", "list", "--remote"][..], &["backup", "upload"], &["backup", "fetch", name]] {
            expect_limited(&fixture, fault, command, 1);
        }
    }
    // The doctor asks for one page only.
    expect_limited(&fixture, Fault::EndlessPage, &["doctor"], 5);
    let fetched = fixture.directory().join("backups").join(name);
    std::fs::remove_file(&fetched).unwrap();
    for fault in [Fault::EndlessManifests, Fault::EndlessBackups] {
        expect_limited(&fixture, fault, &["backup", "fetch", name], 1);
        assert!(!fetched.exists(), "{fault:?}");
    }
    let left: Vec<_> = std::fs::read_dir(fixture.directory().join("backups")).unwrap().flatten().collect();
    assert!(left.iter().all(|file| file.metadata().unwrap().len() < 64 << 20), "{left:?}");
    fixture.bucket.inject_fault(Fault::None);
    fixture.run(&["backup", "fetch", name]).expect(0);
}
