//! The pages of notifications and releases.

use serde_json::{Value, json};

use super::console::{Browser, hidden};
use crate::support::{Server, Setup};

const TEXT: [(&str, &str); 5] =
    [("form", "message"), ("title", "维护 <通知>"), ("body", "今晚两点"), ("kind", "system"), ("payload", "")];

fn with<'a>(fields: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    TEXT.iter().copied().chain(fields.iter().copied()).collect()
}

fn inbox(server: &Server, user: &crate::support::Caller) -> Vec<Value> {
    let listed = server.get("/api/v1/notifications").by(user).send().expect(200).json();
    listed["items"].as_array().unwrap().clone()
}

#[test]
fn a_broadcast_is_previewed_sent_once_and_withdrawn() {
    let server = Setup::default().start();
    let user = server.sign_in("13800138000");
    let browser = Browser::new(&server, "alice", "owner");
    let broadcast = with(&[("audience", "all")]);
    let preview = browser.post("messages", "messages/preview", &broadcast).expect(200).text();
    assert!(
        preview.contains("维护 &lt;通知&gt;") && preview.contains("lang=\"zh-CN\"") && preview.contains("lang=\"en\"")
    );
    assert!(inbox(&server, &user).is_empty());
    // Without a reason the preview comes back.
    let unexplained = with(&[("audience", "all"), ("reason", "")]);
    let refused = browser.post("messages", "messages", &unexplained).expect(422).text();
    assert!(refused.contains("id=\"message-reason-error\""), "{refused}");

    let page = browser.get("messages").send().expect(200).text();
    let (csrf, once) = (hidden(&page, "csrf"), hidden(&page, "once"));
    let fields = [("audience", "all"), ("reason", "downtime"), ("csrf", &csrf), ("once", &once)];
    for _ in 0..2 {
        browser.post_as_typed("messages", &with(&fields)).expect(303);
    }
    let received = inbox(&server, &user);
    assert_eq!(received.len(), 1, "{received:?}");
    assert_eq!(received[0]["title"], "维护 <通知>");
    let reasons = "select count(*) from audit where action = 'POST /admin/console/messages' and reason = 'downtime'";
    assert!(server.value::<i64>(reasons) >= 1);

    let id = received[0]["id"].as_str().unwrap();
    let withdraw = format!("messages/{id}/withdraw");
    browser.post("messages", &withdraw, &[("reason", "")]).expect(422);
    assert_eq!(inbox(&server, &user).len(), 1, "a reason is required");
    browser.post("messages", &withdraw, &[("reason", "wrong day")]).expect(303);
    assert!(inbox(&server, &user).is_empty());
    Browser::new(&server, "sue", "support").get("messages").send().expect(403);
}

#[test]
fn a_notification_goes_to_the_named_users_and_faults_stand_beside_their_fields() {
    let server = Setup::default().start();
    let (user, other) = (server.sign_in("13800138000"), server.sign_in("13800138001"));
    let browser = Browser::new(&server, "alice", "owner");
    let to = format!("13800138000，{}", user.user_id);
    let fields = with(&[("audience", "users"), ("to", &to), ("reason", "compensation")]);
    browser.post("messages", "messages", &fields).expect(303);
    assert_eq!((inbox(&server, &user).len(), inbox(&server, &other).len()), (1, 0));

    let faulty = [
        ("form", "message"),
        ("title", ""),
        ("body", "kept as typed"),
        ("kind", "system"),
        ("audience", "users"),
        ("to", "nobody"),
        ("expires", "2020-01-01T00:00"),
        ("payload", "{"),
    ];
    let shown = browser.post("messages", "messages/preview", &faulty).expect(422).text();
    for id in ["title-error", "to-error", "expires-error", "payload-error"] {
        assert!(shown.contains(&format!("id=\"message-{id}\"")), "{id}: {shown}");
    }
    assert!(shown.contains("kept as typed") && shown.contains("不能为空"), "{shown}");
}

#[test]
fn a_release_is_previewed_published_and_withdrawn() {
    let server = Setup::default().start();
    let browser = Browser::new(&server, "alice", "owner");
    let release = [
        ("form", "release"),
        ("version", "2.4.0"),
        ("versionCode", "240"),
        ("platform", "android"),
        ("downloadUrl", "https://app.example.com/download"),
        ("notes", "新增梅花易数"),
        ("isRequired", "true"),
    ];
    let check = || {
        let form = [("platform", "android"), ("clientVersionCode", "239")];
        server.post("/version/check").form(&form).send().expect(200).json()
    };
    let preview = browser.post("releases", "releases/preview", &release).expect(200).text();
    assert!(preview.contains("2.4.0") && preview.contains("lang=\"en\""), "{preview}");
    assert_eq!(check()["updateAvailable"], false);
    browser.post("releases", "releases", &release).expect(303);
    assert_eq!((&check()["updateAvailable"], &check()["updateRequired"]), (&json!(true), &json!(true)));
    let again = browser.post("releases", "releases", &release).expect(409).text();
    assert!(again.contains("flash bad") && again.contains("value=\"2.4.0\""), "{again}");
    let typed = [("form", "release"), ("version", "x"), ("versionCode", "-1"), ("downloadUrl", "ftp://x")];
    let faulty = browser.post("releases", "releases/preview", &typed).expect(422).text();
    assert!(
        ["version-error", "versionCode-error", "downloadUrl-error"].iter().all(|id| faulty.contains(id)),
        "{faulty}"
    );

    let id: i64 = server.value("select id from releases");
    browser.post("releases", &format!("releases/{id}/withdraw"), &[("reason", "")]).expect(422);
    assert_eq!(check()["updateRequired"], true, "a reason is required");
    browser.post("releases", &format!("releases/{id}/withdraw"), &[("reason", "crashes")]).expect(303);
    assert_eq!((&check()["updateAvailable"], &check()["updateRequired"]), (&json!(false), &json!(false)));
    server.get("/version/latest").send().expect_problem(404, "no_release");
    // The code is free again, over HTTP and by command too.
    let key = server.api_key("ops");
    let made = server
        .post("/admin/releases")
        .token(&key)
        .json(&json!({ "version": "2.4.0", "versionCode": 240, "platform": "android" }));
    let made = made.send().expect(201).json();
    let path = format!("/admin/releases/{}/withdraw", made["id"].as_str().unwrap());
    let withdrawn = server.post(&path).token(&key).send().expect(200).json();
    assert!(withdrawn["withdrawnAt"].is_string(), "{withdrawn}");
    server.post(&path).token(&key).send().expect_problem(404, "not_found");
    server.command(&["release", "publish", "2.4.1", "--code", "241"]).expect(0);
    let listed = server.command(&["release", "list"]).expect(0).json();
    let id = listed["items"][0]["id"].as_str().unwrap().to_owned();
    server.command(&["release", "withdraw", &id, "--reason", "tests"]).expect(0);
    server.command(&["release", "withdraw", &id]).expect(4);
}
