//! Backups in a bucket: up, down, pruned there, and what happens when the bucket is unwell.

use std::path::{Path, PathBuf};

use rusqlite::Connection;
use serde_json::json;
use tempfile::TempDir;

use yarrow::providers::{
    FailureKind,
    object_storage::{ObjectStorage, Settings},
};

use crate::support::{
    Ended, Setup,
    bucket::{self, Bucket, Fault},
    eventually, log_statement,
};

const PHONE: &str = "13800138000";

/// A data directory at rest, and a configuration that knows the bucket.
struct Place {
    temporary: TempDir,
    bucket: Bucket,
    settings: String,
}

impl Place {
    fn new(more_settings: &str) -> Self {
        let (temporary, bucket) = (tempfile::tempdir().unwrap(), Bucket::new());
        let mut server = Setup::default().on(&temporary.path().join("data")).with("BACKUP_EVERY", "0 s").start();
        server.sign_in(PHONE);
        assert_eq!(server.terminate(), Some(0));
        let file = temporary.path().join("yarrow.toml");
        std::fs::write(&file, format!("{}{more_settings}", bucket.settings())).unwrap();
        Self { temporary, bucket, settings: file.to_str().unwrap().to_owned() }
    }

    fn directory(&self) -> PathBuf {
        self.temporary.path().join("data")
    }

    fn run_on(&self, directory: &Path, arguments: &[&str]) -> Ended {
        Ended::run(directory, &[arguments, &["--config", &self.settings]].concat(), "")
    }

    fn run(&self, arguments: &[&str]) -> Ended {
        self.run_on(&self.directory(), arguments)
    }

    /// Makes the next backup one that goes up in parts.
    fn grow(&self) {
        let database = Connection::open(self.directory().join("yarrow.db")).unwrap();
        let fill = "with recursive counter (n) as (select 1 union all select n + 1 from counter where n < 7000) \
                    select 9000000000000, null, hex(randomblob(1500)), 'GET', null, 200, 1, 'filler' from counter";
        database.execute_batch(&log_statement(fill)).unwrap();
    }
}

#[test]
fn a_backup_goes_up_and_comes_down_on_another_machine() {
    let place = Place::new("");
    let made = place.run(&["backup", "create"]).expect(0).json();
    let name = made["name"].as_str().unwrap();
    let stored = place.bucket.objects();
    assert_eq!(stored.keys().collect::<Vec<_>>(), [&format!("yarrow/{name}"), &format!("yarrow/{name}.json")]);
    assert_eq!(stored[&format!("yarrow/{name}")], std::fs::read(made["path"].as_str().unwrap()).unwrap());

    let elsewhere = place.temporary.path().join("elsewhere");
    let listed = place.run_on(&elsewhere, &["backup", "list", "--remote"]).expect(0).json();
    assert_eq!(listed["items"][0]["name"], name, "{listed}");
    place.run_on(&elsewhere, &["backup", "fetch", name]).expect(0);
    let verified = place.run_on(&elsewhere, &["backup", "verify", name]).expect(0).json();
    assert_eq!(verified["checksum"], "right", "{verified}");
    place.run_on(&elsewhere, &["restore", name, "--yes"]).expect(0);
    let database = Connection::open(elsewhere.join("yarrow.db")).unwrap();
    let phone: String = database.query_row("select phone_number from users", [], |row| row.get(0)).unwrap();
    assert_eq!(phone, PHONE);
    place.run_on(&elsewhere, &["backup", "fetch", "yarrow-20200101T000000.000Z-manual.db"]).expect(4);
}

#[test]
fn a_large_backup_goes_up_in_parts_and_over_faults() {
    let place = Place::new("");
    place.grow();
    place.bucket.fail(2);
    let made = place.run(&["backup", "create"]).expect(0).json();
    let bytes = std::fs::read(made["path"].as_str().unwrap()).unwrap();
    assert!(bytes.len() > 17 << 20);
    let stored = place.bucket.objects();
    assert_eq!(stored.len(), 2);
    assert!(stored.values().any(|object| *object == bytes), "what is there is not what was sent");
}

#[test]
fn the_rules_hold_in_the_bucket_too() {
    let place = Place::new("keep_hourly = 2\nkeep_daily = 0\n");
    place.bucket.put("yarrow/yarrow-20200101T000000.000Z-scheduled.db", b"old");
    place.bucket.put("yarrow/not-one-of-ours.txt", b"kept");
    place.bucket.put("yarrow-20200101T000000.000Z-scheduled.db", b"elsewhere");
    for _ in 0..3 {
        place.run(&["backup", "create"]).expect(0);
    }
    let names: Vec<_> = place.bucket.objects().into_keys().collect();
    assert_eq!(names.iter().filter(|name| name.ends_with("-manual.db")).count(), 2, "{names:?}");
    assert_eq!(names.iter().filter(|name| name.ends_with("-manual.db.json")).count(), 2, "{names:?}");
    assert_eq!(names.len(), 6, "{names:?}");
}

#[test]
fn a_bucket_from_which_nothing_may_be_deleted_takes_backups() {
    let place = Place::new("keep_hourly = 1\nkeep_daily = 0\n");
    place.bucket.keep_all();
    for _ in 0..4 {
        place.run(&["backup", "create"]).expect(0);
    }
    assert_eq!(place.bucket.objects().len(), 8, "{:?}", place.bucket.objects().keys());
    let uploaded = place.run(&["backup", "upload"]).expect(0).json();
    assert_eq!((&uploaded["uploaded"], &uploaded["deleted"]), (&json!([]), &json!([])));
    assert!(uploaded["notDeleted"].as_str().unwrap().contains("AccessDenied"), "{uploaded}");
    let alerts = place.run(&["alerts", "list"]).expect(0).json();
    let upload = alerts["items"].as_array().unwrap().iter().find(|item| item["rule"] == "backup_upload_failed");
    assert_eq!(upload.unwrap()["firing"], false, "{alerts}");
}

#[test]
fn a_backup_of_a_clock_that_was_ahead_holds_up_no_upload() {
    let place = Place::new("");
    let made = place.run(&["backup", "create"]).expect(0).json();
    let (path, name) = (Path::new(made["path"].as_str().unwrap()), "yarrow-20990101T000000.000Z-scheduled.db");
    std::fs::copy(path, path.with_file_name(name)).unwrap();
    place.bucket.put(&format!("yarrow/{name}"), b"from the future");
    let next = place.run(&["backup", "create"]).expect(0).json();
    let key = format!("yarrow/{}", Path::new(next["path"].as_str().unwrap()).file_name().unwrap().to_str().unwrap());
    assert!(place.bucket.objects().contains_key(&key), "{:?}", place.bucket.objects().keys());
}

#[test]
fn the_newest_sound_backup_stays_in_the_bucket() {
    let place = Place::new("keep_hourly = 1\nkeep_daily = 0\n");
    place.run(&["coins", "grant", PHONE, "5"]).expect(0);
    let sound = place.run(&["backup", "create"]).expect(0).json();
    let break_it = "update balances set balance = balance + 1 where balance > 0";
    Connection::open(place.directory().join("yarrow.db")).unwrap().execute(break_it, []).unwrap();
    for _ in 0..4 {
        place.run(&["backup", "create"]).expect(5);
        // What is said in the bucket counts, and not what is still here.
        for entry in std::fs::read_dir(place.directory().join("backups")).unwrap().flatten() {
            if entry.file_name().to_str().unwrap().starts_with(sound["name"].as_str().unwrap()) {
                std::fs::remove_file(entry.path()).unwrap();
            }
        }
    }
    let names: Vec<_> = place.bucket.objects().into_keys().collect();
    assert!(names.contains(&format!("yarrow/{}", sound["name"].as_str().unwrap())), "{names:?}");
    assert_eq!(names.len(), 6, "{names:?}");
}

#[test]
fn what_was_changed_in_the_bucket_is_not_taken() {
    let place = Place::new("");
    let made = place.run(&["backup", "create"]).expect(0).json();
    let name = made["name"].as_str().unwrap();
    let key = format!("yarrow/{name}");
    let mut bytes = place.bucket.objects()[&key].clone();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    place.bucket.put(&key, &bytes);
    let elsewhere = place.temporary.path().join("elsewhere");
    let refused = place.run_on(&elsewhere, &["backup", "fetch", name]).expect(1);
    assert!(refused.complaint().contains("did not arrive as it was sent"), "{}", refused.complaint());
    let left = std::fs::read_dir(elsewhere.join("backups")).unwrap().flatten().count();
    assert_eq!(left, 1, "only the lock is there");
}

#[test]
fn doctor_asks_the_bucket() {
    let place = Place::new("");
    let bucket = |found: serde_json::Value| {
        let checks = found["checks"].as_array().unwrap().clone();
        checks.into_iter().find(|check| check["name"] == "backup bucket").unwrap()["verdict"].clone()
    };
    place.run(&["backup", "create"]).expect(0);
    assert_eq!(bucket(place.run(&["doctor"]).json()), "pass");
    let wrong = std::fs::read_to_string(&place.settings).unwrap().replace("wJalr", "wrong");
    std::fs::write(&place.settings, wrong).unwrap();
    assert_eq!(bucket(place.run(&["doctor"]).expect(5).json()), "fail");
}

#[test]
fn a_bucket_that_refuses_leaves_the_backup_and_is_remembered() {
    let place = Place::new("");
    let wrong = std::fs::read_to_string(&place.settings).unwrap().replace("wJalr", "wrong");
    std::fs::write(&place.settings, wrong).unwrap();
    let refused = place.run(&["backup", "create"]).expect(1);
    assert!(refused.complaint().contains("SignatureDoesNotMatch"), "{}", refused.complaint());
    assert!(place.bucket.objects().is_empty());
    assert_eq!(place.run(&["backup", "list"]).expect(0).json()["total"], 1);
    let alerts = place.run(&["alerts", "list"]).expect(0).json();
    let upload =
        alerts["items"].as_array().unwrap().iter().find(|item| item["rule"] == "backup_upload_failed").unwrap();
    assert_eq!(upload["firing"], true, "{alerts}");
    assert!(!refused.complaint().contains("wrongXUtn"), "a secret was told");
}

#[test]
fn a_running_server_uploads_by_itself() {
    let place = Place::new("");
    let mut server =
        Setup::default().on(&place.directory()).with("CONFIG", &place.settings).with("BACKUP_EVERY", "1 hour").start();
    eventually("a backup in the bucket", || place.bucket.objects().keys().any(|name| name.ends_with("-scheduled.db")));
    assert_eq!(server.terminate(), Some(0));
}

#[test]
fn what_a_clock_that_was_ahead_noted_of_the_bucket_holds_up_no_upload() {
    let place = Place::new("");
    let setup = Setup::default().on(&place.directory()).with("CONFIG", &place.settings).with("BACKUP_EVERY", "1 s");
    let server = setup.start();
    let uploaded = || place.bucket.objects().into_keys().filter(|name| name.ends_with("-scheduled.db")).count();
    eventually("an upload is noted", || server.value("select count(*) = 1 from settings where name = 'backup.upload'"));
    let ahead = "'$.at', 4070908800000, '$.name', 'yarrow-20990101T000000.000Z-scheduled.db'";
    let failed = r#"{"at":4070908800000,"code":"provider_failed","detail":""}"#;
    server.edit(&format!(
        "update settings set value = json_set(value, {ahead}) where name = 'backup.upload'; \
         insert into settings (name, value, updated_at) values ('backup.upload_failure', '{failed}', 1)"
    ));
    let before = uploaded();
    eventually("the next backup goes up", || uploaded() > before);
    let alerts = place.run(&["alerts", "list"]).expect(0).json();
    let upload = alerts["items"].as_array().unwrap().iter().find(|item| item["rule"] == "backup_upload_failed");
    assert_eq!(upload.unwrap()["firing"], false, "{alerts}");
}

#[test]
fn a_bucket_that_does_not_list_what_it_took_is_left_alone_for_a_while() {
    let place = Place::new("");
    place.bucket.suffer(Fault::ListsNothing);
    let refused = place.run(&["backup", "create"]).expect(1);
    assert!(refused.complaint().contains("did not store all of"), "{}", refused.complaint());
    let sent = || place.bucket.vendor.requests().iter().filter(|request| request.method == "PUT").count();
    let before = sent();
    let mut server =
        Setup::default().on(&place.directory()).with("CONFIG", &place.settings).with("BACKUP_EVERY", "1 s").start();
    // Some more of the times at which it is looked whether something is to be uploaded.
    std::thread::sleep(std::time::Duration::from_secs(12));
    assert_eq!(sent(), before);
    assert_eq!(server.terminate(), Some(0));
    // Once it lists again, the next upload puts all to rights.
    place.bucket.suffer(Fault::None);
    place.run(&["backup", "upload"]).expect(0);
    assert_eq!(place.run(&["backup", "upload"]).expect(0).json()["uploaded"], json!([]));
}

#[test]
fn what_was_stored_in_part_goes_up_again() {
    let place = Place::new("");
    place.bucket.suffer(Fault::StoresHalf);
    let refused = place.run(&["backup", "create"]).expect(1);
    assert!(refused.complaint().contains("did not store all of"), "{}", refused.complaint());
    place.bucket.suffer(Fault::None);
    let uploaded = place.run(&["backup", "upload"]).expect(0).json();
    let newest = place.run(&["backup", "list"]).expect(0).json()["items"][0].clone();
    assert_eq!(uploaded["uploaded"], json!([newest["name"]]));
    let stored = place.bucket.objects()[&format!("yarrow/{}", newest["name"].as_str().unwrap())].clone();
    assert_eq!(stored, std::fs::read(newest["path"].as_str().unwrap()).unwrap());
    assert_eq!(place.run(&["backup", "upload"]).expect(0).json()["uploaded"], json!([]));
}

#[test]
fn a_list_that_was_cut_is_no_list() {
    let place = Place::new("");
    for _ in 0..2 {
        place.run(&["backup", "create"]).expect(0);
    }
    place.bucket.suffer(Fault::CutsLists);
    for command in [["backup", "upload"].as_slice(), &["backup", "list", "--remote"]] {
        let refused = place.run(command).expect(1);
        assert!(refused.complaint().contains("list_not_understood"), "{}", refused.complaint());
    }
}

#[test]
fn every_try_is_signed_anew() {
    let place = Place::new("");
    place.bucket.suffer(Fault::Refuses(503, "SlowDown"));
    place.run(&["backup", "create"]).expect(1);
    let sent = place.bucket.vendor.requests().into_iter().filter(|request| request.method == "PUT");
    let signed_at: Vec<_> = sent
        .map(|request| request.target.split("X-Amz-Date=").nth(1).unwrap().split('&').next().unwrap().to_owned())
        .collect();
    // Between the first and the third lie more than the seconds in which addresses count.
    assert_eq!(signed_at.len(), 3);
    assert_ne!(signed_at[0], signed_at[2]);
}

#[test]
fn what_the_bucket_says_is_told() {
    let place = Place::new("");
    place.run(&["backup", "create"]).expect(0);
    for (status, code) in [(507, "QuotaExceeded"), (500, "InternalError")] {
        place.bucket.suffer(Fault::Refuses(status, code));
        let told = place.run(&["backup", "create"]).expect(1);
        assert!(told.complaint().contains(code), "{}", told.complaint());
        assert!(!told.complaint().contains("in time"), "{}", told.complaint());
    }
}

#[test]
fn parts_that_cannot_be_taken_back_are_told() {
    let place = Place::new("");
    place.grow();
    place.bucket.keep_all();
    place.bucket.suffer(Fault::CompletesNothing);
    let refused = place.run(&["backup", "create"]).expect(1);
    assert!(refused.complaint().contains("an incomplete upload could not be taken back"), "{}", refused.complaint());
}

#[test]
fn a_file_of_too_many_parts_is_refused_before_it_is_sent() {
    let bucket = Bucket::new();
    let storage = ObjectStorage::new(&Settings {
        endpoint: bucket.vendor.url(),
        bucket: "backups".into(),
        region: bucket::REGION.into(),
        bucket_in_path: true,
        access_key_id: bucket::KEY_ID.into(),
        secret_access_key: bucket::KEY.into(),
    });
    let file = tempfile::NamedTempFile::new().unwrap();
    file.as_file().set_len((10_000 * (16 << 20)) + 1).unwrap();
    let failure = storage.unwrap().put("large", file.path(), &mut |_, _| ()).unwrap_err();
    assert_eq!((failure.kind, failure.code.as_str()), (FailureKind::Refused, "file_too_large"));
    assert_eq!(bucket.vendor.requests().len(), 0);
}

#[test]
fn a_bucket_that_hangs_holds_up_no_backup() {
    let place = Place::new("");
    place.bucket.suffer(Fault::TakesLong(600_000));
    let server =
        Setup::default().on(&place.directory()).with("CONFIG", &place.settings).with("BACKUP_EVERY", "1 s").start();
    let is_asked = || place.bucket.vendor.requests().iter().any(|request| request.method == "PUT");
    eventually("an upload hangs", is_asked);
    let count = || place.run(&["backup", "list"]).expect(0).json()["total"].as_i64().unwrap();
    let before = count();
    eventually("another backup is made", || count() > before);
    drop(server);
}
