//! Apps of the first generation: stale tokens, other headers, cancellation, and the journey of one of them.

use serde_json::{Value, json};

use crate::support::{Caller, Request, Response, Server, Setup};

const PHONE: &str = "13800138000";
const DAY: i64 = 86_400_000;

fn sign_out(server: &Server, user: &Caller) {
    server.post("/auth/logout").by(user).send().expect(200);
}

/// Requests a code for this purpose, ignoring send limits.
fn request_code(server: &Server, purpose: &str) -> String {
    server.database().execute("delete from code_sends", ()).unwrap();
    let before = server.sent_codes(PHONE).len();
    let body = json!({ "phoneNumber": PHONE, "purpose": purpose });
    server.post("/auth/send-code").json(&body).send().expect(200);
    server.printed_code(PHONE, before)
}

/// Returns a wrong code of the same length.
fn wrong(code: &str) -> String {
    let last = code.chars().last().unwrap().to_digit(10).unwrap();
    format!("{}{}", &code[..code.len() - 1], (last + 1) % 10)
}

/// Moves everything that sign-in stores into the past.
fn advance(server: &Server, days: i64) {
    let time = days * DAY;
    server.edit(&format!(
        "update tokens set expires_at = expires_at - {time}, family_expires_at = family_expires_at - {time}, \
         signed_in_at = signed_in_at - {time}, last_used_at = last_used_at - {time}, \
         created_at = created_at - {time}, replaced_at = replaced_at - {time}; \
         update codes set expires_at = expires_at - {time}; update code_sends set sent_at = sent_at - {time}; \
         update history_hidings set hidden_at = hidden_at - {time}"
    ));
}

// Tokens.

#[test]
fn a_bad_token_closes_no_public_endpoint() {
    let server = Setup::default().start();
    let gone = server.sign_in(PHONE);
    sign_out(&server, &gone);
    let replaced = server.sign_in_again(PHONE);
    server.post("/auth/refresh-token").by(&replaced).send().expect(200);
    server.edit("update tokens set replaced_at = replaced_at - 3600000");
    server.admin("root", "correct horse battery staple");
    let release = json!({ "version": "1.0.0", "versionCode": 1 });
    server.post("/admin/releases").token(&server.api_key("tests")).json(&release).send().expect(201);
    let admin = json!({ "name": "root", "password": "correct horse battery staple" });
    let stale = format!("Bearer {}", gone.token);
    let reused = format!("Bearer {}", replaced.token);
    let foreign = format!("Bearer ys_{}", "x".repeat(43));
    let headers = ["Bearer null", "Bearer undefined", "", "Bearer", "Basic dXNlcjpwYXNz", &stale, &reused, &foreign];
    for (number, header) in headers.iter().enumerate() {
        let send = |request: Request| request.header("authorization", header).header("token", header).send();
        let phone = format!("1390013900{number}");
        send(server.post("/auth/send-code").json(&json!({ "phoneNumber": phone }))).expect(200);
        let code = server.printed_code(&phone, 0);
        let login = json!({ "phoneNumber": phone, "code": code });
        let token = send(server.post("/auth/login").json(&login)).expect(200).json()["token"].clone();
        let body = json!({ "token": token });
        let validity = send(server.post("/auth/validate-token").json(&body)).expect(200).json();
        assert_eq!((&validity["valid"], &validity["token"]), (&json!(true), &token), "{header}");
        let refreshed = send(server.post("/auth/refresh-token").json(&body)).expect(200).json();
        send(server.post("/auth/logout").json(&json!({ "token": refreshed["token"] }))).expect(200);
        send(server.post("/api/v1/auth/send-code").json(&json!({ "email": format!("a{number}@example.com") })))
            .expect(200);
        send(server.get("/version/latest")).expect(200);
        send(server.post("/version/check").json(&json!({ "clientVersionCode": 1 }))).expect(200);
        send(server.get("/notifications/latest")).expect(200);
        send(server.get("/notifications/all")).expect(200);
        if number < 5 {
            send(server.post("/feedback").json(&json!({ "content": "请加上小六壬。" }))).expect(200);
        }
        send(server.post("/admin/login").json(&admin)).expect(200);
        send(server.get("/healthz")).expect(200);
        send(server.get("/user/profile")).expect_problem(401, "unauthenticated");
    }
}

#[test]
fn a_replaced_token_on_a_public_endpoint_revokes_nothing() {
    let server = Setup::default().start();
    let old = server.sign_in(PHONE);
    let renewed = server.post("/auth/refresh-token").by(&old).send().expect(200).json();
    server.edit("update tokens set replaced_at = replaced_at - 3600000");
    server.get("/version/latest").by(&old).send().expect(404);
    server.get("/user/profile").token(renewed["token"].as_str().unwrap()).send().expect(200);
}

#[test]
fn tokens_come_in_authorization_or_a_configured_header() {
    let server = Setup::default().in_own_process().start();
    let user = server.sign_in(PHONE);
    let profile = |server: &Server, name: &str, value: &str| server.get("/user/profile").header(name, value).send();
    profile(&server, "authorization", &user.token).expect(200);
    profile(&server, "Authorization", &format!("bearer {}", user.token)).expect(200);
    for name in ["token", "satoken", "X-Access-Token"] {
        for value in [user.token.clone(), format!("Bearer {}", user.token)] {
            let response = profile(&server, name, &value).expect(200);
            assert_eq!(response.header("cache-control"), Some("no-store"), "{name}");
        }
    }
    let other = server.get("/user/profile").header("authorization", "Bearer null").header("token", &user.token);
    other.send().expect(200);
    profile(&server, "x-token", &user.token).expect_problem(401, "unauthenticated");
    profile(&server, "cookie", &format!("token={}", user.token)).expect_problem(401, "unauthenticated");
    for name in ["token", "access_token", "Authorization"] {
        let refused = server.get("/user/profile").query(&[(name, &user.token)]).send();
        let problem = refused.expect_problem(401, "unauthenticated");
        let challenge = problem.header("www-authenticate").unwrap();
        assert!(challenge.starts_with("Bearer ") && challenge.contains("X-Access-Token: <token>"), "{challenge}");
        assert!(problem.json()["detail"].as_str().unwrap().contains("Authorization: Bearer <token>"));
    }

    let directory = server.kill();
    let server = Setup::default().with("AUTH_TOKEN_HEADERS", "x-token").on(&directory).in_own_process().start();
    profile(&server, "x-token", &user.token).expect(200);
    profile(&server, "token", &user.token).expect_problem(401, "unauthenticated");
    drop(server);
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn a_replaced_token_beside_its_successor_is_no_theft() {
    let server = Setup::default().start();
    let old = server.sign_in(PHONE).token;
    let renewed = server.post("/auth/refresh-token").token(&old).send().expect(200).json();
    let new = renewed["token"].as_str().unwrap();
    server.edit("update tokens set replaced_at = replaced_at - 3600000");
    let profile = |authorization: &str, token: &str| {
        server.get("/user/profile").header("authorization", authorization).header("token", token).send()
    };
    profile(&format!("Bearer {old}"), new).expect(200);
    profile(new, &old).expect(200);
    let unknown = "x".repeat(43);
    profile(&unknown, new).expect(200);
    for (body, header) in [(new, old.as_str()), (old.as_str(), new), (&unknown, new), (new, &unknown)] {
        let body = json!({ "token": body });
        let validity = server.post("/auth/validate-token").token(header).json(&body).send().expect(200).json();
        assert_eq!((&validity["valid"], &validity["token"]), (&json!(true), &json!(new)));
    }
    // Within the grace period both are valid, and the one in the body counts.
    let third = server.post("/auth/refresh-token").token(new).json(&json!({ "token": new })).send().expect(200).json();
    let third = third["token"].as_str().unwrap();
    for (body, header) in [(third, new), (new, third)] {
        let body = json!({ "token": body });
        server.post("/auth/validate-token").token(header).json(&body).send().expect(200);
    }
    // A replaced token alone is a theft, and so are two of them.
    profile(&old, &unknown).expect_problem(401, "unauthenticated");
    profile(third, third).expect_problem(401, "unauthenticated");
}

#[test]
fn tokens_of_two_users_are_an_error_where_one_is_needed() {
    let server = Setup::default().start();
    let (one, other) = (server.sign_in(PHONE), server.sign_in("13800138001"));
    let key = server.api_key("tests");
    let release = json!({ "version": "1.0.0", "versionCode": 1 });
    server.post("/admin/releases").token(&key).json(&release).send().expect(201);
    for (first, second) in
        [(&one.token, &other.token), (&other.token, &one.token), (&one.token, &key), (&key, &one.token)]
    {
        let send = |request: Request| request.token(first).header("satoken", second).send();
        for path in ["/user/profile", "/coin/balance", "/api/v1/points", "/admin/releases"] {
            send(server.get(path)).expect_problem(400, "conflicting_parameter");
        }
        // They keep nobody from signing in.
        for path in ["/version/latest", "/notifications/latest"] {
            send(server.get(path)).expect(200);
        }
        server.edit("delete from code_sends");
        send(server.post("/auth/send-code").json(&json!({ "phoneNumber": PHONE }))).expect(200);
    }
    let send = |path: &str| server.post(path).token(&one.token).header("token", &other.token).send();
    for path in ["/auth/validate-token", "/auth/refresh-token", "/auth/logout"] {
        send(path).expect_problem(400, "conflicting_parameter");
    }
    for token in [&one.token, &other.token] {
        server.get("/user/profile").token(token).send().expect(200);
    }
}

#[test]
fn of_two_sign_ins_the_latest_counts() {
    let server = Setup::default().start();
    let first = server.sign_in(PHONE);
    advance(&server, 1);
    let second = server.sign_in_again(PHONE);
    for (one, other) in [(&first, &second), (&second, &first)] {
        server.post("/coin/reset").by(one).header("token", &other.token).send().expect(200);
    }
    server.post("/coin/reset").by(&first).send().expect_problem(403, "step_up_required");
}

// Problems.

#[test]
fn problems_carry_a_message_in_the_callers_language() {
    let server = Setup::default().start();
    let send = |language: Option<&str>| {
        let request = server.post("/auth/login").json(&json!({ "phoneNumber": "12" }));
        let request = match language {
            Some(language) => request.header("accept-language", language),
            None => request,
        };
        request.send().expect_problem(422, "invalid_parameters").json()
    };
    for language in [None, Some("zh-CN"), Some("fr, zh;q=0.5, en;q=0.4")] {
        assert_eq!(send(language)["message"], "部分参数有误：phoneNumber、code。", "{language:?}");
    }
    for language in ["en-GB, zh;q=0.5", "fr", "de-AT, de;q=0.9", "ja, *;q=0.1"] {
        assert_eq!(send(Some(language))["message"], "Please check: phone number, code.", "{language}");
    }
    let unknown = server.get("/nothing").send().expect(404).json();
    assert_eq!(unknown["message"], "应用发出的请求有误，请重试或更新应用。");
    assert_eq!(unknown["detail"], "There is no endpoint with this path.");
    server.post("/auth/send-code").json(&json!({ "phoneNumber": PHONE })).send().expect(200);
    let limited = server.post("/auth/send-code").json(&json!({ "phoneNumber": PHONE })).send().expect(429);
    let message = limited.json()["message"].as_str().unwrap().to_owned();
    assert!(message.contains(limited.header("retry-after").unwrap()) && message.ends_with("秒后再试。"), "{message}");
    let request = server.post("/auth/send-code").json(&json!({ "phoneNumber": PHONE })).header("accept-language", "en");
    let limited = request.send().expect(429).json();
    let message = limited["message"].as_str().unwrap();
    assert!(message.starts_with("Please wait ") && message.ends_with(" seconds and try again."), "{message}");
    assert!(limited["detail"].as_str().unwrap().contains("Retry-After"), "{limited}");
}

#[test]
fn a_wrong_code_is_422_for_apps_that_sign_out_on_401() {
    let server = Setup::default().with("AUTH_WRONG_CODE_STATUS", 422).start();
    let user = server.sign_in(PHONE);
    let guess = json!({ "phoneNumber": PHONE, "code": "000000" });
    server.post("/auth/login").json(&guess).send().expect_problem(422, "invalid_code");
    let guess = json!({ "email": "li.ming@example.com", "code": "00000000" });
    server.post("/api/v1/auth/login").json(&guess).send().expect_problem(422, "invalid_code");
    let reset = server.post("/coin/reset").by(&user).header("idempotency-key", "k").json(&json!({ "code": "000000" }));
    // A wrong code here says nothing about the sign-in.
    reset.send().expect_problem(403, "step_up_required");
    server.get("/user/profile").send().expect_problem(401, "unauthenticated");
}

// Cancelling an account.

#[test]
fn a_code_replaces_a_recent_sign_in() {
    let server = Setup::default().start();
    let user = server.sign_in(PHONE);
    server.grant(&server.api_key("tests"), PHONE, 60);
    advance(&server, 1);
    let reset = |body: Value| server.post("/coin/reset").by(&user).json(&body).send();
    reset(json!({})).expect_problem(403, "step_up_required");
    let code = request_code(&server, "cancellation");
    reset(json!({ "code": wrong(&code) })).expect_problem(403, "step_up_required");
    assert_eq!(server.coins(&user), 60);
    // One code serves every request of the cancellation, and repeated ones.
    for _ in 0..2 {
        let by_phone = server.post("/coin/reset/phone").by(&user).json(&json!({ "phoneNumber": PHONE, "code": code }));
        assert_eq!(by_phone.send().expect(200).json()["balance"], 0);
    }
    reset(json!({ "code": code.parse::<u32>().unwrap() })).expect(200);
    // It proves nothing else, for nobody else, and not for long.
    let login = json!({ "phoneNumber": PHONE, "code": code });
    server.post("/auth/login").json(&login).send().expect_problem(401, "invalid_code");
    let other = server.sign_in("13800138001");
    let foreign = server.post("/coin/reset").by(&other).json(&json!({ "code": code }));
    foreign.send().expect_problem(403, "step_up_required");
    server.edit("update codes set expires_at = expires_at - 300000");
    reset(json!({ "code": code })).expect_problem(403, "step_up_required");
}

#[test]
fn a_code_for_any_purpose_proves_the_own_address() {
    let server = Setup::default().start();
    let user = server.sign_in(PHONE);
    advance(&server, 1);
    let reset = |code: &str| server.post("/coin/reset").by(&user).json(&json!({ "code": code })).send();
    for purpose in ["sign_in", "address", "cancellation"] {
        let code = request_code(&server, purpose);
        reset(&wrong(&code)).expect_problem(403, "step_up_required");
        reset(&code).expect(200);
        server.edit("delete from codes; delete from code_sends");
    }
    let sign_in = request_code(&server, "sign_in");
    server.post("/auth/login").json(&json!({ "phoneNumber": PHONE, "code": sign_in })).send().expect(200);
    reset(&sign_in).expect_problem(403, "step_up_required");
}

#[test]
fn a_cancellation_code_has_five_attempts() {
    let server = Setup::default().start();
    let user = server.sign_in(PHONE);
    let code = request_code(&server, "cancellation");
    let reset = |code: &str| server.post("/coin/reset").by(&user).json(&json!({ "code": code })).send();
    for _ in 0..5 {
        reset(&wrong(&code)).expect_problem(403, "step_up_required");
    }
    reset(&code).expect_problem(403, "step_up_required");
}

#[test]
fn accounts_with_an_email_address_cancel_with_its_code() {
    let server = Setup::default().start();
    let user = server.sign_in_by_email("li.ming@example.com");
    advance(&server, 1);
    let code = server.request_email_code("li.ming@example.com", "cancellation");
    server.post("/coin/reset").by(&user).json(&json!({ "code": code })).send().expect(200);
}

#[test]
fn hiding_the_history_needs_the_token_only_and_can_be_undone() {
    let server = Setup::default().start();
    let user = server.sign_in(PHONE);
    let record = json!({ "localRecordId": "1" });
    server.post("/divination-history/save").by(&user).json(&record).send().expect(200);
    let count = || server.get(&format!("/divination-history/count/{PHONE}")).by(&user).send().expect(200).json();
    advance(&server, 1);
    for path in ["/coin/reset", "/coin/reset/phone"] {
        server.post(path).by(&user).send().expect_problem(403, "step_up_required");
    }
    let deactivate = || server.post("/divination-history/deactivate-all").by(&user).send();
    let restore = || server.post("/divination-history/restore-all").by(&user).send().expect(200);
    for _ in 0..10 {
        assert_eq!(deactivate().expect(200).json()["deactivated"], 1);
        // A repetition that hides nothing is not limited.
        assert_eq!(deactivate().expect(200).json()["deactivated"], 0);
        assert_eq!(restore().json()["restored"], 1);
    }
    let limited = deactivate().expect_problem(429, "too_many_requests");
    assert!(limited.header("retry-after").is_some());
    assert_eq!(count()["count"], 1);
    advance(&server, 1);
    assert_eq!(deactivate().expect(200).json()["deactivated"], 1);
    // An app without codes signs in again.
    let user = server.sign_in_again(PHONE);
    server.post("/coin/reset").by(&user).send().expect(200);
}

#[test]
fn an_operator_restores_hidden_records() {
    let server = Setup::default().start();
    let user = server.sign_in(PHONE);
    let key = server.api_key("desk");
    for id in ["1", "2"] {
        let record = json!({ "localRecordId": id });
        server.post("/divination-history/save").by(&user).json(&record).send().expect(200);
    }
    let hide = || server.post("/divination-history/deactivate-all").by(&user).send().expect(200);
    hide();
    let restore = |user_id: &str| server.post(&format!("/admin/user-data/restore-history/{user_id}"));
    restore("99999").token(&key).send().expect_problem(404, "not_found");
    restore(&user.user_id).by(&user).send().expect_problem(403, "forbidden");
    let reason = json!({ "reason": "asked by mail" });
    let restored = restore(&user.user_id).token(&key).json(&reason).send().expect(200).json();
    assert_eq!(restored, json!({ "restored": 2, "hidden": 0 }));
    hide();
    let restored = server.command(&["users", "restore-history", PHONE, "--reason", "asked again"]).expect(0).json();
    assert_eq!(restored, json!({ "restored": 2, "hidden": 0 }));
    let again = server.command(&["users", "restore-history", &user.user_id]).expect(0).json();
    assert_eq!(again, json!({ "restored": 0, "hidden": 0 }));
    server.command(&["users", "restore-history", "13800138009"]).expect(4);
    let listed = server.get(&format!("/divination-history/count/{PHONE}")).by(&user).send().expect(200).json();
    assert_eq!(listed["count"], 2);
    let by_http = ("POST /admin/user-data/restore-history/{userId}", "asked by mail");
    for (action, reason) in [by_http, ("yarrow users restore-history", "asked again")] {
        let events = format!(
            "select count(*) from audit where action = '{action}' and user_id = {} and reason = '{reason}'",
            user.user_id
        );
        assert_eq!(server.value::<i64>(&events), 1, "{action}");
    }
}

#[test]
fn hidden_records_come_back_within_their_time() {
    let server = Setup::default().with("LIMITS_HISTORY_RECORDS", 3).start();
    let (user, other) = (server.sign_in(PHONE), server.sign_in("13800138001"));
    let save = |id: &str| {
        let record = json!({ "localRecordId": id, "question": id });
        server.post("/divination-history/save").by(&user).json(&record).send().expect(200);
    };
    let post = |user: &Caller, path: &str, body: Value| {
        server.post(&format!("/divination-history/{path}")).by(user).json(&body).send()
    };
    let ids = || {
        let listed = post(&user, "get", json!({})).expect(200).json();
        let items = listed["items"].as_array().unwrap();
        items.iter().map(|item| item["localRecordId"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    for id in ["a", "b", "c"] {
        save(id);
    }
    post(&user, "deactivate-all", json!({})).expect(200);
    let age = |days: i64| server.edit(&format!("update history_hidings set hidden_at = hidden_at - {}", days * DAY));
    age(29);
    assert_eq!(ids(), [""; 0]);
    assert_eq!(post(&other, "restore-all", json!({})).expect(200).json(), json!({ "restored": 0, "hidden": 0 }));
    post(&other, "restore-all", json!({ "phoneNumber": PHONE })).expect_problem(403, "not_yours");
    let restored = post(&user, "restore-all", json!({ "phoneNumber": PHONE })).expect(200).json();
    assert_eq!(restored, json!({ "restored": 3, "hidden": 0 }));
    assert_eq!(ids(), ["c", "b", "a"]);
    // What was saved meanwhile has precedence, up to the limit.
    post(&user, "deactivate-all", json!({})).expect(200);
    save("d");
    let restored = post(&user, "restore-all", json!({})).expect(200).json();
    assert_eq!(restored, json!({ "restored": 2, "hidden": 1 }));
    assert_eq!(ids(), ["d", "c", "b"]);
    post(&user, "deactivate-all", json!({})).expect(200);
    age(31);
    assert_eq!(post(&user, "restore-all", json!({})).expect(200).json()["restored"], 0);
}

// Smaller.

#[test]
fn an_assigned_nickname_is_no_contact() {
    let server = Setup::default().with("BRAND_NAME", "卦友").start();
    let user = server.sign_in(PHONE);
    let change = |name: &str, path: &str, value: &str| server.put(path).by(&user).json(&json!({ name: value })).send();
    for nickname in ["用户12345678", "易友12345678", "卦友12345678"] {
        change("nickname", "/user/nickname", nickname).expect(200);
    }
    for nickname in ["用户13800138000", "加我12345678"] {
        change("nickname", "/user/nickname", nickname).expect_problem(422, "content_rejected");
    }
    change("signature", "/user/signature", "用户13800138000").expect_problem(422, "content_rejected");
}

#[test]
fn a_country_code_behind_a_zero_is_understood() {
    let server = Setup::default().start();
    let sent = server.post("/auth/send-code").json(&json!({ "phoneNumber": "086-13800138000" })).send().expect(200);
    assert_eq!(sent.json()["phoneNumber"], PHONE);
}

// The journey.

/// An app whose interceptor sends the token of the first sign-in for ever, and which ignores what validation answers.
struct OldApp<'server> {
    server: &'server Server,
    interceptor: String,
    token: String,
    sign_ins: u32,
}

impl OldApp<'_> {
    /// Sends a form with the interceptor's token on public calls, and with the current one elsewhere.
    fn call(&self, path: &str, token: &str, form: &[(&str, &str)]) -> Response {
        self.server.post(path).header("authorization", token).form(form).send()
    }

    fn sign_in(&mut self) {
        self.server.database().execute("delete from code_sends", ()).unwrap();
        let before = self.server.sent_codes(PHONE).len();
        self.call("/auth/send-code", &self.interceptor, &[("phoneNumber", PHONE)]).expect(200);
        let code = self.server.printed_code(PHONE, before);
        let form = [("phoneNumber", PHONE), ("code", code.as_str())];
        let signed_in = self.call("/auth/login", &self.interceptor, &form).expect(200).json();
        signed_in["token"].as_str().unwrap().clone_into(&mut self.token);
        if self.sign_ins == 0 {
            self.interceptor.clone_from(&self.token);
        }
        self.sign_ins += 1;
    }

    /// Opens the app: it validates its token and signs in again if that is over.
    fn open(&mut self) {
        let validity = self.call("/auth/validate-token", &self.interceptor, &[("token", &self.token)]).expect(200);
        if validity.json()["valid"] != true {
            self.sign_in();
        }
        self.server.get("/user/profile").header("token", &self.token).send().expect(200);
    }

    fn own(&self, path: &str, form: &[(&str, &str)]) -> Value {
        self.call(path, &self.token, form).expect(200).json()
    }

    fn records(&self) -> Value {
        self.own("/divination-history/get", &[("phoneNumber", PHONE)])["total"].clone()
    }
}

#[test]
fn an_old_app_works_for_a_year() {
    let server = Setup::default().with("PAYMENT_ASK_AGAIN_AFTER", "0 s").start();
    let mut app = OldApp { server: &server, interceptor: "null".into(), token: String::new(), sign_ins: 0 };
    app.open();
    for _ in 0..74 {
        advance(&server, 5);
        app.open();
    }
    // Validation alone carries a sign-in through its whole lifetime of 180 days.
    assert_eq!(app.sign_ins, 3);

    let order = app.own("/payment/gateway/order", &[("amount", "6.000"), ("coinCount", "60")]);
    let order_no = order["orderNo"].as_str().unwrap();
    let claim = [("orderNo", order_no), ("status", "TRADE_SUCCESS")];
    let unpaid = app.call("/payment/update-balance", &app.token, &claim).expect(202).json();
    assert_eq!((&unpaid["status"], &unpaid["balance"]), (&json!("pending"), &json!(0)));
    server.command(&["payments", "sandbox-pay", order_no, "--lost"]).expect(0);
    let paid = app.own("/payment/update-balance", &claim);
    assert_eq!((&paid["status"], &paid["balance"]), (&json!("credited"), &json!(60)));
    for id in ["1", "2"] {
        app.own("/divination-history/save", &[("localRecordId", id), ("jsonData", "{}")]);
    }

    // A cancellation that stops half-way loses nothing.
    let code = request_code(&server, "cancellation");
    assert_eq!(app.own("/divination-history/deactivate-all", &[("code", &code)])["deactivated"], 2);
    assert_eq!(app.records(), 0);
    assert_eq!(app.own("/divination-history/restore-all", &[])["restored"], 2);
    assert_eq!(app.records(), 2);

    // A complete one, and the return of the user.
    advance(&server, 1);
    let code = request_code(&server, "cancellation");
    app.own("/divination-history/deactivate-all", &[("phoneNumber", PHONE), ("code", &code)]);
    assert_eq!(app.own("/coin/reset/phone", &[("phoneNumber", PHONE), ("code", &code)])["balance"], 0);
    app.own("/auth/logout", &[("token", &app.token)]);
    advance(&server, 10);
    app.open();
    assert_eq!(app.sign_ins, 4);
    assert_eq!(app.own("/divination-history/restore-all", &[])["restored"], 2);
    assert_eq!(app.records(), 2);
    server.command(&["ledger", "verify"]).expect(0);
}
