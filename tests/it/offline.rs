//! Apps that work offline: changes since a cursor, batches of history records, and the search of sessions.

use std::{collections::BTreeMap, thread::scope};

use serde_json::{Value, json};

use crate::support::{Caller, Response, Server, Setup, eventually, send_concurrently};

/// The data of an app, filled from changes alone.
#[derive(Debug, Default)]
struct Copy {
    cursor: Option<String>,
    sessions: BTreeMap<String, Value>,
    history: BTreeMap<String, Value>,
    notifications: BTreeMap<String, Value>,
    balances: Value,
    preferences: Value,
}

struct Fixture {
    server: Server,
    user: Caller,
    key: String,
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

impl Copy {
    fn page(&self, fixture: &Fixture, limit: usize) -> Response {
        let limit = limit.to_string();
        let query: Vec<_> = self.cursor.iter().map(|cursor| ("since", cursor.as_str())).collect();
        let request = fixture.server.get("/api/v1/changes").by(&fixture.user).query(&query);
        request.query(&[("limit", &limit)]).send()
    }

    /// Applies one page and returns it.
    fn apply(&mut self, page: Value) -> Value {
        for deleted in page["deleted"].as_array().unwrap() {
            let rows = match deleted["kind"].as_str().unwrap() {
                "session" => &mut self.sessions,
                "history" => &mut self.history,
                "notification" => &mut self.notifications,
                other => panic!("{other}"),
            };
            rows.remove(deleted["id"].as_str().unwrap());
        }
        for session in page["sessions"].as_array().unwrap() {
            self.sessions.insert(text(&session["id"]), session.clone());
        }
        for record in page["history"].as_array().unwrap() {
            self.history.insert(text(&record["localRecordId"]), record.clone());
        }
        for notification in page["notifications"].as_array().unwrap() {
            self.notifications.insert(text(&notification["id"]), notification.clone());
        }
        if let Some(mark) = page.get("readMark") {
            let through: i64 = mark["through"].as_str().unwrap().parse().unwrap();
            for (id, notification) in &mut self.notifications {
                if id.parse::<i64>().unwrap() <= through && notification["readAt"].is_null() {
                    notification["readAt"] = mark["readAt"].clone();
                }
            }
        }
        for (member, place) in [("balances", &mut self.balances), ("preferences", &mut self.preferences)] {
            if let Some(value) = page.get(member) {
                *place = value.clone();
            }
        }
        self.cursor = Some(text(&page["cursor"]));
        page
    }

    /// Asks for pages until there are no more, and returns them.
    fn pull(&mut self, fixture: &Fixture, limit: usize) -> Vec<Value> {
        let mut pages = Vec::new();
        loop {
            let page = self.page(fixture, limit).expect(200).json();
            pages.push(self.apply(page));
            if pages.last().unwrap()["more"] == false {
                return pages;
            }
        }
    }

    /// Compares the copy with the lists of the server.
    fn expect_same(&self, fixture: &Fixture) {
        let Fixture { server, user, .. } = fixture;
        let by_id = |items: &Value, id: &str| -> BTreeMap<String, Value> {
            items.as_array().unwrap().iter().map(|item| (text(&item[id]), item.clone())).collect()
        };
        let limit = [("limit", "100")];
        let sessions = server.get("/api/v1/sessions").by(user).query(&limit).send().expect(200).json();
        assert_eq!(self.sessions, by_id(&sessions["items"], "id"));
        let history = server.post("/divination-history/get").by(user).send().expect(200).json();
        assert_eq!(self.history, by_id(&history["items"], "localRecordId"));
        let inbox = server.get("/api/v1/notifications").by(user).query(&limit).send().expect(200).json();
        assert_eq!(self.notifications, by_id(&inbox["items"], "id"));
        let account = server.get("/api/v1/account").by(user).send().expect(200).json();
        assert_eq!(self.balances, json!({ "points": account["points"], "coins": account["coins"] }));
        let preferences = server.get("/api/v1/preferences").by(user).send().expect(200).json();
        assert_eq!(self.preferences, preferences);
    }
}

impl Fixture {
    fn new() -> Self {
        Self::with(Setup::default())
    }

    fn with(setup: Setup) -> Self {
        let server = setup.start();
        let user = server.sign_in("13800138000");
        server.command(&["points", "adjust", &user.phone_number, "10000", "--reason", "test"]).expect(0);
        let key = server.api_key("tests");
        Self { server, user, key }
    }

    fn post(&self, path: &str, body: &Value) -> Value {
        let response = self.server.post(path).by(&self.user).json(body).send();
        assert!(matches!(response.status, 200 | 201), "{path}: {}", response.text());
        response.json()
    }

    fn save(&self, id: &str, result: &str) {
        self.post("/divination-history/save", &json!({ "localRecordId": id, "aiResult": result }));
    }

    fn delete_records(&self, ids: &[&str]) {
        self.post("/divination-history/delete", &json!({ "localRecordIds": ids }));
    }

    fn cast(&self, question: &str) -> String {
        let body = json!({ "question": question, "method": "three_coins" });
        text(&self.post("/api/v1/sessions", &body)["id"])
    }

    fn annotate(&self, id: &str, body: &Value) -> Response {
        self.server.patch(&format!("/api/v1/sessions/{id}")).by(&self.user).json(body).send()
    }

    fn delete_session(&self, id: &str) {
        self.server.delete(&format!("/api/v1/sessions/{id}")).by(&self.user).send().expect(204);
    }

    fn notify(&self, body: &Value) -> String {
        let sent = self.server.post("/admin/notifications").token(&self.key).json(body).send().expect(201).json();
        text(&sent["id"])
    }

    fn broadcast(&self, title: &str) -> String {
        self.notify(&json!({ "audience": "all", "title": title, "body": "…" }))
    }

    fn notify_user(&self, title: &str) -> String {
        self.notify(&json!({ "audience": "users", "userIds": [self.user.user_id], "title": title, "body": "…" }))
    }

    fn read(&self, id: &str) {
        self.server.patch(&format!("/api/v1/notifications/{id}/read")).by(&self.user).send().expect(200);
    }

    fn unsend(&self, id: &str) {
        self.server.delete(&format!("/admin/notifications/{id}")).token(&self.key).send().expect(200);
    }

    fn search(&self, words: &str, limit: &str) -> Value {
        let query = [("search", words), ("limit", limit)];
        self.server.get("/api/v1/sessions").by(&self.user).query(&query).send().expect(200).json()
    }
}

#[test]
fn a_copy_follows_every_kind_of_change() {
    let fixture = Fixture::new();
    let sessions: Vec<_> = (0..5).map(|number| fixture.cast(&format!("question {number}"))).collect();
    for number in 0..5 {
        fixture.save(&format!("r{number}"), "first");
    }
    let notices: Vec<_> = (0..3).map(|number| fixture.broadcast(&format!("notice {number}"))).collect();
    let own = fixture.notify_user("own");
    let mut copy = Copy::default();
    let pages = copy.pull(&fixture, 4);
    assert!(pages.len() >= 4, "{}", pages.len());
    copy.expect_same(&fixture);
    // Nothing new.
    let quiet = copy.pull(&fixture, 4);
    let nothing = json!({ "deleted": [], "sessions": [], "history": [], "notifications": [],
        "cursor": quiet[0]["cursor"], "more": false });
    assert_eq!(quiet, [nothing]);

    fixture.delete_session(&sessions[1]);
    fixture.annotate(&sessions[3], &json!({ "title": "换工作", "note": "三月再看" })).expect(200);
    fixture.save("r2", "second");
    fixture.save("r5", "new");
    fixture.delete_records(&["r0", "r3", "r5"]);
    fixture.save("r3", "again");
    fixture.read(&notices[0]);
    fixture.unsend(&notices[1]);
    fixture.server.patch("/api/v1/preferences").by(&fixture.user).json(&json!({ "locale": "en" })).send().expect(200);
    let pages = copy.pull(&fixture, 3);
    assert!(pages.len() > 2, "{}", pages.len());
    copy.expect_same(&fixture);

    fixture.unsend(&own);
    fixture.server.patch("/api/v1/notifications/mark-all-read").by(&fixture.user).send().expect(200);
    fixture.broadcast("after the mark");
    copy.pull(&fixture, 100);
    copy.expect_same(&fixture);
    assert_eq!(copy.notifications.values().filter(|one| one["readAt"].is_null()).count(), 1);

    let only = copy.pull(&fixture, 100);
    assert_eq!((only.len(), only[0].get("balances"), only[0].get("preferences")), (1, None, None));
    fixture.server.command(&["coins", "grant", &fixture.user.phone_number, "7", "--reason", "test", "--yes"]).expect(0);
    copy.pull(&fixture, 100);
    assert_eq!(copy.balances["coins"], 7);
    // Another device starts without deletions of the past.
    let mut other = Copy::default();
    assert_eq!(other.pull(&fixture, 100)[0]["deleted"], json!([]));
    other.expect_same(&fixture);
}

#[test]
fn hidden_history_disappears_and_comes_back() {
    let fixture = Fixture::new();
    for number in 0..4 {
        fixture.save(&number.to_string(), "text");
    }
    let mut copy = Copy::default();
    copy.pull(&fixture, 100);
    fixture.post("/divination-history/deactivate-all", &json!({}));
    copy.pull(&fixture, 100);
    assert!(copy.history.is_empty());
    fixture.post("/divination-history/restore-all", &json!({}));
    fixture.delete_records(&["3"]);
    fixture.save("new", "text");
    copy.pull(&fixture, 2);
    copy.expect_same(&fixture);
    assert_eq!(copy.history.len(), 4);
}

#[test]
fn hidden_records_are_deleted_on_devices_also_after_they_were_purged() {
    let fixture = Fixture::with(Setup::default().with("LIMITS_HISTORY_RECORDS", 6));
    let ids = |range: std::ops::Range<usize>| range.map(|number| number.to_string()).collect::<Vec<_>>();
    let save = |range: std::ops::Range<usize>| ids(range).iter().for_each(|id| fixture.save(id, "text"));
    let hide = || fixture.post("/divination-history/deactivate-all", &json!({}));
    let days_later = |days: i64| {
        let age = days * 24 * 60 * 60 * 1000;
        fixture.server.edit(&format!("update history_hidings set hidden_at = hidden_at - {age}"));
        fixture.server.command(&["cleanup", "expired", "--yes"]).expect(0);
    };
    save(0..6);
    let mut copies: Vec<Copy> = (0..4).map(|_| Copy::default()).collect();
    for copy in &mut copies {
        copy.pull(&fixture, 100);
    }
    hide();
    // One device reads all at once, one page by page, one not before the purge.
    copies[0].pull(&fixture, 100);
    let page = copies[1].page(&fixture, 2).expect(200).json();
    assert_eq!(page["deleted"].as_array().unwrap().len(), 2);
    copies[1].apply(page);
    days_later(16);
    // Of these, three are hidden beyond the limit.
    save(4..9);
    hide();
    let stored = || fixture.server.value::<i64>("select count(*) from history");
    eventually("the surplus is deleted", || stored() == 6);
    let page = copies[1].page(&fixture, 2).expect(200).json();
    copies[1].apply(page);
    days_later(16);
    assert_eq!(stored(), 5);
    fixture.save("3", "text");
    fixture.post("/divination-history/restore-all", &json!({}));
    days_later(16);
    assert_eq!(stored(), 6);
    for (copy, limit) in copies.iter_mut().zip([100, 2, 1, 3]) {
        copy.pull(&fixture, limit);
        copy.expect_same(&fixture);
        assert_eq!(copy.history.len(), 6);
    }
}

#[test]
fn restored_records_come_in_pages_between_other_changes() {
    let fixture = Fixture::new();
    (0..7).for_each(|number| fixture.save(&number.to_string(), "text"));
    let mut copies: Vec<Copy> = (0..3).map(|_| Copy::default()).collect();
    for copy in &mut copies {
        copy.pull(&fixture, 100);
    }
    let hide_and_restore = || {
        for path in ["deactivate-all", "restore-all"] {
            fixture.post(&format!("/divination-history/{path}"), &json!({}));
        }
    };
    hide_and_restore();
    for (round, (copy, limit)) in copies.iter_mut().zip([1, 3, 100]).enumerate() {
        let page = copy.page(&fixture, limit).expect(200).json();
        copy.apply(page);
        fixture.save("2", &format!("changed {round}"));
        fixture.delete_records(&[&round.to_string()]);
        hide_and_restore();
        fixture.save(&format!("new {round}"), "text");
    }
    for (copy, limit) in copies.iter_mut().zip([1, 3, 100]) {
        copy.pull(&fixture, limit);
        copy.expect_same(&fixture);
        // Nothing comes twice without a change.
        assert_eq!(copy.pull(&fixture, 100)[0]["history"], json!([]));
    }
}

#[test]
fn concurrent_writes_are_never_skipped() {
    let fixture = Fixture::new();
    let mut copy = Copy::default();
    scope(|threads| {
        let writers: Vec<_> = (0..4)
            .map(|writer| {
                let fixture = &fixture;
                threads.spawn(move || {
                    for number in 0..40 {
                        let id = format!("{writer}-{}", number % 25);
                        match number % 5 {
                            4 => fixture.delete_records(&[&id]),
                            3 if number % 2 == 0 => {
                                let session = fixture.cast("question");
                                if number % 4 == 0 {
                                    fixture.delete_session(&session);
                                }
                            }
                            _ => fixture.save(&id, &number.to_string()),
                        }
                    }
                })
            })
            .collect();
        while writers.iter().any(|writer| !writer.is_finished()) {
            let page = copy.page(&fixture, 3).expect(200).json();
            copy.apply(page);
        }
    });
    copy.pull(&fixture, 3);
    copy.expect_same(&fixture);
}

#[test]
fn cursors_belong_to_their_user_and_expire_after_a_restore() {
    let fixture = Fixture::new();
    fixture.save("a", "text");
    let mut copy = Copy::default();
    copy.pull(&fixture, 100);
    let other = fixture.server.sign_in("13900139000");
    let cursor = copy.cursor.clone().unwrap();
    let ask =
        |user: &Caller, cursor: &str| fixture.server.get("/api/v1/changes").by(user).query(&[("since", cursor)]).send();
    ask(&other, &cursor).expect_fields(&[("since", "invalid_format")]);
    ask(&fixture.user, &cursor[1..]).expect_fields(&[("since", "invalid_format")]);
    // As in the database of a backup that was made before the record was saved.
    fixture.server.edit("delete from history");
    ask(&fixture.user, &cursor).expect_problem(410, "cursor_expired");
}

#[test]
fn a_page_ends_before_it_becomes_too_large() {
    let fixture = Fixture::new();
    let large = "易".repeat(10_000);
    for number in 0..60 {
        fixture.save(&number.to_string(), &large);
    }
    let mut copy = Copy::default();
    let pages = copy.pull(&fixture, 100);
    assert!(pages.len() > 1, "{}", pages.len());
    assert!(pages.iter().all(|page| page.to_string().len() < 2 << 20));
    copy.expect_same(&fixture);
}

#[test]
fn a_batch_saves_each_record_or_says_why_not() {
    let fixture = Fixture::with(Setup::default().with("LIMITS_HISTORY_RECORDS", 3));
    let batch = |ids: &[&str]| {
        let records: Vec<_> = ids.iter().map(|id| json!({ "localRecordId": id, "question": "？" })).collect();
        fixture.post("/divination-history/save-batch", &json!({ "records": records }))
    };
    let errors = |answer: &Value| -> Vec<Value> {
        answer["items"].as_array().unwrap().iter().map(|item| item["error"].clone()).collect()
    };
    let saved = batch(&["a", "b", "a"]);
    assert_eq!(errors(&saved), [Value::Null, Value::Null, Value::Null]);
    assert!(saved["items"][1]["updatedAt"].is_string() && saved["items"][1]["localRecordId"] == "b", "{saved}");
    let saved = batch(&["c", "d", "b"]);
    assert_eq!(errors(&saved), [Value::Null, json!("history_full"), Value::Null]);
    assert_eq!(saved["items"][1]["updatedAt"], Value::Null);
    let list = fixture.post("/divination-history/get", &json!({}));
    assert_eq!(list["total"], 3);
    // The body may be the list, and only the fields that are sent change.
    let bare = json!([{ "localRecordId": "a", "aiResult": "text", "jsonData": { "b" : 1 } }]);
    fixture.post("/divination-history/save-batch", &bare);
    let list = fixture.post("/divination-history/get", &json!({}));
    let record = list["items"].as_array().unwrap().iter().find(|one| one["localRecordId"] == "a").unwrap();
    assert_eq!((&record["question"], &record["aiResult"]), (&json!("？"), &json!("text")));
}

#[test]
fn an_edit_of_an_older_version_is_refused_with_the_newer_state() {
    let fixture = Fixture::new();
    let save = |body: Value| fixture.server.post("/divination-history/save").by(&fixture.user).json(&body).send();
    let first = save(json!({ "localRecordId": "r-1", "aiResult": "first" })).expect(200).json();
    let edited =
        |text: &str, base: &Value| save(json!({ "localRecordId": "r-1", "aiResult": text, "baseVersion": base }));
    let second = edited("second", &first["version"]).expect(200).json();
    assert_ne!(second["version"], first["version"]);

    let refused = edited("other device", &first["version"]).expect_problem(409, "version_conflict").json();
    assert_eq!(refused["record"], second);
    let listed = fixture.server.post("/divination-history/get").by(&fixture.user).json(&json!({})).send();
    assert_eq!(listed.expect(200).json()["items"], json!([second]), "nothing was stored");
    let changed = fixture.server.get("/api/v1/changes").by(&fixture.user).send().expect(200).json();
    assert_eq!(changed["history"], json!([second]), "both lists name the same version");
    edited("merged", &refused["record"]["version"]).expect(200);

    let batch = json!([
        { "localRecordId": "r-1", "aiResult": "late", "baseVersion": second["version"] },
        { "localRecordId": "r-2", "aiResult": "new" },
    ]);
    let saved = fixture.post("/divination-history/save-batch", &batch);
    assert_eq!(saved["items"][0]["error"], "version_conflict");
    assert_eq!(saved["items"][0]["record"]["aiResult"], "merged");
    assert_eq!(
        (&saved["items"][1]["error"], saved["items"][1]["version"].is_string()),
        (&Value::Null, true),
        "{saved}"
    );

    fixture.delete_records(&["r-1"]);
    let refused = edited("of a deleted record", &second["version"]).expect_problem(409, "version_conflict").json();
    assert!(refused.get("record").is_none(), "{refused}");
    save(json!({ "localRecordId": "r-1", "baseVersion": "no" })).expect_fields(&[("baseVersion", "invalid_format")]);
    save(json!({ "localRecordId": "r-1", "aiResult": "anew" })).expect(200);
}

#[test]
fn parallel_edits_of_one_version_have_one_winner() {
    let fixture = Fixture::new();
    let first = json!({ "localRecordId": "r-1", "aiResult": "first" });
    let first =
        fixture.server.post("/divination-history/save").by(&fixture.user).json(&first).send().expect(200).json();
    let edits = (0..16).map(|number| {
        let edit = json!({ "localRecordId": "r-1", "aiResult": number.to_string(), "baseVersion": first["version"] });
        fixture.server.post("/divination-history/save").by(&fixture.user).json(&edit)
    });
    let statuses: Vec<_> = send_concurrently(edits.collect()).iter().map(|response| response.status).collect();
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 1, "{statuses:?}");
    assert_eq!(statuses.iter().filter(|status| **status == 409).count(), 15, "{statuses:?}");
}

#[test]
fn invalid_records_of_a_batch_are_named_and_nothing_is_saved() {
    let fixture = Fixture::new();
    let send = |body: Value| fixture.server.post("/divination-history/save-batch").by(&fixture.user).json(&body).send();
    let wrong = json!([{ "localRecordId": "a" }, { "question": "？" }, { "localRecordId": "b", "timestamp": "x" }, 7]);
    send(wrong).expect_fields(&[
        ("records[1].localRecordId", "required"),
        ("records[2].timestamp", "invalid_format"),
        ("records[3]", "invalid_type"),
    ]);
    send(json!({ "records": [] })).expect_fields(&[("records", "required")]);
    let many: Vec<_> = (0..101).map(|number| json!({ "localRecordId": number.to_string() })).collect();
    send(json!({ "records": many })).expect_fields(&[("records", "too_many")]);
    assert_eq!(fixture.post("/divination-history/get", &json!({}))["total"], 0);
}

#[test]
fn titles_and_notes_are_moderated_kept_and_cleared() {
    let fixture = Fixture::new();
    let id = fixture.cast("今年换工作合适吗？");
    let changed = fixture.annotate(&id, &json!({ "title": "换工作", "note": "三月面试\n再看" })).expect(200).json();
    assert_eq!((&changed["title"], &changed["note"]), (&json!("换工作"), &json!("三月面试\n再看")));
    let changed = fixture.annotate(&id, &json!({ "note": "" })).expect(200).json();
    assert_eq!((&changed["title"], &changed["note"]), (&json!("换工作"), &Value::Null));
    fixture.annotate(&id, &json!({ "title": "赌博" })).expect_problem(422, "content_rejected");
    fixture.annotate(&id, &json!({ "title": "字".repeat(61) })).expect_fields(&[("title", "too_long")]);
    let found = fixture.server.get(&format!("/api/v1/sessions/{id}")).by(&fixture.user).send().expect(200).json();
    assert_eq!(found["title"], "换工作");
    let other = fixture.server.sign_in("13900139000");
    let path = format!("/api/v1/sessions/{id}");
    let foreign = fixture.server.patch(&path).by(&other).json(&json!({ "title": "赌博" })).send();
    foreign.expect_problem(404, "not_found");
    assert_eq!(fixture.server.value::<i64>("select count(*) from violations"), 1);
}

#[test]
fn a_search_finds_words_of_question_title_and_note() {
    let fixture = Fixture::new();
    let first = fixture.cast("今年换工作合适吗？");
    let second = fixture.cast("Should I take the Offer?");
    let third = fixture.cast("能买房吗");
    fixture.annotate(&third, &json!({ "title": "工作以后", "note": "offer in May" })).expect(200);
    let ids = |page: &Value| -> Vec<String> {
        page["items"].as_array().unwrap().iter().map(|item| text(&item["id"])).collect()
    };
    assert_eq!(ids(&fixture.search("工作", "20")), [third.clone(), first.clone()]);
    assert_eq!(ids(&fixture.search("ＯＦＦＥＲ", "20")), [third.clone(), second]);
    assert_eq!(ids(&fixture.search("offer 工作", "20")), std::slice::from_ref(&third));
    assert_eq!(ids(&fixture.search("没有", "20")), Vec::<String>::new());
    let page = fixture.search("工作", "1");
    assert_eq!(ids(&page), std::slice::from_ref(&third));
    let query = [("search", "工作"), ("limit", "1"), ("cursor", page["nextCursor"].as_str().unwrap())];
    let next = fixture.server.get("/api/v1/sessions").by(&fixture.user).query(&query).send().expect(200).json();
    assert_eq!((ids(&next), &next["nextCursor"]), (vec![first], &Value::Null));
    fixture.delete_session(&third);
    assert_eq!(fixture.search("offer", "20")["items"].as_array().unwrap().len(), 1);
    assert_eq!(fixture.server.value::<i64>("select count(*) from session_texts"), 2);
}
