//! A clock that was ahead: timestamps in the future must not block or delete anything.

use serde_json::json;
use yarrow::domain::operations::retention;

use crate::support::{CommandOutput, Database, Setup, eventually, eventually_some, open_app};

const AHEAD: i64 = 40 * 24 * 3_600_000;
const PHONE: &str = "13800138000";

#[test]
fn limits_ignore_timestamps_in_the_future() {
    let server = Setup::default().with("LIMITS_FEEDBACK_PER_USER", 1).start();
    let user = server.sign_in(PHONE);
    let ask = || server.post("/auth/send-code").json(&json!({ "phoneNumber": PHONE })).send();
    ask().expect(429);
    server.edit(&format!("update code_sends set sent_at = sent_at + {AHEAD}"));
    ask().expect(200);
    ask().expect(429);
    let write = || server.post("/feedback").by(&user).json(&json!({ "content": "请加上小六壬。" })).send();
    write().expect(200);
    write().expect(429);
    server.edit(&format!("update feedback set created_at = created_at + {AHEAD}"));
    write().expect(200);
    server.admin("alice", "correct horse battery staple");
    let sign_in = |password: &str| {
        server.post("/admin/login").json(&json!({ "name": "alice", "password": password })).send().status
    };
    eventually("too many attempts", || sign_in("wrong") == 429);
    assert_eq!(sign_in("correct horse battery staple"), 429);
    server.edit(&format!("update admin_attempts set tried_at = tried_at + {AHEAD}"));
    assert_eq!(sign_in("correct horse battery staple"), 200);
}

#[test]
fn backups_and_checks_continue() {
    let server =
        Setup::default().with_fast_jobs().with("BACKUP_EVERY", "1 s").with("DATABASE_CHECK_EVERY", "1 s").start();
    let ready = || server.get("/readyz").send().expect(200).json();
    let backup = eventually_some("a backup", || ready()["backupAt"].as_str().map(ToOwned::to_owned));
    let directory = server.directory().join("backups");
    let newest = std::fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path());
    let newest = newest.filter(|path| path.extension().is_some_and(|extension| extension == "db")).max().unwrap();
    std::fs::copy(newest, directory.join("yarrow-20990102T030405.678Z-scheduled.db")).unwrap();
    let later = "json_set(value, '$.at', 4070908800000)";
    server.edit(&format!("update settings set value = {later} where name in ('backup.last', 'database.check')"));
    let failed = r#"{"at":4070908800000,"code":"storage_full","detail":""}"#;
    server.edit(&format!("insert into settings (name, value, updated_at) values ('backup.failure', '{failed}', 1)"));
    for name in ["backupAt", "databaseCheckedAt"] {
        eventually(name, || {
            let found = ready();
            found[name].as_str().is_some_and(|at| at > backup.as_str() && at < "2099")
        });
    }
    assert_eq!(ready()["backups"], "current");
}

/// Makes the clock appear to be three days ahead.
const LONG_AGO: &str = "insert into settings (name, value, updated_at) \
     values ('clock.trusted_until', unixepoch() * 1000 - 3 * 86400000, 1) \
     on conflict (name) do update set value = excluded.value";

#[test]
fn a_clock_days_ahead_prunes_no_backup() {
    let temp_dir = tempfile::tempdir().unwrap();
    let directory = temp_dir.path().join("data");
    let mut server = Setup::default().on(&directory).with("BACKUP_EVERY", "0 s").in_own_process().start();
    for _ in 0..4 {
        CommandOutput::run(&directory, &["backup", "create"], "").expect(0);
    }
    server.edit(LONG_AGO);
    assert_eq!(server.terminate(), Some(0));
    let count = || {
        let listed = CommandOutput::run(&directory, &["backup", "list"], "").expect(0).json();
        listed["total"].as_i64().unwrap()
    };
    let setup = Setup::default().with_fast_jobs().on(&directory).with("BACKUP_EVERY", "1 s");
    let mut server = setup.with("BACKUP_KEEP_HOURLY", 1).with("BACKUP_KEEP_DAILY", 0).in_own_process().start();
    server.wait_for_line("the clock jumped ahead by days");
    eventually("another backup", || count() > 4);
    server.edit("update settings set value = unixepoch() * 1000 where name = 'clock.trusted_until'");
    eventually("the rules apply again", || count() == 2);
}

#[test]
fn a_clock_days_ahead_deletes_nothing_by_age() {
    let (directory, app) = open_app(&[]);
    let database = Database::open(directory.path());
    let old = "insert into code_sends (address, client_network, sent_at) values ('old', '192.0.2.1', 1)";
    database.execute_batch(&format!("{old}; {LONG_AGO}")).unwrap();
    assert_eq!(retention::sweep_if_clock_trusted(&app.clock_guard, &app.network_log, &|| true).unwrap(), 0);
    // A repeated sweep deletes nothing either. A corrected clock is trusted at once.
    assert_eq!(retention::sweep_if_clock_trusted(&app.clock_guard, &app.network_log, &|| true).unwrap(), 0);
    database
        .execute_batch("update settings set value = unixepoch() * 1000 where name = 'clock.trusted_until'")
        .unwrap();
    assert_eq!(retention::sweep_if_clock_trusted(&app.clock_guard, &app.network_log, &|| true).unwrap(), 1);
    // An explicit sweep deletes in any case.
    database.execute_batch(&format!("{old}; {LONG_AGO}")).unwrap();
    assert_eq!(retention::sweep(&app.core, &app.network_log).unwrap(), 1);
}
