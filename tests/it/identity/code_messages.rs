//! Requests for codes as support sees them: outcomes, providers' words, delivery receipts.

use serde_json::{Value, json};

use crate::{
    operations::console::Browser,
    support::{
        Binary, Response, Server, Setup,
        fake_provider::{FakeProvider, ReceivedRequest, Reply},
        fake_smtp::{Dialect, FakeSmtpServer, Offer, SmtpFault, Step},
    },
};

const PHONE: &str = "13800138000";
const EMAIL: &str = "li.ming@reeds.example";
const DELIVERED: &str = r#"{"Code":"OK","TotalCount":1,"SmsSendDetailDTOs":{"SmsSendDetailDTO":[{"PhoneNum":"13800138000",
    "SendStatus":3,"ErrCode":"DELIVERED","ReceiveDate":"2026-01-15 16:30:00","Content":"code 123456","OutId":""}]}}"#;

fn by_aliyun(provider: &FakeProvider) -> Setup {
    Setup::default()
        .with("SMS_PROVIDER", "aliyun")
        .with("SMS_ENDPOINT", provider.url())
        .with("SMS_ACCESS_KEY_ID", "id")
        .with("SMS_ACCESS_KEY_SECRET", "secret")
        .with("SMS_SIGN_NAME", "Yarrow")
        .with("SMS_TEMPLATE_CODE", "SMS_1")
        .with("AUTH_RESEND_AFTER", "0 s")
}

fn by_smtp(mail_server: &FakeSmtpServer) -> Setup {
    Setup::default()
        .with("EMAIL_PROVIDER", "smtp")
        .with("EMAIL_HOST", "localhost")
        .with("EMAIL_PORT", mail_server.port())
        .with("EMAIL_TLS", "none")
        .with("EMAIL_FROM", "no-reply@yarrow.example")
        .with("AUTH_RESEND_AFTER", "0 s")
}

fn is_sending(request: &ReceivedRequest) -> bool {
    request.header("x-acs-action") == Some("SendSms")
}

fn ask(server: &Server) -> Response {
    server.post("/auth/send-code").form(&[("phoneNumber", PHONE)]).send()
}

fn ask_by_email(server: &Server) -> Response {
    server.post("/api/v1/auth/send-code").json(&json!({ "email": EMAIL })).send()
}

/// Lists the requests by the endpoint. The command shows the same rows.
fn messages(server: &Server, key: &str, name: &str, address: &str) -> Value {
    let request = server.get("/admin/code-messages").token(key).query(&[(name, address)]);
    let found = request.send().expect(200).json();
    let by_command = server.command(&["users", "code-messages", address]).expect(0).json();
    assert_eq!(by_command["items"], found["items"]);
    found
}

/// The members of a row that do not depend on time.
fn told(row: &Value) -> [&Value; 6] {
    ["outcome", "provider", "code", "receipt", "words", "delivery"].map(|name| &row[name])
}

#[test]
fn a_sent_code_has_a_receipt_and_a_delivery() {
    let provider = FakeProvider::with_handler(|request| {
        if is_sending(request) {
            Reply::json(r#"{"Code":"OK","Message":"OK","BizId":"900619746936498440^0","RequestId":"R-1"}"#)
        } else {
            Reply::json(DELIVERED)
        }
    });
    let server = by_aliyun(&provider).start();
    ask(&server).expect(200);
    let found = messages(&server, &server.api_key("support"), "phoneNumber", "+86 138-0013-8000");
    let row = &found["items"][0];
    let delivery = json!({ "status": "delivered", "code": "DELIVERED", "at": "2026-01-15T08:30:00.000Z" });
    assert_eq!(
        told(row),
        [&json!("sent"), &json!("aliyun"), &Value::Null, &json!("900619746936498440^0"), &json!("OK"), &delivery]
    );
    assert_eq!((&row["channel"], &row["purpose"]), (&json!("sms"), &json!("sign_in")));
    assert_eq!(found["deliveryError"], Value::Null);
    // A final receipt is asked for once.
    let requests = provider.requests();
    assert_eq!(requests.len(), 2, "one message and one question");
    let day: String = row["askedAt"]
        .as_str()
        .unwrap()
        .parse::<jiff::Timestamp>()
        .unwrap()
        .in_tz("Asia/Shanghai")
        .unwrap()
        .strftime("%Y%m%d")
        .to_string();
    for (name, value) in [
        ("PhoneNumber", PHONE),
        ("BizId", "900619746936498440^0"),
        ("SendDate", &day),
        ("PageSize", "1"),
        ("CurrentPage", "1"),
    ] {
        assert_eq!(requests[1].parameter(name).as_deref(), Some(value), "{name}");
    }
    requests[1].check_acs3("id", "secret").unwrap();

    // The command asks too, once there is an account.
    ask(&server).expect(200);
    let sent = provider.requests().pop().unwrap();
    let parameter: Value = serde_json::from_str(&sent.parameter("TemplateParam").unwrap()).unwrap();
    let login = [("phoneNumber", PHONE), ("code", parameter["code"].as_str().unwrap())];
    let user = server.post("/auth/login").form(&login).send().expect(200).json();
    let endpoint = provider.url();
    let settings = [
        ("YARROW_SMS_PROVIDER", "aliyun"),
        ("YARROW_SMS_ENDPOINT", endpoint.as_str()),
        ("YARROW_SMS_ACCESS_KEY_ID", "id"),
        ("YARROW_SMS_ACCESS_KEY_SECRET", "secret"),
        ("YARROW_SMS_SIGN_NAME", "Yarrow"),
        ("YARROW_SMS_TEMPLATE_CODE", "SMS_1"),
    ];
    let page = server.command_with(&settings, &["users", "show", PHONE]).expect(0).json();
    let shown = page["codes"]["messages"].as_array().unwrap();
    assert_eq!((shown.len(), &shown[0]["delivery"]["status"], &shown[1]), (2, &json!("delivered"), row));
    let by_id = server.command(&["users", "code-messages", user["userId"].as_str().unwrap()]).expect(0).json();
    assert_eq!(&by_id["items"], &page["codes"]["messages"]);
    let printed =
        Binary::command().args(["users", "show", PHONE, "--data-dir"]).arg(server.directory()).output().unwrap();
    let printed = String::from_utf8(printed.stdout).unwrap();
    assert!(printed.contains("Code messages") && printed.contains("delivered (DELIVERED)"), "{printed}");
}

#[test]
fn pages_ask_for_deliveries_by_a_button_alone() {
    let provider = FakeProvider::with_handler(|request| {
        Reply::json(if is_sending(request) { r#"{"Code":"OK","BizId":"9^0"}"# } else { DELIVERED })
    });
    let server = by_aliyun(&provider).start();
    ask(&server).expect(200);
    let support = Browser::new(&server, "sue", "support");
    let page = format!("search?q={PHONE}");
    let shown = || support.get(&page).send().expect(200).text();
    assert!(shown().contains("9^0") && !shown().contains("data-code=\"delivered\""));
    assert_eq!(provider.requests().len(), 1, "a page asks nothing");
    support.post(&page, "search/receipts", &[("q", PHONE)]).expect(303);
    assert!(shown().contains("data-code=\"delivered\""));
    assert_eq!(provider.requests().len(), 2);
}

#[test]
fn a_failed_receipt_query_is_reported_and_blocks_nothing() {
    let provider = FakeProvider::with_handler(|request| {
        if is_sending(request) {
            Reply::json(r#"{"Code":"OK","BizId":"9^0"}"#)
        } else {
            Reply::json(r#"{"Code":"Forbidden.RAM","Message":"13800138000"}"#).with_status(403)
        }
    });
    let server = by_aliyun(&provider).start();
    for _ in 0..3 {
        ask(&server).expect(200);
    }
    let found = messages(&server, &server.api_key("support"), "phoneNumber", PHONE);
    assert_eq!(found["items"].as_array().unwrap().len(), 3);
    let said = found["deliveryError"].as_str().unwrap();
    assert!(said.starts_with("provider aliyun failed: misconfigured (Forbidden.RAM); check "), "{said}");
    // The first failure ends the questions, and opens no breaker.
    assert_eq!(provider.requests().iter().filter(|request| !is_sending(request)).count(), 1);
    ask(&server).expect(200);
}

#[test]
fn providers_words_are_kept_and_reveal_neither_recipient_nor_code() {
    let provider = FakeProvider::with_handler(|request| {
        let sent = format!("{:?} {:?}", request.parameter("PhoneNumbers"), request.parameter("TemplateParam"));
        let words = format!("号码无效 {sent} 138 0013 8000");
        Reply::json(json!({ "Code": "isv.MOBILE_NUMBER_ILLEGAL", "Message": words, "RequestId": "R-1" }).to_string())
    });
    let server = by_aliyun(&provider).start();
    ask(&server).expect_problem(503, "provider_unavailable");
    let row = messages(&server, &server.api_key("support"), "phoneNumber", PHONE)["items"][0].clone();
    let [outcome, by, code, receipt, words, _] = told(&row);
    assert_eq!(
        [outcome, by, code, receipt].map(|told| told.as_str().unwrap()),
        ["not_sent", "aliyun", "isv.MOBILE_NUMBER_ILLEGAL", "R-1"]
    );
    assert_eq!(words, r#"号码无效 Some("***") Some("{\"code\":\"***\"}") ***"#);

    for (said, expected) in [
        (
            "550 5.1.1 <li.ming@reeds.example>: no mailbox LI.MING at reeds.example",
            ["not_sent", "smtp_550", "5.1.1 *** no mailbox *** at ***"],
        ),
        (
            "450-4.7.1 try again\r\n450 4.7.1 later, li.ming",
            ["not_sent", "smtp_450", "4.7.1 try again 4.7.1 later, ***"],
        ),
    ] {
        let trouble = Some((Step::Recipient, SmtpFault::Say(said)));
        let mail_server = FakeSmtpServer::offering(Offer { trouble, ..Offer::default() });
        let server = by_smtp(&mail_server).start();
        assert!([429, 503].contains(&ask_by_email(&server).status));
        let row = messages(&server, &server.api_key("support"), "email", EMAIL)["items"][0].clone();
        assert_eq!(["outcome", "code", "words"].map(|name| row[name].as_str().unwrap()), expected);
        assert_eq!(row["channel"], "email");
    }
    let mail_server = FakeSmtpServer::offering(Offer { dialect: Dialect::Gbk, ..Offer::default() });
    let server = by_smtp(&mail_server).start();
    ask_by_email(&server).expect(200);
    let row = messages(&server, &server.api_key("support"), "email", EMAIL)["items"][0].clone();
    assert_eq!(row["words"], "您好，欢迎");
    let queued =
        Some((Step::Message, SmtpFault::Say("250 2.0.0 Ok: queued as 4XyZ0b5cQzz9 for li.ming@reeds.example")));
    let mail_server = FakeSmtpServer::offering(Offer { trouble: queued, ..Offer::default() });
    let server = by_smtp(&mail_server).start();
    ask_by_email(&server).expect(200);
    let row = messages(&server, &server.api_key("support"), "email", EMAIL)["items"][0].clone();
    assert_eq!((&row["outcome"], &row["receipt"]), (&json!("sent"), &json!("4XyZ0b5cQzz9")));
    assert_eq!(row["words"], "2.0.0 Ok: queued as 4XyZ0b5cQzz9 for ***");
}

#[test]
fn unknown_outcomes_and_review_accounts_are_recorded() {
    let provider = FakeProvider::with_handler(|_| Reply::reset());
    let server = by_aliyun(&provider).with("AUTH_REVIEW_ACCOUNTS", "13800138001=246810").start();
    // Review accounts repeat the provider's last outcome.
    server.post("/auth/send-code").form(&[("phoneNumber", "13800138001")]).send().expect(200);
    ask(&server).expect_problem(504, "provider_timeout");
    let key = server.api_key("support");
    assert_eq!(messages(&server, &key, "phoneNumber", PHONE)["items"][0]["outcome"], "unknown");
    let row = messages(&server, &key, "phoneNumber", "13800138001")["items"][0].clone();
    assert_eq!((&row["outcome"], &row["provider"]), (&json!("review_account"), &Value::Null));
}

#[test]
fn refusals_are_recorded_once_a_minute() {
    let server = Setup::default().start();
    ask(&server).expect(200);
    let key = server.api_key("support");
    let refused = || {
        let found = messages(&server, &key, "phoneNumber", PHONE);
        let rows = found["items"].as_array().unwrap().clone();
        rows.into_iter().filter(|row| row["outcome"] == "refused").collect::<Vec<_>>()
    };
    for _ in 0..5 {
        ask(&server).expect_problem(429, "too_many_requests");
    }
    assert_eq!(refused().len(), 1);
    assert_eq!((&refused()[0]["code"], &refused()[0]["provider"]), (&json!("too_many_requests"), &Value::Null));
    server.edit("update code_messages set asked_at = asked_at - 60000");
    ask(&server).expect_problem(429, "too_many_requests");
    assert_eq!(refused().len(), 2);
    // Anybody can cause refusals, so they are not recorded without end.
    server.edit(
        "update code_counts set total = 1000, events = 999 where event = 'refused' and total = 2; \
         update code_messages set asked_at = asked_at - 60000",
    );
    ask(&server).expect_problem(429, "too_many_requests");
    assert_eq!(refused().len(), 2);
}

#[test]
fn requests_of_an_address_are_exported_and_erased_with_its_account() {
    let server = Setup::default().with("AUTH_RESEND_AFTER", "0 s").start();
    let user = server.sign_in(PHONE);
    server.sign_in("13800138001");
    let exported = server.get("/api/v1/account/export").by(&user).send().expect(200).json();
    let exported = exported["codeMessages"].as_array().unwrap();
    assert_eq!((exported.len(), &exported[0]["outcome"]), (1, &json!("sent")));
    let dump =
        server.value::<String>("select group_concat(concat_ws('|', address, receipt, words, code)) from code_messages");
    assert!(!dump.contains(PHONE), "{dump}");
    server.delete("/api/v1/account").by(&user).send().expect(204);
    assert_eq!(server.value::<i64>("select count(*) from code_messages"), 1);
    assert_eq!(messages(&server, &server.api_key("support"), "phoneNumber", PHONE)["items"], json!([]));
}

#[test]
fn an_address_or_a_user_must_be_named() {
    let server = Setup::default().start();
    let key = server.api_key("tests");
    let list = |query: &[(&str, &str)]| server.get("/admin/code-messages").token(&key).query(query).send();
    list(&[]).expect_fields(&[("phoneNumber", "required")]);
    list(&[("phoneNumber", "12")]).expect_fields(&[("phoneNumber", "invalid_format")]);
    list(&[("userId", "4711")]).expect_problem(404, "not_found");
    server.command(&["users", "code-messages", "4711"]).expect(4);
    let user = server.sign_in(PHONE);
    let of_user = list(&[("userId", &user.user_id)]).expect(200).json();
    assert_eq!(of_user["items"].as_array().unwrap().len(), 1);
    let audited = server.command(&["audit", "--user", PHONE]).expect(0).json();
    assert_eq!(audited["items"][0]["action"], "GET /admin/code-messages", "{audited}");
}
