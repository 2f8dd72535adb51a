//! Servers configured with the published Alipay test keys, and a fake Alipay gateway.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use ring::{
    rand::SystemRandom,
    signature::{RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_SHA256, RsaKeyPair, UnparsedPublicKey},
};
use serde_json::{Value, json};

use super::{
    client::Caller,
    fake_provider::{FakeProvider, ReceivedRequest, Reply},
    server::{Server, Setup},
};

/// The order number in the published messages.
pub const PUBLISHED_ORDER: &str = "D202601150000000001";

/// Returns the published messages, keys and expectations.
pub fn published() -> Value {
    serde_json::from_str(include_str!("../../vectors/alipay.json")).unwrap()
}

/// Returns the form body of a published callback.
pub fn callback_form(name: &str) -> String {
    published()["alipay"]["notify"][name]["form_body"].as_str().unwrap().to_owned()
}

/// Returns a signed callback that an order of 6.00 was paid. `changes` override or add fields.
pub fn signed_notification(order_no: &str, changes: &[(&str, &str)]) -> String {
    let published = published();
    let mut fields = BTreeMap::from([
        ("app_id", published["alipay"]["app_id"].as_str().unwrap()),
        ("charset", "utf-8"),
        ("gmt_payment", "2026-01-02 03:04:05"),
        ("notify_id", "2026010200222030405000000000001"),
        ("notify_type", "trade_status_sync"),
        ("out_trade_no", order_no),
        ("seller_id", published["alipay"]["seller_id"].as_str().unwrap()),
        ("total_amount", "6.00"),
        ("trade_no", "2026010222001400000000000001"),
        ("trade_status", "TRADE_SUCCESS"),
    ]);
    fields.extend(changes.iter().copied());
    let text: Vec<_> = fields.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let signature = sign(&text.join("&"));
    fields.extend([("sign_type", "RSA2"), ("sign", signature.as_str())]);
    let encoded = |byte: u8| match byte {
        b'.' | b'-' | b'_' => char::from(byte).to_string(),
        _ if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    let pairs = fields.iter().map(|(name, value)| format!("{name}={}", value.bytes().map(encoded).collect::<String>()));
    pairs.collect::<Vec<_>>().join("&")
}

impl Setup {
    /// Configures the `alipay` gateway with the published keys and an unreachable gateway URL.
    pub fn with_published_keys(self) -> Self {
        let published = published();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        self.with("PAYMENT_GATEWAY", "alipay")
            .with("PAYMENT_APP_ID", text(&published["alipay"]["app_id"]))
            .with("PAYMENT_SELLER_ID", text(&published["alipay"]["seller_id"]))
            .with("PAYMENT_PRIVATE_KEY", text(&published["keys"]["merchant"]["private_pkcs8_der_base64"]))
            .with("PAYMENT_ALIPAY_PUBLIC_KEY", text(&published["keys"]["platform"]["public_spki_der_base64"]))
            .with("PAYMENT_GATEWAY_URL", "http://127.0.0.1:9/gateway.do")
            .with("PAYMENT_NOTIFY_URL", "https://example.com/payment/notify")
    }
}

impl Server {
    /// Inserts the order of the published messages.
    pub fn insert_published_order(&self, user: &Caller) {
        let now: i64 = self.database().query_row("select created_at from users", (), |row| row.get(0)).unwrap();
        let order = "insert into payment_orders (order_no, user_id, channel, amount_fen, coin_count, state, \
                     created_at, expires_at, product_id, product_version, asset, bonus, first_bonus, subject) \
                     values (?1, ?2, 'alipay', 600, 60, 'created', cast(?3 as bigint), cast(?3 as bigint) + 1800000, 'coins_60', 0, 'coin', 0, 0, \
                     '60 coins')";
        self.database().execute(order, (PUBLISHED_ORDER, &user.user_id, now)).unwrap();
    }

    /// Posts a callback as the provider does.
    pub fn notify(&self, form: &str) -> String {
        let content_type = Some("application/x-www-form-urlencoded; charset=utf-8");
        self.post("/payment/notify").bytes(content_type, form.as_bytes().to_vec()).send().expect(200).text()
    }

    pub fn coins(&self, user: &Caller) -> i64 {
        self.get("/coin/balance").by(user).send().expect(200).json()["balance"].as_i64().unwrap()
    }

    /// Returns the state and refunded fen of an order.
    pub fn order_state(&self, order_no: &str) -> (String, i64) {
        let question = "select state, refunded_fen from payment_orders where order_no = ?1";
        self.database().query_row(question, [order_no], |row| Ok((row.get(0)?, row.get(1)?))).unwrap()
    }
}

/// A fake Alipay gateway. It verifies request signatures, stores trades and signs its responses.
pub struct AlipayGateway {
    provider: FakeProvider,
    book: Arc<Mutex<TradeRegistry>>,
}

/// The gateway's response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GatewayMode {
    #[default]
    Well,
    /// Executes the request and loses the response.
    Lost,
    /// Signs a different text.
    Tampered,
    /// Omits the signature on success.
    Unsigned,
    /// Responds with a signed `code` 40004 and this unknown `sub_code`.
    Refusing,
    /// Asks the client to retry later.
    Busy,
    /// Acknowledges close requests but closes no trade.
    Unclosable,
    /// Words its responses in GBK.
    Gbk,
    /// Reports that 99,999.00 yuan were refunded for the order.
    ReportsTooMuch,
    /// Names each trade by 200,000 digits.
    LongNumbers,
}

/// A trade at the provider, in fen.
#[derive(Clone, Debug)]
struct AlipayTrade {
    trade_no: String,
    amount: i64,
    status: &'static str,
    refunds: Vec<(String, i64)>,
}

impl AlipayTrade {
    fn refunded(&self) -> i64 {
        self.refunds.iter().map(|(_, amount)| amount).sum()
    }
}

#[derive(Default)]
struct TradeRegistry {
    trades: BTreeMap<String, AlipayTrade>,
    mood: GatewayMode,
    methods: Vec<String>,
    base_url: String,
    /// The archive of the bill.
    bill: Option<Vec<u8>>,
}

impl AlipayGateway {
    pub fn start() -> Self {
        let book = Arc::new(Mutex::new(TradeRegistry::default()));
        let keeper = Arc::clone(&book);
        let provider = FakeProvider::with_handler(move |request| keeper.lock().unwrap().response(request));
        book.lock().unwrap().base_url = provider.url();
        Self { provider, book }
    }

    /// Returns a setup that uses this gateway.
    pub fn setup(&self) -> Setup {
        let setup = Setup::default().with_published_keys().with("PAYMENT_ASK_AGAIN_AFTER", "0 s");
        setup.with("PAYMENT_GATEWAY_URL", format!("{}/gateway.do", self.provider.url()))
    }

    /// Pays an order.
    pub fn pay(&self, order_no: &str, fen: i64) {
        let trade_no = format!("20260102220014{:014}", order_no.len() + self.book.lock().unwrap().trades.len());
        let trade = AlipayTrade { trade_no, amount: fen, status: "TRADE_SUCCESS", refunds: Vec::new() };
        self.book.lock().unwrap().trades.insert(order_no.to_owned(), trade);
    }

    /// Opens the payment page of an order.
    pub fn open(&self, order_no: &str, fen: i64) {
        self.pay(order_no, fen);
        self.book.lock().unwrap().trades.get_mut(order_no).unwrap().status = "WAIT_BUYER_PAY";
    }

    /// Refunds a part at the provider, not through Yarrow.
    pub fn refund_part_externally(&self, order_no: &str, fen: i64) {
        self.book.lock().unwrap().trades.get_mut(order_no).unwrap().refunds.push(("some".to_owned(), fen));
    }

    /// Refunds everything at the provider, not through Yarrow.
    pub fn refund_externally(&self, order_no: &str) {
        let mut book = self.book.lock().unwrap();
        let trade = book.trades.get_mut(order_no).unwrap();
        trade.refunds.push(("console".to_owned(), trade.amount - trade.refunded()));
        trade.status = "TRADE_CLOSED";
    }

    /// Sets the lines of the bill of each day: trade, order, kind, amount, refund and fee.
    pub fn set_bill(&self, lines: &[&str]) {
        let count = |kind: &str| lines.iter().filter(|line| line.contains(kind)).count();
        let head = "支付宝交易号,商户订单号,业务类型,订单金额（元）,退款批次号/请求号,服务费（元）";
        let totals = format!("#交易合计：{}笔，共\r\n#退款合计：{}笔，共", count(",交易,"), count(",退款,"));
        let text = format!("#支付宝业务明细查询\r\n{head}\r\n{}\r\n#列表结束\r\n{totals}\r\n", lines.join("\r\n"));
        let summary = "#支付宝业务汇总查询\r\n门店编号,门店名称\r\n";
        let [text, summary] = [text.as_str(), summary].map(|text| encoding_rs::GBK.encode(text).0.into_owned());
        self.book.lock().unwrap().bill = Some(archive(&[("detail.csv", &text), ("summary.csv", &summary)]));
    }

    pub fn be(&self, mood: GatewayMode) {
        self.book.lock().unwrap().mood = mood;
    }

    /// Returns the operations requested so far, without the prefix `alipay.trade.`.
    pub fn methods(&self) -> Vec<String> {
        self.book.lock().unwrap().methods.clone()
    }

    /// Returns the fen refunded for an order at the provider.
    pub fn refunded(&self, order_no: &str) -> i64 {
        self.book.lock().unwrap().trades[order_no].refunded()
    }
}

impl TradeRegistry {
    fn response(&mut self, request: &ReceivedRequest) -> Reply {
        if request.path() == "/bill.zip" {
            return Reply::status(200).body(self.bill.clone().unwrap());
        }
        let (app_id, method, content) = match proved(request) {
            Ok(proved) => proved,
            // The driver treats this as a failure, so a driver test fails.
            Err(fault) => return Reply::status(500).body(fault),
        };
        self.methods.push(method.trim_start_matches("alipay.trade.").to_owned());
        let object = match self.mood {
            GatewayMode::Busy => refusal("isp.call-limited"),
            GatewayMode::Refusing => refusal("ACQ.SELLER_BALANCE_NOT_ENOUGH"),
            // Trades of other apps are invisible to this one.
            _ if app_id != published()["alipay"]["app_id"] => refusal("ACQ.TRADE_NOT_EXIST"),
            _ => self.carry_out(&method, &content),
        };
        let key = format!("{}_response", method.replace('.', "_"));
        let signature = sign(&object.to_string());
        match self.mood {
            GatewayMode::Gbk => {
                // "The trade", and a character whose second byte is a backslash.
                let words = b"\"buyer_word\":\"\xbd\xbb\xd2\xd7\x81\x5c\",";
                let object = [b"{", &words[..], &object.to_string().as_bytes()[1..]].concat();
                let signature = sign_bytes(&object);
                let head = format!(r#"{{"{key}":"#);
                Reply::json([head.as_bytes(), &object, format!(r#","sign":"{signature}"}}"#).as_bytes()].concat())
            }
            GatewayMode::Lost => Reply::reset(),
            GatewayMode::Tampered => {
                let other = object.to_string().replace("10000", "10000 ");
                Reply::json(format!(r#"{{"{key}":{other},"sign":"{signature}"}}"#))
            }
            GatewayMode::Unsigned => Reply::json(format!(r#"{{"{key}":{object}}}"#)),
            _ => Reply::json(format!(r#"{{"{key}":{object},"sign":"{signature}"}}"#)),
        }
    }

    fn carry_out(&mut self, method: &str, content: &Value) -> Value {
        if method == "alipay.data.dataservice.bill.downloadurl.query" {
            assert_eq!(content["bill_type"], "trade");
            return match self.bill {
                Some(_) => {
                    let address = format!("{}/bill.zip?token=t", self.base_url);
                    json!({ "code": "10000", "msg": "Success", "bill_download_url": address })
                }
                None => refusal("isp.bill_not_exist"),
            };
        }
        let order_no = content["out_trade_no"].as_str().unwrap();
        let Some(trade) = self.trades.get_mut(order_no) else { return refusal("ACQ.TRADE_NOT_EXIST") };
        let mut response = json!({
            "code": "10000", "msg": "Success", "out_trade_no": order_no, "trade_no": trade.trade_no,
        });
        let reported = match method {
            "alipay.trade.query" if trade.status == "WAIT_BUYER_PAY" => json!({
                "trade_status": trade.status, "total_amount": yuan(trade.amount),
            }),
            "alipay.trade.query" => json!({
                "trade_status": trade.status, "total_amount": yuan(trade.amount), "send_pay_date": "2026-01-02 03:04:05",
            }),
            "alipay.trade.close" if trade.status != "WAIT_BUYER_PAY" || self.mood == GatewayMode::Unclosable => {
                return refusal("ACQ.TRADE_STATUS_ERROR");
            }
            "alipay.trade.close" => json!({}),
            "alipay.trade.refund" => {
                let number = content["out_request_no"].as_str().unwrap().to_owned();
                let amount = fen(content["refund_amount"].as_str().unwrap());
                let is_new = trade.refunds.iter().all(|(known, _)| *known != number);
                if is_new && trade.refunded() + amount > trade.amount {
                    return refusal("ACQ.REFUND_AMT_NOT_EQUAL_TOTAL");
                }
                if is_new {
                    trade.refunds.push((number, amount));
                }
                if trade.refunded() == trade.amount {
                    trade.status = "TRADE_CLOSED";
                }
                json!({ "fund_change": if is_new { "Y" } else { "N" }, "refund_fee": yuan(trade.refunded()) })
            }
            "alipay.trade.fastpay.refund.query" => {
                let number = content["out_request_no"].as_str().unwrap();
                match trade.refunds.iter().find(|(known, _)| known == number) {
                    Some((_, amount)) => json!({
                        "out_request_no": number, "refund_amount": yuan(*amount), "refund_status": "REFUND_SUCCESS",
                    }),
                    None => json!({}),
                }
            }
            other => panic!("unsupported operation {other}"),
        };
        response.as_object_mut().unwrap().extend(reported.as_object().unwrap().clone());
        match self.mood {
            GatewayMode::ReportsTooMuch if !response["refund_fee"].is_null() => {
                response["refund_fee"] = json!("99999.00");
            }
            GatewayMode::LongNumbers => response["trade_no"] = json!("2".repeat(200_000)),
            _ => {}
        }
        response
    }
}

/// Returns a ZIP archive with these files, not compressed.
fn archive(files: &[(&str, &[u8])]) -> Vec<u8> {
    let (mut data, mut directory) = (Vec::new(), Vec::new());
    let two = |number: usize| u16::try_from(number).unwrap().to_le_bytes();
    let four = |number: usize| u32::try_from(number).unwrap().to_le_bytes();
    for (name, content) in files {
        let mut checksum = flate2::Crc::new();
        checksum.update(content);
        let sizes = [&checksum.sum().to_le_bytes()[..], &four(content.len()), &four(content.len()), &two(name.len())];
        let offset = four(data.len());
        data.extend([&b"PK\x03\x04\x14\0\0\0\0\0\0\0\0\0"[..], &sizes.concat(), &two(0)].concat());
        data.extend([name.as_bytes(), content].concat());
        let head = [&b"PK\x01\x02\x14\0\x14\0\0\0\0\0\0\0\0\0"[..], &sizes.concat(), &[0; 12], &offset].concat();
        directory.extend([&head[..], name.as_bytes()].concat());
    }
    let counts = [two(files.len()), two(files.len())].concat();
    let end = [&b"PK\x05\x06\0\0\0\0"[..], &counts, &four(directory.len()), &four(data.len()), &two(0)].concat();
    [data, directory, end].concat()
}

fn refusal(sub_code: &str) -> Value {
    let code = if sub_code == "isp.call-limited" { "40005" } else { "40004" };
    json!({ "code": code, "msg": "Failed", "sub_code": sub_code, "sub_msg": "secret words of the provider" })
}

fn yuan(fen: i64) -> String {
    format!("{}.{:02}", fen / 100, fen % 100)
}

fn fen(yuan: &str) -> i64 {
    let (whole, part) = yuan.split_once('.').unwrap();
    assert_eq!(part.len(), 2, "{yuan}");
    whole.parse::<i64>().unwrap() * 100 + part.parse::<i64>().unwrap()
}

/// Returns app, operation and content if the signature covers all fields.
pub fn proved(request: &ReceivedRequest) -> Result<(String, String, Value), &'static str> {
    let mut fields = request.query();
    fields.extend(request.form());
    let value = |name: &str| fields.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
    let signature = value("sign").and_then(|text| STANDARD.decode(text).ok()).ok_or("no signature")?;
    let mut signed: Vec<_> = fields.iter().filter(|(name, value)| name != "sign" && !value.is_empty()).collect();
    signed.sort();
    let text: Vec<_> = signed.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let key = der(&published()["keys"]["merchant"]["public_pkcs1_pem"]);
    let key = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, key);
    key.verify(text.join("&").as_bytes(), &signature).map_err(|_| "another signature")?;
    if value("sign_type").as_deref() != Some("RSA2") {
        return Err("other common parameters");
    }
    let content = value("biz_content").and_then(|text| serde_json::from_str(&text).ok()).ok_or("no content")?;
    Ok((value("app_id").ok_or("no app")?, value("method").ok_or("no method")?, content))
}

/// Signs a text with the provider's key.
pub fn sign(text: &str) -> String {
    sign_bytes(text.as_bytes())
}

/// Signs a text with our own key, which the provider never uses.
pub fn sign_as_merchant(text: &str) -> String {
    let key = &published()["keys"]["merchant"]["private_pkcs8_der_base64"];
    sign_with(&STANDARD.decode(key.as_str().unwrap()).unwrap(), text.as_bytes())
}

fn sign_bytes(bytes: &[u8]) -> String {
    sign_with(&der(&published()["keys"]["platform"]["private_pkcs8_pem"]), bytes)
}

fn sign_with(pkcs8: &[u8], bytes: &[u8]) -> String {
    let key = RsaKeyPair::from_pkcs8(pkcs8).unwrap();
    let mut signature = vec![0; key.public().modulus_len()];
    key.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), bytes, &mut signature).unwrap();
    STANDARD.encode(signature)
}

/// Decodes PEM to DER.
fn der(pem: &Value) -> Vec<u8> {
    let lines = pem.as_str().unwrap().lines().filter(|line| !line.starts_with('-'));
    STANDARD.decode(lines.collect::<String>()).unwrap()
}
