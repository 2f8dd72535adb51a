//! `/api/v1/notifications`: the inbox and the commands that fill it.

use serde_json::{Value, json};

use crate::support::{Caller, Response, Server, Setup, eventually, identity_services, send_concurrently};

struct Fixture {
    server: Server,
    key: String,
    user: Caller,
}

impl Fixture {
    fn new() -> Self {
        Self::with(Setup::default())
    }

    fn with(setup: Setup) -> Self {
        let server = setup.start();
        let (key, user) = (server.api_key("tests"), server.sign_in("13800138000"));
        Self { server, key, user }
    }

    /// Sends a broadcast and returns its id.
    fn broadcast(&self, title: &str) -> String {
        self.send(&json!({ "audience": "all", "title": title, "body": "…" }))
    }

    fn stream_chunks(&self, user: &Caller, title: &str) -> String {
        self.send(&json!({ "audience": "users", "userIds": [user.user_id], "title": title, "body": "…" }))
    }

    fn send(&self, body: &Value) -> String {
        let sent = self.server.post("/admin/notifications").token(&self.key).json(body).send().expect(201).json();
        sent["id"].as_str().unwrap().to_owned()
    }

    fn inbox(&self, user: &Caller) -> Value {
        self.server.get("/api/v1/notifications").query(&[("limit", "100")]).by(user).send().expect(200).json()
    }

    fn titles(&self, user: &Caller) -> Vec<String> {
        titles(&self.inbox(user))
    }

    fn unread(&self, user: &Caller) -> i64 {
        let response = self.server.get("/api/v1/notifications/unread-count").by(user).send().expect(200).json();
        response["count"].as_i64().unwrap()
    }

    fn read(&self, user: &Caller, id: &str) -> Response {
        self.server.request("PATCH", &format!("/api/v1/notifications/{id}/read")).by(user).send()
    }

    fn mark_all(&self, user: &Caller) -> Value {
        self.server.request("PATCH", "/api/v1/notifications/mark-all-read").by(user).send().expect(200).json()
    }

    /// Returns the read count that the sender sees.
    fn read_count(&self, id: &str) -> i64 {
        let sent = self.server.get("/admin/notifications").query(&[("size", "100")]).token(&self.key).send();
        let sent = sent.expect(200).json();
        let found = sent["items"].as_array().unwrap().iter().find(|item| item["id"] == id).unwrap();
        found["readCount"].as_i64().unwrap()
    }
}

fn titles(inbox: &Value) -> Vec<String> {
    inbox["items"].as_array().unwrap().iter().map(|item| item["title"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn reading_a_notification_is_idempotent() {
    let fixture = Fixture::new();
    let id = fixture.broadcast("one");
    assert_eq!(fixture.unread(&fixture.user), 1);
    assert_eq!(fixture.inbox(&fixture.user)["items"][0]["readAt"], Value::Null);
    let first = fixture.read(&fixture.user, &id).expect(200).json();
    assert!(first["readAt"].is_string() && first["title"] == "one", "{first}");
    std::thread::sleep(std::time::Duration::from_millis(5));
    for _ in 0..2 {
        assert_eq!(fixture.read(&fixture.user, &id).expect(200).json(), first);
    }
    assert_eq!(fixture.mark_all(&fixture.user), json!({ "count": 0, "marked": 0 }));
    assert_eq!(fixture.inbox(&fixture.user)["items"][0], first);
    assert_eq!((fixture.unread(&fixture.user), fixture.read_count(&id)), (0, 1));
}

#[test]
fn mark_all_read_keeps_the_first_read_time() {
    let fixture = Fixture::new();
    let ids: Vec<_> = (0..5).map(|number| fixture.broadcast(&number.to_string())).collect();
    let own = fixture.stream_chunks(&fixture.user, "own");
    let first = fixture.read(&fixture.user, &ids[2]).expect(200).json();
    assert_eq!(fixture.unread(&fixture.user), 5);
    let a_moment = || std::thread::sleep(std::time::Duration::from_millis(5));
    a_moment();
    assert_eq!(fixture.mark_all(&fixture.user), json!({ "count": 0, "marked": 5 }));
    assert_eq!(fixture.mark_all(&fixture.user), json!({ "count": 0, "marked": 0 }));
    assert_eq!(fixture.unread(&fixture.user), 0);
    let inbox = fixture.inbox(&fixture.user);
    assert!(inbox["items"].as_array().unwrap().iter().all(|item| item["readAt"].is_string()), "{inbox}");
    let marked_at = &inbox["items"][0]["readAt"];
    assert_eq!((&inbox["items"][3], &inbox["items"][0]["id"]), (&first, &json!(own)));
    assert_ne!(marked_at, &first["readAt"]);
    // Later notifications are unread, and another mark keeps the first times.
    let later = fixture.broadcast("later");
    assert_eq!(fixture.unread(&fixture.user), 1);
    a_moment();
    assert_eq!(fixture.mark_all(&fixture.user)["marked"], 1);
    let again = fixture.inbox(&fixture.user);
    assert_eq!(&again["items"][1]["readAt"], marked_at);
    assert_eq!(again["items"][4], first);
    assert_ne!(&again["items"][0]["readAt"], marked_at);
    for id in ids.iter().chain([&own, &later]) {
        assert_eq!(fixture.read_count(id), 1, "{id}");
    }
}

#[test]
fn hides_notifications_of_other_users() {
    let fixture = Fixture::new();
    let other = fixture.server.sign_in("13800138001");
    let id = fixture.stream_chunks(&other, "theirs");
    assert_eq!(fixture.titles(&other), ["theirs"]);
    assert_eq!(fixture.titles(&fixture.user), [""; 0]);
    let foreign = fixture.read(&fixture.user, &id).expect_problem(404, "not_found").json();
    let unknown = fixture.read(&fixture.user, "999999").expect_problem(404, "not_found").json();
    assert_eq!(foreign["detail"], unknown["detail"]);
    assert_eq!((fixture.unread(&fixture.user), fixture.unread(&other)), (0, 1));
    fixture.mark_all(&fixture.user);
    assert_eq!(fixture.unread(&other), 1);
}

#[test]
fn users_see_broadcasts_sent_after_registration() {
    let fixture = Fixture::new();
    let before = fixture.broadcast("before");
    let late = fixture.server.sign_in("13800138001");
    fixture.broadcast("after");
    assert_eq!(fixture.titles(&late), ["after"]);
    assert_eq!(fixture.unread(&late), 1);
    fixture.read(&late, &before).expect_problem(404, "not_found");
    assert_eq!(fixture.mark_all(&late)["marked"], 1);
    assert_eq!(fixture.read_count(&before), 0);
    assert_eq!(fixture.titles(&fixture.user), ["after", "before"]);
}

#[test]
fn expired_notifications_disappear_at_once() {
    let mut fixture = Fixture::new();
    let in_an_hour = "2100-01-01T00:00:00Z";
    let ending = json!({ "audience": "all", "title": "ending", "body": "…", "expiresAt": in_an_hour });
    let id = fixture.send(&ending);
    let own = json!({ "audience": "users", "userIds": [fixture.user.user_id], "title": "own", "body": "…", "expiresAt": in_an_hour });
    let own = fixture.send(&own);
    fixture.broadcast("staying");
    assert_eq!(fixture.unread(&fixture.user), 3);
    let past = json!({ "audience": "all", "title": "past", "body": "…", "expiresAt": "2020-01-01" });
    fixture
        .server
        .post("/admin/notifications")
        .token(&fixture.key)
        .json(&past)
        .send()
        .expect_fields(&[("expiresAt", "out_of_range")]);
    // Not long ago, because a job deletes those that expired long ago.
    let expired_at = identity_services::now() * 1000 - 1;
    fixture.server.edit(&format!(
        "update notifications set expires_at = {expired_at} where expires_at is not null; \
         update notification_recipients set expires_at = {expired_at}"
    ));
    let gone = |fixture: &Fixture| {
        assert_eq!(fixture.titles(&fixture.user), ["staying"]);
        assert_eq!(fixture.unread(&fixture.user), 1);
        for id in [&id, &own] {
            fixture.read(&fixture.user, id).expect_problem(404, "not_found");
        }
        assert_eq!(fixture.server.get("/notifications/latest").send().json()["notification"]["title"], "staying");
        assert_eq!(titles(&fixture.server.get("/notifications/all").send().json()), ["staying"]);
    };
    gone(&fixture);
    // The job then removes it from the blocks, without a visible change.
    let directory = fixture.server.directory().to_owned();
    fixture.server = fixture.server.restart(Setup::default().with_fast_jobs());
    let taken_out = "select count(*) from notifications where is_live = 0";
    eventually("both are removed", || fixture.server.value::<i64>(taken_out) == 2);
    assert_eq!(fixture.server.value::<String>("select hex(kinds) from notification_blocks"), "0003", "{directory:?}");
    gone(&fixture);
}

#[test]
fn withdrawn_notifications_disappear_and_their_ids_are_not_reused() {
    let fixture = Fixture::new();
    let first = fixture.broadcast("first");
    let second = fixture.broadcast("second");
    fixture.read(&fixture.user, &second).expect(200);
    let delete =
        |id: &str| fixture.server.request("DELETE", &format!("/admin/notifications/{id}")).token(&fixture.key).send();
    assert_eq!(delete(&second).expect(200).json(), json!({ "id": second, "deleted": true }));
    delete(&second).expect_problem(404, "not_found");
    fixture.read(&fixture.user, &second).expect_problem(404, "not_found");
    assert_eq!(fixture.titles(&fixture.user), ["first"]);
    // The next one does not inherit a read state.
    let third = fixture.broadcast("third");
    assert!(third.parse::<i64>().unwrap() > second.parse().unwrap());
    assert_eq!(fixture.unread(&fixture.user), 2);
    assert_eq!((fixture.read_count(&first), fixture.read_count(&third)), (0, 0));
}

#[test]
fn pages_are_stable_while_more_arrives() {
    let fixture = Fixture::new();
    let mut expected = Vec::new();
    for number in 0..25 {
        let title = format!("{number}");
        if number % 3 == 0 {
            fixture.stream_chunks(&fixture.user, &title)
        } else {
            fixture.broadcast(&title)
        };
        expected.insert(0, title);
    }
    let page = |cursor: Option<&str>| {
        let request = fixture.server.get("/api/v1/notifications").query(&[("limit", "7")]).by(&fixture.user);
        let request = match cursor {
            Some(cursor) => request.query(&[("cursor", cursor)]),
            None => request,
        };
        request.send().expect(200).json()
    };
    let mut seen = Vec::new();
    let mut response = page(None);
    loop {
        seen.extend(titles(&response));
        fixture.broadcast("meanwhile");
        match response["nextCursor"].as_str().map(ToOwned::to_owned) {
            Some(cursor) => response = page(Some(&cursor)),
            None => break,
        }
    }
    assert_eq!(seen, expected);
}

#[test]
fn a_cursor_belongs_to_its_user() {
    let fixture = Fixture::new();
    let other = fixture.server.sign_in("13800138001");
    for _ in 0..3 {
        fixture.broadcast("x");
    }
    let list = || fixture.server.get("/api/v1/notifications");
    let response = list().query(&[("limit", "1")]).by(&fixture.user).send().expect(200).json();
    let cursor = response["nextCursor"].as_str().unwrap();
    list().query(&[("cursor", cursor)]).by(&fixture.user).send().expect(200);
    list().query(&[("cursor", cursor)]).by(&other).send().expect_fields(&[("cursor", "invalid_format")]);
    let mut forged = cursor.to_owned();
    forged.replace_range(10..11, if &cursor[10..11] == "A" { "B" } else { "A" });
    for bad in [forged.as_str(), "42", "AAAAAAAAACp9k2fQx1m0bY4sVwT7uLpH", "=", "乾"] {
        list().query(&[("cursor", bad)]).by(&fixture.user).send().expect_fields(&[("cursor", "invalid_format")]);
    }
    for (limit, code) in [("0", "out_of_range"), ("101", "out_of_range"), ("-1", "out_of_range"), ("x", "invalid_type")]
    {
        list().query(&[("limit", limit)]).by(&fixture.user).send().expect_fields(&[("limit", code)]);
    }
    let all = list().by(&fixture.user).send().expect(200).json();
    assert_eq!((titles(&all).len(), &all["nextCursor"]), (3, &Value::Null));
}

#[test]
fn a_hundred_concurrent_reads_count_once() {
    let fixture = Fixture::new();
    let id = fixture.broadcast("one");
    let path = format!("/api/v1/notifications/{id}/read");
    let responses =
        send_concurrently((0..100).map(|_| fixture.server.request("PATCH", &path).by(&fixture.user)).collect());
    let times: std::collections::BTreeSet<_> = responses
        .into_iter()
        .map(|response| response.expect(200).json()["readAt"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(times.len(), 1, "{times:?}");
    assert_eq!((fixture.read_count(&id), fixture.unread(&fixture.user)), (1, 0));
}

#[test]
fn a_hundred_concurrent_mark_all_requests_count_once() {
    let fixture = Fixture::new();
    let ids: Vec<_> = (0..3).map(|number| fixture.broadcast(&number.to_string())).collect();
    fixture.stream_chunks(&fixture.user, "own");
    // Half of them mark all, the others one notification.
    let requests = (0..100).map(|number| match number % 4 {
        0 | 1 => fixture.server.request("PATCH", "/api/v1/notifications/mark-all-read"),
        2 => fixture.server.request("PATCH", &format!("/api/v1/notifications/{}/read", ids[0])),
        _ => fixture.server.get("/api/v1/notifications/unread-count"),
    });
    let responses = send_concurrently(requests.map(|request| request.by(&fixture.user)).collect());
    let marked: i64 = responses.into_iter().filter_map(|response| response.expect(200).json()["marked"].as_i64()).sum();
    assert!(marked == 4 || marked == 3, "{marked}");
    assert_eq!(fixture.unread(&fixture.user), 0);
    for id in &ids {
        assert_eq!(fixture.read_count(id), 1);
    }
    assert_eq!(fixture.server.value::<i64>("select count(*) from notification_marks"), 1);
}

#[test]
fn counts_a_hundred_concurrent_readers() {
    let fixture = Fixture::new();
    let users: Vec<_> = (0..20).map(|number| fixture.server.sign_in(&format!("138001390{number:02}"))).collect();
    let (one, two) = (fixture.broadcast("one"), fixture.broadcast("two"));
    let requests = users.iter().flat_map(|user| {
        let read = |id: &str| fixture.server.request("PATCH", &format!("/api/v1/notifications/{id}/read")).by(user);
        let all = fixture.server.request("PATCH", "/api/v1/notifications/mark-all-read").by(user);
        [read(&one), read(&one), read(&two), all.clone(), all]
    });
    for response in send_concurrently(requests.collect()) {
        response.expect(200);
    }
    assert_eq!((fixture.read_count(&one), fixture.read_count(&two)), (20, 20));
}

#[test]
fn a_broadcast_is_one_row_and_creates_none_for_users() {
    let fixture = Fixture::new();
    for number in 0..20 {
        fixture.server.sign_in(&format!("138001390{number:02}"));
    }
    let rows = || {
        [
            "notifications",
            "notification_blocks",
            "notification_readers",
            "notification_recipients",
            "notification_reads",
            "notification_read_blocks",
            "notification_marks",
        ]
        .map(|table| fixture.server.value::<i64>(&format!("select count(*) from {table}")))
    };
    for _ in 0..10 {
        fixture.broadcast("x");
    }
    assert_eq!(rows(), [10, 1, 0, 0, 0, 0, 0]);
    fixture.mark_all(&fixture.user);
    assert_eq!(rows(), [10, 1, 1, 0, 0, 0, 1]);
}

#[test]
fn payloads_accept_only_valid_links() {
    let fixture = Fixture::with(Setup::default().with("NOTIFICATIONS_URL_HOSTS", "app.example.com, *.example.org"));
    let send = |payload: Value| {
        let body = json!({ "audience": "all", "title": "t", "body": "b", "payload": payload });
        fixture.server.post("/admin/notifications").token(&fixture.key).json(&body).send()
    };
    for payload in [
        json!({ "type": "none" }),
        json!({ "type": "open_route", "route": "sessions/detail", "params": { "id": "7", "tab": 2 } }),
        json!({ "type": "open_url", "url": "https://app.example.com/a?b=c" }),
        json!({ "type": "open_url", "url": "https://www.example.org/" }),
    ] {
        assert_eq!(send(payload.clone()).expect(201).json()["payload"], payload);
        assert_eq!(fixture.inbox(&fixture.user)["items"][0]["payload"], payload);
        assert_eq!(fixture.server.get("/notifications/latest").send().json()["notification"]["payload"], payload);
    }
    for (payload, code) in [
        (json!({ "type": "open_url", "url": "http://app.example.com/" }), "rejected"),
        (json!({ "type": "open_url", "url": "https://evil.example.com/" }), "rejected"),
        (json!({ "type": "open_url" }), "invalid_format"),
        (json!({ "type": "dance" }), "invalid_format"),
        (json!("none"), "invalid_format"),
        (json!([]), "invalid_format"),
        (json!({ "type": "none", "route": "x" }), "invalid_format"),
    ] {
        send(payload).expect_fields(&[("payload", code)]);
    }
    // As text in a form.
    let form =
        [("audience", "all"), ("title", "t"), ("body", "b"), ("payload", r#"{"type":"open_route","route":"points"}"#)];
    let carried = fixture.server.post("/admin/notifications").token(&fixture.key).form(&form).send().expect(201).json();
    assert_eq!(carried["payload"], json!({ "type": "open_route", "route": "points", "params": {} }));
}

#[test]
fn links_may_have_international_hosts() {
    let hosts = "例子.中国, *.例子.公司, Example.NET.";
    let fixture = Fixture::with(Setup::default().with("NOTIFICATIONS_URL_HOSTS", hosts));
    for (url, status) in [
        ("https://例子.中国/", 201),
        ("https://xn--fsqu00a.xn--fiqs8s/", 201),
        ("https://a.例子.公司/", 201),
        ("https://example.net/", 201),
        ("https://a.例子.中国/", 422),
        ("https://例子.公司/", 422),
    ] {
        let payload = json!({ "type": "open_url", "url": url });
        let body = json!({ "audience": "all", "title": "t", "body": "b", "payload": payload });
        let response = fixture.server.post("/admin/notifications").token(&fixture.key).json(&body).send();
        assert_eq!(response.status, status, "{url}: {}", response.text());
    }
}

#[test]
fn the_audience_is_required_and_must_exist() {
    let fixture = Fixture::new();
    let send = |body: Value| fixture.server.post("/admin/notifications").token(&fixture.key).json(&body).send();
    let id = &fixture.user.user_id;
    send(json!({ "title": "t", "body": "b" })).expect_fields(&[("audience", "required")]);
    send(json!({ "audience": "users", "title": "t", "body": "b" })).expect_fields(&[("userIds", "required")]);
    send(json!({ "audience": "users", "userIds": [], "title": "t", "body": "b" }))
        .expect_fields(&[("userIds", "required")]);
    send(json!({ "audience": "all", "userIds": [id], "title": "t", "body": "b" }))
        .expect_fields(&[("userIds", "unknown_value")]);
    send(json!({ "audience": "users", "userIds": [id, "999"], "title": "t", "body": "b" }))
        .expect_fields(&[("userIds", "unknown_value")]);
    let many: Vec<_> = (1..=101).collect();
    send(json!({ "audience": "users", "userIds": many, "title": "t", "body": "b" }))
        .expect_fields(&[("userIds", "too_many")]);
    send(json!({ "audience": "all", "title": " ", "body": "b", "kind": "spam" }))
        .expect_fields(&[("title", "required"), ("kind", "unknown_value")]);
    assert_eq!(fixture.server.value::<i64>("select count(*) from notifications"), 0);
    send(json!({ "audience": "users", "userIds": [id, id], "title": "twice", "body": "b" })).expect(201);
    assert_eq!(fixture.unread(&fixture.user), 1);
}

#[test]
fn keeps_the_newest_direct_notifications_of_a_user() {
    let fixture = Fixture::with(Setup::default().with("NOTIFICATIONS_PER_USER", 3));
    let other = fixture.server.sign_in("13800138001");
    let both =
        json!({ "audience": "users", "userIds": [fixture.user.user_id, other.user_id], "title": "both", "body": "b" });
    fixture.send(&both);
    for number in 0..5 {
        fixture.stream_chunks(&fixture.user, &number.to_string());
    }
    fixture.broadcast("all");
    assert_eq!(fixture.titles(&fixture.user), ["all", "4", "3", "2"]);
    assert_eq!(fixture.unread(&fixture.user), 4);
    assert_eq!(fixture.titles(&other), ["all", "both"]);
    assert_eq!(fixture.server.value::<i64>("select count(*) from notifications where ordinal is null"), 4);
}

#[test]
fn disabled_kinds_are_neither_shown_nor_counted() {
    let fixture = Fixture::new();
    for kind in ["system", "account", "activity", "promotion"] {
        fixture.send(&json!({ "audience": "all", "title": kind, "body": "b", "kind": kind }));
        let own =
            json!({ "audience": "users", "userIds": [fixture.user.user_id], "title": kind, "body": "b", "kind": kind });
        fixture.send(&own);
    }
    let switch = |switches: Value| {
        let body = json!({ "notifications": switches });
        fixture.server.request("PATCH", "/api/v1/preferences").by(&fixture.user).json(&body).send().expect(200);
    };
    switch(json!({ "promotion": false, "account": false }));
    assert_eq!(fixture.titles(&fixture.user), ["activity", "activity", "system", "system"]);
    assert_eq!(fixture.unread(&fixture.user), 4);
    // Hidden ones are marked too, and counted as marked.
    assert_eq!(fixture.mark_all(&fixture.user), json!({ "count": 0, "marked": 8 }));
    assert_eq!(fixture.mark_all(&fixture.user), json!({ "count": 0, "marked": 0 }));
    switch(json!({ "promotion": true }));
    assert_eq!(fixture.titles(&fixture.user).len(), 6);
    assert_eq!(fixture.unread(&fixture.user), 0);
}

#[test]
fn the_first_generation_shows_broadcasts_without_a_token() {
    let fixture = Fixture::new();
    let latest = || fixture.server.get("/notifications/latest");
    let all = || fixture.server.get("/notifications/all");
    assert_eq!(latest().send().expect(200).json(), json!({ "notification": null }));
    assert_eq!(all().send().expect(200).json(), json!({ "items": [], "total": 0 }));
    let id = fixture.broadcast("one");
    fixture.broadcast("two");
    fixture.stream_chunks(&fixture.user, "own");
    assert_eq!(latest().send().expect(200).json()["notification"]["title"], "two");
    assert_eq!(titles(&all().send().expect(200).json()), ["two", "one"]);
    assert_eq!(titles(&all().token(&fixture.key).send().expect(200).json()), ["two", "one"]);
    assert_eq!(titles(&all().by(&fixture.user).send().expect(200).json()), ["own", "two", "one"]);
    let read = fixture.read(&fixture.user, &id).expect(200).json();
    assert_eq!(all().by(&fixture.user).send().json()["items"][2], read);
    assert_eq!(all().send().json()["items"][1]["readAt"], Value::Null);
    let late = fixture.server.sign_in("13800138001");
    assert_eq!(latest().by(&late).send().expect(200).json(), json!({ "notification": null }));
    latest().token("nonsense").send().expect(200);
}

#[test]
fn commands_send_list_and_withdraw() {
    let fixture = Fixture::new();
    let sent =
        fixture.server.command(&["notify", "send", "--all", "更新", "六十四卦", "--kind", "system"]).expect(0).json();
    assert_eq!((&sent["audience"], &sent["kind"], &sent["readCount"]), (&json!("all"), &json!("system"), &json!(0)));
    let payload = r#"{"type":"open_route","route":"points"}"#;
    let own = ["notify", "send", "own", "text", "--to", "13800138000", "--payload", payload, "--expires", "2100-01-01"];
    let own = fixture.server.command(&own).expect(0).json();
    assert_eq!((&own["recipientCount"], &own["payload"]["route"]), (&json!(1), &json!("points")));
    std::thread::sleep(std::time::Duration::from_millis(60));
    assert_eq!(fixture.titles(&fixture.user), ["own", "更新"]);
    fixture.mark_all(&fixture.user);
    let listed = fixture.server.command(&["notify", "list"]).expect(0).json();
    let counts: Vec<_> = listed["items"].as_array().unwrap().iter().map(|item| &item["readCount"]).collect();
    assert_eq!((counts, &listed["total"]), (vec![&json!(1), &json!(1)], &json!(2)));
    let id = own["id"].as_str().unwrap();
    fixture.server.command(&["notify", "delete", id]).expect(2);
    fixture.server.command(&["notify", "delete", id, "--yes"]).expect(0);
    fixture.server.command(&["notify", "delete", id, "--yes"]).expect(4);
    fixture.server.command(&["notify", "send", "a", "b"]).expect(2);
    fixture.server.command(&["notify", "send", "a", "b", "--all", "--to", "1"]).expect(2);
    fixture.server.command(&["notify", "send", "a", "b", "--to", "13700137000"]).expect(4);
    fixture.server.command(&["notify", "send", "a", "", "--all", "--payload", "{}", "--expires", "soon"]).expect(2);
    let audited = fixture.server.command(&["audit"]).expect(0).json().to_string();
    assert!(audited.contains("yarrow notify send") && audited.contains("yarrow notify delete"), "{audited}");
}

#[test]
fn read_state_survives_a_crash() {
    let mut fixture = Fixture::new();
    fixture.server = fixture.server.restart(Setup::default().in_own_process());
    let ids: Vec<_> = (0..4).map(|number| fixture.broadcast(&number.to_string())).collect();
    let read = fixture.read(&fixture.user, &ids[1]).expect(200).json();
    fixture.server = fixture.server.crash_and_restart(Setup::default());
    assert_eq!(fixture.unread(&fixture.user), 3);
    assert_eq!(fixture.inbox(&fixture.user)["items"][2], read);
    assert_eq!(fixture.mark_all(&fixture.user)["marked"], 3);
    fixture.server = fixture.server.crash_and_restart(Setup::default());
    assert_eq!(fixture.unread(&fixture.user), 0);
    assert_eq!(fixture.inbox(&fixture.user)["items"][2], read);
    assert!(ids.iter().all(|id| fixture.read_count(id) == 1));
}
