//! API keys: created and revoked by command, used over HTTP.

use crate::support::{Setup, contents_of, holds};

#[test]
fn a_key_works_until_revoked() {
    let server = Setup::default().start();
    let key = server.api_key("billing");
    let other = server.api_key("reports");
    assert!(key.starts_with("yk_") && key != other);
    server.command(&["admin", "key", "create", "billing"]).expect(1);
    let sync = |key: &str| server.post("/coin/sync").token(key).send();
    let listed = || server.command(&["admin", "key", "list"]).expect(0).json()["items"].clone();
    assert!(listed()[0]["lastUsedAt"].is_null());
    sync(&key).expect(200);
    assert!(listed()[0]["lastUsedAt"].is_string());
    assert!(listed()[1]["lastUsedAt"].is_null());
    assert!(!listed().to_string().contains(&key));

    server.command(&["admin", "key", "revoke", "billing"]).expect(2);
    sync(&key).expect(200);
    server.command(&["admin", "key", "revoke", "billing", "--yes"]).expect(0);
    std::thread::sleep(std::time::Duration::from_millis(100));
    sync(&key).expect_problem(401, "unauthenticated");
    sync(&other).expect(200);
    assert!(listed()[0]["revokedAt"].is_string());
    server.command(&["admin", "key", "revoke", "billing", "--yes"]).expect(4);
    // The label stays taken, because audit events refer to it.
    server.command(&["admin", "key", "create", "billing"]).expect(1);
}

#[test]
fn stores_keys_as_hashes() {
    let server = Setup::default().in_own_process().start();
    let key = server.api_key("billing");
    server.post("/coin/sync").token(&key).send().expect(200);
    let directory = server.kill();
    for bytes in contents_of(&directory) {
        assert!(!holds(&bytes, key.as_bytes()));
    }
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn rejects_labels_that_look_like_credentials() {
    let server = Setup::default().start();
    for token in [format!("yk_{}", "a".repeat(43)), format!("ys_{}", "a".repeat(43)), "yk_".into()] {
        server.post("/coin/sync").token(&token).send().expect_problem(401, "unauthenticated");
        // No token is needed there.
        server.get("/healthz").token(&token).send().expect(200);
    }
}
