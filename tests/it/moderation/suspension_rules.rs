//! Suspensions by rule, and those of a smaller scope.

use serde_json::{Value, json};

use super::{OWN, check};
use crate::support::{Caller, Server, Setup};

const RULES: &str = "2 gambling in 7 days: nickname for 30 days, 3 any in 7 days: account for 2 days";

fn titles(server: &Server, user: &Caller) -> Vec<String> {
    let listed = server.get("/api/v1/notifications").by(user).send().expect(200).json();
    listed["items"].as_array().unwrap().iter().map(|item| item["title"].as_str().unwrap().to_owned()).collect()
}

fn offend(server: &Server, user: &Caller, text: &str) {
    assert_eq!(check(server, user, text).expect(200).json()["allowed"], false, "{text}");
}

fn suspensions(server: &Server, key: &str, user: &Caller) -> Value {
    let path = format!("/admin/users/{}/suspensions", user.user_id);
    server.get(&path).token(key).send().expect(200).json()["items"].clone()
}

fn rename(server: &Server, user: &Caller, nickname: &str) -> crate::support::Response {
    server.put("/user/nickname").by(user).json(&json!({ "nickname": nickname })).send()
}

#[test]
fn rules_suspend_at_once_and_tell_the_user() {
    let server = Setup::default().with("MODERATION_SUSPENSION_RULES", RULES).start();
    let (user, other) = (server.sign_in(OWN), server.sign_in("13800138001"));
    let key = server.command(&["admin", "key", "create", "mod", "--role", "moderator"]).expect(0).json();
    let key = key["key"].as_str().unwrap();
    rename(&server, &user, "青山").expect(200);
    offend(&server, &user, "一起赌博吧");
    assert_eq!(suspensions(&server, key, &user), json!([]));
    offend(&server, &user, "网络赌博");
    let refused = rename(&server, &user, "白云").expect_problem(403, "nickname_suspended").json();
    assert!(
        refused["detail"].as_str().unwrap().starts_with("Changes of the nickname are suspended until"),
        "{refused}"
    );
    // The unchanged nickname may come with another part of the profile.
    let profile = json!({ "nickname": "青山", "signature": "山水之间" });
    server.put("/user/profile").by(&user).json(&profile).send().expect(200);
    let made = suspensions(&server, key, &user);
    assert_eq!(made.as_array().unwrap().len(), 1);
    assert_eq!(
        (&made[0]["scope"], &made[0]["source"], &made[0]["actor"]),
        (&json!("nickname"), &json!("rule"), &json!("rule"))
    );
    assert_eq!(made[0]["reason"], "2 rejected texts of type gambling in 7 days");
    assert_eq!(titles(&server, &user), ["昵称修改已停用"]);
    // The third one, of another type, suspends the account on both generations.
    offend(&server, &user, "他是王八蛋");
    server.get("/coin/balance").by(&user).send().expect_problem(403, "user_suspended");
    server.get("/api/v1/account").by(&user).send().expect_problem(403, "user_suspended");
    assert_eq!(titles(&server, &user), ["账号已停用", "昵称修改已停用"]);
    server.post("/feedback").by(&user).json(&json!({ "content": "为什么？" })).send().expect(200);
    let events: i64 = server.value("select count(*) from audit where actor = 'rule' and action = 'suspend by rule'");
    assert_eq!(events, 2);
    offend(&server, &other, "一起赌博吧");
    assert_eq!(suspensions(&server, key, &other), json!([]));
}

#[test]
fn a_lifted_suspension_needs_new_violations() {
    let server = Setup::default().with("MODERATION_SUSPENSION_RULES", "2 any in 7 days: account for 2 days").start();
    let user = server.sign_in(OWN);
    let balance = || server.get("/coin/balance").by(&user).send();
    offend(&server, &user, "一起赌博吧");
    // An old violation does not count.
    server.edit("update violations set created_at = created_at - 8 * 24 * 60 * 60 * 1000");
    offend(&server, &user, "一起赌博吧");
    balance().expect(200);
    offend(&server, &user, "一起赌博吧");
    balance().expect_problem(403, "user_suspended");
    server.command(&["users", "unsuspend", OWN, "--reason", "appeal"]).expect(0);
    offend(&server, &user, "一起赌博吧");
    balance().expect(200);
    offend(&server, &user, "一起赌博吧");
    balance().expect_problem(403, "user_suspended");
    // One that has ended by itself makes way for the next.
    server.edit("update suspensions set created_at = 1, ends_at = 2 where lifted_at is null");
    balance().expect(200);
    offend(&server, &user, "一起赌博吧");
    balance().expect_problem(403, "user_suspended");
}

#[test]
fn staff_suspends_by_scope() {
    let server = Setup::default().start();
    let user = server.sign_in(OWN);
    let key = server.command(&["admin", "key", "create", "mod", "--role", "moderator"]).expect(0).json();
    let key = key["key"].as_str().unwrap();
    let path = format!("/admin/users/{}/suspension", user.user_id);
    let suspend = |body: Value| server.post(&path).token(key).json(&body).send();
    suspend(json!({ "reason": "insults", "scope": "everything" })).expect_fields(&[("scope", "unknown_value")]);
    assert_eq!(suspend(json!({ "reason": "insults", "scope": "nickname" })).expect(201).json()["scope"], "nickname");
    suspend(json!({ "reason": "insults", "scope": "nickname" })).expect_problem(409, "already_exists");
    rename(&server, &user, "白云").expect_problem(403, "nickname_suspended");
    server.get("/coin/balance").by(&user).send().expect(200);
    let listed = server.get("/admin/users").token(key).query(&[("state", "suspended")]).send().expect(200).json();
    assert_eq!(listed["items"], json!([]), "the account is not suspended");
    server.delete(&path).token(key).send().expect_problem(404, "not_found");
    server.command(&["users", "suspend", OWN, "--reason", "spam", "--scope", "review"]).expect(0);
    server.delete(&path).token(key).query(&[("scope", "nickname")]).send().expect(200);
    rename(&server, &user, "白云").expect(200);
    let other = server.command(&["users", "unsuspend", OWN]).expect(4);
    assert!(other.stderr().contains("but in `review`"), "{}", other.stderr());
    let again = server.command(&["users", "suspend", OWN, "--scope", "review", "--reason", "again"]).expect(1);
    assert!(again.stderr().contains("in the scope `review`"), "{}", again.stderr());
    server.command(&["users", "unsuspend", OWN, "--scope", "review"]).expect(0);
    assert_eq!(titles(&server, &user), ["内容审核已结束", "昵称修改已恢复", "内容将受审核", "昵称修改已停用"]);
}
