//! Validation and repair of user data.

use serde_json::{Value, json};

use crate::support::{Caller, Response, Server, Setup, create_trigger, eventually, send_concurrently};

fn get(server: &Server, key: &str, path: &str) -> Response {
    server.get(&format!("/admin/user-data/{path}")).token(key).send()
}

fn post(server: &Server, key: &str, path: &str, body: &Value) -> Response {
    server.post(&format!("/admin/user-data/{path}")).token(key).json(body).send()
}

/// Returns the codes of the issues and whether each can be repaired.
fn codes(issues: &Value) -> Vec<(String, bool)> {
    let issues = issues.as_array().unwrap();
    issues.iter().map(|issue| (issue["code"].as_str().unwrap().to_owned(), issue["fixable"] == true)).collect()
}

fn validated(server: &Server, key: &str, user: &Caller) -> Vec<(String, bool)> {
    let response = get(server, key, &format!("validate/user/{}", user.user_id)).expect(200).json();
    assert_eq!(response["consistent"], response["issues"].as_array().unwrap().is_empty());
    codes(&response["issues"])
}

#[test]
fn finds_issues_and_repairs_the_repairable_ones_once() {
    let server = Setup::default().start();
    let key = server.api_key("tests");
    let user = server.sign_in("13800138000");
    server.grant(&key, "13800138000", 60);
    assert_eq!(validated(&server, &key, &user), []);

    let fixable = |code: &str| (code.to_owned(), true);
    let broken = [
        (format!("update balances set balance = 61 where user_id = {}", user.user_id), "balance_wrong"),
        (format!("update balances set last_sequence = 7 where user_id = {}", user.user_id), "balance_wrong"),
        (format!("delete from balances where user_id = {}", user.user_id), "balance_wrong"),
        (format!("update balances set suspended_at = 1 where user_id = {}", user.user_id), "account_suspended"),
        (
            format!("update users set phone_number = '+8613800138000' where id = {}", user.user_id),
            "phone_not_canonical",
        ),
        (
            format!("update users set phone_number = '008613800138000' where id = {}", user.user_id),
            "phone_not_canonical",
        ),
        (format!("update users set email = ' Ada@Example.COM' where id = {}", user.user_id), "email_not_canonical"),
    ];
    // Numbers of regions that are not allowed are valid, other texts are none.
    for (number, found) in [("+99912345678", vec![]), ("13800x138000", vec![("phone_invalid".to_owned(), false)])] {
        server.edit(&format!("update users set phone_number = '{number}' where id = {}", user.user_id));
        assert_eq!(validated(&server, &key, &user), found, "{number}");
    }
    server.edit(&format!("update users set phone_number = '13800138000' where id = {}", user.user_id));
    for (sql, code) in broken {
        server.edit(&sql);
        assert_eq!(validated(&server, &key, &user), [fixable(code)], "{sql}");
        let by_phone = get(&server, &key, "validate/phone/138-0013-8000").expect(200).json();
        assert_eq!(
            (&by_phone["userId"], codes(&by_phone["issues"])),
            (&json!(user.user_id), vec![fixable(code)]),
            "{sql}"
        );
        let fixed = post(&server, &key, "fix/+86%2013800138000", &json!({ "reason": "tests" })).expect(200).json();
        assert_eq!(codes(&fixed["fixed"]), [fixable(code)], "{sql}");
        assert_eq!((&fixed["consistent"], &fixed["phoneNumber"]), (&json!(true), &json!("13800138000")), "{sql}");
        assert_eq!(validated(&server, &key, &user), [], "{sql}");
        let again = post(&server, &key, "fix/13800138000", &json!({})).expect(200).json();
        assert_eq!((codes(&again["fixed"]), codes(&again["remaining"])), (vec![], vec![]), "{sql}");
        assert_eq!(server.get("/coin/balance").by(&user).send().expect(200).json()["balance"], 60, "{sql}");
    }
    assert_eq!(server.value::<String>("select email from users"), "ada@example.com");
    // Repairs are in the audit log, and its chain is intact.
    let repairs: i64 = server.value("select count(*) from ledger_audit where action = 'repair' and reason = 'tests'");
    assert_eq!(repairs, 4);
    server.command(&["ledger", "verify"]).expect(0);
}

#[test]
fn reports_and_leaves_issues_that_need_a_decision() {
    let server = Setup::default().start();
    let key = server.api_key("tests");
    let user = server.sign_in("13800138000");
    server.grant(&key, "13800138000", 60);
    server.edit("insert into users (phone_number, created_at) values ('+8613800138000', 1)");
    let counterpart: i64 = server.value("select max(id) from users");
    server.edit(
        "insert into ledger_entries (user_id, asset, sequence, delta, balance_after, kind, created_at) \
         select user_id, 'coin', 3, 5, 65, 'adjust', 1 from ledger_entries limit 1",
    );
    let found = validated(&server, &key, &user);
    assert_eq!(found, [("duplicate_phone".into(), false), ("ledger_broken".into(), false)]);
    // The account with the canonical spelling is the one that the number refers to.
    let by_phone = get(&server, &key, "validate/phone/13800138000").expect(200).json();
    assert_eq!(by_phone["userId"], user.user_id);
    let fixed = post(&server, &key, "fix/13800138000", &json!({})).expect(200).json();
    assert_eq!((codes(&fixed["fixed"]), fixed["remaining"].as_array().unwrap().len()), (vec![], 2));
    let other = get(&server, &key, &format!("validate/user/{counterpart}")).expect(200).json();
    assert_eq!(codes(&other["issues"]), [("duplicate_phone".into(), false), ("account_missing".into(), true)]);
    assert_eq!(server.value::<i64>("select count(*) from users"), 2);
    assert_eq!(server.value::<i64>("select count(*) from ledger_entries"), 2);
}

#[test]
fn reports_duplicate_numbers_in_any_spelling_on_both_accounts() {
    let server = Setup::default().start();
    let key = server.api_key("tests");
    let user = server.sign_in("13800138000");
    for spelling in [
        "+86 138-0013-8000",
        "138 0013 8000",
        "１３８００１３８０００",
        "(0086)13800138000",
        "13800138000 ",
        "013800138000",
        "0138-0013-8000",
        "+86013800138000",
    ] {
        server.edit(&format!("insert into users (phone_number, created_at) values ('{spelling}', 1)"));
        let counterpart: i64 = server.value("select max(id) from users");
        server.command(&["coins", "repair"]).expect(0);
        let duplicate = [("duplicate_phone".to_owned(), false)];
        for path in [format!("validate/user/{}", user.user_id), format!("validate/user/{counterpart}")] {
            let found = get(&server, &key, &path).expect(200).json();
            assert_eq!(codes(&found["issues"]), duplicate, "{spelling}: {found}");
        }
        let by_phone = get(&server, &key, "validate/phone/13800138000").expect(200).json();
        assert_eq!((&by_phone["userId"], codes(&by_phone["issues"])), (&json!(user.user_id), duplicate.to_vec()));
        let batch = post(&server, &key, "validate/batch", &json!({ "userIds": [user.user_id, counterpart] }))
            .expect(200)
            .json();
        assert_eq!(batch["inconsistent"], 2, "{spelling}");
        let fixed = post(&server, &key, "fix/13800138000", &json!({})).expect(200).json();
        assert_eq!((codes(&fixed["fixed"]), codes(&fixed["remaining"])), (vec![], duplicate.to_vec()), "{spelling}");
        let everybody = post(&server, &key, "sync", &json!({})).expect(200).json();
        assert_eq!(everybody["inconsistent"], 2, "{spelling}: {everybody}");
        server.edit(&format!("delete from users where id = {counterpart}"));
    }
    // Another number is no duplicate, and a single one is repaired.
    server.edit("insert into users (phone_number, created_at) values ('+86 139-0013-9000', 1)");
    let alone = get(&server, &key, "validate/phone/13900139000").expect(200).json();
    assert!(codes(&alone["issues"]).contains(&("phone_not_canonical".into(), true)), "{alone}");
    assert_eq!(validated(&server, &key, &user), []);
    let fixed = post(&server, &key, "fix/13900139000", &json!({})).expect(200).json();
    assert_eq!((&fixed["phoneNumber"], &fixed["consistent"]), (&json!("13900139000"), &json!(true)));
}

#[test]
fn skips_users_that_are_deleted_during_a_sync() {
    let server = Setup::default().start();
    let key = server.api_key("tests");
    for number in ["+86 138-0013-8000", "+86 139-0013-9000"] {
        server.edit(&format!("insert into users (phone_number, created_at) values ('{number}', 1)"));
    }
    // While the first is repaired, the second one is deleted.
    let leave = "delete from users where id > old.id and old.id = (select min(id) from users)";
    server.edit(&create_trigger("leaving", "after update on users", leave));
    let done = post(&server, &key, "sync", &json!({})).expect(200).json();
    assert_eq!((&done["checked"], &done["fixed"], &done["inconsistent"]), (&json!(2), &json!(1), &json!(0)), "{done}");
    assert_eq!(server.value::<i64>("select count(*) from users"), 1);
}

#[test]
fn validates_batches_and_synchronizes_all_users() {
    let server = Setup::default().start();
    let key = server.api_key("tests");
    let users: Vec<_> = (0..4).map(|number| server.sign_in(&format!("1380013800{number}"))).collect();
    server.edit(&format!("update balances set balance = 5 where user_id = {}", users[1].user_id));
    server.edit(&format!("delete from balances where user_id = {}", users[2].user_id));
    let batch = json!({
        "userIds": [users[0].user_id, users[1].user_id, "424242"],
        "phoneNumbers": ["13800138002", "13900139000"],
    });
    let found = post(&server, &key, "validate/batch", &batch).expect(200).json();
    let items: Vec<_> =
        found["items"].as_array().unwrap().iter().map(|item| json!([item["found"], item["consistent"]])).collect();
    let expected =
        [json!([true, true]), json!([true, false]), json!([false, false]), json!([true, false]), json!([false, false])];
    assert_eq!(items, expected);
    assert_eq!((&found["consistent"], &found["inconsistent"], &found["missing"]), (&json!(1), &json!(2), &json!(2)));
    assert_eq!(found["items"][4]["phoneNumber"], "13900139000");

    server.edit("pragma foreign_keys = off; insert into history (user_id, sequence, local_record_id, created_at, updated_at) values (777, 1, 'r', 1, 1)");
    let synced = post(&server, &key, "sync", &json!({})).expect(200).json();
    let expected = json!({ "checked": 4, "fixed": 2, "orphansDeleted": 1, "inconsistent": 0, "issues": [] });
    assert_eq!(synced, expected);
    let again = post(&server, &key, "sync", &json!({})).expect(200).json();
    assert_eq!(again, json!({ "checked": 4, "fixed": 0, "orphansDeleted": 0, "inconsistent": 0, "issues": [] }));
}

#[test]
fn rejects_invalid_batches() {
    let server = Setup::default().with("LIMITS_BATCH", 3).start();
    let key = server.api_key("tests");
    post(&server, &key, "validate/batch", &json!({})).expect_fields(&[("userIds", "required")]);
    let many = json!({ "userIds": [1, 2, 3, 4] });
    post(&server, &key, "validate/batch", &many).expect_fields(&[("userIds", "too_many")]);
    let together = json!({ "userIds": [1, 2], "phoneNumbers": ["13800138000", "13800138001"] });
    post(&server, &key, "validate/batch", &together).expect_fields(&[("userIds", "too_many")]);
    let bad = json!({ "userIds": [0], "phoneNumbers": ["12345"] });
    let fields = [("userIds[0]", "invalid_format"), ("phoneNumbers[0]", "invalid_format")];
    post(&server, &key, "validate/batch", &bad).expect_fields(&fields);
    get(&server, &key, "validate/user/424242").expect_problem(404, "not_found");
    get(&server, &key, "validate/phone/13900139000").expect_problem(404, "not_found");
    get(&server, &key, "validate/phone/12345").expect_fields(&[("phoneNumber", "invalid_format")]);
    post(&server, &key, "fix/13900139000", &json!({})).expect_problem(404, "not_found");
}

#[test]
fn a_hundred_concurrent_repairs_repair_once() {
    let server = Setup::default().start();
    let key = server.api_key("tests");
    let user = server.sign_in("13800138000");
    server.grant(&key, "13800138000", 60);
    server.edit(&format!("update balances set balance = 61 where user_id = {}", user.user_id));
    let fix = || server.post("/admin/user-data/fix/13800138000").token(&key);
    let responses = send_concurrently((0..100).map(|_| fix()).collect());
    let fixed = responses.into_iter().map(|response| response.expect(200).json()["fixed"].as_array().unwrap().len());
    assert_eq!(fixed.sum::<usize>(), 1);
    assert_eq!(server.value::<i64>("select count(*) from ledger_audit where action = 'repair'"), 1);
}

#[test]
fn runs_one_sync_at_a_time() {
    let server = Setup::default().start();
    let key = server.api_key("tests");
    // A recent mark belongs to a running process, an old one to a killed process.
    let mark = |age: &str| {
        let sql = format!(
            "insert into settings values ('user_data.sync', (unixepoch() * 1000 - {age}) || ' somebody', 1) \
             on conflict (name) do update set value = excluded.value"
        );
        server.edit(&sql);
    };
    mark("1000");
    post(&server, &key, "sync", &json!({})).expect_problem(409, "already_running");
    server.command(&["sync", "users"]).expect(1);
    mark("120000");
    post(&server, &key, "sync", &json!({})).expect(200);
    server.command(&["sync", "users"]).expect(0);
}

#[test]
fn a_sync_stops_after_losing_its_lease() {
    let server = Setup::default().start();
    let key = server.api_key("tests");
    server.edit(
        "insert into users (phone_number, created_at) \
         with recursive counter (n) as (select 1 union all select n + 1 from counter where n < 30000) \
         select '138' || (10000000 + n), 1 from counter",
    );
    let find_mark = "select coalesce((select value from settings where name = 'user_data.sync'), '')";
    std::thread::scope(|scope| {
        let stalled = scope.spawn(|| post(&server, &key, "sync", &json!({})));
        eventually("it is running", || !server.value::<String>(find_mark).is_empty());
        // Another run took the lease because this one stalled.
        let take = "update settings set value = (unixepoch() * 1000) || ' another' where name = 'user_data.sync'";
        server.database().execute(take, ()).unwrap();
        stalled.join().unwrap().expect_problem(409, "already_running");
    });
    assert!(server.value::<String>(find_mark).ends_with(" another"));
}

#[test]
fn support_page_shows_events_without_secrets() {
    let server = Setup::default().start();
    let key = server.api_key("tests");
    let user = server.sign_in("13800138000");
    server.grant(&key, "13800138000", 60);
    server.post("/coin/consume").by(&user).send().expect(200);
    let question = "今年换工作合适吗？";
    let created =
        server.post("/divination/enhanced").by(&user).json(&json!({ "question": question })).send().expect(200);
    let order = server.get("/payment/gateway/order").by(&user).query(&[("amount", "6.00"), ("coinCount", "60")]);
    let order = order.send().expect(200).json();
    server.post("/divination-history/save").by(&user).json(&json!({ "localRecordId": "r-1" })).send().expect(200);
    server.database().execute("delete from code_sends", ()).unwrap();
    let code = server.request_code("13800138000");
    for who in ["13800138000", "+86 138 0013 8000", &user.user_id] {
        let page = server.command(&["users", "show", who]).expect(0);
        let (text, page) = (page.text(), page.json());
        assert_eq!((&page["userId"], &page["phoneNumber"]), (&json!(user.user_id), &json!("13800138000")));
        assert_eq!(page["balances"][0]["balance"], 59);
        assert_eq!((page["signIns"].as_array().unwrap().len(), &page["castings"]), (1, &json!(1)));
        assert_eq!(page["codes"]["live"][0]["code"], "******");
        assert_eq!(page["codes"]["live"][0]["triesLeft"], 5);
        assert_eq!(page["codes"]["sent"].as_array().unwrap().len(), 1);
        assert_eq!((&page["ledger"][0]["kind"], &page["ledger"][0]["delta"]), (&json!("consume"), &json!(-1)));
        assert_eq!(page["changes"][0]["actor"], "key:tests");
        assert_eq!(page["orders"][0]["orderNo"], order["orderNo"]);
        assert_eq!(page["records"][0]["traceId"], created.json()["traceId"]);
        assert_eq!(page["issues"], json!([]));
        assert!(!text.contains(&code) && !text.contains(&user.token) && !text.contains(question), "{text}");
    }
    // The table output contains it too.
    let mut command = crate::support::Binary::command();
    let output = command.args(["users", "show", "13800138000", "--data-dir"]).arg(server.directory()).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    for expected in ["13800138000", "Ledger", "consume", "Orders", "signed in", "******", "Requests"] {
        assert!(text.contains(expected), "{expected} is not in\n{text}");
    }
    server.command(&["users", "show", "13900139000"]).expect(4);
    server.command(&["users", "validate", "13800138000"]).expect(0);
    server.edit(&format!("update balances set balance = 61 where user_id = {}", user.user_id));
    assert_eq!(server.command(&["users", "validate", &user.user_id]).expect(5).json()["issues"][0]["fixable"], true);
    server.command(&["users", "repair", &user.user_id, "--reason", "tests"]).expect(0);
    server.command(&["users", "validate", &user.user_id]).expect(0);
    let rows = server.command(&["audit", "--user", &user.user_id]).expect(0).json();
    assert_eq!(rows["items"][0]["action"], "yarrow users validate");
    assert!(rows["items"].as_array().unwrap().iter().any(|row| row["action"] == "yarrow users show"));
}

#[test]
fn support_page_shows_violations_and_notifications() {
    let server = Setup::default().start();
    let key = server.api_key("tests");
    let user = server.sign_in("13800138000");
    server
        .post("/admin/sensitive-words/add")
        .token(&key)
        .json(&json!({ "word": "赌球", "type": "gambling" }))
        .send()
        .expect(201);
    let refused = server.put("/user/nickname").by(&user).form(&[("nickname", "赌球王")]).send();
    refused.expect_problem(422, "content_rejected");
    let notice = json!({ "title": "补偿", "body": "已补发", "audience": "users", "userIds": [user.user_id] });
    server.post("/admin/notifications").token(&key).json(&notice).send().expect(201);
    let broadcast = json!({ "title": "维护", "body": "今晚暂停", "audience": "all" });
    let broadcast = server.post("/admin/notifications").token(&key).json(&broadcast).send().expect(201).json();
    let read = format!("/api/v1/notifications/{}/read", broadcast["id"].as_str().unwrap());
    server.patch(&read).by(&user).send().expect(200);
    let page = server.command(&["users", "show", "13800138000"]).expect(0).json();
    assert_eq!((&page["violations"][0]["violationType"], &page["violationsTotal"]), (&json!("gambling"), &json!(1)));
    let masked = page["violations"][0]["maskedText"].as_str().unwrap();
    assert!(masked.contains('王') && !masked.contains("赌球"), "{masked}");
    let titles: Vec<_> = page["notices"].as_array().unwrap().iter().map(|notice| notice["title"].clone()).collect();
    assert_eq!((titles, &page["noticesUnread"]), (vec![json!("维护"), json!("补偿")], &json!(1)));
    assert!(page["notices"][0]["readAt"].is_string() && page["notices"][1]["readAt"].is_null(), "{page}");
}

#[test]
fn shows_the_exact_prompt_sent_to_the_model() {
    let server = Setup::default().start();
    let key = server.api_key("tests");
    let user = server.sign_in("13800138000");
    let path = format!("test/user-info/{}", user.user_id);
    let shown = get(&server, &key, &path).expect(200).json();
    assert_eq!((&shown["nickname"], &shown["gender"], &shown["age"]), (&Value::Null, &Value::Null, &Value::Null));
    let profile = json!({ "nickname": "青山", "gender": "female", "birthday": "1990-05-17" });
    server.put("/user/profile").by(&user).json(&profile).send().expect(200);
    let response = get(&server, &key, &path).expect(200);
    let (text, shown) = (response.text(), response.json());
    assert_eq!(
        (&shown["userId"], &shown["nickname"], &shown["gender"], &shown["age"]),
        (&json!(user.user_id), &json!("青山"), &json!("female"), &json!("30-39"))
    );
    assert_eq!(shown["reference"].as_str().unwrap().len(), 32);
    let message = shown["message"].as_str().unwrap();
    assert!(message.contains("青山") && message.contains("30-39"), "{message}");
    assert!(!text.contains("13800138000") && !text.contains("1990"), "{text}");
    let command = server.command(&["users", "attachment", &user.user_id]).expect(0).json();
    assert_eq!(command, shown);
    get(&server, &key, "test/user-info/424242").expect_problem(404, "not_found");
    get(&server, &key, "test/user-info/nobody").expect(422);
    server.get(&format!("/admin/user-data/{path}")).by(&user).send().expect_problem(403, "forbidden");
    server.get(&format!("/admin/user-data/{path}")).send().expect_problem(401, "unauthenticated");
    let rows = server.command(&["audit", "--user", &user.user_id]).expect(0).json();
    let actions: Vec<_> = rows["items"].as_array().unwrap().iter().map(|row| row["action"].as_str().unwrap()).collect();
    assert_eq!(actions[0], "yarrow users attachment");
    assert_eq!(actions[1], "GET /admin/user-data/test/user-info/{userId}");
}

#[test]
fn operators_export_and_delete_accounts_like_their_owners() {
    let server = Setup::default().start();
    let user = server.sign_in_by_email("ada@example.com");
    server.post("/divination-history/save").by(&user).json(&json!({ "localRecordId": "r-1" })).send().expect(200);
    let own = server.get("/api/v1/account/export").by(&user).send().expect(200).json();
    let mut exported = server.command(&["users", "export", "Ada@Example.com"]).expect(0).json();
    // The devices include the last use, and the export its creation time.
    for moving in ["exportedAt", "devices"] {
        exported[moving] = own[moving].clone();
    }
    // The export itself may be in the network log by now.
    let requests = exported["requests"].as_array().unwrap();
    let earlier = own["requests"].as_array().unwrap();
    assert!(
        requests.len() - earlier.len() <= 2 && (requests.starts_with(earlier) || requests.ends_with(earlier)),
        "{requests:?} {earlier:?}"
    );
    exported["requests"] = own["requests"].clone();
    assert_eq!(exported, own);
    let file = server.directory().join("ada.json");
    let arguments = ["users", "export", &user.user_id, "--output", file.to_str().unwrap()];
    let response = server.command(&arguments).expect(0).json();
    let written = std::fs::read(&file).unwrap();
    assert_eq!(response["bytes"], written.len());
    assert_eq!(serde_json::from_slice::<Value>(&written).unwrap()["history"][0]["localRecordId"], "r-1");
    let refused = server.command(&arguments).expect(1).stderr();
    assert_eq!(refused.matches("File exists").count(), 1, "{refused}");
    assert_eq!(std::fs::read(&file).unwrap(), written, "an existing file is unchanged");

    server.command(&["users", "erase", &user.user_id]).expect(2);
    server.get("/api/v1/account").by(&user).send().expect(200);
    server.command(&["users", "erase", "ada@example.com", "--yes", "--reason", "asked by letter"]).expect(0);
    std::thread::sleep(std::time::Duration::from_millis(60));
    server.get("/api/v1/account").by(&user).send().expect_problem(401, "unauthenticated");
    assert_eq!(server.value::<i64>("select count(*) from history"), 0);
    server.command(&["users", "show", "ada@example.com"]).expect(4);
    // Audit events about a user outlive the account.
    let rows = server.command(&["audit", "--user", &user.user_id]).expect(0).json();
    assert_eq!(
        (&rows["items"][0]["action"], &rows["items"][0]["reason"]),
        (&json!("yarrow users erase"), &json!("asked by letter"))
    );
}

#[test]
fn an_export_to_the_terminal_escapes_control_characters() {
    let server = Setup::default().start();
    let user = server.sign_in("13800138000");
    let text = "清屏\u{9b}2J 反向\u{202e}\u{1b}[1m";
    let record = json!({ "localRecordId": "1", "aiResult": text });
    server.post("/divination-history/save").by(&user).json(&record).send().expect(200);
    let exported = server.command(&["users", "export", &user.user_id]).expect(0);
    let printed = exported.text();
    assert!(!printed.contains(['\u{9b}', '\u{202e}', '\u{1b}']), "{printed}");
    assert!(exported.json().to_string().contains("2J 反向"), "{printed}");
    assert_eq!(exported.json()["history"][0]["aiResult"], text, "{printed}");
}

#[test]
fn validation_masks_numbers_that_the_request_does_not_name() {
    let server = Setup::default().start();
    let (user, key) = (server.sign_in("13800138000"), server.api_key("shop"));
    let read =
        |path: &str| server.get(&format!("/admin/user-data/validate/{path}")).token(&key).send().expect(200).json();
    assert_eq!(read(&format!("user/{}", user.user_id))["phoneNumber"], "138••••8000");
    assert_eq!(read("phone/13800138000")["phoneNumber"], "13800138000");
    let batch = json!({ "users": [user.user_id, "13800138000"] });
    let items = server.post("/admin/user-data/validate/batch").token(&key).json(&batch).send().expect(200).json();
    assert_eq!(items["items"][0]["phoneNumber"], "138••••8000", "{items}");
    assert_eq!(items["items"][1]["phoneNumber"], "13800138000", "{items}");
}
