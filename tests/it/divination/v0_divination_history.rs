//! `/divination-history`: records that clients store and read back unchanged.

use serde_json::{Value, json};

use crate::support::{Caller, Response, Server, Setup, allow_changes, eventually, refuse_changes, send_concurrently};

const PHONE: &str = "13800138000";

fn save(server: &Server, user: &Caller, body: &Value) -> Response {
    server.post("/divination-history/save").by(user).json(body).send()
}

fn save_id(server: &Server, user: &Caller, id: &str) -> Response {
    save(server, user, &json!({ "localRecordId": id }))
}

fn list(server: &Server, user: &Caller, body: &Value) -> Value {
    server.post("/divination-history/get").by(user).json(body).send().expect(200).json()
}

fn ids(listed: &Value) -> Vec<&str> {
    listed["items"].as_array().unwrap().iter().map(|item| item["localRecordId"].as_str().unwrap()).collect()
}

fn delete(server: &Server, user: &Caller, body: &Value) -> Response {
    server.post("/divination-history/delete").by(user).json(body).send()
}

fn count(server: &Server, user: &Caller) -> Value {
    let path = format!("/divination-history/count/{}", user.phone_number);
    server.get(&path).by(user).send().expect(200).json()["count"].clone()
}

fn deactivate_all(server: &Server, user: &Caller) -> Value {
    let form = [("phoneNumber", user.phone_number.as_str()), ("userId", user.user_id.as_str())];
    server.post("/divination-history/deactivate-all").by(user).form(&form).send().expect(200).json()
}

#[test]
fn returns_a_record_as_saved() {
    let server = Setup::default().start();
    let user = server.sign_in(PHONE);
    let record = json!({
        "userId": user.user_id, "phoneNumber": PHONE, "localRecordId": "r-1", "jsonData": { "lines": [7, 8] },
        "aiResult": "水雷屯", "questionType": "career", "question": "今年换工作合适吗？", "timestamp": 1_767_225_600_000_i64,
    });
    let saved = save(&server, &user, &record).expect(200).json();
    for (name, value) in record.as_object().unwrap() {
        assert_eq!(&saved[name], value, "{name}");
    }
    assert_eq!(saved["createdAt"], saved["updatedAt"]);
    assert_eq!(list(&server, &user, &json!({ "phoneNumber": PHONE })), json!({ "items": [saved], "total": 1 }));
    assert_eq!(count(&server, &user), 1);
}

#[test]
fn requires_only_the_record_id() {
    let server = Setup::default().start();
    let user = server.sign_in(PHONE);
    let saved = save_id(&server, &user, "r-1").expect(200).json();
    for name in ["jsonData", "aiResult", "questionType", "question", "timestamp"] {
        assert_eq!(saved[name], Value::Null, "{name}");
    }
    save(&server, &user, &json!({ "question": "x" })).expect_fields(&[("localRecordId", "required")]);
}

#[test]
fn stores_json_data_byte_for_byte_and_timestamps_as_numbers() {
    let server = Setup::default().start();
    let user = server.sign_in(PHONE);
    let values = [
        r#"{ "b" :[1,2 ,  3], "a":{"x":null} }"#,
        "{\n\t\"lines\": [\n7\n]\n}",
        r#"{"a":1,"a":2}"#,
        r#""\u4e7e\u0041\/ \ud83d\ude00 乾""#,
        r#"{"\u0061":"\n"}"#,
        r#""  padded  ""#,
        r#""""#,
        r#"" ""#,
        "123456789012345678901234567890.10",
        "-0.0",
        "1E+2",
        "12345678901234567890123456789012345678901234567890",
        "true",
        "[]",
        "{}",
        r#""{\"lines\":[7]}""#,
        r#""null""#,
    ];
    let timestamps = [
        ("1767225600000", "1767225600000"),
        (r#""1767225600000""#, "1767225600000"),
        (r#""2026-01-01 08:00:00""#, "1767225600000"),
        ("1.7672256E12", "1767225600000"),
        ("1.5", "1.5"),
        (r#""\u0032026""#, "2026"),
        ("9223372036854775807", "9223372036854775807"),
    ];
    for (number, value) in values.iter().enumerate() {
        let (timestamp, returned) = timestamps[number % timestamps.len()];
        let body = format!(r#"{{"localRecordId":"r-1","jsonData": {value} ,"timestamp" :{timestamp} }}"#);
        let saved = server.post("/divination-history/save").by(&user).raw_json(&body).send();
        assert!(saved.status == 200, "{value}: {}", saved.text());
        let listed = server.post("/divination-history/get").by(&user).send().expect(200);
        for response in [saved.text(), listed.text()] {
            for member in [format!(r#""jsonData":{value}"#), format!(r#""timestamp":{returned}"#)] {
                let ends = [",", "}"].map(|end| member.clone() + end);
                assert!(ends.iter().any(|member| response.contains(member)), "{member} in {response}");
            }
        }
    }
    for (timestamp, code) in [
        (json!("yesterday"), "invalid_format"),
        (json!("2026-13-01"), "invalid_format"),
        (json!("9223372036854775808"), "out_of_range"),
        (json!(1e300), "out_of_range"),
        (json!(true), "invalid_type"),
        (json!([1]), "invalid_type"),
    ] {
        save(&server, &user, &json!({ "localRecordId": "r-1", "timestamp": timestamp }))
            .expect_fields(&[("timestamp", code)]);
    }
}

#[test]
fn returns_form_values_as_text() {
    let server = Setup::default().start();
    let user = server.sign_in(PHONE);
    let text = "{ \"lines\": [7, 8] }\n乾+&=%";
    let form = [("localRecordId", "r-1"), ("jsonData", text), ("timestamp", "1767225600000")];
    let saved = server.post("/divination-history/save").by(&user).form(&form).send().expect(200).json();
    assert_eq!((&saved["jsonData"], &saved["timestamp"]), (&json!(text), &json!(1_767_225_600_000_i64)));
}

#[test]
fn saving_an_existing_id_updates_the_record_in_place() {
    let server = Setup::default().start();
    let user = server.sign_in(PHONE);
    let body = json!({ "localRecordId": "r-1", "question": "old", "aiResult": "old", "timestamp": 1 });
    let first = save(&server, &user, &body).expect(200).json();
    save_id(&server, &user, "r-2").expect(200);
    let second = save(&server, &user, &json!({ "localRecordId": "r-1", "question": "new" })).expect(200).json();
    assert_eq!(second["createdAt"], first["createdAt"]);
    assert_eq!((&second["question"], &second["aiResult"]), (&json!("new"), &json!("old")));
    let listed = list(&server, &user, &json!({}));
    assert_eq!((ids(&listed), &listed["items"][1]), (vec!["r-2", "r-1"], &second));
    // A number is a valid id.
    save(&server, &user, &json!({ "localRecordId": 7 })).expect(200);
    save(&server, &user, &json!({ "localRecordId": "7" })).expect(200);
}

#[test]
fn keeps_fields_that_a_save_omits() {
    let server = Setup::default().start();
    let user = server.sign_in(PHONE);
    let record = json!({
        "localRecordId": "r-1", "jsonData": { "lines": [7, 8] }, "aiResult": "水雷屯", "questionType": "career",
        "question": "今年换工作合适吗？", "timestamp": 1_767_225_600_000_i64,
    });
    let mut expected = save(&server, &user, &record).expect(200).json();
    let changes = [
        ("aiResult", json!("山水蒙")),
        ("jsonData", json!([6, 7])),
        ("questionType", json!("love")),
        ("question", json!("何时启程？")),
        ("timestamp", json!(-1)),
        // Both can be emptied.
        ("aiResult", json!("")),
        ("jsonData", json!("")),
    ];
    for (name, value) in changes {
        for nothing in [json!({}), json!({ "question": null, "jsonData": null, "aiResult": null, "timestamp": null })] {
            let mut change = nothing;
            change["localRecordId"] = json!("r-1");
            change[name] = value.clone();
            let saved = save(&server, &user, &change).expect(200).json();
            expected[name] = value.clone();
            for changing in ["updatedAt", "version"] {
                expected[changing] = saved[changing].clone();
            }
            assert_eq!(saved, expected, "{name}");
            assert_eq!(list(&server, &user, &json!({}))["items"][0], expected, "{name}");
        }
    }
    // So can all others.
    let blank = json!({ "localRecordId": "r-1", "questionType": "", "question": " ", "timestamp": "" });
    let saved = save(&server, &user, &blank).expect(200).json();
    for (name, empty) in [("questionType", json!("")), ("question", json!("")), ("timestamp", Value::Null)] {
        assert_eq!(saved[name], empty, "{name}");
    }
    // Saving a deleted id creates a new record.
    deactivate_all(&server, &user);
    let anew = save_id(&server, &user, "r-1").expect(200).json();
    assert_eq!((&anew["question"], &anew["jsonData"]), (&Value::Null, &Value::Null));
}

#[test]
fn parallel_saves_of_one_id_create_one_record() {
    let server = Setup::default().start();
    let user = server.sign_in(PHONE);
    let body = json!({ "localRecordId": "r-1" });
    let request = || server.post("/divination-history/save").by(&user).json(&body);
    let responses = send_concurrently((0..20).map(|_| request()).collect());
    assert!(responses.iter().all(|response| response.status == 200));
    assert_eq!(count(&server, &user), 1);
}

#[test]
fn lists_newest_first_by_server_time() {
    let server = Setup::default().start();
    let user = server.sign_in(PHONE);
    for (id, timestamp) in [("a", 3), ("b", 1), ("c", 2)] {
        save(&server, &user, &json!({ "localRecordId": id, "timestamp": timestamp })).expect(200);
    }
    assert_eq!(ids(&list(&server, &user, &json!({}))), ["c", "b", "a"]);
}

#[test]
fn paginates() {
    let server = Setup::default().start();
    let user = server.sign_in(PHONE);
    for id in ["a", "b", "c", "d", "e"] {
        save_id(&server, &user, id).expect(200);
    }
    let page = |page: u64, size: u64| list(&server, &user, &json!({ "page": page, "size": size }));
    assert_eq!(ids(&page(1, 2)), ["e", "d"]);
    assert_eq!(ids(&page(3, 2)), ["a"]);
    assert_eq!(page(4, 2), json!({ "items": [], "total": 5 }));
    for (number, size) in [(1, 2), (2, 2), (3, 2), (1, 5), (2, 5), (3, 5), (1, 4), (2, 4), (1, 6), (2, 6), (1, 100)] {
        assert_eq!(page(number, size)["total"], 5, "page {number} of {size}");
    }
    assert_eq!(ids(&page(4_294_967_295, 100)), Vec::<&str>::new());
    assert_eq!(ids(&list(&server, &user, &json!({ "size": "1" }))), ["e"]);
    for (name, value, code) in [
        ("page", json!(0), "out_of_range"),
        ("page", json!(-1), "out_of_range"),
        ("page", json!("x"), "invalid_type"),
        ("page", json!(1.5), "invalid_type"),
        ("page", json!(4_294_967_296_u64), "out_of_range"),
        ("size", json!(0), "out_of_range"),
        ("size", json!(101), "out_of_range"),
    ] {
        let response = server.post("/divination-history/get").by(&user).json(&json!({ name: value })).send();
        response.expect_fields(&[(name, code)]);
    }
}

#[test]
fn lists_no_records_as_an_empty_list() {
    let server = Setup::default().start();
    let user = server.sign_in(PHONE);
    for body in [json!({}), json!({ "page": 1, "size": 1 }), json!({ "page": 2 })] {
        assert_eq!(list(&server, &user, &body), json!({ "items": [], "total": 0 }));
    }
}

#[test]
fn a_damaged_record_does_not_break_the_list() {
    let server = Setup::default().start();
    let user = server.sign_in(PHONE);
    for id in ["a", "b", "c"] {
        save(&server, &user, &json!({ "localRecordId": id, "jsonData": [1], "timestamp": 1 })).expect(200);
    }
    server.edit(r#"update history set json_data = '{"a":', client_timestamp = '' where local_record_id = 'b'"#);
    let listed = list(&server, &user, &json!({}));
    let of = |place: usize| (listed["items"][place]["jsonData"].clone(), listed["items"][place]["timestamp"].clone());
    assert_eq!([of(0), of(1), of(2)], [(json!([1]), json!(1)), (Value::Null, Value::Null), (json!([1]), json!(1))]);
}

#[test]
fn returns_up_to_a_thousand_records_without_a_page() {
    let server = Setup::default().start();
    let user = server.sign_in(PHONE);
    server.edit(&format!(
        "with recursive numbers (n) as (select 1 union all select n + 1 from numbers where n < 1001) \
         insert into history (user_id, sequence, local_record_id, created_at, updated_at) \
         select {}, n, 'r-' || n, 1, 1 from numbers",
        user.user_id
    ));
    let listed = list(&server, &user, &json!({}));
    let ids = ids(&listed);
    assert_eq!((ids.len(), ids[0], ids[999]), (1000, "r-1001", "r-2"));
    assert_eq!(listed["total"], 1001);
}

#[test]
fn filters_list_and_total_by_question_type() {
    let server = Setup::default().start();
    let user = server.sign_in(PHONE);
    for (id, question_type) in [("a", "career"), ("b", "love"), ("c", "career")] {
        save(&server, &user, &json!({ "localRecordId": id, "questionType": question_type })).expect(200);
    }
    save_id(&server, &user, "d").expect(200);
    let listed = list(&server, &user, &json!({ "questionType": "career" }));
    assert_eq!((ids(&listed), &listed["total"]), (vec!["c", "a"], &json!(2)));
    assert_eq!(list(&server, &user, &json!({ "questionType": "%" }))["total"], 0);
    assert_eq!(list(&server, &user, &json!({ "questionType": "" }))["total"], 4);
}

#[test]
fn deletes_one_or_several_records() {
    let server = Setup::default().start();
    let user = server.sign_in(PHONE);
    for id in ["a", "b", "c", "d", "e", "f", "g", "null"] {
        save_id(&server, &user, id).expect(200);
    }
    let deleted = |body: Value| delete(&server, &user, &body).expect(200).json()["deleted"].clone();
    assert_eq!(deleted(json!({ "localRecordId": "a" })), 1);
    assert_eq!(deleted(json!({ "localRecordId": "a" })), 0);
    assert_eq!(deleted(json!({ "localRecordIds": ["b", "c", "x", "b"] })), 2);
    assert_eq!(deleted(json!({ "localRecordIds": "d,e" })), 2);
    let repeated = [("localRecordIds", "f"), ("localRecordIds", "x")];
    let response = server.post("/divination-history/delete").by(&user).form(&repeated).send().expect(200);
    assert_eq!(response.json(), json!({ "deleted": 1 }));
    // Null is not a list and not the id "null".
    assert_eq!(deleted(json!({ "localRecordId": "g", "localRecordIds": null })), 1);
    assert_eq!(ids(&list(&server, &user, &json!({}))), ["null"]);
    for list in ["h;i", "h|i", "h；i", "h、 i", "[h, i]"] {
        for id in ["h", "i"] {
            save_id(&server, &user, id).expect(200);
        }
        assert_eq!(deleted(json!({ "localRecordIds": list })), 2, "{list}");
    }
    // Blanks may be part of an id, so that they separate nothing.
    for id in ["j k", "l m"] {
        save_id(&server, &user, id).expect(200);
    }
    for list in ["j k", "j\nk", "1 2 3"] {
        delete(&server, &user, &json!({ "localRecordIds": list }))
            .expect_fields(&[("localRecordIds", "invalid_format")]);
    }
    assert_eq!(deleted(json!({ "localRecordIds": ["j k"] })), 1);
    assert_eq!(deleted(json!({ "localRecordIds": "l m,x" })), 1);
    for nothing in ["null", "undefined", " ", ","] {
        delete(&server, &user, &json!({ "localRecordIds": nothing })).expect_fields(&[("localRecordId", "required")]);
    }
    for nothing in [json!({}), json!({ "localRecordIds": [] }), json!({ "localRecordIds": null, "localRecordId": "" })]
    {
        delete(&server, &user, &nothing).expect_fields(&[("localRecordId", "required")]);
    }
    let many: Vec<_> = (0..101).map(|number| number.to_string()).collect();
    delete(&server, &user, &json!({ "localRecordIds": many })).expect_fields(&[("localRecordIds", "too_many")]);
    delete(&server, &user, &json!({ "localRecordIds": many[..100] })).expect(200);
    // The limit covers all records, whatever their type.
    delete(&server, &user, &json!({ "localRecordIds": many[..100], "localRecordId": "x" }))
        .expect_fields(&[("localRecordIds", "too_many")]);
    delete(&server, &user, &json!({ "localRecordIds": many[..99], "localRecordId": "x" })).expect(200);
    let halves = [many[..50].join(","), many[50..].join(",")];
    let repeated = [("localRecordIds", halves[0].as_str()), ("localRecordIds", halves[1].as_str())];
    for request in [server.post("/divination-history/delete").form(&repeated), {
        server.post("/divination-history/delete").query(&repeated)
    }] {
        request.by(&user).send().expect_fields(&[("localRecordIds", "too_many")]);
    }
    for bad in [json!([["a"]]), json!([{ "a": 1 }]), json!({ "a": 1 }), json!([null]), json!([true, "ok"])] {
        delete(&server, &user, &json!({ "localRecordIds": bad }))
            .expect_fields(&[("localRecordIds[0]", "invalid_type")]);
    }
    delete(&server, &user, &json!({ "localRecordIds": ["ok", true, "ok", [1]] }))
        .expect_fields(&[("localRecordIds[1]", "invalid_type"), ("localRecordIds[3]", "invalid_type")]);
    assert_eq!(count(&server, &user), 1);
}

#[test]
fn limits_the_bytes_of_a_user() {
    let server = Setup::default().with("LIMITS_HISTORY_SIZE", "100 KiB").start();
    let (user, other) = (server.sign_in(PHONE), server.sign_in("13800138001"));
    let save = |user: &Caller, id: &str, field: &str, size: usize| {
        let record = json!({ "localRecordId": id, field: "x".repeat(size) });
        server.post("/divination-history/save").by(user).json(&record).send()
    };
    for id in ["a", "b", "c"] {
        save(&user, id, "aiResult", 30_000).expect(200);
    }
    save(&user, "d", "aiResult", 30_000).expect_problem(409, "history_too_large");
    // A field that is added to a record counts, and one that is replaced by a shorter one frees space.
    save(&user, "a", "jsonData", 30_000).expect_problem(409, "history_too_large");
    save(&user, "a", "aiResult", 30_000).expect(200);
    save(&user, "a", "aiResult", 10_000).expect(200);
    save(&user, "a", "jsonData", 29_000).expect(200);
    save(&user, "d", "aiResult", 30_000).expect_problem(409, "history_too_large");
    save(&other, "d", "aiResult", 30_000).expect(200);
    delete(&server, &user, &json!({ "localRecordId": "b" })).expect(200);
    save(&user, "d", "aiResult", 30_000).expect(200);
    // Hidden records take space until they are deleted.
    deactivate_all(&server, &user);
    save(&user, "e", "aiResult", 30_000).expect_problem(409, "history_too_large");
    save(&user, "d", "aiResult", 30_000).expect(200);
}

#[test]
fn limits_the_records_of_a_user() {
    let server = Setup::default().with("LIMITS_HISTORY_RECORDS", 3).start();
    let user = server.sign_in(PHONE);
    for id in ["a", "b", "c"] {
        save_id(&server, &user, id).expect(200);
    }
    save_id(&server, &user, "d").expect_problem(409, "history_full");
    save_id(&server, &user, "a").expect(200);
    delete(&server, &user, &json!({ "localRecordId": "b" })).expect(200);
    save_id(&server, &user, "d").expect(200);
    save_id(&server, &user, "e").expect_problem(409, "history_full");
    save_id(&server, &server.sign_in("13800138001"), "d").expect(200);
    // Deleted records do not count.
    deactivate_all(&server, &user);
    save_id(&server, &user, "e").expect(200);
}

#[test]
fn parallel_saves_do_not_exceed_the_limit() {
    let server = Setup::default().with("LIMITS_HISTORY_RECORDS", 3).start();
    let user = server.sign_in(PHONE);
    let request =
        |number: u32| server.post("/divination-history/save").by(&user).json(&json!({ "localRecordId": number }));
    let responses = send_concurrently((0..20).map(request).collect());
    assert_eq!(responses.iter().filter(|response| response.status == 200).count(), 3);
    assert_eq!(responses.iter().filter(|response| response.status == 409).count(), 17);
    assert_eq!(count(&server, &user), 3);
}

#[test]
fn hides_deleted_records_and_allows_saving_them_anew() {
    let server = Setup::default().start();
    let user = server.sign_in(PHONE);
    for id in ["a", "b", "c"] {
        save_id(&server, &user, id).expect(200);
    }
    assert_eq!(deactivate_all(&server, &user), json!({ "deactivated": 3 }));
    assert_eq!(deactivate_all(&server, &user), json!({ "deactivated": 0 }));
    assert_eq!((count(&server, &user), &list(&server, &user, &json!({}))["total"]), (json!(0), &json!(0)));
    assert_eq!(delete(&server, &user, &json!({ "localRecordId": "a" })).expect(200).json()["deleted"], 0);
    assert_eq!(server.value::<i64>("select count(*) from history"), 3);

    save_id(&server, &user, "d").expect(200);
    save_id(&server, &user, "b").expect(200);
    assert_eq!(ids(&list(&server, &user, &json!({}))), ["b", "d"]);
    save_id(&server, &user, "b").expect(200);
    assert_eq!(deactivate_all(&server, &user), json!({ "deactivated": 2 }));
}

#[test]
fn limits_deleted_records_to_the_record_limit() {
    let server = Setup::default().with("LIMITS_HISTORY_RECORDS", 3).start();
    let user = server.sign_in(PHONE);
    for round in 0..3 {
        for id in ["a", "b"] {
            save_id(&server, &user, &format!("{id}{round}")).expect(200);
        }
        assert_eq!(deactivate_all(&server, &user), json!({ "deactivated": 2 }));
    }
    let stored =
        "select group_concat(local_record_id) from (select local_record_id from history order by sequence) as kept";
    eventually("the surplus is deleted", || server.value::<String>(stored) == "b1,a2,b2");
    save_id(&server, &user, "b1").expect(200);
    assert_eq!(ids(&list(&server, &user, &json!({}))), ["b1"]);
}

#[test]
fn records_beyond_the_limit_are_gone_before_they_are_deleted() {
    let server = Setup::default().with("LIMITS_HISTORY_RECORDS", 2).with("LIMITS_HISTORY_SIZE", "200 KiB").start();
    let user = server.sign_in(PHONE);
    let fill = |id: &str| save(&server, &user, &json!({ "localRecordId": id, "aiResult": "x".repeat(30_000) }));
    server.edit(&refuse_changes("delete", "history"));
    for ids in [["a", "b"], ["c", "d"], ["e", "f"]] {
        for id in ids {
            fill(id).expect(200);
        }
        assert_eq!(deactivate_all(&server, &user), json!({ "deactivated": 2 }));
    }
    assert_eq!(server.value::<i64>("select count(*) from history"), 6);
    let doctor = server.command(&["doctor"]).text();
    assert!(doctor.contains("1 user has records left to delete"), "{doctor}");
    // Neither in the export nor in the quota, and not restored.
    let export = server.get("/api/v1/account/export").by(&user).send().expect(200).json();
    let exported: Vec<_> =
        export["history"].as_array().unwrap().iter().map(|record| &record["localRecordId"]).collect();
    assert_eq!(exported, ["e", "f"]);
    let restored = server.post("/divination-history/restore-all").by(&user).send().expect(200).json();
    assert_eq!(restored, json!({ "restored": 2, "hidden": 0 }));
    assert_eq!(delete(&server, &user, &json!({ "localRecordId": "e" })).expect(200).json()["deleted"], 1);
    assert_eq!(delete(&server, &user, &json!({ "localRecordId": "e" })).expect(200).json()["deleted"], 0);
    save(&server, &user, &json!({ "localRecordId": "e", "aiResult": "" })).expect(200);
    deactivate_all(&server, &user);
    // One of them is saved anew meanwhile, and stays.
    for id in ["a", "g"] {
        fill(id).expect(200);
    }
    server.edit(&allow_changes("history"));
    eventually("the surplus is deleted", || server.value::<i64>("select count(*) from history") == 4);
    assert_eq!(ids(&list(&server, &user, &json!({}))), ["g", "a"]);
    let doctor = server.command(&["doctor"]).text();
    assert!(!doctor.contains("left to delete since"), "{doctor}");
}

#[test]
fn limits_the_bytes_of_an_unpaged_list_and_continues_in_pages() {
    let server = Setup::default().start();
    let user = server.sign_in(PHONE);
    server.edit(&format!(
        "with recursive numbers (n) as (select 1 union all select n + 1 from numbers where n < 150) \
         insert into history (user_id, sequence, local_record_id, json_data, created_at, updated_at) \
         select {}, n, 'r-' || n, '\"' || hex(zeroblob(32000)) || '\"', 0, 0 from numbers",
        user.user_id
    ));
    let listed = list(&server, &user, &json!({}));
    let items = listed["items"].as_array().unwrap();
    assert!((130..135).contains(&items.len()), "{}", items.len());
    assert_eq!((&listed["total"], &items[0]["localRecordId"]), (&json!(150), &json!("r-150")));
    let rest = list(&server, &user, &json!({ "page": 2, "size": 100 }));
    assert_eq!((&rest["total"], ids(&rest).len()), (&json!(150), 50));
    assert_eq!(ids(&list(&server, &user, &json!({ "page": 1, "size": 100 }))).len(), 100);
}

#[test]
fn cannot_reach_records_of_other_users() {
    let server = Setup::default().start();
    let (user, other) = (server.sign_in(PHONE), server.sign_in("13800138001"));
    save_id(&server, &other, "a").expect(200);
    // An unknown number gets the same response.
    for number in [other.phone_number.as_str(), "13800138099"] {
        for path in ["get", "delete", "save", "deactivate-all"] {
            let body = json!({ "phoneNumber": number, "localRecordId": "a" });
            let request = server.post(&format!("/divination-history/{path}")).by(&user).json(&body);
            request.send().expect_problem(403, "not_yours");
        }
        let path = format!("/divination-history/count/{number}");
        server.get(&path).by(&user).send().expect_problem(403, "not_yours");
    }
    save(&server, &user, &json!({ "userId": other.user_id, "localRecordId": "a" })).expect_problem(403, "not_yours");
    let mixed = json!({ "userId": user.user_id, "phoneNumber": other.phone_number, "localRecordId": "a" });
    save(&server, &user, &mixed).expect_problem(403, "not_yours");
    // Record ids are scoped to the user.
    save_id(&server, &user, "a").expect(200);
    assert_eq!(delete(&server, &user, &json!({ "localRecordId": "a" })).expect(200).json()["deleted"], 1);
    assert_eq!((count(&server, &user), count(&server, &other)), (json!(0), json!(1)));
}

#[test]
fn accepts_the_own_number_in_every_spelling() {
    let server = Setup::default().start();
    let user = server.sign_in(PHONE);
    save_id(&server, &user, "a").expect(200);
    for path in ["+8613800138000", "%2B86%20138%200013%208000", "008613800138000"] {
        let response = server.get(&format!("/divination-history/count/{path}")).by(&user).send().expect(200);
        assert_eq!(response.json()["count"], 1);
    }
    assert_eq!(list(&server, &user, &json!({ "phoneNumber": "138 0013 8000" }))["total"], 1);
}

#[test]
fn limits_field_sizes() {
    let server = Setup::default().start();
    let user = server.sign_in(PHONE);
    // Texts are limited by their unescaped length, other values by their JSON.
    let with_data = |data: Value| save(&server, &user, &json!({ "localRecordId": "a", "jsonData": data }));
    with_data(json!("\"".repeat(64 * 1024))).expect(200);
    with_data(json!("\"".repeat(64 * 1024 + 1))).expect_fields(&[("jsonData", "too_long")]);
    with_data(json!(["x".repeat(64 * 1024 - 4)])).expect(200);
    with_data(json!(["x".repeat(64 * 1024 - 3)])).expect_fields(&[("jsonData", "too_long")]);
    let form = "x".repeat(64 * 1024);
    let form = [("localRecordId", "a"), ("jsonData", form.as_str())];
    server.post("/divination-history/save").by(&user).form(&form).send().expect(200);
    let with_answer = |characters: usize| json!({ "localRecordId": "a", "aiResult": "x".repeat(characters) });
    save(&server, &user, &with_answer(32 * 1024)).expect(200);
    save(&server, &user, &with_answer(32 * 1024 + 1)).expect_fields(&[("aiResult", "too_long")]);
    let largest = json!({ "localRecordId": "a", "padding": "x".repeat(256 * 1024 - 40) });
    save(&server, &user, &largest).expect(200);
    let larger = json!({ "localRecordId": "a", "padding": "x".repeat(256 * 1024) });
    save(&server, &user, &larger).expect_problem(413, "body_too_large");
}

#[test]
fn records_survive_a_crash() {
    let server = Setup::default().in_own_process().start();
    let user = server.sign_in(PHONE);
    save_id(&server, &user, "a").expect(200);
    let server = server.crash_and_restart(Setup::default());
    assert_eq!(ids(&list(&server, &user, &json!({}))), ["a"]);
}

/// Compares all answers and the stored sums with the rows, after every kind of change of a user with many records.
#[test]
fn sums_of_many_records_follow_every_change() {
    let server = Setup::default()
        .with("LIMITS_HISTORY_RECORDS", 200)
        .with("LIMITS_HISTORY_SIZE", "20 KiB")
        .with("RETENTION_DEACTIVATED_HISTORY", "30 days")
        .start();
    let user = server.sign_in(PHONE);
    let doctor = || server.command(&["doctor", "--listen", "127.0.0.1:0"]).text();
    let stored = "select coalesce((select visible || ' ' || hidden || ' ' || bytes from history_sums), 'none')";
    let counted = "select count(case when sequence > hidden then 1 end) || ' ' \
                   || count(case when sequence <= hidden then 1 end) || ' ' || coalesce(sum(bytes), 0) \
                   from history, (select coalesce(max(through), 0) as hidden, coalesce(max(surplus_through), 0) as surplus \
                   from history_hidings) as state where sequence > surplus";
    let expect_same = |what: &str| {
        let (stored, counted) = (server.value::<String>(stored), server.value::<String>(counted));
        assert_eq!(stored, counted, "{what}");
        let visible: i64 = stored.split(' ').next().unwrap().parse().unwrap();
        assert_eq!(count(&server, &user), visible, "{what}");
        assert_eq!(list(&server, &user, &json!({ "page": 1, "size": 1 }))["total"], visible, "{what}");
    };
    let batch = |ids: std::ops::Range<u32>, text: &str| {
        let records: Vec<_> =
            ids.map(|id| json!({ "localRecordId": format!("r-{id:03}"), "aiResult": text })).collect();
        server.post("/divination-history/save-batch").by(&user).json(&json!({ "records": records })).send()
    };
    let restore = || server.post("/divination-history/restore-all").by(&user).send().expect(200).json();
    for first in (0..120).step_by(40) {
        batch(first..first + 40, "some text").expect(200);
    }
    assert_eq!(server.value::<String>(stored), "none");
    batch(120..160, "some text").expect(200);
    expect_same("many records");
    save(&server, &user, &json!({ "localRecordId": "r-007", "aiResult": "longer than before" })).expect(200);
    save(&server, &user, &json!({ "localRecordId": "r-008", "question": "?" })).expect(200);
    save(&server, &user, &json!({ "localRecordId": "r-009", "aiResult": "" })).expect(200);
    expect_same("updates");
    delete(&server, &user, &json!({ "localRecordIds": ["r-007", "r-100", "none"] })).expect(200);
    expect_same("deletions");
    batch(160..200, "x").expect(200);
    batch(200..202, "x").expect(200);
    expect_same("a full history");
    let refused = batch(202..204, "x").expect(200).json();
    assert!(refused.to_string().contains("history_full"), "{refused}");
    save(&server, &user, &json!({ "localRecordId": "r-150", "aiResult": "y".repeat(30_000) })).expect(409);
    expect_same("refusals");
    assert_eq!(deactivate_all(&server, &user), json!({ "deactivated": 200 }));
    expect_same("a hiding");
    // A hidden record and a deleted one are saved anew.
    for id in ["r-150", "r-007", "new"] {
        save(&server, &user, &json!({ "localRecordId": id, "aiResult": "again" })).expect(200);
    }
    expect_same("saves beside hidden records");
    assert_eq!(restore(), json!({ "restored": 197, "hidden": 2 }));
    expect_same("a restoration of some");
    delete(&server, &user, &json!({ "localRecordIds": ["r-190", "r-191"] })).expect(200);
    assert_eq!(restore(), json!({ "restored": 2, "hidden": 0 }));
    expect_same("a restoration of all");
    deactivate_all(&server, &user);
    batch(300..340, "z").expect(200);
    deactivate_all(&server, &user);
    expect_same("records beyond the limit");
    eventually("the surplus is deleted", || server.value::<i64>("select count(*) from history") == 200);
    expect_same("a purge of the surplus");
    server.edit("update history_hidings set hidden_at = hidden_at - 31 * 86400000");
    batch(400..404, "z").expect(200);
    assert_eq!(restore(), json!({ "restored": 0, "hidden": 200 }));
    crate::support::CommandOutput::run(server.directory(), &["cleanup", "expired", "--yes"], "").expect(0);
    expect_same("a purge of what was hidden for long");
    assert_eq!(server.value::<String>("select visible || ' ' || hidden from history_sums"), "4 0");
    // Wrong sums are found and repaired.
    assert!(!doctor().contains("sync users`: sums"), "{}", doctor());
    server.edit("update history_sums set bytes = bytes + 1");
    let text = doctor();
    assert!(text.contains("wrong for 1 user"), "{text}");
    server.command(&["sync", "users"]).expect(0);
    expect_same("a repair");
    server.delete("/api/v1/account").by(&user).send().expect(204);
    assert_eq!(server.value::<i64>("select count(*) from history_sums"), 0);
}
