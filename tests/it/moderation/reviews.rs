//! The treatment of matches by rule: blocked, masked, or passed and reviewed; the queue, decisions and their undoing.

use serde_json::{Value, json};

use super::{LISTED, OWN, check, violations};
use crate::support::{Caller, Response, Server, Setup};

/// Matches by sound pass and wait for a moderator, and advertising is masked.
const RULES: &str = "ads any any: mask, any sound any: review";

fn server() -> Server {
    Setup::default().with("MODERATION_MATCH_RULES", RULES).start()
}

fn moderator(server: &Server) -> String {
    let created = server.command(&["admin", "key", "create", "mod", "--role", "moderator"]).expect(0).json();
    created["key"].as_str().unwrap().to_owned()
}

fn rename(server: &Server, user: &Caller, nickname: &str) -> Response {
    server.put("/user/nickname").by(user).json(&json!({ "nickname": nickname })).send()
}

fn nickname(server: &Server, user: &Caller) -> String {
    server.get("/user/profile").by(user).send().expect(200).json()["nickname"].as_str().unwrap().to_owned()
}

fn queue(server: &Server, key: &str, state: &str) -> Vec<Value> {
    let listed = server.get("/admin/violations/review").token(key).query(&[("state", state)]).send().expect(200).json();
    listed["items"].as_array().unwrap().clone()
}

fn decide(server: &Server, key: &str, body: &Value) -> Response {
    server.post("/admin/violations/review/decide").token(key).json(body).send()
}

#[test]
fn an_uncertain_match_passes_and_waits_for_a_moderator() {
    let server = server();
    let (user, key) = (server.sign_in(OWN), moderator(&server));
    let checked = check(&server, &user, "一起堵博吧").expect(200).json();
    assert_eq!(checked["allowed"], true);
    rename(&server, &user, "堵博").expect(200);
    assert_eq!(check(&server, &user, "一起赌博吧").expect(200).json()["allowed"], false, "as listed");
    let waiting = queue(&server, &key, "waiting");
    assert_eq!(waiting.len(), 2, "{waiting:?}");
    let first = &waiting[0];
    assert_eq!((&first["text"], &first["maskedText"]), (&json!("一起堵博吧"), &json!("一起**吧")));
    assert_eq!((&first["matchedWords"], &first["ways"]), (&json!([LISTED]), &json!(["sound"])));
    assert_eq!((&first["violationType"], &first["state"]), (&json!("gambling"), &json!("waiting")));
    // The same text waits once.
    check(&server, &user, "一起堵博吧").expect(200);
    assert_eq!(queue(&server, &key, "waiting").len(), 2);
    assert_eq!(violations(&server), 1, "only the one as listed");
    let tested = server.post("/admin/sensitive-words/test/question").token(&key).json(&json!({ "content": "堵博" }));
    let tested = tested.send().expect(200).json();
    assert_eq!(
        (&tested["allowed"], &tested["action"], &tested["matches"][0]["way"]),
        (&json!(true), &json!("review"), &json!("sound"))
    );
}

#[test]
fn decisions_have_an_outcome_each_and_can_be_undone() {
    let server = server();
    let (user, key) = (server.sign_in(OWN), moderator(&server));
    rename(&server, &user, "堵博").expect(200);
    check(&server, &user, "一起堵博吧").expect(200);
    let ids: Vec<String> =
        queue(&server, &key, "waiting").iter().map(|one| one["id"].as_str().unwrap().to_owned()).collect();
    decide(&server, &key, &json!({ "ids": ids, "decision": "uphold" })).expect_fields(&[("reason", "required")]);
    decide(&server, &key, &json!({ "decision": "burn", "reason": "r" }))
        .expect_fields(&[("decision", "unknown_value"), ("ids", "required")]);
    let phrase = json!({ "ids": ids, "decision": "uphold", "reason": "r", "phrase": "一起堵博" });
    decide(&server, &key, &phrase).expect_fields(&[("phrase", "not_allowed")]);
    let body = json!({ "ids": [ids[0], ids[1], "999"], "decision": "uphold", "reason": "gambling" });
    let outcomes = decide(&server, &key, &body).expect(200).json();
    let state = |outcomes: &Value, index: usize| outcomes["items"][index]["state"].clone();
    assert_eq!((state(&outcomes, 0), state(&outcomes, 1)), (json!("upheld"), json!("upheld")), "{outcomes}");
    assert_eq!(outcomes["items"][2], json!({ "id": "999", "state": null, "error": "not_found" }));
    assert_eq!((violations(&server), nickname(&server, &user)), (2, String::new()), "the nickname is cleared");
    let again = decide(&server, &key, &body).expect(200).json();
    assert_eq!(again["items"][0]["error"], "already_exists");
    let undo = |ids: &Value| {
        server.post("/admin/violations/review/undo").token(&key).json(&json!({ "ids": ids })).send().expect(200).json()
    };
    assert_eq!(state(&undo(&json!([ids[1]])), 0), "waiting");
    assert_eq!((violations(&server), queue(&server, &key, "waiting").len()), (1, 1));
    // By command, with a phrase that teaches the list.
    let args = ["violations", "review", "decide", &ids[1], "--decision", "acquit", "--reason", "a name"];
    server.command(&[&args[..], &["--phrase", "一起堵博"]].concat()).expect(0);
    assert_eq!(queue(&server, &key, "acquitted")[0]["decidedBy"], "cli");
    let allowed = server.command(&["words", "allowed"]).expect(0).json();
    assert!(allowed["items"].as_array().unwrap().contains(&json!("一起堵博")), "{allowed}");
    // Nothing to undo, and nothing left to decide: the command fails and says why.
    assert_eq!(undo(&json!([ids[1]]))["items"][0]["state"], "waiting");
    assert_eq!(undo(&json!([ids[1]]))["items"][0]["error"], "already_undone");
    let undone = server.command(&["violations", "review", "undo", &ids[1]]).expect(5);
    assert_eq!(undone.json()["items"][0]["error"], "already_undone");
    server.command(&args).expect(0);
    assert!(server.command(&args).expect(5).text().contains("already_exists"));
    server.command(&["violations", "review", "undo", "999"]).expect(5);
    // A day later nothing can be undone.
    server.edit("update reviews set decided_at = decided_at - 24 * 60 * 60 * 1000");
    assert_eq!(undo(&json!([ids[0]]))["items"][0]["error"], "too_late");
    server.command(&["violations", "review", "list", "--state", "upheld"]).expect(0);
}

#[test]
fn a_masked_word_is_replaced_in_what_is_stored_and_shown() {
    let server = server();
    let user = server.sign_in(OWN);
    server.command(&["words", "add", "代练上分", "--type", "ads"]).expect(0);
    let server = server.restart(Setup::default().with("MODERATION_MATCH_RULES", RULES));
    let renamed = rename(&server, &user, "代练上分").expect(200).json();
    assert_eq!((&renamed["nickname"], nickname(&server, &user)), (&json!("＊＊＊＊"), "＊＊＊＊".to_owned()));
    let cast = json!({ "question": "找人代练上分好吗", "method": "yarrow_stalks" });
    let mail = server.sign_in_by_email("ada@example.com");
    let cast = server.post("/api/v1/sessions").by(&mail).json(&cast).header("idempotency-key", "k").send();
    assert_eq!(cast.expect(201).json()["question"], "找人＊＊＊＊好吗");
    assert_eq!(server.value::<i64>("select count(*) from sessions where question like '%代练%'"), 0);
    assert_eq!(violations(&server), 0);
}

#[test]
fn every_text_of_a_watched_user_is_reviewed() {
    let server = server();
    let (user, key) = (server.sign_in(OWN), moderator(&server));
    server.command(&["users", "suspend", OWN, "--reason", "spam", "--scope", "review"]).expect(0);
    rename(&server, &user, "青山").expect(200);
    let waiting = queue(&server, &key, "waiting");
    assert_eq!(
        (waiting.len(), &waiting[0]["violationType"], &waiting[0]["text"]),
        (1, &json!("watched"), &json!("青山"))
    );
    server.command(&["users", "unsuspend", OWN, "--scope", "review"]).expect(0);
    rename(&server, &user, "白云").expect(200);
    assert_eq!(queue(&server, &key, "waiting").len(), 1);
}

#[test]
fn an_acquitted_refusal_no_longer_counts() {
    let server = Setup::default().with("MODERATION_SUSPENSION_RULES", "2 any in 7 days: account for 2 days").start();
    let (user, key) = (server.sign_in(OWN), moderator(&server));
    assert_eq!(check(&server, &user, "我们反对赌博").expect(200).json()["allowed"], false);
    let path = "/admin/violations/1/acquittal";
    let acquit = |body: Value| server.post(path).token(&key).json(&body).send();
    acquit(json!({})).expect_fields(&[("reason", "required")]);
    let acquitted = acquit(json!({ "reason": "a warning", "phrase": "反对赌博" })).expect(200).json();
    assert_eq!(acquitted["acquittedBy"], "key:mod", "{acquitted}");
    acquit(json!({ "reason": "again" })).expect_problem(409, "already_exists");
    assert_eq!(check(&server, &user, "我们反对赌博").expect(200).json()["allowed"], true, "the phrase is allowed");
    check(&server, &user, "一起赌博吧").expect(200);
    server.get("/coin/balance").by(&user).send().expect(200);
    assert_eq!(server.delete(path).token(&key).send().expect(200).json()["acquittedAt"], Value::Null);
    server.delete(path).token(&key).send().expect_problem(409, "already_exists");
    server.command(&["violations", "acquit", "2", "--reason", "a joke"]).expect(0);
    server.command(&["violations", "acquit", "2", "--undo"]).expect(0);
    check(&server, &user, "一起赌博吧").expect(200);
    server.get("/coin/balance").by(&user).send().expect_problem(403, "user_suspended");
}

#[test]
fn an_operator_learns_that_a_phrase_does_not_acquit_its_text() {
    let server = server();
    let (user, key) = (server.sign_in(OWN), moderator(&server));
    for text in ["我们反对赌博", "我们反对赌博，拒绝赌博", "一起赌博吧"] {
        assert_eq!(check(&server, &user, text).expect(200).json()["allowed"], false);
    }
    let acquit = |id: u32, phrase: &str| {
        let body = json!({ "reason": "a warning", "phrase": phrase });
        let response = server.post(&format!("/admin/violations/{id}/acquittal")).token(&key).json(&body).send();
        response.expect(200).json()["warning"].clone()
    };
    assert_eq!(acquit(1, "反对赌博"), Value::Null);
    assert_eq!(acquit(2, "拒绝赌博"), "does_not_acquit", "the phrase leaves the first word");
    let args = ["violations", "acquit", "3", "--reason", "a joke", "--phrase", "赌博电影"];
    assert_eq!(server.command(&args).expect(0).json()["warning"], "does_not_acquit");
    rename(&server, &user, "堵博").expect(200);
    check(&server, &user, "一起堵博吧").expect(200);
    let ids: Vec<Value> = queue(&server, &key, "waiting").iter().map(|one| one["id"].clone()).collect();
    let body = json!({ "ids": ids, "decision": "acquit", "reason": "names", "phrase": "一起堵博" });
    let decided = decide(&server, &key, &body).expect(200).json();
    let warnings: Vec<&Value> = decided["items"].as_array().unwrap().iter().map(|one| &one["warning"]).collect();
    assert_eq!(warnings.first(), Some(&&json!("does_not_acquit")), "{decided}");
    assert_eq!(warnings.last(), Some(&&Value::Null), "{decided}");
}

#[test]
fn one_user_does_not_flood_the_queue() {
    let server = server();
    let user = server.sign_in(OWN);
    for number in 0..105 {
        assert_eq!(check(&server, &user, &format!("一起堵博吧{number}")).expect(200).json()["allowed"], true);
    }
    assert_eq!(server.value::<i64>("select count(*) from reviews where state = 'waiting'"), 100);
}

#[test]
fn invalid_rules_prevent_startup() {
    let output = crate::support::Binary::command()
        .args(["config", "show"])
        .env("YARROW_MODERATION_MATCH_RULES", "ads loud any: mask")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    assert!(output.status.code() == Some(3) && text.contains("`loud` is not one of"), "{text}");
}
