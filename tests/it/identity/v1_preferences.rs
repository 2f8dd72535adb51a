//! `/api/v1/preferences`: defaults, changes and resets.

use serde_json::{Value, json};

use crate::support::Setup;

#[test]
fn returns_defaults_before_any_change() {
    let server = Setup::default().start();
    let user = server.sign_in("13800138000");
    let expected = json!({
        "notifications": { "system": true, "account": true, "activity": true, "promotion": true },
        "locale": null, "timeZone": null, "dayStart": "23:00", "quietHours": null, "updatedAt": null,
    });
    assert_eq!(server.get("/api/v1/preferences").by(&user).send().expect(200).json(), expected);
    assert_eq!(server.value::<i64>("select count(*) from preferences"), 0);
}

#[test]
fn changes_only_the_sent_preferences() {
    let server = Setup::default().start();
    let (user, other) = (server.sign_in("13800138000"), server.sign_in("13800138001"));
    let change = |body: Value| server.request("PATCH", "/api/v1/preferences").by(&user).json(&body).send();
    let first = change(json!({ "notifications": { "promotion": false, "system": true }, "locale": "zh-CN" }));
    let first = first.expect(200).json();
    let switches = json!({ "system": true, "account": true, "activity": true, "promotion": false });
    assert_eq!((&first["notifications"], &first["locale"]), (&switches, &json!("zh")));
    let second =
        change(json!({ "timeZone": "Europe/London", "locale": "en", "userId": other.user_id })).expect(200).json();
    assert_eq!((&second["notifications"], &second["locale"]), (&switches, &json!("en")));
    assert_eq!(second["timeZone"], "Europe/London");
    let third = change(json!({})).expect(200).json();
    assert_eq!(
        (&third["notifications"], &third["locale"], &third["timeZone"]),
        (&switches, &json!("en"), &json!("Europe/London"))
    );
    assert_eq!(server.get("/api/v1/preferences").by(&user).send().json(), third);
    assert_eq!(server.get("/api/v1/preferences").by(&other).send().json()["updatedAt"], Value::Null);
}

#[test]
fn resets_a_preference() {
    let server = Setup::default().start();
    let user = server.sign_in("13800138000");
    let change = |body: Value| server.patch("/api/v1/preferences").by(&user).json(&body).send().expect(200).json();
    let chosen = |found: &Value| (found["locale"].clone(), found["timeZone"].clone());
    let first = change(json!({ "locale": "", "timeZone": " ", "notifications": { "promotion": false } }));
    assert_eq!(chosen(&first), (Value::Null, Value::Null));
    change(json!({ "locale": "en", "timeZone": "Europe/London" }));
    assert_eq!(chosen(&change(json!({ "locale": null, "timeZone": null }))), (json!("en"), json!("Europe/London")));
    assert_eq!(chosen(&change(json!({ "locale": "" }))), (Value::Null, json!("Europe/London")));
    assert_eq!(change(json!({ "timeZone": "GMT+08:00" }))["timeZone"], "+08:00");
    let last = change(json!({ "timeZone": "" }));
    assert_eq!(chosen(&last), (Value::Null, Value::Null));
    assert_eq!(last["notifications"]["promotion"], false);
    assert_eq!(server.get("/api/v1/preferences").by(&user).send().json(), last);
}

#[test]
fn rejects_invalid_values_with_every_error() {
    let server = Setup::default().start();
    let user = server.sign_in("13800138000");
    let change = |body: Value| server.request("PATCH", "/api/v1/preferences").by(&user).json(&body).send();
    change(json!({ "notifications": { "system": false } })).expect_fields(&[("notifications.system", "rejected")]);
    change(json!({ "notifications": { "gossip": true } })).expect_fields(&[("notifications.gossip", "unknown_value")]);
    for bad in [json!([]), json!("all"), json!(7), json!(true)] {
        change(json!({ "notifications": bad })).expect_fields(&[("notifications", "invalid_format")]);
    }
    let many = Value::Object((0..101).map(|number| (format!("kind{number}"), json!(true))).collect());
    change(json!({ "notifications": many })).expect_fields(&[("notifications", "too_many")]);
    for bad in [json!("no"), json!(null), json!([]), json!({}), json!(1)] {
        let switches = json!({ "promotion": bad, "system": false, "gossip": bad, "account": true });
        change(json!({ "notifications": switches, "locale": "tlh", "timeZone": "Mars" })).expect_fields(&[
            ("notifications.promotion", "invalid_type"),
            ("notifications.system", "rejected"),
            ("notifications.gossip", "unknown_value"),
            ("locale", "unknown_value"),
            ("timeZone", "unknown_value"),
        ]);
    }
    let zones = ["Mars/Olympus", "UTC+25", "../etc/passwd", "/etc/localtime", "Asia"];
    for zone in zones {
        change(json!({ "locale": "tlh", "timeZone": zone, "notifications": { "promotion": false } }))
            .expect_fields(&[("locale", "unknown_value"), ("timeZone", "unknown_value")]);
    }
    assert_eq!(server.value::<i64>("select count(*) from preferences"), 0);
}
