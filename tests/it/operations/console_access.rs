//! Access to the console: every route by role, spelling of the address, and network.

use std::{
    collections::BTreeSet,
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
};

use crate::support::{Request, Server, Setup, eventually, raw::exchange};

use super::console::{Browser, hidden};

// Help texts of settings contain the number of other tests.
const PHONE: &str = "13912345678";
const EMAIL: &str = "somebody@example.com";
const PASSWORD: &str = "correct horse battery";
const ROLES: [&str; 4] = ["read-only", "support", "moderator", "owner"];

/// A page or an action, from the source of the route table.
#[derive(Debug)]
struct TableRow {
    kind: String,
    path: String,
    right: String,
    needs_proof: bool,
}

/// Reads the table from its source, so that a new route is tested without being listed here.
fn table() -> Vec<TableRow> {
    let source = include_str!("../../../src/http/console/routes.rs");
    let rows = source.lines().filter_map(|line| {
        let (kind, rest) = line.trim().split_once("(\"")?;
        let (path, rest) = rest.split_once("\", ")?;
        let right = rest.split_once(',')?.0;
        let kind = if kind == "act" { "post" } else { kind };
        let is_row = ["get", "post", "live"].contains(&kind);
        let needs_proof = line.contains(".for_recent_sign_in()");
        is_row.then(|| TableRow { kind: kind.into(), path: path.into(), right: right.into(), needs_proof })
    });
    let rows: Vec<_> = rows.collect();
    assert!(rows.len() > 80, "{rows:?}");
    rows
}

fn may(role: &str, right: &str) -> bool {
    let roles: &[&str] = match right {
        "OwnSession" | "ViewFigures" => &ROLES,
        "ViewAudit" | "FindUsers" => &["support", "moderator", "owner"],
        "SupportUsers" | "GrantCoins" => &["support", "owner"],
        "Moderate" => &["moderator", "owner"],
        "Administer" => &["owner"],
        other => panic!("no roles are known for {other}"),
    };
    roles.contains(&role)
}

/// Returns the path with the ids of what the test has created, or of nothing for ids that it has not.
fn example(path: &str, user: &str, order: &str) -> String {
    let parts = path.split('/').map(|part| match part {
        "{orderNo}" => order,
        "{userId}" => user,
        "{name}" => "nobody",
        "{target}" => "feedback",
        part if part.starts_with('{') => "999999",
        part => part,
    });
    parts.collect::<Vec<_>>().join("/")
}

#[test]
fn every_route_opens_to_the_roles_of_its_right_and_masks_addresses() {
    let server = Setup::default().start();
    let user = server.sign_in(PHONE);
    server.edit(&format!("update users set email = '{EMAIL}' where id = {}", user.user_id));
    server.post("/feedback").by(&user).json(&serde_json::json!({ "content": "thanks" })).send().expect(200);
    let order = server.get("/payment/gateway/order").by(&user).query(&[("amount", "6.00"), ("coinCount", "60")]);
    let order = order.send().expect(200).json()["orderNo"].as_str().unwrap().to_owned();
    let mut opened = 0;
    for role in ROLES {
        let browser = Browser::new(&server, role, role);
        let csrf = hidden(&browser.get("").send().expect(200).text(), "csrf");
        for row in table().iter().filter(|row| row.path != "sign-out") {
            let path = example(&row.path, &user.user_id, &order);
            let answered = match row.kind.as_str() {
                "post" => browser.post_as_typed(&path, &[("csrf", csrf.as_str())]),
                _ => browser.get(&path).send(),
            };
            let (status, text) = (answered.status, answered.text());
            if may(role, &row.right) {
                assert!(status != 403 && status < 500, "{role} {row:?}: {status} {text}");
                // A single search result, or an id that does not exist.
                let is_page = row.kind != "post" && status == 200;
                assert!(is_page || row.kind == "post" || [303, 404].contains(&status), "{role} {row:?}: {status}");
                opened += usize::from(is_page);
            } else {
                assert_eq!(status, 403, "{role} {row:?}: {text}");
            }
            assert!(!text.contains(PHONE) && !text.contains(EMAIL), "{role} {row:?} shows an address: {text}");
        }
    }
    assert!(opened > 60, "{opened}");
    let live = "select count(*) from audit where action like '%fragments%' or action like '%assets%'";
    assert_eq!(server.value::<i64>(live), 0);
}

/// Values that neither headers, databases nor files take as they are.
const UNPRINTABLE: [&str; 5] = ["\0", "/admin/console/\r\nx: y\u{1b}[2J", "1\0", "\u{202e}\u{feff}\u{7f}é", "9\t\n"];

/// Returns the names that pages and the endpoints behind acts read, by the file that reads them.
fn field_names() -> Vec<(String, BTreeSet<String>)> {
    let http = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/http");
    let directory = http.join("console");
    let pages = fs::read_dir(directory.join("pages")).unwrap().chain(fs::read_dir(http.join("admin")).unwrap());
    let pages = pages.map(|entry| entry.unwrap().path()).filter(|path| path.is_file());
    let files = pages.chain(["request.rs", "csv.rs", "service.rs"].map(|name| directory.join(name)));
    let names_in = |text: &str| {
        let readers = [
            "get(\"",
            "find(\"",
            "all(\"",
            "own(\"",
            "typed(\"",
            "required_text(\"",
            "optional_time(\"",
            "choice_filter(\"",
            "input(\"",
            "optional(\"",
            "required(\"",
            "list(\"",
        ];
        let found = readers.iter().flat_map(|reader| text.split(*reader).skip(1));
        found.filter_map(|rest| rest.split_once('"')).map(|(name, _)| name.to_owned()).collect()
    };
    let read = |path: PathBuf| {
        let module = path.file_stem().unwrap().to_str().unwrap().to_owned();
        (module, names_in(&fs::read_to_string(path).unwrap()))
    };
    files.map(read).collect()
}

#[test]
fn no_field_or_query_causes_an_internal_error() {
    let server = Setup::default().with("ADMIN_ATTEMPTS", 1_000_000).start();
    let user = server.sign_in(PHONE);
    let browser = Browser::new(&server, "alice", "owner");
    let csrf = hidden(&browser.get("").send().expect(200).text(), "csrf");
    let files = field_names();
    let names_of = |module: &str| -> BTreeSet<String> {
        files.iter().filter(|(name, _)| name == module).flat_map(|(_, names)| names.clone()).collect()
    };
    let shared: BTreeSet<_> = ["request", "csv", "service"].into_iter().flat_map(names_of).collect();
    let source = include_str!("../../../src/http/console/routes.rs");
    let together = UNPRINTABLE.concat();
    let mut sent = 0;
    for line in source.lines().map(str::trim) {
        let Some((kind, rest)) = line.split_once('(') else { continue };
        let Some((path, rest)) = rest.split_once('"').and_then(|(_, rest)| rest.split_once("\", ")) else { continue };
        let is_form = ["post", "act"].contains(&kind) || line.contains("Method::POST");
        if !["get", "post", "act", "live", "open"].contains(&kind) || path == "sign-out" {
            continue;
        }
        let handler = rest.split(", ").nth(usize::from(kind != "open")).unwrap();
        let module = handler.rsplit("::").nth(1).unwrap();
        let names: Vec<_> = shared.iter().cloned().chain(names_of(module)).collect();
        let address = example(path, &user.user_id, "Y1");
        // All characters in each field alone, and each text in every field.
        let alone = names.iter().map(|name| (name.as_str(), together.as_str()));
        for (odd, value) in alone.chain(UNPRINTABLE.map(|value| ("every field", value))) {
            let mut fields: Vec<_> = names.iter().map(|name| (name.as_str(), "1")).collect();
            for field in &mut fields {
                if field.0 == odd || odd == "every field" {
                    field.1 = value;
                }
            }
            fields.retain(|(name, _)| !["csrf", "password", "newPassword"].contains(name) || *name == odd);
            fields.insert(0, ("csrf", &csrf));
            let answered = if is_form {
                browser.post_as_typed(&address, &fields)
            } else {
                browser.get(&address).query(&fields).send()
            };
            sent += 1;
            assert_ne!(answered.status, 500, "{line} {odd} {value:?}: {}", answered.text());
        }
        let odd_path: Vec<_> =
            path.split('/').map(|part| if part.starts_with('{') { "%00%0d%c3%a9" } else { part }).collect();
        let answered = if is_form {
            browser.post_as_typed(&odd_path.join("/"), &[("csrf", &csrf), ("reason", "because")])
        } else {
            browser.get(&odd_path.join("/")).send()
        };
        assert_ne!(answered.status, 500, "{line}: {}", answered.text());
    }
    assert!(sent > 1000, "{sent}");
    browser.get("").send().expect(200);
}

/// Spellings of an address below `/admin` that a proxy or a router might take for it.
const SPELLINGS: [&str; 44] = [
    "/admin/console",
    "/admin/console/",
    "/admin/console/sign-in",
    "/admin/console/sign-in/",
    "/admin/console/orders?state=review",
    "//admin/console/",
    "///admin///console///sign-in",
    "/admin//console/sign-in",
    "//admin/payments",
    "/admin/payments",
    "/admin/payments/",
    "/./admin/console/sign-in",
    "/admin/./console/sign-in",
    "/admin/console/./sign-in",
    "/x/../admin/console/sign-in",
    "/user/profile/../../admin/console/sign-in",
    "/healthz/../admin/console/sign-in",
    "/docs/..//admin/console/sign-in",
    "/ADMIN/CONSOLE/SIGN-IN",
    "/Admin/console/sign-in",
    "/admin/Console/sign-in",
    "/%61dmin/console/sign-in",
    "/%61%64%6D%69%6e/%63onsole/sign-in",
    "/%2561dmin/console/sign-in",
    "/admin%2fconsole%2fsign-in",
    "/admin%2Fconsole/sign-in",
    "/%2fadmin/console/sign-in",
    "/%2Fadmin%2Fconsole%2Fsign-in",
    "/%2e/admin/console/sign-in",
    "/x/%2e%2e/admin/console/sign-in",
    "/x/%2E%2E%2Fadmin/console/sign-in",
    "/x/..%2fadmin/console/sign-in",
    "/x/..;/admin/console/sign-in",
    "/;/admin/console/sign-in",
    "/admin;/console/sign-in",
    "/admin;v=1/console;v=1/sign-in",
    "/admin/console/sign-in;",
    "/admin/console;/sign-in",
    "/admin\\console\\sign-in",
    "/\\admin/console/sign-in",
    "/admin%5cconsole%5csign-in",
    "/admin/console/sign-in%00",
    "/admin/console/sign-in%20",
    "/%c0%afadmin/console/sign-in",
];

/// Headers by which a proxy names another host or path than the request.
const FORWARDED: [&str; 6] = [
    "",
    "x-forwarded-host: 127.0.0.1\r\nx-forwarded-proto: https\r\nx-forwarded-for: 127.0.0.1\r\n",
    "x-forwarded-prefix: /admin/console\r\nx-forwarded-uri: /admin/console/sign-in\r\n",
    "x-original-url: /admin/console/sign-in\r\nx-rewrite-url: /admin/console/sign-in\r\n",
    "forwarded: for=127.0.0.1;host=127.0.0.1;proto=https\r\n",
    "x-http-method-override: GET\r\n",
];

/// Sends a request as it is written and returns the status with everything received.
fn ask(server: &Server, target: &str, host: &str, headers: &str) -> (u16, String) {
    let address: SocketAddr = server.address();
    let text = format!("GET {target} HTTP/1.1\r\nhost: {host}\r\n{headers}connection: close\r\n\r\n");
    let answered = exchange(address, text.as_bytes());
    (answered.status, format!("{:?} {}", answered.headers, answered.text()))
}

/// Fails if a response shows the console, leads to it or starts a session.
fn assert_closed(what: &str, (status, text): &(u16, String)) {
    assert!((400..500).contains(status), "{what}: {status} {text}");
    for part in ["set-cookie", "location", "<html", "<form", "/admin/console"] {
        assert!(!text.contains(part), "{what}: {text}");
    }
}

#[test]
fn with_an_admin_listener_no_spelling_opens_the_console_elsewhere() {
    let mut server = Setup::default().with("SERVER_ADMIN_LISTEN", "127.0.0.1:0").start();
    let line = server.wait_for_line("serves /admin on");
    let inside = line.rsplit("http://").next().unwrap().trim().to_owned();
    // A session that is good on the admin listener.
    let create = ["admin", "create", "alice", "--password-stdin"];
    crate::support::CommandOutput::run(server.directory(), &create, &format!("{PASSWORD}\n")).expect(0);
    let form = [("name", "alice"), ("password", PASSWORD)];
    let signed_in =
        Request::new("POST", &format!("http://{inside}/admin/console/sign-in")).form(&form).send().expect(303);
    let cookie = signed_in.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    let page = Request::new("GET", &format!("http://{inside}/admin/console/orders")).header("cookie", &cookie);
    page.send().expect(200);

    let outside = server.address().to_string();
    let hosts = [outside.as_str(), inside.as_str(), "LOCALHOST", "localhost.", "localhost..", "127.1"];
    for target in SPELLINGS {
        for headers in FORWARDED {
            let headers = format!("{headers}cookie: {cookie}\r\n");
            assert_closed(&format!("{target} {headers:?}"), &ask(&server, target, &outside, &headers));
        }
        for host in hosts {
            assert_closed(&format!("{target} at {host}"), &ask(&server, target, host, ""));
        }
        // The absolute form names a host of its own.
        for host in hosts {
            let absolute = format!("http://{host}{target}");
            assert_closed(&absolute, &ask(&server, &absolute, &outside, &format!("cookie: {cookie}\r\n")));
        }
    }
    // The other listener stays open, and the public one serves the app.
    Request::new("GET", &format!("http://{inside}/admin/console/")).header("cookie", &cookie).send().expect(200);
    assert_eq!(ask(&server, "/healthz", &outside, "").0, 200);
}

#[test]
fn outside_the_networks_no_spelling_opens_the_console() {
    let server = Setup::default().start();
    let browser = Browser::new(&server, "alice", "owner");
    let shown = browser.get("orders").send().expect(200).text();
    let csrf = hidden(&shown, "csrf");
    server.command(&["admin", "networks", "allow", "203.0.113.0/24"]).expect(0);
    let cookie = format!("cookie: {}\r\n", browser.cookie());
    let from = |client: &str, more: &str| format!("x-forwarded-for: {client}\r\n{more}");
    let outside = server.address().to_string();
    eventually("the list is in force", || {
        ask(&server, "/admin/console/orders", &outside, &from("198.51.100.1", &cookie)).0 == 403
    });
    for target in SPELLINGS {
        for headers in [from("198.51.100.1", &cookie), from("198.51.100.1", "")] {
            let (status, text) = ask(&server, target, &outside, &headers);
            assert!((400..500).contains(&status), "{target} {headers:?}: {status} {text}");
            assert!(
                !text.contains("set-cookie") && !text.contains("name=\"password\""),
                "{target} {headers:?}: {text}"
            );
        }
    }
    // The client may not choose its own address: only the entry of the proxy counts.
    let forged = "x-forwarded-for: 203.0.113.5, 198.51.100.1\r\n";
    assert_eq!(ask(&server, "/admin/console/sign-in", &outside, forged).0, 403);
    for (path, form) in [
        ("sign-in", vec![("name", "alice"), ("password", PASSWORD)]),
        ("preferences", vec![("theme", "dark")]),
        ("orders/export", vec![("csrf", csrf.as_str()), ("reason", "for the accountant")]),
    ] {
        let request = server.post(&format!("/admin/console/{path}")).header("x-forwarded-for", "198.51.100.1");
        let refused = request.header("cookie", browser.cookie()).form(&form).send().expect(403);
        assert!(refused.text().contains("address_not_allowed"), "{path}");
    }
    let inside = |path: &str| server.get(path).header("x-forwarded-for", "203.0.113.5");
    inside("/admin/console/sign-in").send().expect(200);
    inside("/admin/console/orders").header("cookie", browser.cookie()).send().expect(200);
}

#[test]
fn the_marked_actions_need_a_recent_proof() {
    let server = Setup::default().start();
    let user = server.sign_in(PHONE);
    let browser = Browser::new(&server, "alice", "owner");
    let csrf = hidden(&browser.get("").send().expect(200).text(), "csrf");
    server.edit("update admin_tokens set proved_at = proved_at - 600001");
    let marked: Vec<_> = table().into_iter().filter(|row| row.needs_proof).collect();
    for path in [
        "users/{userId}/grant",
        "users/{userId}/erase",
        "orders/{orderNo}/refund",
        "cleanup/{target}",
        "releases",
        "messages",
    ] {
        assert!(marked.iter().any(|row| row.path == path), "{path}");
    }
    for row in &marked {
        let address = example(&row.path, &user.user_id, "Y1");
        let sent =
            browser.post_as_typed(&address, &[("csrf", &csrf), ("reason", "asked by letter"), ("newPassword", "hush")]);
        let asked = sent.expect(403).text();
        let kept = "name=\"reason\" value=\"asked by letter\"";
        assert!(asked.contains("name=\"password\"") && asked.contains(kept), "{row:?}: {asked}");
        assert!(!asked.contains("hush"), "{row:?}");
    }
    let wrong = [("csrf", csrf.as_str()), ("password", "not the password"), ("reason", "none")];
    browser.post_as_typed("releases", &wrong).expect(401);
    let right = [("csrf", csrf.as_str()), ("password", PASSWORD), ("reason", "none")];
    browser.post_as_typed("releases", &right).expect(422);
    browser.post_as_typed("releases", &right[..1]).expect(422);
}

#[test]
fn a_hundred_rows_have_a_result_each() {
    let server = Setup::default().start();
    server.edit(
        "insert into users (phone_number, created_at) with recursive n (i) as \
         (select 1 union all select i + 1 from n where i < 100) select '+861390000' || (1000 + i), 1 from n",
    );
    let ids: Vec<String> = (0..100)
        .map(|offset| {
            server.value::<i64>(&format!("select id from users order by id limit 1 offset {offset}")).to_string()
        })
        .collect();
    let browser = Browser::new(&server, "mona", "moderator");
    let mut picked = vec![("act", "suspend"), ("reason", "bots")];
    picked.extend(ids.iter().map(|id| ("id", id.as_str())));
    let results = browser.post("users", "users/bulk", &picked).expect(200).text();
    assert_eq!(results.matches("data-code=\"done\"").count(), 100, "{results}");
    let suspended = "select count(distinct user_id) from suspensions where reason = 'bots'";
    assert_eq!(server.value::<i64>(suspended), 100);
    let audited = "select count(*) from audit where action like '%users/bulk suspend' and reason = 'bots'";
    eventually("each row is in the audit", || server.value::<i64>(audited) == 100);
}

#[test]
fn an_erasure_shows_its_counts_needs_a_proof_and_happens_once() {
    let server = Setup::default().start();
    let user = server.sign_in(PHONE);
    server.post("/feedback").by(&user).json(&serde_json::json!({ "content": "goodbye" })).send().expect(200);
    let browser = Browser::new(&server, "alice", "owner");
    let page = format!("users/{}", user.user_id);
    let erase = format!("{page}/erase");
    let asked = browser.post(&page, &erase, &[]).expect(428).text();
    assert!(asked.contains("id=\"would-delete\"") && asked.contains("id=\"would-keep\""), "{asked}");
    assert!(asked.contains("data-until="), "{asked}");
    assert_eq!(server.value::<i64>("select count(*) from users"), 1);
    let (csrf, once, confirm) = (hidden(&asked, "csrf"), hidden(&asked, "once"), hidden(&asked, "confirm"));
    let send = |more: &[(&str, &str)]| {
        let mut form = vec![("csrf", csrf.as_str()), ("once", once.as_str()), ("confirm", confirm.as_str())];
        form.extend([("target", user.user_id.as_str()), ("reason", "asked by letter")]);
        form.extend(more);
        browser.post_as_typed(&erase, &form)
    };
    server.edit("update admin_tokens set proved_at = proved_at - 600001");
    let refused = send(&[]).expect(403).text();
    assert!(refused.contains("name=\"password\"") && refused.contains("asked by letter"), "{refused}");
    assert_eq!(server.value::<i64>("select count(*) from users"), 1);
    send(&[("password", PASSWORD)]).expect(303);
    let again = send(&[("password", PASSWORD)]);
    assert!([303, 404, 428].contains(&again.status), "{}", again.status);
    assert_eq!(server.value::<i64>("select count(*) from users"), 0);
    let done = "select count(*) from audit where action = 'POST /admin/console/users/{userId}/erase' and outcome = 303";
    eventually("one erasure is in the audit", || server.value::<i64>(done) >= 1);
}
