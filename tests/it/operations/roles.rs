//! Roles: which administrators and keys may call which endpoints.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::{
    endpoint_access::{Access, expected_access},
    support::{Document, Server, Setup, eventually},
};

const ROLES: [&str; 4] = ["read-only", "support", "moderator", "owner"];

const EVERY_ROLE: &[&str] = &["read-only", "support", "moderator", "owner"];
const SUPPORT: &[&str] = &["support", "owner"];
const MODERATOR: &[&str] = &["moderator", "owner"];
const AUDITED: &[&str] = &["support", "moderator", "owner"];
const OWNER: &[&str] = &["owner"];

/// The roles that may call each endpoint of administrators, beside `POST /admin/logout`, which every role may.
const MATRIX: &[(&[&str], &[&str])] = &[
    (
        EVERY_ROLE,
        &[
            "GET /divination/stats/daterange/count",
            "GET /admin/figures",
            "GET /admin/figures/castings",
            "GET /admin/health",
            "GET /admin/payments/report",
            "GET /admin/products",
            "GET /admin/products/{id}",
            "GET /admin/releases",
        ],
    ),
    (
        SUPPORT,
        &[
            "GET /user/profile",
            "POST /admin/user-data/sync",
            "GET /admin/user-data/validate/user/{userId}",
            "GET /admin/user-data/validate/phone/{phoneNumber}",
            "POST /admin/user-data/fix/{phoneNumber}",
            "POST /admin/user-data/restore-history/{userId}",
            "POST /admin/user-data/validate/batch",
            "GET /admin/user-data/test/user-info/{userId}",
            "GET /admin/code-messages",
            "GET /admin/users/{userId}/devices",
            "DELETE /admin/users/{userId}/devices",
            "DELETE /admin/users/{userId}/devices/{id}",
            "PUT /admin/users/{userId}/phone-number",
            "GET /admin/interpretation-ratings",
            "GET /divination/records/user/{userId}",
            "GET /divination/records/trace/{traceId}",
            "GET /divination/records/phone/{phoneNumber}",
            "GET /divination/records/user/{userId}/daterange",
            "GET /divination/records/failed",
            "GET /divination/records/slow",
            "GET /divination/stats/user/{userId}/count",
            "GET /coin/balance",
            "GET /coin/balance/phone",
            "POST /coin/increase/phone",
            "POST /coin/sync",
            "GET /admin/purchases",
            "GET /admin/purchases/{id}",
            "POST /admin/purchases/{id}/history",
            "POST /admin/purchases/{id}/query",
            "GET /admin/payments",
            "GET /admin/payments/bills",
            "GET /admin/payments/callbacks",
            "POST /admin/payments/callbacks/{id}/replay",
            "GET /admin/payments/{orderNo}",
            "POST /admin/payments/{orderNo}/query",
            "GET /admin/notifications",
            "GET /admin/feedback",
            "PATCH /admin/feedback/{id}",
            "POST /admin/feedback/{id}/reply",
            "GET /admin/network-logs/user/{userId}",
            "GET /admin/network-logs/ip/{clientIp}",
            "GET /admin/network-logs/time-range",
            "GET /admin/network-logs/failed",
            "GET /admin/network-logs/suspicious",
            "GET /admin/network-logs/count/ip",
        ],
    ),
    (
        MODERATOR,
        &[
            "POST /content-moderation/check-question",
            "POST /admin/users/{userId}/suspension",
            "DELETE /admin/users/{userId}/suspension",
            "DELETE /admin/users/{userId}/nickname",
            "GET /admin/sensitive-words/statistics",
            "GET /admin/sensitive-words/list",
            "POST /admin/sensitive-words/add",
            "POST /admin/sensitive-words/import",
            "GET /admin/sensitive-words/allowed-phrases",
            "POST /admin/sensitive-words/allowed-phrases",
            "DELETE /admin/sensitive-words/allowed-phrases",
            "DELETE /admin/sensitive-words/remove",
            "POST /admin/sensitive-words/test/nickname",
            "POST /admin/sensitive-words/test/signature",
            "POST /admin/sensitive-words/test/question",
            "POST /admin/sensitive-words/test/answer",
            "GET /admin/violations/list",
            "GET /admin/violations/user/{userId}/stats",
            "GET /admin/violations/stats/types",
            "GET /admin/violations/frequent-violators",
            "GET /admin/violations/review",
            "POST /admin/violations/review/decide",
            "POST /admin/violations/review/undo",
            "POST /admin/violations/{id}/acquittal",
            "DELETE /admin/violations/{id}/acquittal",
            "GET /admin/violations/{id}",
            "GET /admin/sensitive-word-migration/status",
            "POST /admin/sensitive-word-migration/compare",
            "POST /admin/sensitive-word-migration/batch-compare",
            "GET /admin/sensitive-word-migration/disagreements",
            "GET /admin/sensitive-word-migration/health-check",
        ],
    ),
    (
        AUDITED,
        &[
            "GET /admin/audit",
            "GET /admin/users",
            "GET /admin/users/{userId}/suspensions",
            "GET /admin/users/{userId}/notes",
            "POST /admin/users/{userId}/notes",
            "DELETE /admin/users/{userId}/notes/{id}",
        ],
    ),
    (
        OWNER,
        &[
            "POST /coin/reset",
            "POST /coin/reset/phone",
            "POST /payment/update-balance",
            "PUT /admin/products/{id}",
            "POST /admin/products/{id}/offer",
            "POST /admin/products/{id}/withdraw",
            "POST /admin/payments/bill",
            "POST /admin/payments/{orderNo}/settle",
            "POST /admin/payments/{orderNo}/refund",
            "POST /admin/payments/{orderNo}/sandbox-pay",
            "DELETE /admin/violations/cleanup",
            "POST /admin/sensitive-word-migration/switch",
            "POST /admin/sensitive-word-migration/fallback",
            "POST /admin/notifications",
            "DELETE /admin/notifications/{id}",
            "POST /admin/releases",
            "POST /admin/releases/{id}/withdraw",
            "GET /admin/administrators",
            "POST /admin/administrators",
            "PATCH /admin/administrators/{name}",
            "DELETE /admin/administrators/{name}",
            "GET /admin/api-keys",
            "POST /admin/api-keys",
            "PATCH /admin/api-keys/{label}",
            "DELETE /admin/api-keys/{label}",
            "DELETE /admin/network-logs/cleanup",
            "GET /admin/logs",
            "GET /admin/webhooks",
            "POST /admin/webhooks/replay",
            "POST /admin/webhooks/test",
            "POST /admin/health/alert-test",
            "POST /admin/health/backup",
            "POST /admin/health/ledger-verification",
            "POST /admin/health/doctor",
            "DELETE /admin/data-cleanup/all",
            "DELETE /admin/data-cleanup/verification-codes",
            "DELETE /admin/data-cleanup/payment-records",
            "DELETE /admin/data-cleanup/feedback",
        ],
    ),
];

/// Returns all endpoints that administrators may call.
pub fn endpoints() -> impl Iterator<Item = &'static str> {
    MATRIX.iter().flat_map(|(_, endpoints)| endpoints.iter().copied())
}

fn expected_roles(endpoint: &str) -> &'static [&'static str] {
    let row = MATRIX.iter().find(|(_, endpoints)| endpoints.contains(&endpoint));
    row.unwrap_or_else(|| panic!("{endpoint} has no expected roles")).0
}

/// Creates an API key with a role.
fn key_with_role(server: &Server, label: &str, role: &str) -> String {
    let created = server.command(&["admin", "key", "create", label, "--role", role]).expect(0).json();
    created["key"].as_str().unwrap().to_owned()
}

#[test]
fn each_role_may_call_its_endpoints_only() {
    let server = Setup::default().start();
    let user = server.sign_in("13800138000");
    let keys = ROLES.map(|role| key_with_role(&server, role, role));
    let document = Document::of(&server);
    let named: BTreeSet<&str> = endpoints().collect();
    let mut served = BTreeSet::new();
    for operation in &document.operations {
        let is_for_admins = matches!(expected_access(operation), Access::Admin | Access::OwnUserOrAdmin);
        let name = operation.name();
        if !is_for_admins || name == "POST /admin/logout" {
            continue;
        }
        let allowed = expected_roles(&name);
        for (role, key) in ROLES.iter().zip(&keys) {
            // Without parameters most requests fail after the check, so that no request changes anything.
            let request = server.request(&operation.method, &operation.path_of(&user)).token(key);
            let response = request.json(&json!({ "who": "nobody" })).send();
            let detail = response.json()["detail"].as_str().unwrap_or_default().to_owned();
            let is_refused = response.status == 403 && detail.contains(&format!("The role `{role}` does not allow"));
            assert_eq!(is_refused, !allowed.contains(role), "{role} {name}: {} {detail}", response.status);
        }
        served.insert(name);
    }
    assert_eq!(served.iter().map(String::as_str).collect::<BTreeSet<_>>(), named);
}

#[test]
fn a_changed_role_applies_to_the_running_session() {
    let server = Setup::default().start();
    server.admin("root", "correct horse battery");
    let alice = server.admin("alice", "another long password");
    server.get("/admin/administrators").token(&alice).send().expect(200);
    server.command(&["admin", "role", "alice", "support"]).expect(0);
    let refused = server.get("/admin/administrators").token(&alice).send().expect_problem(403, "forbidden").json();
    assert!(refused["detail"].as_str().unwrap().contains("It requires: owner."), "{refused}");
    server.get("/admin/feedback").token(&alice).send().expect(200);
    server.command(&["admin", "role", "alice", "cook"]).expect(2);
    server.command(&["admin", "role", "nobody", "support"]).expect(4);
}

#[test]
fn one_owner_remains_while_there_are_administrators() {
    let server = Setup::default().start();
    let root = server.admin("root", "correct horse battery");
    let new = json!({ "name": "bob", "password": "another long password", "role": "moderator" });
    server.post("/admin/administrators").token(&root).json(&new).send().expect(201);
    server.post("/admin/administrators").token(&root).json(&new).send().expect_problem(409, "already_exists");
    let demote = json!({ "role": "support" });
    server
        .request("PATCH", "/admin/administrators/root")
        .token(&root)
        .json(&demote)
        .send()
        .expect_problem(409, "last_owner");
    server.request("DELETE", "/admin/administrators/root").token(&root).send().expect_problem(409, "last_owner");
    let change_bob = |body: Value| server.request("PATCH", "/admin/administrators/bob").token(&root).json(&body).send();
    change_bob(json!({ "role": "owner", "password": "short" })).expect_problem(422, "invalid_parameters");
    let role = "select role from admins where name = 'bob'";
    assert_eq!(server.value::<String>(role), "moderator", "all or nothing");
    change_bob(json!({ "role": "owner", "password": "a third long password" })).expect(200);
    server.request("PATCH", "/admin/administrators/root").token(&root).json(&demote).send().expect(200);
    server.get("/admin/administrators").token(&root).send().expect_problem(403, "forbidden");
    let roles = server.command(&["admin", "list"]).expect(0).json();
    let role_of = |row: &Value| (row["name"].as_str().unwrap().to_owned(), row["role"].as_str().unwrap().to_owned());
    let roles: Vec<_> = roles["items"].as_array().unwrap().iter().map(role_of).collect();
    assert_eq!(roles, [("bob".into(), "owner".into()), ("root".into(), "support".into())]);
}

#[test]
fn a_key_expires_and_can_be_suspended() {
    let server = Setup::default().start();
    let root = server.admin("root", "correct horse battery");
    let create = |body: Value| server.post("/admin/api-keys").token(&root).json(&body).send();
    let key =
        create(json!({ "label": "shop", "role": "read-only" })).expect(201).json()["key"].as_str().unwrap().to_owned();
    let call = || server.get("/admin/releases").token(&key).send();
    let change = |body: Value| server.request("PATCH", "/admin/api-keys/shop").token(&root).json(&body).send();
    call().expect(200);
    assert!(change(json!({ "isSuspended": true })).expect(200).json()["suspendedAt"].is_string());
    call().expect_problem(401, "unauthenticated");
    change(json!({ "isSuspended": false, "expiresAt": "2099-01-01" })).expect(200);
    call().expect(200);
    change(json!({ "expiresAt": "2001-01-01" })).expect_problem(422, "invalid_parameters");
    server.edit("update api_keys set expires_at = 1");
    call().expect_problem(401, "unauthenticated");
    assert!(change(json!({ "expiresAt": "" })).expect(200).json()["expiresAt"].is_null());
    call().expect(200);
    create(json!({ "label": "late", "role": "support", "expiresAt": "2001-01-01" }))
        .expect_problem(422, "invalid_parameters");
    create(json!({ "label": "odd", "role": "cook" })).expect_problem(422, "invalid_parameters");
    server.command(&["admin", "key", "change", "shop", "--suspended"]).expect(0);
    call().expect_problem(401, "unauthenticated");
    server.command(&["admin", "key", "change", "shop", "--suspended=false", "--expires", ""]).expect(0);
    call().expect(200);
    server.request("DELETE", "/admin/api-keys/shop").token(&root).send().expect(200);
    call().expect_problem(401, "unauthenticated");
    change(json!({ "isSuspended": false })).expect_problem(404, "not_found");
}

#[test]
fn support_grants_coins_within_limits() {
    let server = Setup::default().with("ADMIN_SUPPORT_GRANT", 10).with("ADMIN_SUPPORT_GRANTS_DAILY", 15).start();
    let user = server.sign_in("13800138000");
    let support = key_with_role(&server, "help", "support");
    let grant = |key: &str, coins: i64| {
        let body = json!({ "phoneNumber": user.phone_number, "coinCount": coins, "reason": "a failed casting" });
        server.post("/coin/increase/phone").token(key).json(&body).send()
    };
    grant(&support, 11).expect_problem(403, "forbidden");
    grant(&support, 10).expect(200);
    let refused = grant(&support, 6).expect_problem(403, "forbidden").json();
    assert!(refused["detail"].as_str().unwrap().contains("you granted 10"), "{refused}");
    grant(&support, 5).expect(200);
    grant(&support, 1).expect_problem(403, "forbidden");
    let other = key_with_role(&server, "help-2", "support");
    grant(&other, 10).expect(200);
    grant(&server.api_key("owner"), 1000).expect(200);
}

#[test]
fn only_owners_see_the_events_of_others() {
    let server = Setup::default().start();
    let owner = server.api_key("owner");
    let support = key_with_role(&server, "help", "support");
    server.get("/admin/releases").token(&owner).send().expect(200);
    server.get("/admin/releases").token(&support).send().expect(200);
    let actors = |key: &str, query: &[(&str, &str)]| {
        let rows = server.get("/admin/audit").token(key).query(query).send().expect(200).json();
        let actor = |row: &Value| row["actor"].as_str().unwrap().to_owned();
        rows["items"].as_array().unwrap().iter().map(actor).collect::<BTreeSet<_>>()
    };
    eventually("the events are stored", || actors(&owner, &[]).contains("key:help"));
    assert_eq!(actors(&support, &[]), BTreeSet::from(["key:help".to_owned()]));
    assert_eq!(actors(&support, &[("actor", "key:owner")]), BTreeSet::from(["key:help".to_owned()]));
}
