//! The web console: sessions, rights, forms, masking and actions, without a browser.

use serde_json::json;

use crate::support::{Caller, Request, Response, Server, Setup, eventually};

const PASSWORD: &str = "correct horse battery";

/// A browser that is signed in to the console.
pub(crate) struct Browser<'server> {
    server: &'server Server,
    cookie: String,
}

impl<'server> Browser<'server> {
    /// Creates an administrator with a role and signs in.
    pub(crate) fn new(server: &'server Server, name: &str, role: &str) -> Self {
        server.create_admin(name, PASSWORD, role);
        Self::sign_in(server, name)
    }

    fn sign_in(server: &'server Server, name: &str) -> Self {
        let form = [("name", name), ("password", PASSWORD)];
        let answered = server.post("/admin/console/sign-in").form(&form).send().expect(303);
        Self { server, cookie: cookie_of(&answered) }
    }

    pub(crate) fn cookie(&self) -> &str {
        &self.cookie
    }

    pub(crate) fn get(&self, path: &str) -> Request {
        self.server.get(&format!("/admin/console/{path}")).header("cookie", &self.cookie)
    }

    /// Sends a form with the token that the page's forms carry.
    pub(crate) fn post(&self, page: &str, path: &str, fields: &[(&str, &str)]) -> Response {
        let shown = self.get(page).send().expect(200).text();
        let (csrf, once) = (hidden(&shown, "csrf"), hidden(&shown, "once"));
        let mut form = vec![("csrf", csrf.as_str()), ("once", once.as_str())];
        form.extend(fields);
        self.post_as_typed(path, &form)
    }

    pub(crate) fn post_as_typed(&self, path: &str, form: &[(&str, &str)]) -> Response {
        self.server.post(&format!("/admin/console/{path}")).header("cookie", &self.cookie).form(form).send()
    }
}

/// Returns the session cookie that a response sets.
fn cookie_of(response: &Response) -> String {
    let cookie = response.header("set-cookie").unwrap();
    assert!(cookie.contains("; Path=/; Secure; HttpOnly; SameSite=Strict"), "{cookie}");
    cookie.split(';').next().unwrap().to_owned()
}

/// Returns the value of a hidden field.
pub fn hidden(page: &str, name: &str) -> String {
    let start = format!("name=\"{name}\" value=\"");
    let rest = page.split(&start).nth(1).unwrap_or_else(|| panic!("no field {name} in {page}"));
    rest.split('"').next().unwrap().to_owned()
}

#[test]
fn the_first_owner_is_made_by_a_link_that_works_once() {
    let mut server = Setup::default().start();
    let line = server.lines().into_iter().find(|line| line.contains("/first-run/"));
    let line = line.unwrap_or_else(|| server.wait_for_line("/first-run/"));
    let path = line.split_whitespace().find_map(|word| word.split_once("/admin/console/")).unwrap().1.to_owned();
    let path = format!("/admin/console/{path}");
    let typed = |name: &str, password: &str, repeated: &str| {
        let form = [("name", name), ("password", password), ("repeated", repeated)];
        server.post(&path).form(&form).send()
    };
    assert!(server.get(&path).send().expect(200).text().contains("name=\"repeated\""));
    server.get("/admin/console/first-run/AAAA").send().expect(404);
    assert!(typed("alice", PASSWORD, "another").expect(422).text().contains("value=\"alice\""));
    typed("alice", "short", "short").expect(422);
    let made = typed("alice", PASSWORD, PASSWORD).expect(303);
    let cookie = cookie_of(&made);
    server.get("/admin/console/").header("cookie", &cookie).send().expect(200);
    server.get(&path).send().expect(404);
    typed("bob", PASSWORD, PASSWORD).expect(404);
    let admins = server.command(&["admin", "list"]).expect(0).json()["items"].clone();
    assert_eq!((admins[0]["name"].as_str(), admins[0]["role"].as_str()), (Some("alice"), Some("owner")));
    assert_eq!(admins.as_array().unwrap().len(), 1);
}

#[test]
fn pages_without_a_session_lead_to_the_sign_in() {
    let server = Setup::default().start();
    let answered = server.get("/admin/console/orders?state=review").send().expect(303);
    let next = "/admin/console/sign-in?next=%2Fadmin%2Fconsole%2Forders%3Fstate%3Dreview";
    assert_eq!(answered.header("location"), Some(next));
    // A link in a mail: the browser withholds the cookie once.
    let linked = server.get("/admin/console/orders").header("sec-fetch-site", "cross-site").send().expect(200);
    assert!(linked.text().contains("http-equiv=\"refresh\""));
    let live = server.get("/admin/console/fragments/overview").header("hx-request", "true").send().expect(401);
    assert_eq!(live.text(), "");
}

#[test]
fn errors_below_the_console_are_pages() {
    let server = Setup::default().start();
    let is_page = |sent: Request, status: u16, code: &str| {
        let answered = sent.send().expect(status);
        let (id, text) = (answered.header("x-request-id").unwrap().to_owned(), answered.text());
        assert!(text.contains(&format!("<code>{code}</code>")) && text.contains(&id), "{status} {code}: {text}");
        assert_eq!(answered.header("content-type"), Some("text/html; charset=utf-8"));
    };
    let at = |method: &str, path: &str| server.request(method, &format!("/admin/console/{path}"));
    is_page(at("GET", "nosuch"), 404, "unknown_endpoint");
    is_page(at("GET", "orders/a/b/c/"), 404, "unknown_endpoint");
    is_page(at("PUT", "orders"), 405, "method_not_allowed");
    is_page(at("POST", "sign-in").header("sec-fetch-site", "cross-site").form(&[("name", "a")]), 403, "forbidden");
    let long = "x".repeat(300 << 10);
    is_page(at("POST", "sign-in").form(&[("name", &long)]), 413, "body_too_large");
    for (path, page) in [
        ("users/7/grant", "users/7"),
        ("users/7/devices/9/end", "users/7"),
        ("orders/export?state=paid", "orders?state=paid"),
        ("administrators/bob/totp/confirm", "administrators"),
        ("health/doctor", "health"),
        ("orders/", "orders"),
        ("users/7/", "users/7"),
    ] {
        let answered = at("GET", path).send().expect(303);
        assert_eq!(answered.header("location"), Some(format!("/admin/console/{page}").as_str()), "{path}");
    }
    server.get("/admin/consoles").send().expect_problem(404, "unknown_endpoint");
}

#[test]
fn a_form_without_a_session_comes_back_after_the_sign_in() {
    let server = Setup::default().start();
    let user = server.sign_in("13800138000").user_id;
    let browser = Browser::new(&server, "alice", "owner");
    let page = format!("/admin/console/users/{user}");
    let grant = format!("{page}/grant");
    let ended = ["__Host-yarrow-console=ended", "theme=dark"];
    for cookie in ended {
        let form =
            [("csrf", "old"), ("once", "old"), ("amount", "30"), ("reason", "lost order"), ("password", "secret")];
        let sent = server.post(&grant).header("cookie", cookie).header("sec-fetch-site", "same-origin").form(&form);
        let shown = sent.header("referer", &format!("http://127.0.0.1{page}?trade=7")).send().expect(401).text();
        assert_eq!(hidden(&shown, "next"), format!("{page}?trade=7"));
        assert!(
            shown.contains("<noscript>") && !shown.contains("data-kept-done") && !shown.contains("secret"),
            "{shown}"
        );
        let kept: Vec<_> =
            ["kept-action", "kept.amount", "kept.reason"].map(|name| (name, hidden(&shown, name))).into();
        let sign_in = |password: &str, kept: &[(&str, String)]| {
            let mut form = vec![("name", "alice"), ("password", password), ("next", &page)];
            form.extend(kept.iter().map(|(name, value)| (*name, value.as_str())));
            server.post("/admin/console/sign-in").form(&form).send()
        };
        // A wrong password loses nothing.
        let again = sign_in("wrong password", &kept).expect(401).text();
        assert_eq!(hidden(&again, "kept.reason"), "lost order");
        // With JavaScript the text is in the browser.
        assert_eq!(sign_in(PASSWORD, &[]).expect(303).header("location"), Some(page.as_str()));
        let signed_in = sign_in(PASSWORD, &kept).expect(200);
        let (cookie, shown) = (cookie_of(&signed_in), signed_in.text());
        assert!(shown.contains(&format!("action=\"{grant}\"")), "{shown}");
        let (csrf, once) = (hidden(&shown, "csrf"), hidden(&shown, "once"));
        assert_eq!((hidden(&shown, "amount"), hidden(&shown, "reason")), ("30".into(), "lost order".into()));
        let form = [("csrf", csrf.as_str()), ("once", &once), ("amount", "30"), ("reason", "lost order")];
        server.post(&grant).header("cookie", &cookie).form(&form).send().expect(303);
    }
    assert_eq!(
        server.value::<i64>(&format!("select balance from balances where user_id = {user} and asset = 'coin'")),
        60
    );
    // Without a referrer, the page of the form.
    let sent = server.post(&grant).form(&[("amount", "30")]).send().expect(401);
    assert_eq!(hidden(&sent.text(), "next"), page);
    let foreign =
        server.post(&grant).header("referer", "http://evil.example/admin/console/keys").form(&[("amount", "1")]);
    assert_eq!(hidden(&foreign.send().expect(401).text(), "next"), page);
    browser.get("").send().expect(200);
}

#[test]
fn a_filter_with_a_fault_lists_nothing() {
    let server = Setup::default().start();
    let user = server.sign_in("13800138000");
    let order = server.get("/payment/gateway/order").by(&user).query(&[("amount", "6.00"), ("coinCount", "60")]);
    let order = order.send().expect(200).json()["orderNo"].as_str().unwrap().to_owned();
    server.post("/feedback").by(&user).form(&[("content", "a text to find")]).send();
    let browser = Browser::new(&server, "alice", "owner");
    assert!(browser.get("orders").send().expect(200).text().contains(&order));
    let lists = [
        ("orders", "userId", "abc"),
        ("orders", "state", "zzz"),
        ("orders", "minAmount", "six"),
        ("orders", "startTime", "yesterday"),
        ("users", "state", "zzz"),
        ("users", "startTime", "yesterday"),
        ("purchases", "state", "zzz"),
        ("purchases", "userId", "abc"),
        ("moderation", "contentType", "zzz"),
        ("moderation", "userId", "abc"),
        ("network-log", "userId", "abc"),
        ("network-log", "status", "9"),
        ("audit", "userId", "abc"),
        ("feedback", "state", "zzz"),
        ("logs", "level", "zzz"),
    ];
    for (list, field, typed) in lists {
        let shown = browser.get(list).query(&[(field, typed)]).send().expect(200).text();
        assert!(shown.contains("class=\"note bad\" role=\"alert\""), "{list} {field}: {shown}");
        assert!(!shown.contains("<tbody") || list == "moderation", "{list} {field} lists rows: {shown}");
        assert!(list == "feedback" || shown.contains("class=\"error\""), "{list} {field} is not marked: {shown}");
        if list == "logs" {
            continue;
        }
        let csrf = hidden(&shown, "csrf");
        let path = format!("{list}/export?{field}={typed}");
        let sent = browser.post_as_typed(&path, &[("csrf", &csrf), ("reason", "a report")]).expect(422);
        assert!(sent.text().contains("<code>invalid_parameters</code>"), "the export of {list} {field}");
    }
    let ledger = format!("users/{}/ledger", user.user_id);
    assert!(browser.get(&ledger).query(&[("asset", "gold")]).send().expect(200).text().contains("class=\"note bad\""));
}

#[test]
fn a_wrong_password_shows_the_form_again() {
    let server = Setup::default().start();
    server.admin("alice", PASSWORD);
    let form = [("name", "alice"), ("password", "wrong password")];
    let answered = server.post("/admin/console/sign-in").form(&form).send().expect(401);
    assert!(answered.text().contains("value=\"alice\"") && !answered.text().contains("wrong password"));
    assert!(answered.header("set-cookie").is_none());
    // Only pages of the console are targets of the redirect.
    let form = [("name", "alice"), ("password", PASSWORD), ("next", "https://evil.example/")];
    let answered = server.post("/admin/console/sign-in").form(&form).send().expect(303);
    assert_eq!(answered.header("location"), Some("/admin/console/"));
}

#[test]
fn cookies_open_pages_only_and_tokens_open_none() {
    let server = Setup::default().start();
    let browser = Browser::new(&server, "alice", "owner");
    let session = browser.cookie.split_once('=').unwrap().1.to_owned();
    server.get("/admin/payments").header("cookie", &browser.cookie).send().expect_problem(401, "unauthenticated");
    server.get("/admin/console/orders").token(&session).send().expect(303);
    server.get("/admin/console/orders").token(&server.api_key("shop")).send().expect(303);
    let key = format!("__Host-yarrow-console={}", server.api_key("other"));
    server.get("/admin/console/orders").header("cookie", &key).send().expect(303);
    browser.get("orders").send().expect(200);
    browser.post("", "sign-out", &[]).expect(303);
    browser.get("orders").send().expect(303);
}

#[test]
fn forms_need_the_token_of_their_session_and_site() {
    let server = Setup::default().start();
    let (alice, bob) = (Browser::new(&server, "alice", "owner"), Browser::new(&server, "bob", "owner"));
    alice.post_as_typed("sign-out", &[]).expect(403);
    let foreign = hidden(&bob.get("").send().expect(200).text(), "csrf");
    alice.post_as_typed("sign-out", &[("csrf", &foreign)]).expect(403);
    let own = hidden(&alice.get("").send().expect(200).text(), "csrf");
    let sent =
        server.post("/admin/console/sign-out").header("cookie", &alice.cookie).header("sec-fetch-site", "cross-site");
    assert!(sent.form(&[("csrf", own.as_str())]).send().expect(403).text().contains("<code>forbidden</code>"));
    alice.get("").send().expect(200);
    let page = alice.get("").send().expect(200);
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'"), "{policy}");
    assert_eq!(page.header("cache-control"), Some("no-store"));
    assert_eq!(page.header("referrer-policy"), Some("same-origin"));
}

#[test]
fn each_role_opens_its_pages_only() {
    let server = Setup::default().start();
    let user = server.sign_in("13800138000").user_id;
    let user = format!("users/{user}");
    let everybody: &[&str] = &["read-only", "support", "moderator", "owner"];
    let pages: [(&str, &[&str]); 21] = [
        ("moderation/review", &["moderator", "owner"]),
        ("growth", everybody),
        ("revenue", everybody),
        ("models", everybody),
        ("models/calls", &["support", "owner"]),
        ("moderation/services", &["moderator", "owner"]),
        ("moderation", &["moderator", "owner"]),
        ("moderation/words", &["moderator", "owner"]),
        ("feedback", &["support", "owner"]),
        ("", everybody),
        ("users", &["support", "moderator", "owner"]),
        (&user, &["support", "moderator", "owner"]),
        ("orders", &["support", "owner"]),
        ("orders/callbacks", &["support", "owner"]),
        ("orders/bills", &["support", "owner"]),
        ("network-log", &["support", "owner"]),
        ("audit", &["support", "moderator", "owner"]),
        ("administrators", &["owner"]),
        ("keys", &["owner"]),
        ("cleanup", &["owner"]),
        ("settings", &["owner"]),
    ];
    for role in ["read-only", "support", "moderator", "owner"] {
        let browser = Browser::new(&server, role, role);
        let overview = browser.get("").send().expect(200).text();
        for (page, roles) in pages {
            let status = if roles.contains(&role) { 200 } else { 403 };
            let shown = browser.get(page).send().expect(status).text();
            assert!(shown.contains(role) || status == 200, "{role} {page}: {shown}");
            let is_linked = overview.contains(&format!("href=\"/admin/console/{page}\""));
            assert!(!is_linked || status == 200, "{role} sees a link to {page}");
        }
    }
}

#[test]
fn addresses_are_masked_until_they_are_revealed_with_a_reason() {
    let server = Setup::default().start();
    let user = server.sign_in("13800138000");
    server.put("/user/nickname").by(&user).json(&serde_json::json!({ "nickname": "a<b>\"'&" })).send().expect(200);
    let browser = Browser::new(&server, "alice", "support");
    let page = format!("users/{}", user.user_id);
    let shown = browser.get(&page).send().expect(200).text();
    assert!(!shown.contains("13800138000") && shown.contains("••••8000"), "{shown}");
    assert!(shown.contains("a&lt;b&gt;&quot;") && !shown.contains("a<b>"), "{shown}");
    let reveal = format!("{page}/reveal");
    let shown =
        browser.post(&page, &reveal, &[("kind", "phone"), ("reason", "the user asks for it")]).expect(200).text();
    assert!(shown.contains("13800138000"), "{shown}");
    assert!(shown.contains(&format!("name=\"back\" value=\"/admin/console/{page}\"")), "{shown}");
    browser.post(&page, &reveal, &[("kind", "phone"), ("reason", "")]).expect(422);
    eventually("the reveal is in the audit", || {
        let rows = server.command(&["audit", "--user", &user.user_id]).expect(0).json();
        let is_it = |row: &serde_json::Value| {
            row["action"] == "POST /admin/console/users/{userId}/reveal" && row["reason"] == "the user asks for it"
        };
        rows["items"].as_array().unwrap().iter().any(is_it)
    });
}

#[test]
fn live_regions_write_no_audit_and_keep_no_session_alive() {
    let server = Setup::default().start();
    let browser = Browser::new(&server, "alice", "owner");
    let last_used = || server.value::<i64>("select last_used_at from admin_tokens");
    server.edit("update admin_tokens set last_used_at = last_used_at - 300000");
    let (before, rows) = (last_used(), server.value::<i64>("select count(*) from audit"));
    for _ in 0..3 {
        browser.get("fragments/overview").header("hx-request", "true").send().expect(200);
    }
    assert_eq!((last_used(), server.value::<i64>("select count(*) from audit")), (before, rows));
    browser.get("").send().expect(200);
    assert!(last_used() > before);
    server.edit("update admin_tokens set last_used_at = last_used_at - 1800001");
    browser.get("fragments/overview").header("hx-request", "true").send().expect(401);
    browser.get("").send().expect(303);
}

#[test]
fn dangerous_actions_need_a_recent_proof_of_identity() {
    let server = Setup::default().start();
    let browser = Browser::new(&server, "alice", "owner");
    let create = |fields: &[(&str, &str)]| {
        let mut form = vec![("name", "bob"), ("role", "support"), ("newPassword", "another long password")];
        form.extend(fields);
        browser.post("administrators", "administrators", &form)
    };
    server.edit("update admin_tokens set proved_at = proved_at - 600001");
    let shown = create(&[]).expect(403).text();
    assert!(shown.contains("value=\"bob\"") && shown.contains("name=\"password\""), "{shown}");
    create(&[("password", "wrong password")]).expect(401);
    create(&[("password", PASSWORD)]).expect(303);
    assert_eq!(server.command(&["admin", "list"]).expect(0).json()["items"].as_array().unwrap().len(), 2);
    // The proof holds for ten minutes.
    let kept = browser.post("administrators", "administrators/alice/remove", &[("reason", "left")]).expect(409);
    assert!(kept.text().contains("flash bad"), "the refusal is shown");
    let removed = browser.post("administrators", "administrators/bob/remove", &[("reason", "left")]).expect(303);
    assert_eq!(removed.header("location"), Some("/admin/console/administrators"));
    assert_eq!(server.command(&["admin", "list"]).expect(0).json()["items"].as_array().unwrap().len(), 1);
}

#[test]
fn a_refund_takes_coins_back_once_on_a_double_click() {
    let server = Setup::default().start();
    let user = server.sign_in("13800138000");
    let order = server.get("/payment/gateway/order").by(&user).query(&[("amount", "6.00"), ("coinCount", "60")]);
    let order = order.send().expect(200).json()["orderNo"].as_str().unwrap().to_owned();
    server.command(&["payments", "sandbox-pay", &order]).expect(0);
    let balance = || server.get("/coin/balance").by(&user).send().expect(200).json()["balance"].as_i64().unwrap();
    let before = balance();
    let browser = Browser::new(&server, "alice", "owner");
    let page = format!("orders/{order}");
    let shown = browser.get(&page).send().expect(200).text();
    let (csrf, once) = (hidden(&shown, "csrf"), hidden(&shown, "once"));
    let refund = |amount: &str, reason: &str| {
        let form = [("csrf", csrf.as_str()), ("once", once.as_str()), ("amount", amount), ("reason", reason)];
        browser.post_as_typed(&format!("{page}/refund"), &[&form[..], &[("form", "refund")]].concat())
    };
    let refused = refund("six", "asked").expect(422).text();
    assert!(refused.contains("value=\"six\""), "{refused}");
    refund("3.00", "").expect(422);
    refund("3.00", "the user asked").expect(303);
    refund("3.00", "the user asked").expect(303);
    assert_eq!(balance(), before - 30);
    let shown = browser.get(&page).send().expect(200).text();
    assert_eq!(shown.matches("the user asked").count(), 1, "{shown}");
}

#[test]
fn a_grant_adds_coins_once_on_a_double_click() {
    let server = Setup::default().start();
    let user = server.sign_in("13800138000");
    let browser = Browser::new(&server, "alice", "owner");
    let page = format!("users/{}", user.user_id);
    let shown = browser.get(&page).send().expect(200).text();
    let (csrf, once) = (hidden(&shown, "csrf"), hidden(&shown, "once"));
    let grant = |amount: &str| {
        let form = [("csrf", csrf.as_str()), ("once", once.as_str()), ("amount", amount), ("reason", "lost order")];
        browser.post_as_typed(&format!("{page}/grant"), &form)
    };
    grant("0").expect(422);
    grant("30").expect(303);
    grant("30").expect(303);
    grant("31").expect(422);
    assert_eq!(server.get("/coin/balance").by(&user).send().expect(200).json()["balance"], 30);
}

#[test]
fn explains_missing_coins_by_the_newest_cause() {
    let server = Setup::default().start();
    let user = server.sign_in("13800138000");
    let other = server.sign_in("13800138001");
    let browser = Browser::new(&server, "alice", "support");
    let page = format!("users/{}", user.user_id);
    let shown = |query: &[(&str, &str)]| {
        let request = browser.get(&page).header("accept-language", "en").query(query);
        request.send().expect(200).text()
    };
    let order_of = |caller: &Caller| {
        let order = server.get("/payment/gateway/order").by(caller).query(&[("amount", "6.00"), ("coinCount", "60")]);
        order.send().expect(200).json()["orderNo"].as_str().unwrap().to_owned()
    };
    assert!(shown(&[]).contains("id=\"coins\""));
    let order = order_of(&user);
    let open = shown(&[]);
    assert!(open.contains(&format!("/admin/console/orders/{order}/query")), "{open}");
    server.command(&["payments", "sandbox-pay", &order]).expect(0);
    let others = order_of(&other);
    server.command(&["payments", "sandbox-pay", &others]).expect(0);
    let trade: String = server.value(&format!("select trade_no from payment_orders where order_no = '{others}'"));
    assert!(shown(&[("trade", &trade)]).contains(&format!("/admin/console/users/{}", other.user_id)));
    server.post("/coin/consume").by(&user).send().expect(200);
    let used = shown(&[]);
    assert!(used.contains("href=\"#ledger\""), "{used}");
    // What happened last is the cause, and all changes since the purchase are shown.
    let take = ["coins", "grant", &user.user_id, "-5", "--reason", "x"];
    server.command(&take).expect(0);
    let deducted = shown(&[]);
    assert!(deducted.contains("Taken by the staff") && deducted.contains("Since the last purchase"), "{deducted}");
    assert!(!deducted.contains("Credited, and used since"), "{deducted}");
    server.command(&["payments", "refund", &order, "--reason", "x", "--yes"]).expect(0);
    let refunded = shown(&[]);
    assert!(refunded.contains("Taken back by a refund") && !refunded.contains("Taken by the staff"), "{refunded}");
}

#[test]
fn codes_of_a_number_without_an_account_are_found() {
    let server = Setup::default().start();
    server.post("/auth/send-code").json(&json!({ "phoneNumber": "13800138009" })).send().expect(200);
    let browser = Browser::new(&server, "alice", "support");
    let search = |query: &str| {
        let request = browser.get("search").header("accept-language", "en").query(&[("q", query)]);
        request.send().expect(200).text()
    };
    let found = search("138 0013 8009");
    assert!(found.contains("id=\"codes\"") && !found.contains("No codes were asked for"), "{found}");
    assert!(search("13800138008").contains("No codes were asked for"));
    assert!(!search("li.ming").contains("id=\"codes\""));
}

#[test]
fn callbacks_link_only_orders_that_exist() {
    let server = Setup::default().start();
    let user = server.sign_in("13800138000");
    let order = server.get("/payment/gateway/order").by(&user).query(&[("amount", "6.00"), ("coinCount", "60")]);
    let order = order.send().expect(200).json()["orderNo"].as_str().unwrap().to_owned();
    server.command(&["payments", "sandbox-pay", &order]).expect(0);
    let browser = Browser::new(&server, "alice", "owner");
    let shown = || browser.get("orders/callbacks").send().expect(200).text();
    assert!(shown().contains(&format!("href=\"/admin/console/orders/{order}\"")), "{}", shown());
    for (verdict, has_row) in [("credited", true), ("review", false), ("rejected", false)] {
        let found = browser.get(&format!("orders/callbacks?verdict={verdict}")).send().expect(200).text();
        assert_eq!(found.contains(&order), has_row, "{verdict}: {found}");
        let export = format!("orders/callbacks/export?verdict={verdict}");
        let exported = browser.post("orders/callbacks", &export, &[("reason", "check")]).expect(200).text();
        assert_eq!(exported.contains(&order), has_row, "{verdict}: {exported}");
    }
    let unknown = browser.get("orders/callbacks").query(&[("verdict", "nothing")]).send().expect(200).text();
    assert!(unknown.contains("role=\"alert\"") && !unknown.contains(&order), "{unknown}");
    server.edit("update payment_callbacks set order_no = 'Y0'");
    assert!(shown().contains("<code>Y0</code>") && !shown().contains("orders/Y0"), "{}", shown());
}

#[test]
fn a_network_that_shuts_out_its_author_is_refused() {
    let server = Setup::default().start();
    let browser = Browser::new(&server, "alice", "owner");
    let change =
        |path: &str, network: &str| browser.post("administrators", path, &[("form", "allow"), ("network", network)]);
    let refused = change("administrators/networks", "203.0.113.0/24").expect(422).text();
    assert!(refused.contains("value=\"203.0.113.0/24\""), "{refused}");
    change("administrators/networks", "127.0.0.0/8").expect(303);
    change("administrators/networks", "203.0.113.0/24").expect(303);
    change("administrators/networks/remove", "127.0.0.0/8").expect(422);
    browser.get("administrators").send().expect(200);
    change("administrators/networks/remove", "203.0.113.0/24").expect(303);
    change("administrators/networks/remove", "127.0.0.0/8").expect(303);
}

#[test]
fn only_owners_see_the_reasons_of_others_on_the_page_of_a_user() {
    let server = Setup::default().start();
    let user = server.sign_in("13800138000").user_id;
    let (owner, support) = (Browser::new(&server, "alice", "owner"), Browser::new(&server, "sam", "support"));
    let (page, reveal) = (format!("users/{user}"), format!("users/{user}/reveal"));
    owner.post(&page, &reveal, &[("kind", "phone"), ("reason", "asked by the police")]).expect(200);
    support.post(&page, &reveal, &[("kind", "phone"), ("reason", "asked by the user")]).expect(200);
    let shown = |browser: &Browser<'_>| browser.get(&page).send().expect(200).text();
    eventually("both reasons are in the audit", || {
        let shown = shown(&owner);
        shown.contains("asked by the police") && shown.contains("asked by the user")
    });
    let shown = shown(&support);
    assert!(shown.contains("asked by the user") && !shown.contains("asked by the police"), "{shown}");
}

#[test]
fn support_sees_the_role_behind_a_manual_change_and_only_owners_the_reason() {
    let server = Setup::default().with("ADMIN_SUPPORT_GRANT", 10).with("ADMIN_SUPPORT_GRANTS_DAILY", 10).start();
    let (user, key) = (server.sign_in("13800138000"), server.api_key("shop"));
    let (owner, support) = (Browser::new(&server, "alice", "owner"), Browser::new(&server, "sam", "support"));
    let page = format!("users/{}", user.user_id);
    let grant = |browser: &Browser<'_>, reason: &str| {
        browser.post(&page, &format!("{page}/grant"), &[("amount", "6"), ("reason", reason)]).expect(303);
    };
    grant(&owner, "settled by a lawyer");
    grant(&support, "a failed casting");
    let body = json!({ "phoneNumber": user.phone_number, "coinCount": 6, "reason": "told by the police" });
    server.post("/coin/increase/phone").token(&key).json(&body).send().expect(200);
    server.command(&["coins", "grant", &user.phone_number, "6", "--reason", "asked by the board"]).expect(0);
    let shown = |browser: &Browser<'_>| browser.get(&page).send().expect(200).text();
    let (by_owner, by_support) = (shown(&owner), shown(&support));
    for reason in ["settled by a lawyer", "told by the police", "asked by the board"] {
        assert!(by_owner.contains(reason), "{by_owner}");
        assert!(!by_support.contains(reason), "{by_support}");
    }
    for name in ["admin:alice", "key:shop"] {
        assert!(by_owner.contains(name) && !by_support.contains(name), "{by_support}");
    }
    let (_, changes) = by_support.split_once("id=\"changes\"").unwrap();
    let changes = changes.split("</section>").next().unwrap();
    assert_eq!(changes.matches(">owner<").count(), 2, "{changes}");
    for visible in [">cli<", ">admin:sam<", "a failed casting"] {
        assert!(changes.contains(visible), "{changes}");
    }
}

#[test]
fn the_reckoning_of_coins_adds_up() {
    let server = Setup::default().start();
    let (user, key) = (server.sign_in("13800138000"), server.api_key("shop"));
    let browser = Browser::new(&server, "alice", "support");
    let page = format!("users/{}", user.user_id);
    let added_up = || {
        let shown = browser.get(&page).send().expect(200).text();
        let (_, panel) = shown.split_once("id=\"coins\"").unwrap();
        // Behind the table of uses, if there is one.
        let (_, table) = panel.split("</section>").next().unwrap().rsplit_once("<table").unwrap();
        let cells = table.split("</div></td>");
        let amount = |cell: &str| {
            let text = cell.rsplit('>').next()?.replace('\u{2212}', "-").replace(['+', '\u{202f}'], "");
            text.parse::<i64>().ok()
        };
        let mut amounts: Vec<_> = cells.filter_map(amount).collect();
        let balance = amounts.pop().unwrap();
        assert_eq!((amounts.iter().sum::<i64>(), balance), (balance, server.coins(&user)), "{panel}");
        amounts
    };
    assert_eq!(added_up(), [0]);
    let buy = || {
        let order = server.get("/payment/gateway/order").by(&user).query(&[("amount", "6.00"), ("coinCount", "60")]);
        let order = order.send().expect(200).json()["orderNo"].as_str().unwrap().to_owned();
        server.command(&["payments", "sandbox-pay", &order]).expect(0);
        order
    };
    buy();
    server.post("/coin/consume").by(&user).send().expect(200);
    server.grant(&key, "13800138000", 7);
    server.command(&["coins", "grant", "13800138000", "-3", "--reason", "mistake"]).expect(0);
    added_up();
    let order = buy();
    assert!(added_up()[0] > 0, "the balance before the second purchase");
    server.command(&["payments", "refund", &order, "--amount", "3.00", "--reason", "half", "--yes"]).expect(0);
    server.post("/coin/consume").by(&user).send().expect(200);
    added_up();
}

#[test]
fn all_uses_since_a_credit_count_in_the_reply() {
    let server = Setup::default().start();
    let user = server.sign_in("13800138000");
    let order = server.get("/payment/gateway/order").by(&user).query(&[("amount", "6.00"), ("coinCount", "60")]);
    let order = order.send().expect(200).json()["orderNo"].as_str().unwrap().to_owned();
    server.command(&["payments", "sandbox-pay", &order]).expect(0);
    server.post("/coin/consume").by(&user).send().expect(200);
    let used: i64 = server.value("select -delta from ledger_entries where kind = 'consume'");
    // More rows than the page lists: uses, and credits between them.
    server.edit(&format!(
        "insert into ledger_entries (user_id, asset, sequence, delta, balance_after, kind, created_at) \
         with recursive numbers (n) as (select 1 union all select n + 1 from numbers where n < 100000) \
         select {user}, 'coin', (select last_sequence from balances where user_id = {user} and asset = 'coin') + n, \
         case when n % 2 = 1 then 10 else -10 end, 60, case when n % 2 = 1 then 'adjust' else 'consume' end, \
         (select max(created_at) from ledger_entries) from numbers",
        user = user.user_id
    ));
    let browser = Browser::new(&server, "alice", "support");
    let page = format!("users/{}", user.user_id);
    let shown = browser.get(&page).header("accept-language", "en").send().expect(200).text();
    let total = (50_000 * 10 + used).to_string();
    let (thousands, rest) = total.split_at(total.len() - 3);
    let spaced = format!("{thousands}\u{202f}{rest}");
    assert!([&total, &spaced].iter().any(|total| shown.contains(total.as_str())), "{total} in {shown}");
}

#[test]
fn with_an_admin_listener_the_console_is_nowhere_else() {
    let mut server = Setup::default().with("SERVER_ADMIN_LISTEN", "127.0.0.1:0").start();
    let line = server.wait_for_line("serves /admin on");
    let address = line.split_whitespace().last().unwrap().to_owned();
    for path in
        ["/admin/console", "/admin/console/", "/admin/console/sign-in", "//admin/console/", "/admin/console/orders/"]
    {
        server.get(path).send().expect_problem(404, "unknown_endpoint");
    }
    for path in ["/", "/admin", "/admin/"] {
        let root = Request::new("GET", &format!("{address}{path}")).send().expect(303);
        assert_eq!(root.header("location"), Some("/admin/console/"), "{path}");
    }
    Request::new("GET", &format!("{address}/admin/console/sign-in")).send().expect(200);
}

#[test]
fn searches_by_phone_number_id_and_order() {
    let server = Setup::default().start();
    let user = server.sign_in("13800138000");
    let order = server.get("/payment/gateway/order").by(&user).query(&[("amount", "6.00"), ("coinCount", "60")]);
    let order = order.send().expect(200).json()["orderNo"].as_str().unwrap().to_owned();
    let browser = Browser::new(&server, "alice", "support");
    let found = |text: &str| {
        let answered = browser.get("search").query(&[("q", text)]).send().expect(303);
        answered.header("location").unwrap().to_owned()
    };
    let user_page = format!("/admin/console/users/{}", user.user_id);
    assert_eq!(found("138 0013 8000"), user_page);
    assert_eq!(found(&user.user_id), user_page);
    assert_eq!(found(&order), format!("/admin/console/orders/{order}"));
    browser.get("search").query(&[("q", "nobody")]).send().expect(200);
    let reader = Browser::new(&server, "reader", "read-only");
    reader.get("search").query(&[("q", &user.user_id)]).send().expect(200);
}

#[test]
fn reasons_are_as_short_as_those_of_the_api() {
    let server = Setup::default().start();
    let user = server.sign_in("13800138000");
    let browser = Browser::new(&server, "alice", "owner");
    let page = format!("users/{}", user.user_id);
    let grant = |reason: &str| browser.post(&page, &format!("{page}/grant"), &[("amount", "1"), ("reason", reason)]);
    grant(&"r".repeat(201)).expect(422);
    grant("a\u{7}").expect(422);
    grant(&"r".repeat(200)).expect(303);
}

#[test]
fn growth_and_revenue_show_figures_of_the_range_in_the_address() {
    let server = Setup::default().with_fast_jobs().start();
    let user = server.sign_in("13800138000");
    let order = server.get("/payment/gateway/order").by(&user).query(&[("amount", "6.00"), ("coinCount", "60")]);
    let order = order.send().expect(200).json()["orderNo"].as_str().unwrap().to_owned();
    server.command(&["payments", "sandbox-pay", &order]).expect(0);
    let browser = Browser::new(&server, "reader", "read-only");
    let shown = |page: &str, query: &[(&str, &str)]| browser.get(page).query(query).send().expect(200).text();
    eventually("revenue is counted", || shown("revenue.csv", &[]).contains(",revenue,sandbox/CNY/coin,600\r\n"));
    let revenue = shown("revenue", &[("days", "7")]);
    assert!(revenue.contains("6.00"), "{revenue}");
    assert!(revenue.contains("id=\"coins-by-day\"") && !revenue.contains("id=\"retention\""), "{revenue}");
    eventually("the user is counted", || shown("growth.csv", &[("days", "7")]).contains(",new_users,,1\r\n"));
    assert!(shown("growth", &[]).contains("id=\"users-by-day\""));
    let old = shown("growth", &[("from", "2020-01-01"), ("to", "2020-12-31")]);
    assert!(old.contains("2020-12-28") && !old.contains("2020-12-29<"), "weeks begin on Monday: {old}");
    let wrong = shown("growth", &[("from", "2020-13-01")]);
    assert!(wrong.contains("须为日期") && wrong.contains("2020-13-01"), "{wrong}");
    shown("growth", &[("from", "2020-02-01"), ("to", "2020-01-01")]);
}
