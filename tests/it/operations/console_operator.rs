//! The operator's pages of the web console: data cleanup, settings, and proofs and reasons of acts on administrators and keys.

use serde_json::Value;

use super::console::hidden;
use crate::support::{Request, Response, Server, Setup};

const PASSWORD: &str = "correct horse battery";

/// A browser that is signed in to the console.
struct Browser<'server> {
    server: &'server Server,
    cookie: String,
}

impl<'server> Browser<'server> {
    /// Creates an administrator with a role, whose name is the role, and signs in.
    fn new(server: &'server Server, role: &str) -> Self {
        Self { server, cookie: server.console_cookie(role, role) }
    }

    fn get(&self, path: &str) -> Request {
        let request = self.server.get(&format!("/admin/console/{path}"));
        request.header("cookie", &self.cookie).header("accept-language", "en")
    }

    /// Sends a form with the token that the forms of a page carry.
    fn post(&self, page: &str, path: &str, fields: &[(&str, &str)]) -> Response {
        let csrf = hidden(&self.get(page).send().expect(200).text(), "csrf");
        let form = [&[("csrf", csrf.as_str())], fields].concat();
        let request = self.server.post(&format!("/admin/console/{path}")).header("cookie", &self.cookie);
        request.header("accept-language", "en").form(&form).send()
    }

    /// Lets the last proof of identity become too old.
    fn forget_proof(&self) {
        self.server.edit("update admin_tokens set proved_at = proved_at - 600001");
    }
}

/// The page, the address and the fields of a form.
type Act<'a> = (&'a str, &'a str, &'a [(&'a str, &'a str)]);

/// Returns the reasons in the audit of an action that was done.
fn reasons(server: &Server, action: &str) -> Vec<String> {
    let rows = server.command(&["audit"]).expect(0).json();
    let of_action = |row: &&Value| row["action"] == action;
    let events = rows["items"].as_array().unwrap().iter().filter(of_action);
    events.filter_map(|row| row["reason"].as_str().map(ToOwned::to_owned)).collect()
}

#[test]
fn an_owner_purges_a_category_once_after_confirming_it() {
    let server = Setup::default().start();
    server.sign_in("13800138000");
    server.request_code("13800138001");
    server.request_code("13800138002");
    let owner = Browser::new(&server, "owner");
    let shown = owner.get("cleanup").send().expect(200).text();
    assert!(shown.contains("action=\"/admin/console/cleanup/verification-codes\""), "{shown}");
    let path = "cleanup/verification-codes";
    let codes = || server.value::<i64>("select count(*) from codes");
    let backups = || {
        let files = std::fs::read_dir(server.directory().join("backups")).into_iter().flatten();
        files
            .filter(|file| file.as_ref().unwrap().file_name().to_str().unwrap().ends_with("-before-cleanup.db"))
            .count()
    };
    let asked = owner.post("cleanup", path, &[]).expect(428).text();
    assert!(asked.contains("id=\"would-delete\"") && asked.contains(" left"), "{asked}");
    assert!(asked.contains("active codes") && asked.contains(">2<"), "{asked}");
    let confirm = hidden(&asked, "confirm");
    let clear = |target: &str, reason: &str, proof: &[(&str, &str)]| {
        let form = [&[("confirm", confirm.as_str()), ("target", target), ("reason", reason)], proof].concat();
        owner.post("cleanup", path, &form)
    };
    let refused = clear("cleanup all", "new provider", &[]).expect(422).text();
    assert!(refused.contains("confirm-target-error") && refused.contains("value=\"new provider\""), "{refused}");
    clear("cleanup verification-codes", "", &[]).expect(422);
    owner.forget_proof();
    let refused = clear("cleanup verification-codes", "new provider", &[]).expect(403).text();
    assert!(refused.contains("name=\"password\""), "{refused}");
    // The token is for this category only.
    let others =
        [("confirm", confirm.as_str()), ("target", "cleanup feedback"), ("reason", "r"), ("password", PASSWORD)];
    owner.post("cleanup", "cleanup/feedback", &others).expect(428);
    assert_eq!((codes(), backups()), (2, 0));
    let done = clear("cleanup verification-codes", "new provider", &[]).expect(303);
    assert_eq!(done.header("location"), Some("/admin/console/cleanup"));
    assert_eq!((codes(), backups()), (0, 1));
    let again = clear("cleanup verification-codes", "new provider", &[]).expect(428).text();
    assert!(again.contains("was used or has expired"), "{again}");
    assert_eq!(backups(), 1);
    assert!(reasons(&server, "POST /admin/console/cleanup/{target}").contains(&"new provider".to_owned()));
    owner.post("cleanup", "cleanup/nothing", &[]).expect(404);
    let support = Browser::new(&server, "support");
    support.get("cleanup").send().expect(403);
    support.post("", path, &[]).expect(403);
}

#[test]
fn a_purge_of_everything_keeps_the_session() {
    let server = Setup::default().start();
    server.sign_in("13800138000");
    let owner = Browser::new(&server, "owner");
    let confirm = hidden(&owner.post("cleanup", "cleanup/all", &[]).expect(428).text(), "confirm");
    let form = [("confirm", confirm.as_str()), ("target", "cleanup all"), ("reason", "end of the test")];
    owner.post("cleanup", "cleanup/all", &form).expect(303);
    assert_eq!(server.value::<i64>("select count(*) from users"), 0);
    owner.get("cleanup").send().expect(200);
}

#[test]
fn acts_on_administrators_and_keys_need_a_proof_and_record_their_reason() {
    let server = Setup::default().start();
    let owner = Browser::new(&server, "owner");
    Browser::new(&server, "support");
    server.api_key("shop");
    let sessions = || server.command(&["admin", "sessions", "list"]).expect(0).json();
    let of_support = |session: &&Value| session["name"] == "support";
    let session = sessions().as_array().unwrap().iter().find(of_support).unwrap()["id"].as_str().unwrap().to_owned();
    let end = format!("administrators/sessions/{session}/end");
    let acts: [Act<'_>; 6] = [
        ("keys", "keys/change", &[("label", "shop"), ("isSuspended", "true"), ("reason", "suspected")]),
        ("keys", "keys/change", &[("label", "shop"), ("isSuspended", "false"), ("reason", "cleared")]),
        ("keys", "keys/revoke", &[("label", "shop"), ("reason", "leaked")]),
        ("administrators", "administrators/support/totp", &[]),
        ("administrators", &end, &[]),
        ("administrators", "administrators/support/role", &[("role", "moderator"), ("reason", "moved")]),
    ];
    owner.forget_proof();
    for (page, path, fields) in acts {
        let refused = owner.post(page, path, fields).expect(403).text();
        assert!(refused.contains("name=\"password\""), "{path}: {refused}");
    }
    assert!(sessions().as_array().unwrap().iter().any(|one| one["id"] == session.as_str()));
    assert!(owner.get("administrators").send().expect(200).text().contains("name=\"password\""));
    for (page, path, fields) in acts {
        owner.forget_proof();
        let done = owner.post(page, path, &[fields, &[("password", PASSWORD)]].concat());
        assert!(done.status == 200 || !done.header("set-cookie").unwrap().contains("bad"), "{path}");
    }
    assert!(!sessions().as_array().unwrap().iter().any(|one| one["id"] == session.as_str()));
    for (action, reason) in [
        ("keys/change", "suspected"),
        ("keys/change", "cleared"),
        ("keys/revoke", "leaked"),
        ("administrators/{name}/role", "moved"),
    ] {
        assert!(reasons(&server, &format!("POST /admin/console/{action}")).contains(&reason.to_owned()), "{action}");
    }
    let missing = owner.post("administrators", "administrators/support/remove", &[("reason", "")]).expect(422);
    assert!(missing.text().contains("flash bad"));
}

#[test]
fn removing_a_network_needs_a_proof() {
    let server = Setup::default().start();
    let owner = Browser::new(&server, "owner");
    for network in ["127.0.0.0/8", "10.0.0.0/8"] {
        server.command(&["admin", "networks", "allow", network]).expect(0);
    }
    let remove = |proof: &[(&str, &str)]| {
        owner.post("administrators", "administrators/networks/remove", &[&[("network", "10.0.0.0/8")], proof].concat())
    };
    let networks = || server.command(&["admin", "networks", "list"]).expect(0).json().as_array().unwrap().len();
    owner.forget_proof();
    remove(&[]).expect(403);
    assert_eq!(networks(), 2);
    remove(&[("password", PASSWORD)]).expect(303);
    assert_eq!(networks(), 1);
}

#[test]
fn networks_are_stored_in_the_form_of_client_addresses() {
    let server = Setup::default().start();
    let owner = Browser::new(&server, "owner");
    server.command(&["admin", "networks", "allow", "127.0.0.0/8"]).expect(0);
    owner.post("administrators", "administrators/networks", &[("network", "::ffff:172.16.5.1/108")]).expect(303);
    let list = server.command(&["admin", "networks", "list"]).expect(0).json();
    assert_eq!(list, serde_json::json!(["127.0.0.0/8", "172.16.0.0/12"]));
}

#[test]
fn an_owner_reads_the_settings_with_their_sources_and_no_secrets() {
    let setup = Setup::default()
        .with("LIMITS_TIME_ZONE", "Europe/Paris")
        .with("LLM_API_KEY", "hunter2-hunter2-hunter2-hunter2");
    let server = setup.start();
    let owner = Browser::new(&server, "owner");
    let shown = |query: &[(&str, &str)]| owner.get("settings").query(query).send().expect(200).text();
    let all = shown(&[]);
    let settings = server.command(&["config", "show"]).expect(0).json();
    for setting in settings.as_array().unwrap() {
        let name = setting["name"].as_str().unwrap();
        assert!(all.contains(&format!("<code>{name}</code>")), "{name}");
    }
    assert!(all.contains("Europe/Paris") && !all.contains("hunter2"), "{all}");
    assert!(all.contains("command line") && all.contains("environment"), "{all}");
    let found = shown(&[("q", "Time_Zone")]);
    assert!(found.contains("<code>limits.time_zone</code>") && !found.contains("<code>llm.api_key</code>"), "{found}");
    let changed = shown(&[("changed", "true")]);
    assert!(changed.contains("<code>limits.time_zone</code>") && !changed.contains("<code>limits.body_timeout</code>"));
    assert!(!shown(&[("q", "no such setting")]).contains("<table"));
}
