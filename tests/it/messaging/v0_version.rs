//! `/version`: update checks.

use serde_json::{Value, json};

use crate::support::{Server, Setup};

fn publish(server: &Server, key: &str, body: Value) -> Value {
    server.post("/admin/releases").token(key).json(&body).send().expect(201).json()
}

/// Returns available, required and the latest version.
fn check(server: &Server, body: Value) -> (bool, bool, Value) {
    let advice = server.post("/version/check").json(&body).send().expect(200).json();
    let flag = |name: &str| advice[name].as_bool().unwrap();
    (flag("updateAvailable"), flag("updateRequired"), advice["latest"]["version"].clone())
}

#[test]
fn reports_no_update_without_a_release() {
    let server = Setup::default().start();
    server.get("/version/latest").send().expect_problem(404, "no_release");
    let advice = server.post("/version/check").form(&[("clientVersion", "1.0.0")]).send().expect(200).json();
    assert_eq!(advice, json!({ "updateAvailable": false, "updateRequired": false, "latest": null }));
}

#[test]
fn the_build_number_takes_precedence_over_the_version() {
    let server = Setup::default().start();
    let key = server.api_key("tests");
    let mut created = publish(&server, &key, json!({ "version": "v1.10", "versionCode": 110, "notes": "新" }));
    // Apps see no withdrawn release.
    assert_eq!(created.as_object_mut().unwrap().remove("withdrawnAt"), Some(Value::Null));
    assert_eq!(
        (&created["version"], &created["isRequired"], &created["platform"]),
        (&json!("1.10.0"), &json!(false), &Value::Null)
    );
    assert_eq!(server.get("/version/latest").send().expect(200).json(), created);
    let latest = json!("1.10.0");
    for (body, available) in [
        (json!({ "clientVersion": "1.9.9" }), true),
        (json!({ "clientVersion": "1.10.0-beta.1" }), true),
        (json!({ "clientVersion": "1.10" }), false),
        (json!({ "clientVersion": "1.11.0" }), false),
        (json!({ "clientVersionCode": 109 }), true),
        (json!({ "clientVersionCode": "110" }), false),
        (json!({ "clientVersion": "9.9.9", "clientVersionCode": 1 }), true),
        (json!({ "clientVersion": "0.0.1", "clientVersionCode": 111 }), false),
    ] {
        assert_eq!(check(&server, body.clone()), (available, false, latest.clone()), "{body}");
    }
}

#[test]
fn build_metadata_does_not_make_a_version_newer() {
    let server = Setup::default().start();
    let key = server.api_key("publisher");
    publish(&server, &key, json!({ "version": "2.3.2+232", "versionCode": 232, "isRequired": true }));
    for (version, is_old) in
        [("2.3.2", false), ("2.3.2+1", false), ("2.3.2+999", false), ("2.3.2-rc.1+232", true), ("2.3.1", true)]
    {
        let (available, required, latest) = check(&server, json!({ "clientVersion": version }));
        assert_eq!((available, required), (is_old, is_old), "{version}");
        assert_eq!(latest, "2.3.2+232");
    }
}

#[test]
fn with_a_build_number_the_version_may_be_any_text() {
    let server = Setup::default().start();
    let key = server.api_key("publisher");
    publish(&server, &key, json!({ "version": "2.4.0", "versionCode": 240, "isRequired": true }));
    for version in ["2.3.1 (231)", "2.3.1.4", "debug"] {
        let (available, required, _) = check(&server, json!({ "clientVersion": version, "clientVersionCode": 231 }));
        assert!(available && required, "{version}");
        let alone = server.post("/version/check").json(&json!({ "clientVersion": version })).send();
        alone.expect_fields(&[("clientVersion", "invalid_format")]);
    }
}

#[test]
fn a_required_release_applies_to_older_versions_only() {
    let server = Setup::default().start();
    let key = server.api_key("tests");
    publish(&server, &key, json!({ "version": "1.0.0", "versionCode": 100 }));
    publish(&server, &key, json!({ "version": "1.1.0", "versionCode": 110, "isRequired": true }));
    publish(&server, &key, json!({ "version": "1.2.0", "versionCode": 120 }));
    let latest = json!("1.2.0");
    for (code, expected) in [(100, (true, true)), (110, (true, false)), (119, (true, false)), (120, (false, false))] {
        assert_eq!(
            check(&server, json!({ "clientVersionCode": code })),
            (expected.0, expected.1, latest.clone()),
            "{code}"
        );
    }
}

#[test]
fn platforms_have_their_own_releases() {
    let server = Setup::default().start();
    let key = server.api_key("tests");
    publish(&server, &key, json!({ "version": "1.0.0", "versionCode": 100 }));
    publish(
        &server,
        &key,
        json!({ "version": "1.3.0", "versionCode": 130, "platform": "Android", "downloadUrl": "https://app.example.com/a.apk" }),
    );
    publish(&server, &key, json!({ "version": "1.2.0", "versionCode": 120, "platform": "ios", "isRequired": true }));
    let of = |platform: &str| check(&server, json!({ "clientVersionCode": 100, "platform": platform }));
    assert_eq!(of("android"), (true, false, json!("1.3.0")));
    assert_eq!(of("IOS"), (true, true, json!("1.2.0")));
    assert_eq!(of("harmony"), (false, false, json!("1.0.0")));
    assert_eq!(server.get("/version/latest").query(&[("platform", "ios")]).send().json()["version"], "1.2.0");
    assert_eq!(server.get("/version/latest").send().json()["version"], "1.3.0");
}

#[test]
fn rejects_invalid_versions() {
    let server = Setup::default().start();
    let key = server.api_key("tests");
    let check = |body: Value| server.post("/version/check").json(&body).send();
    check(json!({})).expect_fields(&[("clientVersion", "required")]);
    check(json!({ "clientVersion": "newest", "clientVersionCode": -1, "platform": "a b" })).expect_fields(&[
        ("clientVersion", "invalid_format"),
        ("clientVersionCode", "out_of_range"),
        ("platform", "invalid_format"),
    ]);
    let publish = |body: Value| server.post("/admin/releases").token(&key).json(&body).send();
    publish(json!({ "version": "1.0.0" })).expect_fields(&[("versionCode", "required")]);
    for url in ["http://app.example.com", "javascript:alert(1)", "file:///etc/passwd", "https:app"] {
        let code = if url == "https:app" { None } else { Some("rejected") };
        let response = publish(json!({ "version": "1.0.0", "versionCode": 1, "downloadUrl": url, "platform": "x" }));
        if let Some(code) = code {
            response.expect_fields(&[("downloadUrl", code)]);
        }
    }
    publish(json!({ "version": "1.0.0", "versionCode": 1 })).expect(201);
    publish(json!({ "version": "1.0.1", "versionCode": 1 })).expect_problem(409, "already_exists");
    publish(json!({ "version": "1.0.1", "versionCode": 1, "platform": "ios" })).expect(201);
}

#[test]
fn commands_publish_and_list_releases() {
    let server = Setup::default().start();
    let publish =
        ["release", "publish", "2.0.0", "--code", "200", "--required", "--notes", "新", "--platform", "Android"];
    let created = server.command(&publish).expect(0).json();
    assert_eq!(
        (&created["versionCode"], &created["isRequired"], &created["platform"]),
        (&json!(200), &json!(true), &json!("android"))
    );
    server.command(&publish).expect(1);
    server.command(&["release", "publish", "two", "--code", "1"]).expect(2);
    server.command(&["release", "publish", "2.0.0"]).expect(2);
    let listed = server.command(&["release", "list"]).expect(0).json();
    assert_eq!((&listed["items"][0], &listed["total"]), (&created, &json!(1)));
    let key = server.api_key("tests");
    assert_eq!(server.get("/admin/releases").token(&key).send().expect(200).json()["items"][0], created);
}
