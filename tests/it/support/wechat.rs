//! A fake WeChat Pay. It verifies the signatures of requests, stores trades and refunds, and signs its answers and
//! notifications with either of its keys.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use ring::{
    aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey},
    digest,
    rand::SystemRandom,
    signature::{RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_SHA256, RsaKeyPair, UnparsedPublicKey},
};
use serde_json::{Value, json};

use super::fake_provider::{FakeProvider, ReceivedRequest, Reply};

/// The headers and the body of a notification.
pub type SignedNotification = (Vec<(String, String)>, String);

/// Returns the published keys, messages and expectations.
pub fn published_wechat() -> Value {
    serde_json::from_str(include_str!("../../vectors/wechat.json")).unwrap()
}

/// The provider's behaviour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WeChatMode {
    #[default]
    Well,
    /// The next answer is a probe.
    ProbesOnce,
    Probes,
    /// Signs with the platform certificate, whatever key the request names.
    SignsWithCertificate,
    /// Signs a different body.
    Tampered,
    Unsigned,
    /// Signs with a time six minutes ago.
    Stale,
    /// Executes the request and loses the answer.
    Lost,
    /// Answers an unsigned 500.
    Broken,
    /// Executes the request and answers after this many milliseconds.
    Slow(u64),
    /// Answers errors without a signature, as a proxy does.
    UnsignedErrors,
    /// Refunds end undelivered.
    AbnormalRefunds,
    /// Refunds do not happen.
    ClosedRefunds,
    /// Has no money for refunds.
    NoBalance,
    /// The bill's checksum is that of another file.
    WrongBillChecksum,
    /// No platform certificates, as for merchants in public-key mode.
    NoCertificates,
}

#[derive(Clone, Debug)]
struct WeChatTrade {
    total: i64,
    /// The way to pay and the payer that the order was prepared for.
    payer: String,
    state: &'static str,
    /// Number, amount and state.
    refunds: Vec<(String, i64, &'static str)>,
}

#[derive(Default)]
struct WeChatBook {
    trades: BTreeMap<String, WeChatTrade>,
    mode: WeChatMode,
    /// Method and path of each request with a valid signature.
    calls: Vec<String>,
    base_url: String,
}

/// A running fake of WeChat Pay.
pub struct FakeWeChatPay {
    provider: FakeProvider,
    book: Arc<Mutex<WeChatBook>>,
    clock: fn() -> i64,
}

impl FakeWeChatPay {
    /// Starts the provider with this clock, in seconds.
    pub fn start_at(clock: fn() -> i64) -> Self {
        let book = Arc::new(Mutex::new(WeChatBook::default()));
        let keeper = Arc::clone(&book);
        let provider = FakeProvider::with_handler(move |request| keeper.lock().unwrap().response(request, clock()));
        book.lock().unwrap().base_url = provider.url();
        Self { provider, book, clock }
    }

    pub fn url(&self) -> String {
        self.provider.url()
    }

    pub fn requests(&self) -> Vec<ReceivedRequest> {
        self.provider.requests()
    }

    pub fn be(&self, mode: WeChatMode) {
        self.book.lock().unwrap().mode = mode;
    }

    /// Returns the method and the path of each request with a valid signature.
    pub fn calls(&self) -> Vec<String> {
        self.book.lock().unwrap().calls.clone()
    }

    /// Pays an order. It need not have been placed.
    pub fn pay(&self, order_no: &str, fen: i64) {
        let trade = WeChatTrade { total: fen, payer: String::new(), state: "SUCCESS", refunds: Vec::new() };
        self.book.lock().unwrap().trades.insert(order_no.to_owned(), trade);
    }

    /// Forgets a trade, so that no bill has it.
    pub fn forget(&self, order_no: &str) {
        self.book.lock().unwrap().trades.remove(order_no);
    }

    /// Ends all refunds of an order that are under way.
    pub fn end_refunds(&self, order_no: &str, state: &'static str) {
        let mut book = self.book.lock().unwrap();
        for (_, _, known) in &mut book.trades.get_mut(order_no).unwrap().refunds {
            if *known != "SUCCESS" && *known != "CLOSED" {
                *known = state;
            }
        }
    }

    /// Refunds a part at the provider, not through Yarrow.
    pub fn refund_externally(&self, order_no: &str, fen: i64) {
        let mut book = self.book.lock().unwrap();
        book.trades.get_mut(order_no).unwrap().refunds.push(("console".to_owned(), fen, "SUCCESS"));
    }

    /// Returns the notification of a paid order.
    pub fn payment_notification(&self, order_no: &str) -> SignedNotification {
        let content = self.book.lock().unwrap().trade(order_no);
        self.notification("TRANSACTION.SUCCESS", "transaction", &content, "public_key_mode")
    }

    /// Returns the notification of the last refund of an order.
    pub fn refund_notification(&self, order_no: &str) -> SignedNotification {
        let book = self.book.lock().unwrap();
        let trade = &book.trades[order_no];
        let (number, amount, state) = trade.refunds.last().unwrap();
        let content = json!({
            "mchid": published_wechat()["mchid"], "out_trade_no": order_no, "transaction_id": transaction_id(order_no),
            "out_refund_no": number, "refund_id": format!("5{number}"), "refund_status": state,
            "success_time": "2026-01-15T16:40:00+08:00", "user_received_account": "支付用户零钱",
            "amount": {
                "total": trade.total, "refund": amount, "payer_total": trade.total, "payer_refund": amount,
            },
        });
        self.notification(&format!("REFUND.{state}"), "refund", &content, "public_key_mode")
    }

    /// Returns a notification with this content, encrypted and signed by `public_key_mode` or `platform_cert`.
    pub fn notification(&self, event: &str, kind: &str, content: &Value, signer: &str) -> SignedNotification {
        let body = json!({
            "id": format!("EV-{event}-{}", (self.clock)()), "create_time": "2026-01-15T16:29:41+08:00",
            "resource_type": "encrypt-resource", "event_type": event, "summary": "支付成功",
            "resource": sealed(&content.to_string(), kind),
        });
        let body = body.to_string();
        (signature_headers(&body, (self.clock)(), signer), body)
    }
}

impl WeChatBook {
    fn response(&mut self, request: &ReceivedRequest, now: i64) -> Reply {
        let published = published_wechat();
        if let Err(fault) = verify(request, now) {
            // The driver treats this as a failure, so a driver test fails.
            return signed(401, &json!({ "code": "SIGN_ERROR", "message": fault }).to_string(), now, "public_key_mode");
        }
        self.calls.push(format!("{} {}", request.method, request.path()));
        if self.mode == WeChatMode::Broken {
            return Reply::status(500).body("<html>");
        }
        let (status, body) = self.carry_out(request);
        let body = if status == 204 { String::new() } else { body };
        if request.path() == "/v3/billdownload/file" {
            return Reply::status(status).body(body);
        }
        let is_certificates = request.path() == "/v3/certificates" && status == 200;
        let signer = if is_certificates || self.mode == WeChatMode::SignsWithCertificate {
            "platform_cert"
        } else if request.header("wechatpay-serial").is_some() {
            assert_eq!(request.header("wechatpay-serial"), published["public_key_id"].as_str());
            "public_key_mode"
        } else {
            "platform_cert"
        };
        match self.mode {
            WeChatMode::Lost => Reply::reset(),
            WeChatMode::Slow(milliseconds) => {
                signed(status, &body, now, signer).after(Duration::from_millis(milliseconds))
            }
            WeChatMode::Unsigned => Reply::status(status).body(body),
            WeChatMode::UnsignedErrors if status >= 400 => Reply::status(status).body(body),
            WeChatMode::Stale => signed(status, &body, now - 360, signer),
            WeChatMode::Tampered => signed(status, &format!("{body} "), now, signer).body(body),
            WeChatMode::ProbesOnce | WeChatMode::Probes => {
                if self.mode == WeChatMode::ProbesOnce {
                    self.mode = WeChatMode::Well;
                }
                let headers =
                    signature_headers(&body, now, signer).into_iter().map(|(name, value)| match name.as_str() {
                        "Wechatpay-Signature" => (name, format!("WECHATPAY/SIGNTEST/{value}")),
                        _ => (name, value),
                    });
                with_headers(Reply::status(status).body(body), headers.collect())
            }
            _ => signed(status, &body, now, signer),
        }
    }

    fn carry_out(&mut self, request: &ReceivedRequest) -> (u16, String) {
        let published = published_wechat();
        let path: Vec<&str> = request.path().trim_start_matches('/').split('/').collect();
        match (request.method.as_str(), path.as_slice()) {
            ("POST", ["v3", "pay", "transactions", client @ ("app" | "jsapi" | "h5" | "native")]) => {
                let content = request.json();
                let is_ours = content["appid"] == published["appid"] && content["mchid"] == published["mchid"];
                if !is_ours || !content["notify_url"].as_str().is_some_and(|url| url.starts_with("https://")) {
                    return error(400, "PARAM_ERROR");
                }
                let (order_no, total) = (text(&content["out_trade_no"]), content["amount"]["total"].as_i64().unwrap());
                let known = self.trades.entry(order_no.clone());
                let payer = format!("{client} {} {}", content["payer"], content["scene_info"]);
                let made = WeChatTrade { total, payer: payer.clone(), state: "NOTPAY", refunds: Vec::new() };
                let trade = known.or_insert(made);
                if trade.total != total || trade.payer != payer {
                    return error(403, "OUT_TRADE_NO_USED");
                }
                let answer = match *client {
                    "app" => json!({ "prepay_id": format!("wx{order_no}") }),
                    "jsapi" if content["payer"]["openid"].is_string() => {
                        json!({ "prepay_id": format!("wx{order_no}") })
                    }
                    "h5" if content["scene_info"]["h5_info"]["type"] == "Wap" => {
                        json!({ "h5_url": format!("https://wx.tenpay.com/cgi-bin/mmpayweb-bin/checkmweb?prepay_id={order_no}") })
                    }
                    "native" => json!({ "code_url": format!("weixin://wxpay/bizpayurl?pr={order_no}") }),
                    _ => return error(400, "PARAM_ERROR"),
                };
                (200, answer.to_string())
            }
            ("GET", ["v3", "pay", "transactions", "out-trade-no", order_no]) => {
                assert_eq!(request.parameter("mchid"), published["mchid"].as_str().map(str::to_owned));
                if self.trades.contains_key(*order_no) {
                    (200, self.trade(order_no).to_string())
                } else {
                    error(404, "ORDER_NOT_EXIST")
                }
            }
            ("POST", ["v3", "pay", "transactions", "out-trade-no", order_no, "close"]) => {
                assert_eq!(request.json(), json!({ "mchid": published["mchid"] }));
                match self.trades.get_mut(*order_no) {
                    None => error(404, "ORDERNOTEXIST"),
                    Some(trade) if trade.state == "SUCCESS" => error(400, "ORDERPAID"),
                    Some(trade) if trade.state == "CLOSED" => error(400, "ORDER_CLOSED"),
                    Some(trade) => {
                        trade.state = "CLOSED";
                        (204, String::new())
                    }
                }
            }
            ("POST", ["v3", "refund", "domestic", "refunds"]) => self.refund(&request.json()),
            ("GET", ["v3", "refund", "domestic", "refunds", number]) => self.query_refund(number),
            ("GET", ["v3", "certificates"]) if self.mode == WeChatMode::NoCertificates => {
                error(404, "RESOURCE_NOT_EXISTS")
            }
            ("GET", ["v3", "certificates"]) => {
                let pem = text(&published["platform_certificate_pem"]);
                let certificate = json!({
                    "serial_no": published["platform_certificate_serial"], "effective_time": "2024-01-01T00:00:00+08:00",
                    "expire_time": "2029-01-01T00:00:00+08:00", "encrypt_certificate": sealed(&pem, "certificate"),
                });
                (200, json!({ "data": [certificate] }).to_string())
            }
            ("GET", ["v3", "bill", "tradebill"]) if self.trades.is_empty() => error(404, "NO_STATEMENT_EXIST"),
            ("GET", ["v3", "bill", "tradebill"]) => {
                let file = if self.mode == WeChatMode::WrongBillChecksum { String::new() } else { self.bill() };
                let hash = digest::digest(&digest::SHA1_FOR_LEGACY_USE_ONLY, file.as_bytes());
                let hash = yarrow::types::hex(hash.as_ref());
                let address = format!("{}/v3/billdownload/file?token=t", self.base_url);
                (200, json!({ "hash_type": "SHA1", "hash_value": hash, "download_url": address }).to_string())
            }
            ("GET", ["v3", "billdownload", "file"]) => (200, self.bill()),
            other => panic!("unsupported call {other:?}"),
        }
    }

    fn refund(&mut self, content: &Value) -> (u16, String) {
        let (order_no, number) = (text(&content["out_trade_no"]), text(&content["out_refund_no"]));
        let amount = content["amount"]["refund"].as_i64().unwrap();
        let is_without_balance = self.mode == WeChatMode::NoBalance;
        let Some(trade) = self.trades.get_mut(&order_no) else { return error(404, "RESOURCE_NOT_EXISTS") };
        if is_without_balance {
            return error(403, "NOT_ENOUGH");
        }
        if let Some((_, known, _)) = trade.refunds.iter().find(|(known, ..)| *known == number) {
            if *known != amount {
                return error(400, "INVALID_REQUEST");
            }
        } else {
            let refunded: i64 = trade.refunds.iter().map(|(_, amount, _)| amount).sum();
            if content["amount"]["total"].as_i64() != Some(trade.total) || refunded + amount > trade.total {
                return error(400, "INVALID_REQUEST");
            }
            trade.refunds.push((number.clone(), amount, "PROCESSING"));
        }
        (200, refund(&order_no, trade, &number).to_string())
    }

    /// A refund that was accepted has ended when it is queried.
    fn query_refund(&mut self, number: &str) -> (u16, String) {
        let end = match self.mode {
            WeChatMode::AbnormalRefunds => "ABNORMAL",
            WeChatMode::ClosedRefunds => "CLOSED",
            _ => "SUCCESS",
        };
        for (order_no, trade) in &mut self.trades {
            if let Some((_, _, state)) = trade.refunds.iter_mut().find(|(known, ..)| known == number) {
                *state = end;
                return (200, refund(order_no, trade, number).to_string());
            }
        }
        error(404, "RESOURCE_NOT_EXISTS")
    }

    /// Returns a trade in the provider's words.
    fn trade(&self, order_no: &str) -> Value {
        let (published, trade) = (published_wechat(), &self.trades[order_no]);
        let mut report = json!({
            "appid": published["appid"], "mchid": published["mchid"], "out_trade_no": order_no,
            "trade_state": trade.state, "trade_state_desc": "…",
            "amount": { "total": trade.total, "currency": "CNY" },
        });
        if trade.state == "SUCCESS" {
            report["transaction_id"] = transaction_id(order_no).into();
            report["success_time"] = "2026-01-15T16:29:40+08:00".into();
            report["trade_type"] = "APP".into();
            report["payer"] = json!({ "openid": "oUpF8uMuAJO_M2pxb1Q9zNjWeS6o" });
            report["amount"]["payer_total"] = trade.total.into();
        }
        if !trade.refunds.is_empty() {
            report["trade_state"] = "REFUND".into();
        }
        report
    }

    fn bill(&self) -> String {
        let head =
            "交易时间,微信订单号,商户订单号,交易状态,订单金额,微信退款单号,商户退款单号,申请退款金额,退款状态,商品名称";
        let mut lines = vec![format!("\u{feff}{head}")];
        let (mut paid, mut refunded) = (0, 0);
        for (order_no, trade) in self.trades.iter().filter(|(_, trade)| trade.state == "SUCCESS") {
            let (id, time) = (transaction_id(order_no), "2026-01-15 16:29:40");
            paid += trade.total;
            lines.push(format!("`{time},`{id},`{order_no},`SUCCESS,`{},`0,`0,`0.00,`,`coins", yuan(trade.total)));
            for (number, amount, state) in &trade.refunds {
                refunded += amount;
                let amount = yuan(*amount);
                lines.push(format!(
                    "`{time},`{id},`{order_no},`REFUND,`0.00,`5{number},`{number},`{amount},`{state},`coins"
                ));
            }
        }
        let count = lines.len() - 1;
        lines.push("总交易单数,订单总金额,申请退款总金额".to_owned());
        lines.push(format!("`{count},`{},`{}", yuan(paid), yuan(refunded)));
        lines.join("\r\n") + "\r\n"
    }
}

/// Verifies the `Authorization` header of a request.
fn verify(request: &ReceivedRequest, now: i64) -> Result<(), String> {
    let published = published_wechat();
    let authorization = request.header("authorization").ok_or("no authorization")?;
    let members = authorization.strip_prefix("WECHATPAY2-SHA256-RSA2048 ").ok_or("another scheme")?;
    let member = |name: &str| {
        let find = |part: &str| Some(part.strip_prefix(name)?.strip_prefix("=\"")?.strip_suffix('"')?.to_owned());
        members.split(',').find_map(find).ok_or_else(|| format!("no {name}"))
    };
    if member("mchid")? != published["mchid"] || member("serial_no")? != published["merchant_serial_no"] {
        return Err("another merchant".to_owned());
    }
    let (time, nonce) = (member("timestamp")?, member("nonce_str")?);
    if nonce.len() != 32 || time.parse::<i64>().map_err(|_| "no time")?.abs_diff(now) > 300 {
        return Err("another nonce or time".to_owned());
    }
    if request.header("accept") != Some("application/json") || request.header("user-agent").is_none_or(str::is_empty) {
        return Err("no accept or user-agent".to_owned());
    }
    let is_json = request.header("content-type") == Some("application/json");
    if is_json == request.body.is_empty() {
        return Err("another content-type".to_owned());
    }
    let body = String::from_utf8(request.body.clone()).map_err(|_| "no text")?;
    let signed = format!("{}\n{}\n{time}\n{nonce}\n{body}\n", request.method, request.target);
    let signature = STANDARD.decode(member("signature")?).map_err(|_| "no base64")?;
    let key = RsaKeyPair::from_pkcs8(&der(&published["keys"]["wechat_merchant"]["private_pkcs8_pem"])).unwrap();
    let key = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, key.public());
    key.verify(signed.as_bytes(), &signature).map_err(|_| format!("another signature over\n{signed}"))
}

fn signed(status: u16, body: &str, now: i64, signer: &str) -> Reply {
    with_headers(Reply::status(status).body(body), signature_headers(body, now, signer))
}

fn with_headers(reply: Reply, headers: Vec<(String, String)>) -> Reply {
    let reply = headers.iter().fold(reply, |reply, (name, value)| reply.header(name, value));
    reply.header("request-id", "08F78BB5AF0610D302189F8D9F1F20A2012800-0")
}

/// Signs a body with the key of `public_key_mode` or `platform_cert`.
pub fn signature_headers(body: &str, now: i64, signer: &str) -> Vec<(String, String)> {
    let published = published_wechat();
    let serial = match signer {
        "public_key_mode" => &published["public_key_id"],
        _ => &published["platform_certificate_serial"],
    };
    let key =
        RsaKeyPair::from_pkcs8(&der(&published["keys"][format!("wechat_{signer}")]["private_pkcs8_pem"])).unwrap();
    let nonce = "c5ac7061fccab6bf3e254dcf98995b8c";
    let mut signature = vec![0; key.public().modulus_len()];
    let text = format!("{now}\n{nonce}\n{body}\n");
    key.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), text.as_bytes(), &mut signature).unwrap();
    [
        ("Wechatpay-Timestamp", now.to_string()),
        ("Wechatpay-Nonce", nonce.to_owned()),
        ("Wechatpay-Signature", STANDARD.encode(signature)),
        ("Wechatpay-Serial", serial.as_str().unwrap().to_owned()),
        ("Wechatpay-Signature-Type", "WECHATPAY2-SHA256-RSA2048".to_owned()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .to_vec()
}

/// Encrypts a text with the `APIv3` key.
fn sealed(content: &str, kind: &str) -> Value {
    let key = text(&published_wechat()["apiv3_key"]);
    let key = LessSafeKey::new(UnboundKey::new(&AES_256_GCM, key.as_bytes()).unwrap());
    let nonce = "fdasflkja484";
    let mut bytes = content.as_bytes().to_vec();
    let unique = Nonce::try_assume_unique_for_key(nonce.as_bytes()).unwrap();
    key.seal_in_place_append_tag(unique, Aad::from(kind), &mut bytes).unwrap();
    json!({
        "original_type": kind, "algorithm": "AEAD_AES_256_GCM", "ciphertext": STANDARD.encode(bytes),
        "associated_data": kind, "nonce": nonce,
    })
}

fn refund(order_no: &str, trade: &WeChatTrade, number: &str) -> Value {
    let (_, amount, state) = trade.refunds.iter().find(|(known, ..)| known == number).unwrap();
    json!({
        "refund_id": format!("5{number}"), "out_refund_no": number, "transaction_id": transaction_id(order_no),
        "out_trade_no": order_no, "channel": "ORIGINAL", "status": state, "create_time": "2026-01-15T16:30:00+08:00",
        "amount": { "total": trade.total, "refund": amount, "currency": "CNY" },
    })
}

pub fn transaction_id(order_no: &str) -> String {
    format!("42000{order_no}")
}

fn error(status: u16, code: &str) -> (u16, String) {
    (status, json!({ "code": code, "message": "secret words of the provider" }).to_string())
}

fn yuan(fen: i64) -> String {
    format!("{}.{:02}", fen / 100, fen % 100)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

/// Decodes PEM to DER.
fn der(pem: &Value) -> Vec<u8> {
    let lines = pem.as_str().unwrap().lines().filter(|line| !line.starts_with('-'));
    STANDARD.decode(lines.collect::<String>()).unwrap()
}
