//! `/notifications` of the first API generation: access. The inbox tests cover its contents.

use serde_json::{Value, json};

use crate::support::Setup;

#[test]
fn needs_no_token_and_ignores_a_bad_one() {
    let server = Setup::default().start();
    let user = server.sign_in("13800138000");
    let key = server.api_key("tests");
    for path in ["/notifications/latest", "/notifications/all"] {
        server.get(path).send().expect(200);
        server.get(path).by(&user).send().expect(200);
        server.get(path).token(&key).send().expect(200);
        server.get(path).token("nonsense").send().expect(200);
    }
}

#[test]
fn all_lists_the_newest_thousand_and_takes_pages() {
    let server = Setup::default().start();
    let (user, key) = (server.sign_in("13800138000"), server.api_key("tests"));
    let send = |body: &Value| server.post("/admin/notifications").token(&key).json(body).send().expect(201);
    for number in 1..=1002 {
        send(&json!({ "audience": "all", "title": number.to_string(), "body": "…" }));
    }
    send(&json!({ "audience": "users", "userIds": [user.user_id], "title": "1003", "body": "…" }));
    let titles = |list: &Value| -> Vec<u32> {
        let items = list["items"].as_array().unwrap().iter();
        items.map(|item| item["title"].as_str().unwrap().parse().unwrap()).collect()
    };
    let all = |query: &[(&str, &str)]| server.get("/notifications/all").query(query);
    let anonymous = all(&[]).send().expect(200).json();
    assert_eq!((titles(&anonymous), &anonymous["total"]), ((3..=1002).rev().collect(), &json!(1002)));
    let own = all(&[]).by(&user).send().expect(200).json();
    assert_eq!((titles(&own), &own["total"]), ((4..=1003).rev().collect(), &json!(1003)));
    for (page, size, expected) in [
        ("1", "2", vec![1003, 1002]),
        ("2", "2", vec![1001, 1000]),
        ("10", "100", (4..=103).rev().collect()),
        ("11", "100", vec![]),
        ("4000000000", "100", vec![]),
    ] {
        let found = all(&[("page", page), ("size", size)]).by(&user).send().expect(200).json();
        assert_eq!((titles(&found), &found["total"]), (expected, &json!(1003)), "{page}");
    }
    assert_eq!(titles(&all(&[("page", "2")]).send().expect(200).json()), (963..=982).rev().collect::<Vec<_>>());
    for name in ["limit", "cursor", "pageSize", "perPage", "offset"] {
        all(&[(name, "1")]).send().expect_fields(&[(name, "not_allowed")]);
    }
    all(&[("size", "101")]).send().expect_fields(&[("size", "out_of_range")]);
}
