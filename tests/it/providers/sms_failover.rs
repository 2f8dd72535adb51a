//! Tencent Cloud, gateways with an HTTP API, and failover between them, through the real service.

use std::sync::{Arc, Mutex};

use ring::{digest, hmac};
use serde_json::{Value, json};

use crate::support::{
    Response, Server, Setup, eventually,
    fake_provider::{FakeProvider, ReceivedRequest, Reply},
};

const PHONE: &str = "13800138000";
const SECRET_ID: &str = "AKIDtest0000000000000000000000000000";
const SECRET_KEY: &str = "secretKey0000000000000000000000000";

/// The stub's next reply, whatever its signature check says.
type Mood = Arc<Mutex<Option<Reply>>>;

/// Starts a Tencent Cloud that checks signatures, and answers as it does: with status 200 to everything.
fn tencent() -> (FakeProvider, Mood) {
    let mood: Mood = Arc::default();
    let shared = Arc::clone(&mood);
    let provider = FakeProvider::with_handler(move |request| {
        if let Err(fault) = check_tc3(request) {
            let error = json!({ "Code": "AuthFailure.SignatureFailure", "Message": fault });
            return Reply::json(json!({ "Response": { "Error": error, "RequestId": "R" } }).to_string());
        }
        if let Some(reply) = shared.lock().unwrap().clone() {
            return reply;
        }
        status("Ok")
    });
    (provider, mood)
}

fn status(code: &str) -> Reply {
    let set =
        json!([{ "SerialNo": "5000:1045", "PhoneNumber": "+8613800138000", "Fee": 1, "Code": code, "Message": "m" }]);
    Reply::json(json!({ "Response": { "SendStatusSet": set, "RequestId": "R" } }).to_string())
}

fn check_tc3(request: &ReceivedRequest) -> Result<(), String> {
    let header = |name: &str| request.header(name).ok_or(format!("no {name}"));
    let (host, content_type, seconds) = (header("host")?, header("content-type")?, header("x-tc-timestamp")?);
    if (header("x-tc-action")?, header("x-tc-version")?) != ("SendSms", "2021-01-11") {
        return Err("another operation".to_owned());
    }
    let authorization = header("authorization")?;
    let date = authorization.split('/').nth(1).ok_or("no date")?;
    let hex = |bytes: &[u8]| bytes.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"));
    let sha256 = |bytes: &[u8]| hex(digest::digest(&digest::SHA256, bytes).as_ref());
    let sign =
        |key: &[u8], text: &str| hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text.as_bytes()).as_ref().to_vec();
    let canonical =
        format!("POST\n/\n\ncontent-type:{content_type}\nhost:{host}\n\ncontent-type;host\n{}", sha256(&request.body));
    let scope = format!("{date}/sms/tc3_request");
    let text = format!("TC3-HMAC-SHA256\n{seconds}\n{scope}\n{}", sha256(canonical.as_bytes()));
    let key = sign(&sign(&sign(format!("TC3{SECRET_KEY}").as_bytes(), date), "sms"), "tc3_request");
    let expected = format!(
        "TC3-HMAC-SHA256 Credential={SECRET_ID}/{scope}, SignedHeaders=content-type;host, Signature={}",
        hex(&sign(&key, &text))
    );
    if authorization == expected { Ok(()) } else { Err("another signature".to_owned()) }
}

/// Starts a gateway that answers as told, at first that it accepted.
fn gateway() -> (FakeProvider, Mood) {
    let mood: Mood = Arc::new(Mutex::new(Some(Reply::json(r#"{"code":0,"data":{"id":"m-1"}}"#))));
    let shared = Arc::clone(&mood);
    (FakeProvider::with_handler(move |_| shared.lock().unwrap().clone().unwrap()), mood)
}

fn start(tencent: &FakeProvider, gateway: &FakeProvider) -> Setup {
    Setup::default()
        .with("AUTH_RESEND_AFTER", "0 s")
        .with("AUTH_ALLOWED_REGIONS", "CN,DE")
        .with("SMS_PROVIDER", "tencent")
        .with("SMS_FALLBACKS", "http")
        .with("SMS_COUNTRIES", "49=http tencent")
        .with("SMS_TENCENT_ENDPOINT", tencent.url())
        .with("SMS_TENCENT_SECRET_ID", SECRET_ID)
        .with("SMS_TENCENT_SECRET_KEY", SECRET_KEY)
        .with("SMS_TENCENT_APP_ID", "1400006666")
        .with("SMS_TENCENT_SIGN_NAME", "占卜")
        .with("SMS_TENCENT_TEMPLATE_ID", "1110")
        .with("SMS_TENCENT_HAS_MINUTES", "true")
        .with("SMS_HTTP_URL", format!("{}/send?to={{phone}}", gateway.url()))
        .with("SMS_HTTP_HEADERS", "content-type=application/json,x-key=gateway-key")
        .with("SMS_HTTP_BODY", r#"{"mobile":"{national}","text":"{code}, {minutes} min"}"#)
        .with("SMS_HTTP_ACCEPTED_MEMBER", "/code")
        .with("SMS_HTTP_ACCEPTED_VALUES", "0,OK")
        .with("SMS_HTTP_ID_MEMBER", "/data/id")
}

fn send_code(server: &Server, phone_number: &str) -> Response {
    server.post("/auth/send-code").json(&json!({ "phoneNumber": phone_number })).send()
}

fn code_of(request: &ReceivedRequest) -> Value {
    json!({ "phoneNumber": PHONE, "code": request.json()["TemplateParamSet"][0] })
}

#[test]
fn tencent_gets_a_signed_message_whose_code_signs_in() {
    let ((tencent, _), (gateway, _)) = (tencent(), gateway());
    let server = start(&tencent, &gateway).start();
    send_code(&server, PHONE).expect(200);
    let request = tencent.only_request();
    let body = request.json();
    assert_eq!((&body["PhoneNumberSet"], &body["SignName"]), (&json!(["+8613800138000"]), &json!("占卜")));
    assert_eq!((&body["TemplateId"], &body["TemplateParamSet"][1]), (&json!("1110"), &json!("5")));
    server.post("/auth/login").json(&code_of(&request)).send().expect(200);
    assert!(gateway.requests().is_empty());
    let stored: String = server.value("select provider || ' ' || receipt from code_messages");
    assert_eq!(stored, "tencent 5000:1045");
}

#[test]
fn a_message_that_was_not_accepted_goes_to_the_next_provider() {
    let ((tencent, mood), (gateway, _)) = (tencent(), gateway());
    let server = start(&tencent, &gateway).start();
    // A refusal with status 200 that looks like a success.
    *mood.lock().unwrap() = Some(status("FailedOperation.InsufficientBalanceInSmsPackage"));
    send_code(&server, PHONE).expect(200);
    let request = gateway.only_request();
    assert_eq!(request.target, "/send?to=%2B8613800138000");
    assert_eq!(request.header("x-key"), Some("gateway-key"));
    let body = request.json();
    let (code, rest) = body["text"].as_str().unwrap().split_once(", ").unwrap();
    assert_eq!((&body["mobile"], rest, code.len()), (&json!(PHONE), "5 min", 6));
    server.post("/auth/login").json(&json!({ "phoneNumber": PHONE, "code": code })).send().expect(200);
    let stored: String = server.value("select provider || ' ' || receipt from code_messages");
    assert_eq!(stored, "http m-1");
    let log = server.lines().join("\n");
    assert!(!log.contains(PHONE) && !log.contains(code) && !log.contains("gateway-key"), "{log}");
}

#[test]
fn an_unknown_outcome_sends_no_second_code() {
    let ((tencent, mood), (gateway, _)) = (tencent(), gateway());
    let server = start(&tencent, &gateway).start();
    for reply in [status("InternalError.Timeout"), Reply::reset(), Reply::json("<html>")] {
        *mood.lock().unwrap() = Some(reply);
        send_code(&server, PHONE).expect_problem(504, "provider_timeout");
    }
    assert!(gateway.requests().is_empty());
}

#[test]
fn the_last_provider_decides_and_a_false_success_is_detected() {
    let ((tencent, first), (gateway, second)) = (tencent(), gateway());
    let server = start(&tencent, &gateway).start();
    *first.lock().unwrap() = Some(status("LimitExceeded.AppDailyLimit"));
    // It answers 200 and means no, in GBK.
    *second.lock().unwrap() =
        Some(Reply::json(b"{\"code\":4010,\"msg\":\"\xd3\xe0\xb6\xee\xb2\xbb\xd7\xe3\"}".to_vec()));
    send_code(&server, PHONE).expect_problem(503, "provider_unavailable");
    // It claims success without the member that proves it: nobody can tell.
    *second.lock().unwrap() = Some(Reply::json(r#"{"message":"success"}"#));
    send_code(&server, PHONE).expect_problem(504, "provider_timeout");
    assert_eq!(server.value::<i64>("select count(*) from code_messages where outcome = 'sent'"), 0);
}

#[test]
fn countries_have_their_own_order() {
    let ((tencent, _), (gateway, mood)) = (tencent(), gateway());
    let server = start(&tencent, &gateway).start();
    send_code(&server, "+4915112345678").expect(200);
    assert_eq!((gateway.requests().len(), tencent.requests().len()), (1, 0));
    *mood.lock().unwrap() = Some(Reply::status(429));
    send_code(&server, "+4915112345678").expect(200);
    assert_eq!((gateway.requests().len(), tencent.requests().len()), (2, 1));
}

#[test]
fn mail_goes_by_an_http_api_and_falls_back() {
    let (mail, mood) = gateway();
    let smtp = FakeProvider::unreachable_url();
    let port = smtp.rsplit(':').next().unwrap().trim_end_matches('/').to_owned();
    let server = Setup::default()
        .with("EMAIL_PROVIDER", "smtp")
        .with("EMAIL_FALLBACK", "http")
        .with("EMAIL_HOST", "127.0.0.1")
        .with("EMAIL_PORT", port)
        .with("EMAIL_TLS", "none")
        .with("EMAIL_FROM", "Yarrow <codes@example.com>")
        .with("EMAIL_HTTP_URL", format!("{}/emails", mail.url()))
        .with("EMAIL_HTTP_HEADERS", "content-type=application/json,authorization=Bearer mail-key")
        .with(
            "EMAIL_HTTP_BODY",
            r#"{"from":"{from}","to":["{to}"],"subject":"{subject}","text":"{text}","html":"{html}"}"#,
        )
        .with("EMAIL_HTTP_ID_MEMBER", "/id")
        .start();
    *mood.lock().unwrap() = Some(Reply::json(r#"{"id":"49a3999c-0ce1"}"#));
    let body = json!({ "email": "li.ming@example.com" });
    server.post("/api/v1/auth/send-code").json(&body).send().expect(200);
    let request = mail.only_request();
    assert_eq!(request.header("authorization"), Some("Bearer mail-key"));
    let sent = request.json();
    assert_eq!((&sent["to"], &sent["from"]), (&json!(["li.ming@example.com"]), &json!("Yarrow <codes@example.com>")));
    let text = sent["text"].as_str().unwrap();
    let is_code = |word: &&str| word.len() == 8 && word.bytes().all(|byte| byte.is_ascii_digit());
    let code = text.split_whitespace().find(is_code).unwrap();
    let login = json!({ "email": "li.ming@example.com", "code": code });
    server.post("/api/v1/auth/login").json(&login).send().expect(200);
    eventually("the provider of the mail is recorded", || {
        server.value::<String>("select provider || ' ' || receipt from code_messages") == "http 49a3999c-0ce1"
    });
}
