//! A clock that was ahead for a while: what it leaves behind is of a time to come, and nothing waits for that.

use serde_json::json;

use crate::kit::{Setup, eventually, found_eventually};

const AHEAD: i64 = 40 * 24 * 3_600_000;
const PHONE: &str = "13800138000";

#[test]
fn limits_count_nothing_of_a_time_to_come() {
    let server = Setup::default().with("LIMITS_FEEDBACK_PER_USER", 1).start();
    let user = server.sign_in(PHONE);
    let ask = || server.post("/auth/send-code").json(&json!({ "phoneNumber": PHONE })).send();
    ask().expect(429);
    server.edit(&format!("update code_sends set sent_at = sent_at + {AHEAD}"));
    ask().expect(200);
    ask().expect(429);
    let write = || server.post("/feedback").by(&user).json(&json!({ "content": "请加上小六壬。" })).send();
    write().expect(201);
    write().expect(429);
    server.edit(&format!("update feedback set created_at = created_at + {AHEAD}"));
    write().expect(201);
    server.admin("alice", "correct horse battery staple");
    let sign_in = |password: &str| {
        server.post("/admin/login").json(&json!({ "name": "alice", "password": password })).send().status
    };
    eventually("too many tries", || sign_in("wrong") == 429);
    assert_eq!(sign_in("correct horse battery staple"), 429);
    server.edit(&format!("update admin_attempts set tried_at = tried_at + {AHEAD}"));
    assert_eq!(sign_in("correct horse battery staple"), 200);
}

#[test]
fn backups_and_checks_go_on() {
    let server = Setup::default().with("BACKUP_EVERY", "1 s").with("DATABASE_CHECK_EVERY", "1 s").start();
    let ready = || server.get("/readyz").send().expect(200).json();
    let backup = found_eventually("a backup", || ready()["backupAt"].as_str().map(ToOwned::to_owned));
    let directory = server.directory().join("backups");
    let newest = std::fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path());
    let newest = newest.filter(|path| path.extension().is_some_and(|extension| extension == "db")).max().unwrap();
    std::fs::copy(newest, directory.join("yarrow-20990102T030405.678Z-scheduled.db")).unwrap();
    let later = "json_set(value, '$.at', 4070908800000)";
    server.edit(&format!("update settings set value = {later} where name in ('backup.last', 'database.check')"));
    for name in ["backupAt", "databaseCheckedAt"] {
        eventually(name, || {
            let found = ready();
            found[name].as_str().is_some_and(|at| at > backup.as_str() && at < "2099")
        });
    }
    assert_eq!(ready()["backups"], "current");
}
