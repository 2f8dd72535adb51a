//! The inbox, as users read it and operators fill it.

use serde_json::{Value, json};

use crate::support::{Answer, Caller, Server, Setup, at_once, eventually};

struct World {
    server: Server,
    key: String,
    user: Caller,
}

impl World {
    fn new() -> Self {
        Self::with(Setup::default())
    }

    fn with(setup: Setup) -> Self {
        let server = setup.start();
        let (key, user) = (server.api_key("tests"), server.sign_in("13800138000"));
        Self { server, key, user }
    }

    /// Sends to everybody, and answers the notification's id.
    fn broadcast(&self, title: &str) -> String {
        self.send(&json!({ "audience": "all", "title": title, "body": "…" }))
    }

    fn tell(&self, user: &Caller, title: &str) -> String {
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
        let answer = self.server.get("/api/v1/notifications/unread-count").by(user).send().expect(200).json();
        answer["count"].as_i64().unwrap()
    }

    fn read(&self, user: &Caller, id: &str) -> Answer {
        self.server.request("PATCH", &format!("/api/v1/notifications/{id}/read")).by(user).send()
    }

    fn mark_all(&self, user: &Caller) -> Value {
        self.server.request("PATCH", "/api/v1/notifications/mark-all-read").by(user).send().expect(200).json()
    }

    /// How often a notification was read, as its sender finds it.
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
fn an_unread_notification_is_read_once_and_stays_read() {
    let world = World::new();
    let id = world.broadcast("one");
    assert_eq!(world.unread(&world.user), 1);
    assert_eq!(world.inbox(&world.user)["items"][0]["readAt"], Value::Null);
    let first = world.read(&world.user, &id).expect(200).json();
    assert!(first["readAt"].is_string() && first["title"] == "one", "{first}");
    std::thread::sleep(std::time::Duration::from_millis(5));
    for _ in 0..2 {
        assert_eq!(world.read(&world.user, &id).expect(200).json(), first);
    }
    assert_eq!(world.mark_all(&world.user), json!({ "count": 0, "marked": 0 }));
    assert_eq!(world.inbox(&world.user)["items"][0], first);
    assert_eq!((world.unread(&world.user), world.read_count(&id)), (0, 1));
}

#[test]
fn all_are_marked_read_and_keep_what_they_were_first_read_at() {
    let world = World::new();
    let ids: Vec<_> = (0..5).map(|number| world.broadcast(&number.to_string())).collect();
    let own = world.tell(&world.user, "own");
    let first = world.read(&world.user, &ids[2]).expect(200).json();
    assert_eq!(world.unread(&world.user), 5);
    let a_moment = || std::thread::sleep(std::time::Duration::from_millis(5));
    a_moment();
    assert_eq!(world.mark_all(&world.user), json!({ "count": 0, "marked": 5 }));
    assert_eq!(world.mark_all(&world.user), json!({ "count": 0, "marked": 0 }));
    assert_eq!(world.unread(&world.user), 0);
    let inbox = world.inbox(&world.user);
    assert!(inbox["items"].as_array().unwrap().iter().all(|item| item["readAt"].is_string()), "{inbox}");
    let marked_at = &inbox["items"][0]["readAt"];
    assert_eq!((&inbox["items"][3], &inbox["items"][0]["id"]), (&first, &json!(own)));
    assert_ne!(marked_at, &first["readAt"]);
    // What comes later is unread again, and a second mark leaves the first one's times alone.
    let later = world.broadcast("later");
    assert_eq!(world.unread(&world.user), 1);
    a_moment();
    assert_eq!(world.mark_all(&world.user)["marked"], 1);
    let again = world.inbox(&world.user);
    assert_eq!(&again["items"][1]["readAt"], marked_at);
    assert_eq!(again["items"][4], first);
    assert_ne!(&again["items"][0]["readAt"], marked_at);
    for id in ids.iter().chain([&own, &later]) {
        assert_eq!(world.read_count(id), 1, "{id}");
    }
}

#[test]
fn what_is_another_users_is_not_found() {
    let world = World::new();
    let other = world.server.sign_in("13800138001");
    let id = world.tell(&other, "theirs");
    assert_eq!(world.titles(&other), ["theirs"]);
    assert_eq!(world.titles(&world.user), [""; 0]);
    let foreign = world.read(&world.user, &id).expect_problem(404, "not_found").json();
    let unknown = world.read(&world.user, "999999").expect_problem(404, "not_found").json();
    assert_eq!(foreign["detail"], unknown["detail"]);
    assert_eq!((world.unread(&world.user), world.unread(&other)), (0, 1));
    world.mark_all(&world.user);
    assert_eq!(world.unread(&other), 1);
}

#[test]
fn a_user_sees_broadcasts_from_after_the_registration() {
    let world = World::new();
    let before = world.broadcast("before");
    let late = world.server.sign_in("13800138001");
    world.broadcast("after");
    assert_eq!(world.titles(&late), ["after"]);
    assert_eq!(world.unread(&late), 1);
    world.read(&late, &before).expect_problem(404, "not_found");
    assert_eq!(world.mark_all(&late)["marked"], 1);
    assert_eq!(world.read_count(&before), 0);
    assert_eq!(world.titles(&world.user), ["after", "before"]);
}

#[test]
fn what_expires_is_gone_at_once_and_for_good() {
    let mut world = World::new();
    let in_an_hour = "2100-01-01T00:00:00Z";
    let ending = json!({ "audience": "all", "title": "ending", "body": "…", "expiresAt": in_an_hour });
    let id = world.send(&ending);
    let own = json!({ "audience": "users", "userIds": [world.user.user_id], "title": "own", "body": "…", "expiresAt": in_an_hour });
    let own = world.send(&own);
    world.broadcast("staying");
    assert_eq!(world.unread(&world.user), 3);
    let past = json!({ "audience": "all", "title": "past", "body": "…", "expiresAt": "2020-01-01" });
    world
        .server
        .post("/admin/notifications")
        .token(&world.key)
        .json(&past)
        .send()
        .expect_fields(&[("expiresAt", "out_of_range")]);
    let expire = "update notifications set expires_at = 1 where expires_at is not null; \
                  update notification_recipients set expires_at = 1";
    world.server.edit(expire);
    let gone = |world: &World| {
        assert_eq!(world.titles(&world.user), ["staying"]);
        assert_eq!(world.unread(&world.user), 1);
        for id in [&id, &own] {
            world.read(&world.user, id).expect_problem(404, "not_found");
        }
        assert_eq!(world.server.get("/notifications/latest").send().json()["notification"]["title"], "staying");
        assert_eq!(titles(&world.server.get("/notifications/all").send().json()), ["staying"]);
    };
    gone(&world);
    // The job then takes it out of the blocks, and nothing changes.
    let directory = world.server.directory().to_owned();
    world.server = world.server.crash_and_restart(Setup::default());
    let taken_out = "select count(*) from notifications where is_live = 0";
    eventually("both are taken out", || world.server.value::<i64>(taken_out) == 2);
    assert_eq!(world.server.value::<String>("select hex(kinds) from notification_blocks"), "0003", "{directory:?}");
    gone(&world);
}

#[test]
fn what_is_taken_back_is_gone_and_its_number_is_not_given_again() {
    let world = World::new();
    let first = world.broadcast("first");
    let second = world.broadcast("second");
    world.read(&world.user, &second).expect(200);
    let delete =
        |id: &str| world.server.request("DELETE", &format!("/admin/notifications/{id}")).token(&world.key).send();
    assert_eq!(delete(&second).expect(200).json(), json!({ "id": second, "deleted": true }));
    delete(&second).expect_problem(404, "not_found");
    world.read(&world.user, &second).expect_problem(404, "not_found");
    assert_eq!(world.titles(&world.user), ["first"]);
    // The next one takes no place of a read one.
    let third = world.broadcast("third");
    assert!(third.parse::<i64>().unwrap() > second.parse().unwrap());
    assert_eq!(world.unread(&world.user), 2);
    assert_eq!((world.read_count(&first), world.read_count(&third)), (0, 0));
}

#[test]
fn pages_follow_each_other_while_more_arrives() {
    let world = World::new();
    let mut expected = Vec::new();
    for number in 0..25 {
        let title = format!("{number}");
        if number % 3 == 0 {
            world.tell(&world.user, &title)
        } else {
            world.broadcast(&title)
        };
        expected.insert(0, title);
    }
    let page = |cursor: Option<&str>| {
        let request = world.server.get("/api/v1/notifications").query(&[("limit", "7")]).by(&world.user);
        let request = match cursor {
            Some(cursor) => request.query(&[("cursor", cursor)]),
            None => request,
        };
        request.send().expect(200).json()
    };
    let mut seen = Vec::new();
    let mut answer = page(None);
    loop {
        seen.extend(titles(&answer));
        world.broadcast("meanwhile");
        match answer["nextCursor"].as_str().map(ToOwned::to_owned) {
            Some(cursor) => answer = page(Some(&cursor)),
            None => break,
        }
    }
    assert_eq!(seen, expected);
}

#[test]
fn a_cursor_is_its_users_own() {
    let world = World::new();
    let other = world.server.sign_in("13800138001");
    for _ in 0..3 {
        world.broadcast("x");
    }
    let list = || world.server.get("/api/v1/notifications");
    let answer = list().query(&[("limit", "1")]).by(&world.user).send().expect(200).json();
    let cursor = answer["nextCursor"].as_str().unwrap();
    list().query(&[("cursor", cursor)]).by(&world.user).send().expect(200);
    list().query(&[("cursor", cursor)]).by(&other).send().expect_fields(&[("cursor", "invalid_format")]);
    let mut forged = cursor.to_owned();
    forged.replace_range(10..11, if &cursor[10..11] == "A" { "B" } else { "A" });
    for bad in [forged.as_str(), "42", "AAAAAAAAACp9k2fQx1m0bY4sVwT7uLpH", "=", "乾"] {
        list().query(&[("cursor", bad)]).by(&world.user).send().expect_fields(&[("cursor", "invalid_format")]);
    }
    for (limit, code) in [("0", "out_of_range"), ("101", "out_of_range"), ("-1", "out_of_range"), ("x", "invalid_type")]
    {
        list().query(&[("limit", limit)]).by(&world.user).send().expect_fields(&[("limit", code)]);
    }
    let all = list().by(&world.user).send().expect(200).json();
    assert_eq!((titles(&all).len(), &all["nextCursor"]), (3, &Value::Null));
}

#[test]
fn a_hundred_callers_at_once_read_it_once() {
    let world = World::new();
    let id = world.broadcast("one");
    let path = format!("/api/v1/notifications/{id}/read");
    let answers = at_once((0..100).map(|_| world.server.request("PATCH", &path).by(&world.user)).collect());
    let times: std::collections::BTreeSet<_> =
        answers.into_iter().map(|answer| answer.expect(200).json()["readAt"].as_str().unwrap().to_owned()).collect();
    assert_eq!(times.len(), 1, "{times:?}");
    assert_eq!((world.read_count(&id), world.unread(&world.user)), (1, 0));
}

#[test]
fn a_hundred_callers_at_once_mark_all_once() {
    let world = World::new();
    let ids: Vec<_> = (0..3).map(|number| world.broadcast(&number.to_string())).collect();
    world.tell(&world.user, "own");
    // Half of them mark everything, the others one of it.
    let requests = (0..100).map(|number| match number % 4 {
        0 | 1 => world.server.request("PATCH", "/api/v1/notifications/mark-all-read"),
        2 => world.server.request("PATCH", &format!("/api/v1/notifications/{}/read", ids[0])),
        _ => world.server.get("/api/v1/notifications/unread-count"),
    });
    let answers = at_once(requests.map(|request| request.by(&world.user)).collect());
    let marked: i64 = answers.into_iter().filter_map(|answer| answer.expect(200).json()["marked"].as_i64()).sum();
    assert!(marked == 4 || marked == 3, "{marked}");
    assert_eq!(world.unread(&world.user), 0);
    for id in &ids {
        assert_eq!(world.read_count(id), 1);
    }
    assert_eq!(world.server.value::<i64>("select count(*) from notification_marks"), 1);
}

#[test]
fn a_hundred_readers_at_once_are_counted() {
    let world = World::new();
    let users: Vec<_> = (0..20).map(|number| world.server.sign_in(&format!("138001390{number:02}"))).collect();
    let (one, two) = (world.broadcast("one"), world.broadcast("two"));
    let requests = users.iter().flat_map(|user| {
        let read = |id: &str| world.server.request("PATCH", &format!("/api/v1/notifications/{id}/read")).by(user);
        let all = world.server.request("PATCH", "/api/v1/notifications/mark-all-read").by(user);
        [read(&one), read(&one), read(&two), all.clone(), all]
    });
    for answer in at_once(requests.collect()) {
        answer.expect(200);
    }
    assert_eq!((world.read_count(&one), world.read_count(&two)), (20, 20));
}

#[test]
fn a_broadcast_is_one_row_and_leaves_nothing_with_its_users() {
    let world = World::new();
    for number in 0..20 {
        world.server.sign_in(&format!("138001390{number:02}"));
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
        .map(|table| world.server.value::<i64>(&format!("select count(*) from {table}")))
    };
    for _ in 0..10 {
        world.broadcast("x");
    }
    assert_eq!(rows(), [10, 1, 0, 0, 0, 0, 0]);
    world.mark_all(&world.user);
    assert_eq!(rows(), [10, 1, 1, 0, 0, 0, 1]);
}

#[test]
fn payloads_lead_where_they_may() {
    let world = World::with(Setup::default().with("NOTIFICATIONS_URL_HOSTS", "app.example.com, *.example.org"));
    let send = |payload: Value| {
        let body = json!({ "audience": "all", "title": "t", "body": "b", "payload": payload });
        world.server.post("/admin/notifications").token(&world.key).json(&body).send()
    };
    for payload in [
        json!({ "type": "none" }),
        json!({ "type": "open_route", "route": "sessions/detail", "params": { "id": "7", "tab": 2 } }),
        json!({ "type": "open_url", "url": "https://app.example.com/a?b=c" }),
        json!({ "type": "open_url", "url": "https://www.example.org/" }),
    ] {
        assert_eq!(send(payload.clone()).expect(201).json()["payload"], payload);
        assert_eq!(world.inbox(&world.user)["items"][0]["payload"], payload);
        assert_eq!(world.server.get("/notifications/latest").send().json()["notification"]["payload"], payload);
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
    // A form carries it as text.
    let form =
        [("audience", "all"), ("title", "t"), ("body", "b"), ("payload", r#"{"type":"open_route","route":"points"}"#)];
    let carried = world.server.post("/admin/notifications").token(&world.key).form(&form).send().expect(201).json();
    assert_eq!(carried["payload"], json!({ "type": "open_route", "route": "points", "params": {} }));
}

#[test]
fn an_audience_must_be_named_and_be_there() {
    let world = World::new();
    let send = |body: Value| world.server.post("/admin/notifications").token(&world.key).json(&body).send();
    let id = &world.user.user_id;
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
    assert_eq!(world.server.value::<i64>("select count(*) from notifications"), 0);
    send(json!({ "audience": "users", "userIds": [id, id], "title": "twice", "body": "b" })).expect(201);
    assert_eq!(world.unread(&world.user), 1);
}

#[test]
fn a_user_keeps_the_newest_of_what_is_addressed_to_them() {
    let world = World::with(Setup::default().with("NOTIFICATIONS_PER_USER", 3));
    let other = world.server.sign_in("13800138001");
    let both =
        json!({ "audience": "users", "userIds": [world.user.user_id, other.user_id], "title": "both", "body": "b" });
    world.send(&both);
    for number in 0..5 {
        world.tell(&world.user, &number.to_string());
    }
    world.broadcast("all");
    assert_eq!(world.titles(&world.user), ["all", "4", "3", "2"]);
    assert_eq!(world.unread(&world.user), 4);
    assert_eq!(world.titles(&other), ["all", "both"]);
    assert_eq!(world.server.value::<i64>("select count(*) from notifications where ordinal is null"), 4);
}

#[test]
fn kinds_that_are_switched_off_are_neither_shown_nor_counted() {
    let world = World::new();
    for kind in ["system", "account", "activity", "promotion"] {
        world.send(&json!({ "audience": "all", "title": kind, "body": "b", "kind": kind }));
        let own =
            json!({ "audience": "users", "userIds": [world.user.user_id], "title": kind, "body": "b", "kind": kind });
        world.send(&own);
    }
    let switch = |switches: Value| {
        let body = json!({ "notifications": switches });
        world.server.request("PATCH", "/api/v1/preferences").by(&world.user).json(&body).send().expect(200);
    };
    switch(json!({ "promotion": false, "account": false }));
    assert_eq!(world.titles(&world.user), ["activity", "activity", "system", "system"]);
    assert_eq!(world.unread(&world.user), 4);
    // What is hidden is marked with the rest, and counted as marked.
    assert_eq!(world.mark_all(&world.user), json!({ "count": 0, "marked": 8 }));
    assert_eq!(world.mark_all(&world.user), json!({ "count": 0, "marked": 0 }));
    switch(json!({ "promotion": true }));
    assert_eq!(world.titles(&world.user).len(), 6);
    assert_eq!(world.unread(&world.user), 0);
}

#[test]
fn the_first_generation_sees_broadcasts_without_a_token() {
    let world = World::new();
    let latest = || world.server.get("/notifications/latest");
    let all = || world.server.get("/notifications/all");
    assert_eq!(latest().send().expect(200).json(), json!({ "notification": null }));
    assert_eq!(all().send().expect(200).json(), json!({ "items": [] }));
    let id = world.broadcast("one");
    world.broadcast("two");
    world.tell(&world.user, "own");
    assert_eq!(latest().send().expect(200).json()["notification"]["title"], "two");
    assert_eq!(titles(&all().send().expect(200).json()), ["two", "one"]);
    assert_eq!(titles(&all().token(&world.key).send().expect(200).json()), ["two", "one"]);
    assert_eq!(titles(&all().by(&world.user).send().expect(200).json()), ["own", "two", "one"]);
    let read = world.read(&world.user, &id).expect(200).json();
    assert_eq!(all().by(&world.user).send().json()["items"][2], read);
    assert_eq!(all().send().json()["items"][1]["readAt"], Value::Null);
    let late = world.server.sign_in("13800138001");
    assert_eq!(latest().by(&late).send().expect(200).json(), json!({ "notification": null }));
    latest().token("nonsense").send().expect_problem(401, "unauthenticated");
}

#[test]
fn the_command_line_sends_lists_and_takes_back() {
    let world = World::new();
    let sent =
        world.server.command(&["notify", "send", "--all", "更新", "六十四卦", "--kind", "system"]).expect(0).json();
    assert_eq!((&sent["audience"], &sent["kind"], &sent["readCount"]), (&json!("all"), &json!("system"), &json!(0)));
    let payload = r#"{"type":"open_route","route":"points"}"#;
    let own = ["notify", "send", "own", "text", "--to", "13800138000", "--payload", payload, "--expires", "2100-01-01"];
    let own = world.server.command(&own).expect(0).json();
    assert_eq!((&own["recipientCount"], &own["payload"]["route"]), (&json!(1), &json!("points")));
    std::thread::sleep(std::time::Duration::from_millis(60));
    assert_eq!(world.titles(&world.user), ["own", "更新"]);
    world.mark_all(&world.user);
    let listed = world.server.command(&["notify", "list"]).expect(0).json();
    let counts: Vec<_> = listed["items"].as_array().unwrap().iter().map(|item| &item["readCount"]).collect();
    assert_eq!((counts, &listed["total"]), (vec![&json!(1), &json!(1)], &json!(2)));
    let id = own["id"].as_str().unwrap();
    world.server.command(&["notify", "delete", id]).expect(2);
    world.server.command(&["notify", "delete", id, "--yes"]).expect(0);
    world.server.command(&["notify", "delete", id, "--yes"]).expect(4);
    world.server.command(&["notify", "send", "a", "b"]).expect(2);
    world.server.command(&["notify", "send", "a", "b", "--all", "--to", "1"]).expect(2);
    world.server.command(&["notify", "send", "a", "b", "--to", "13700137000"]).expect(4);
    world.server.command(&["notify", "send", "a", "", "--all", "--payload", "{}", "--expires", "soon"]).expect(2);
    let audited = world.server.command(&["audit"]).expect(0).json().to_string();
    assert!(audited.contains("yarrow notify send") && audited.contains("yarrow notify delete"), "{audited}");
}

#[test]
fn what_was_read_outlives_a_crash() {
    let mut world = World::new();
    let ids: Vec<_> = (0..4).map(|number| world.broadcast(&number.to_string())).collect();
    let read = world.read(&world.user, &ids[1]).expect(200).json();
    world.server = world.server.crash_and_restart(Setup::default());
    assert_eq!(world.unread(&world.user), 3);
    assert_eq!(world.inbox(&world.user)["items"][2], read);
    assert_eq!(world.mark_all(&world.user)["marked"], 3);
    world.server = world.server.crash_and_restart(Setup::default());
    assert_eq!(world.unread(&world.user), 0);
    assert_eq!(world.inbox(&world.user)["items"][2], read);
    assert!(ids.iter().all(|id| world.read_count(id) == 1));
}
