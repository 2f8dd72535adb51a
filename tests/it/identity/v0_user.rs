//! `/user`: profiles and their screening.

use serde_json::{Value, json};

use crate::support::{Caller, Request, Server, Setup};

const PHONE: &str = "13800138000";
/// A word on the default word list.
const LISTED: &str = "赌博";

fn profile(server: &Server, user: &Caller) -> Value {
    server.get("/user/profile").by(user).send().expect(200).json()
}

fn change(server: &Server, user: &Caller, body: &Value) -> Request {
    server.put("/user/profile").by(user).json(body)
}

#[test]
fn a_new_user_has_an_empty_profile() {
    let server = Setup::default().start();
    let user = server.sign_in(PHONE);
    let expected = json!({ "id": user.user_id, "userId": user.user_id, "nickname": "", "gender": "unknown",
        "birthday": null, "signature": "" });
    assert_eq!(profile(&server, &user), expected);
}

#[test]
fn changes_only_the_sent_fields() {
    let server = Setup::default().start();
    let user = server.sign_in(PHONE);
    let all = json!({ "nickname": " 青山 ", "gender": "female", "birthday": "1990-05-17", "signature": "心静则明" });
    let changed = change(&server, &user, &all).send().expect(200).json();
    let expected = json!({ "id": user.user_id, "userId": user.user_id, "nickname": "青山", "gender": "female",
        "birthday": "1990-05-17", "signature": "心静则明" });
    assert_eq!(changed, expected);
    for (name, value) in [("nickname", "白云"), ("gender", "male"), ("birthday", "2000-02-29"), ("signature", "安")]
    {
        let before = profile(&server, &user);
        let after = change(&server, &user, &json!({ name: value })).send().expect(200).json();
        let mut expected = before.clone();
        expected[name] = json!(value);
        assert_eq!(after, expected);
        assert_eq!(profile(&server, &user), expected);
    }
    let before = profile(&server, &user);
    assert_eq!(change(&server, &user, &json!({})).send().expect(200).json(), before);
    let nulls = json!({ "nickname": null, "gender": null, "birthday": null, "signature": null });
    assert_eq!(change(&server, &user, &nulls).send().expect(200).json(), before);
}

#[test]
fn an_empty_text_clears_a_field() {
    let server = Setup::default().start();
    let user = server.sign_in(PHONE);
    let all = json!({ "nickname": "青山", "birthday": "1990-05-17", "signature": "心静则明" });
    change(&server, &user, &all).send().expect(200);
    let none = json!({ "nickname": "", "birthday": "", "signature": "" });
    let changed = change(&server, &user, &none).send().expect(200).json();
    assert_eq!(
        (&changed["nickname"], &changed["birthday"], &changed["signature"]),
        (&json!(""), &json!(null), &json!(""))
    );
}

#[test]
fn an_emoji_of_several_code_points_is_one_character() {
    let server = Setup::default().start();
    let user = server.sign_in(PHONE);
    let put = |nickname: &str| server.put("/user/nickname").by(&user).json(&json!({ "nickname": nickname })).send();
    let families = "👨‍👩‍👧‍👦".repeat(20);
    assert_eq!(put(&families).expect(200).json()["nickname"], families);
    put(&format!("{families}x")).expect_fields(&[("nickname", "too_long")]);
    put(&format!("e{}", "\u{301}".repeat(300))).expect_fields(&[("nickname", "too_long")]);
}

#[test]
fn nickname_and_signature_have_their_own_endpoints() {
    let server = Setup::default().start();
    let user = server.sign_in(PHONE);
    let nickname = [("userId", user.user_id.as_str()), ("nickname", "青山")];
    let changed = server.put("/user/nickname").by(&user).form(&nickname).send().expect(200).json();
    assert_eq!(changed["nickname"], "青山");
    let changed = server.put("/user/signature").by(&user).query(&[("signature", "心静则明")]).send().expect(200).json();
    assert_eq!((&changed["nickname"], &changed["signature"]), (&json!("青山"), &json!("心静则明")));
    server.put("/user/nickname").by(&user).send().expect_fields(&[("nickname", "required")]);
    server.put("/user/signature").by(&user).send().expect_fields(&[("signature", "required")]);
}

#[test]
fn reports_the_second_of_two_user_parameters() {
    let server = Setup::default().start();
    let (user, other) = (server.sign_in(PHONE), server.sign_in("13800138001"));
    let key = server.api_key("desk");
    let ask = |path: &str, query: &[(&str, &str)]| server.get(path).token(&key).query(query).send();
    let [id, another] = [user.user_id.as_str(), other.user_id.as_str()];
    ask("/user/profile", &[("id", id), ("userId", another)]).expect_fields(&[("userId", "unknown_value")]);
    ask("/coin/balance", &[("userId", id), ("phoneNumber", "13800138001")])
        .expect_fields(&[("phoneNumber", "unknown_value")]);
    ask("/user/profile", &[("id", id), ("userId", id)]).expect(200);
}

#[test]
fn accepts_every_documented_spelling_of_genders() {
    let server = Setup::default().start();
    let user = server.sign_in(PHONE);
    let spellings = [
        (json!("unknown"), "unknown"),
        (json!(0), "unknown"),
        (json!("未知"), "unknown"),
        (json!("male"), "male"),
        (json!(1), "male"),
        (json!("1"), "male"),
        (json!("男"), "male"),
        (json!("M"), "male"),
        (json!("female"), "female"),
        (json!(2), "female"),
        (json!("女"), "female"),
        (json!("F"), "female"),
        (json!("other"), "other"),
        (json!(9), "other"),
        (json!("其他"), "other"),
        (json!("FEMALE"), "female"),
    ];
    for (spelling, meaning) in spellings {
        let changed = change(&server, &user, &json!({ "gender": spelling })).send().expect(200).json();
        assert_eq!(changed["gender"], meaning, "{spelling}");
    }
    for spelling in [json!("3"), json!("x"), json!(-1)] {
        change(&server, &user, &json!({ "gender": spelling })).send().expect_fields(&[("gender", "unknown_value")]);
    }
}

#[test]
fn accepts_birthdays_from_1900_to_today() {
    let server = Setup::default().start();
    let user = server.sign_in(PHONE);
    for (day, code) in [
        ("2023-02-29", "invalid_format"),
        ("17.5.1990", "invalid_format"),
        ("0", "invalid_format"),
        ("1899-12-31", "out_of_range"),
        ("2999-01-01", "out_of_range"),
    ] {
        change(&server, &user, &json!({ "birthday": day })).send().expect_fields(&[("birthday", code)]);
    }
    // A time with an offset is on the day in Shanghai.
    for day in
        ["1990/05/17", "1990/5/17", "19900517", "1990-05-17T00:00:00", "1990-05-17 00:00:00.0", "1990-05-16T16:00:00Z"]
    {
        change(&server, &user, &json!({ "birthday": "" })).send().expect(200);
        let changed = change(&server, &user, &json!({ "birthday": day })).send().expect(200).json();
        assert_eq!(changed["birthday"], "1990-05-17", "{day}");
    }
    // Today in Shanghai, wherever the server runs.
    let today = jiff::Timestamp::now().in_tz("Asia/Shanghai").unwrap().date().to_string();
    assert_eq!(change(&server, &user, &json!({ "birthday": today })).send().expect(200).json()["birthday"], today);
}

#[test]
fn counts_lengths_in_characters() {
    let server = Setup::default().start();
    let user = server.sign_in(PHONE);
    let right = json!({ "nickname": "山".repeat(20), "signature": "水".repeat(100) });
    change(&server, &user, &right).send().expect(200);
    let wrong = json!({ "nickname": "山".repeat(21), "signature": "水".repeat(101) });
    change(&server, &user, &wrong).send().expect_fields(&[("nickname", "too_long"), ("signature", "too_long")]);
}

#[test]
fn reports_all_bad_fields_and_changes_nothing() {
    let server = Setup::default().start();
    let user = server.sign_in(PHONE);
    let before = profile(&server, &user);
    let body = json!({ "nickname": "山".repeat(21), "gender": "x", "birthday": "x", "signature": "fine", "id": "x" });
    change(&server, &user, &body).send().expect_fields(&[
        ("nickname", "too_long"),
        ("gender", "unknown_value"),
        ("birthday", "invalid_format"),
        ("id", "invalid_format"),
    ]);
    assert_eq!(profile(&server, &user), before);
}

#[test]
fn rejects_listed_words_and_records_a_violation() {
    let server = Setup::default().start();
    let user = server.sign_in(PHONE);
    change(&server, &user, &json!({ "nickname": "青山", "signature": "心静则明" })).send().expect(200);
    let before = profile(&server, &user);
    let text = format!("来{LISTED}吧");
    let requests = [
        ("nickname", change(&server, &user, &json!({ "nickname": text, "gender": "male" }))),
        ("signature", change(&server, &user, &json!({ "signature": text, "nickname": "fine" }))),
        ("nickname", server.put("/user/nickname").by(&user).form(&[("nickname", &text)])),
        ("signature", server.put("/user/signature").by(&user).form(&[("signature", &text)])),
    ];
    for (number, (field, request)) in requests.into_iter().enumerate() {
        let response = request.send().expect_problem(422, "content_rejected");
        assert!(!response.text().contains(LISTED), "{}", response.text());
        let errors = &response.json()["errors"];
        assert_eq!((errors.as_array().unwrap().len(), &errors[0]["field"]), (1, &json!(field)));
        assert_eq!(profile(&server, &user), before);
        let row = server.database().texts(
            "select concat_ws('|', user_id, content_type, violation_type, words, masked_text, provider) \
             from violations order by id desc limit 1",
        );
        let row: Vec<_> = row[0].split('|').collect();
        assert_eq!(row[..3], [user.user_id.as_str(), field, "gambling"]);
        assert!(row[3].contains(LISTED));
        let masked = row[4];
        assert!(!masked.contains(LISTED) && masked.starts_with('来') && masked.ends_with('吧'), "{masked}");
        assert_eq!(row[5..], ["local"]);
        assert_eq!(server.value::<i64>("select count(*) from violations"), i64::try_from(number).unwrap() + 1);
    }
}

#[test]
fn two_rejected_texts_are_two_violations() {
    let server = Setup::default().start();
    let user = server.sign_in(PHONE);
    let response = change(&server, &user, &json!({ "nickname": LISTED, "signature": LISTED })).send();
    let errors = response.expect_problem(422, "content_rejected").json()["errors"].clone();
    assert_eq!(errors.as_array().unwrap().len(), 2);
    assert_eq!(server.value::<i64>("select count(*) from violations"), 2);
}

#[test]
fn rejects_control_characters() {
    let server = Setup::default().start();
    let user = server.sign_in(PHONE);
    let refused = |body: Value, field: &str| {
        change(&server, &user, &body).send().expect_fields(&[(field, "invalid_character")]);
    };
    for name in ["\u{202e}博赌\u{202c}", "\u{1b}[31m红", "a\u{7}b", "a\nb", "a\tb", "a\u{2028}b", "a\u{9b}b"] {
        refused(json!({ "nickname": name }), "nickname");
    }
    refused(json!({ "signature": "a\u{2067}b" }), "signature");
    refused(json!({ "signature": "a\u{1b}b" }), "signature");
    let body = json!({ "nickname": "👩\u{200d}👦 青山", "signature": "心静\n则明" });
    change(&server, &user, &body).send().expect(200);
    assert_eq!(profile(&server, &user)["signature"], "心静\n则明");
    let post = |path: &str, body: Value| server.post(path).by(&user).json(&body).send();
    let ask = |kind: &str, question: &str| json!({ "questionType": kind, "question": question });
    for (path, status) in [("/divination/enhanced", 200), ("/divination-history/save", 200)] {
        let mut requested = ask("a\u{202e}b", "何时启程？\n\t明年？");
        requested["localRecordId"] = json!("r-1");
        post(path, requested.clone()).expect_fields(&[("questionType", "invalid_character")]);
        requested["questionType"] = json!("career");
        post(path, requested).expect(status);
        let mut requested = ask("career", "何时\u{1b}[2J启程？");
        requested["localRecordId"] = json!("r-2");
        post(path, requested).expect_fields(&[("question", "invalid_character")]);
    }
    post("/feedback", json!({ "content": "a\r\nb\u{8}" })).expect_fields(&[("content", "invalid_character")]);
    post("/feedback", json!({ "content": "a\r\nb" })).expect(200);
    let response = "\u{1b}[1m解\u{b}\u{202e}";
    post("/divination-history/save", json!({ "localRecordId": "r-3\u{1}", "aiResult": response })).expect(200);
    assert_eq!(server.value::<String>("select ai_result from history where local_record_id = 'r-3\u{1}'"), response);
}

#[test]
fn rejects_other_users_whether_or_not_they_exist() {
    let server = Setup::default().start();
    let (user, other) = (server.sign_in(PHONE), server.sign_in("13800138001"));
    let before = profile(&server, &other);
    for id in [other.user_id.as_str(), "999999"] {
        server.get("/user/profile").by(&user).query(&[("id", id)]).send().expect_problem(403, "not_yours");
        server.get("/user/profile").by(&user).query(&[("userId", id)]).send().expect_problem(403, "not_yours");
        let body = json!({ "id": id, "nickname": LISTED });
        change(&server, &user, &body).send().expect_problem(403, "not_yours");
        let form = [("userId", id), ("nickname", "x")];
        server.put("/user/nickname").by(&user).form(&form).send().expect_problem(403, "not_yours");
        let form = [("userId", id), ("signature", "x")];
        server.put("/user/signature").by(&user).form(&form).send().expect_problem(403, "not_yours");
    }
    assert_eq!(profile(&server, &other), before);
    assert_eq!(server.value::<i64>("select count(*) from violations"), 0);
}

#[test]
fn ignores_unknown_parameters() {
    let server = Setup::default().start();
    let user = server.sign_in(PHONE);
    let body = json!({ "nickname": "青山", "phone_number": PHONE, "createdAt": 0, "is_admin": true, "email": "a@b.c" });
    change(&server, &user, &body).send().expect(200);
    assert_eq!(server.value::<String>("select phone_number from users"), PHONE);
    assert_eq!(server.value::<Option<String>>("select email from users"), None);
}

#[test]
fn changes_survive_a_crash() {
    let server = Setup::default().in_own_process().start();
    let user = server.sign_in(PHONE);
    change(&server, &user, &json!({ "nickname": "青山" })).send().expect(200);
    let server = server.crash_and_restart(Setup::default());
    assert_eq!(profile(&server, &user)["nickname"], "青山");
}
