//! A fake Google: token endpoint, publisher API and the keys of identity tokens.

use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::{Arc, Mutex},
};

use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use ring::{
    rand::SystemRandom,
    signature::{RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_SHA256, RsaKeyPair, UnparsedPublicKey},
};
use serde_json::{Value, json};

use super::{
    fake_provider::{FakeProvider, Latch, ReceivedRequest, Reply},
    server::Setup,
};

pub const PACKAGE: &str = "com.example.yarrow";
/// The service account that pushes notifications, and the audience of its tokens.
pub const PUSHER: &str = "push@project-1.iam.gserviceaccount.com";
pub const AUDIENCE: &str = "https://api.example.test/payment/notify/google";

/// Returns the published messages, keys and expectations.
pub fn published_google() -> Value {
    serde_json::from_str(include_str!("../../vectors/google_play.json")).unwrap()
}

/// Configures purchases in Google Play, with a fake of its API.
pub fn with_google_play(setup: Setup, url: &str) -> Setup {
    setup
        .with("PAYMENT_GOOGLE_PACKAGE_NAME", PACKAGE)
        .with("PAYMENT_GOOGLE_SERVICE_ACCOUNT", published_google()["service_account"]["info"].to_string())
        .with("PAYMENT_GOOGLE_PUSH_SERVICE_ACCOUNT", PUSHER)
        .with("PAYMENT_GOOGLE_PUSH_AUDIENCE", AUDIENCE)
        .with("PAYMENT_GOOGLE_BASE_URL", url)
        .with("PAYMENT_GOOGLE_TOKEN_URL", format!("{url}/token"))
        .with("PAYMENT_GOOGLE_KEYS_URL", format!("{url}/certs"))
}

/// A running fake of Google.
pub struct FakeGoogle {
    provider: FakeProvider,
    book: Arc<Mutex<GoogleBook>>,
}

#[derive(Default)]
struct GoogleBook {
    /// Purchases by product and token.
    purchases: BTreeMap<(String, String), Value>,
    voided: Vec<Value>,
    /// The amounts that buyers paid, by order.
    totals: BTreeMap<String, Value>,
    tokens: usize,
    key_fetches: usize,
    refunds: Vec<String>,
    /// Access tokens up to this number are rejected.
    revoked_tokens: usize,
    failure: Option<(u16, &'static str)>,
    cannot_consume: bool,
    /// The answer with keys waits for it.
    hang: Option<Latch>,
}

/// Voided purchases on a page.
const PAGE: usize = 2;

impl FakeGoogle {
    /// Starts the provider with this clock, in seconds.
    pub fn start_at(clock: fn() -> i64) -> Self {
        let book = Arc::new(Mutex::new(GoogleBook::default()));
        let keeper = Arc::clone(&book);
        let provider = FakeProvider::with_handler(move |request| keeper.lock().unwrap().response(request, clock()));
        Self { provider, book }
    }

    pub fn url(&self) -> String {
        self.provider.url()
    }

    /// Adds or changes a purchase.
    pub fn set_purchase(&self, product_id: &str, token: &str, purchase: Value) {
        self.book.lock().unwrap().purchases.insert((product_id.to_owned(), token.to_owned()), purchase);
    }

    pub fn purchase(&self, product_id: &str, token: &str) -> Value {
        self.book.lock().unwrap().purchases[&(product_id.to_owned(), token.to_owned())].clone()
    }

    pub fn void(&self, token: &str, order_id: &str) {
        self.book.lock().unwrap().voided.push(json!({
            "kind": "androidpublisher#voidedPurchase", "purchaseToken": token, "orderId": order_id,
            "voidedTimeMillis": "1768465790000", "purchaseTimeMillis": "1768465770000", "voidedSource": 0,
            "voidedReason": 1,
        }));
    }

    /// Sets what the buyer paid: whole units, billionths and currency.
    pub fn set_total(&self, order_id: &str, units: &str, nanos: i64, currency: &str) {
        let total = json!({ "currencyCode": currency, "units": units, "nanos": nanos });
        self.book.lock().unwrap().totals.insert(order_id.to_owned(), total);
    }

    pub fn revoke_tokens(&self) {
        let mut book = self.book.lock().unwrap();
        book.revoked_tokens = book.tokens;
    }

    /// Fails all calls of the API with this status and reason.
    pub fn fail(&self, status: u16, reason: &'static str) {
        self.book.lock().unwrap().failure = Some((status, reason));
    }

    /// Makes the answer with keys hang until the latch is opened.
    pub fn hang(&self) -> Latch {
        self.book.lock().unwrap().hang.get_or_insert_default().clone()
    }

    /// Fails all calls that consume a purchase, or no longer.
    pub fn fail_consumption(&self, is_failing: bool) {
        self.book.lock().unwrap().cannot_consume = is_failing;
    }

    /// Returns the number of access tokens made and of key fetches.
    pub fn counts(&self) -> (usize, usize) {
        let book = self.book.lock().unwrap();
        (book.tokens, book.key_fetches)
    }

    pub fn refunds(&self) -> Vec<String> {
        self.book.lock().unwrap().refunds.clone()
    }
}

impl GoogleBook {
    fn response(&mut self, request: &ReceivedRequest, now: i64) -> Reply {
        match (request.method.as_str(), request.path()) {
            ("POST", "/token") => match check_assertion(request, now) {
                Ok(()) => {
                    self.tokens += 1;
                    let token = format!("access-{}", self.tokens);
                    reply(&json!({ "access_token": token, "expires_in": 3599, "token_type": "Bearer" }))
                }
                Err(fault) => reply(&json!({ "error": "invalid_grant", "error_description": fault })).with_status(400),
            },
            ("GET", "/certs") => {
                if let Some(latch) = &self.hang {
                    latch.wait();
                }
                self.key_fetches += 1;
                reply(&published_google()["jwks"]).header("cache-control", "public, max-age=22935")
            }
            (method, path) => self.publisher(method, path, request),
        }
    }

    fn publisher(&mut self, method: &str, path: &str, request: &ReceivedRequest) -> Reply {
        let token = request.header("authorization").and_then(|header| header.strip_prefix("Bearer access-"));
        let number = token.and_then(|number| number.parse().ok()).unwrap_or(0);
        if !(self.revoked_tokens + 1..=self.tokens).contains(&number) {
            return google_error(401, "authError");
        }
        if let Some((status, reason)) = self.failure {
            return google_error(status, reason);
        }
        let prefix = format!("/androidpublisher/v3/applications/{PACKAGE}/");
        let Some(path) = path.strip_prefix(&prefix) else { return google_error(400, "invalid") };
        let path: Vec<&str> = path.split('/').collect();
        match (method, path.as_slice()) {
            ("GET", ["purchases", "products", product_id, "tokens", token]) => {
                match self.purchases.get(&((*product_id).to_owned(), (*token).to_owned())) {
                    Some(purchase) => reply(purchase),
                    None if self.purchases.keys().any(|(_, known)| known == token) => {
                        google_error(400, "purchaseTokenDoesNotMatchProductId")
                    }
                    None => google_error(404, "purchaseTokenNotFound"),
                }
            }
            ("POST", ["purchases", "products", ..]) if self.cannot_consume => google_error(503, "backendError"),
            ("POST", ["purchases", "products", product_id, "tokens", token]) => {
                let Some(token) = token.strip_suffix(":consume") else { return google_error(400, "invalid") };
                match self.purchases.get_mut(&((*product_id).to_owned(), token.to_owned())) {
                    Some(purchase) if purchase["purchaseState"] == 0 => {
                        purchase["consumptionState"] = 1.into();
                        purchase["acknowledgementState"] = 1.into();
                        Reply::status(204)
                    }
                    Some(_) => google_error(400, "productNotOwnedByUser"),
                    None => google_error(404, "purchaseTokenNotFound"),
                }
            }
            ("GET", ["purchases", "voidedpurchases"]) => {
                assert!(request.parameter("startTime").is_some_and(|time| time.parse::<i64>().is_ok()));
                let start: usize = request.parameter("token").map_or(0, |token| token.parse().unwrap());
                let page: Vec<&Value> = self.voided.iter().skip(start).take(PAGE).collect();
                let mut answer = json!({ "voidedPurchases": page });
                if start + PAGE < self.voided.len() {
                    answer["tokenPagination"] = json!({ "nextPageToken": (start + PAGE).to_string() });
                }
                reply(&answer)
            }
            ("GET", ["orders", order]) => match self.totals.get(*order) {
                Some(total) => reply(&json!({ "orderId": order, "state": "PROCESSED", "total": total })),
                None => google_error(403, "permissionDenied"),
            },
            ("POST", ["orders", order]) => {
                assert_eq!(request.parameter("revoke").as_deref(), Some("true"));
                self.refunds.push(order.trim_end_matches(":refund").to_owned());
                Reply::status(204)
            }
            other => panic!("unsupported call {other:?}"),
        }
    }
}

/// Returns a purchase in the state paid.
pub fn google_purchase(order_id: &str, account_token: Option<&str>) -> Value {
    let mut purchase = published_google()["purchases"]["purchased"].clone();
    purchase["orderId"] = order_id.into();
    purchase["obfuscatedExternalAccountId"] = account_token.map_or(Value::Null, Into::into);
    purchase
}

/// Returns the `Authorization` header and the body of a pushed notification.
pub fn google_push(notification: &Value, audience: &str, email: &str, now: i64) -> (String, String) {
    let claims = json!({
        "aud": audience, "azp": "113774264463038321964", "email": email, "email_verified": true, "exp": now + 3000,
        "iat": now - 600, "iss": "https://accounts.google.com", "sub": "113774264463038321964",
    });
    let encode = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let text = format!("{}.{}", encode(&json!({ "alg": "RS256", "kid": "key-1", "typ": "JWT" })), encode(&claims));
    let key = RsaKeyPair::from_pkcs8(&der(&published_google()["keys"]["google_signer"]["private_pkcs8_pem"])).unwrap();
    let mut signature = vec![0; key.public().modulus_len()];
    key.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), text.as_bytes(), &mut signature).unwrap();
    // Equal messages have the same id, as repeated deliveries have.
    let mut id = DefaultHasher::new();
    notification.to_string().hash(&mut id);
    let body = json!({
        "message": {
            "attributes": {}, "data": STANDARD.encode(notification.to_string()), "messageId": id.finish().to_string(),
            "publishTime": "2026-01-15T08:29:59.000Z",
        },
        "subscription": "projects/project-1/subscriptions/rtdn",
    });
    (format!("Bearer {text}.{}", URL_SAFE_NO_PAD.encode(signature)), body.to_string())
}

/// Verifies the assertion in a request for an access token.
fn check_assertion(request: &ReceivedRequest, now: i64) -> Result<(), &'static str> {
    let published = published_google();
    let form = request.form();
    let value = |name: &str| form.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
    if value("grant_type") != Some("urn:ietf:params:oauth:grant-type:jwt-bearer") {
        return Err("another grant type");
    }
    let (text, signature) = value("assertion").and_then(|text| text.rsplit_once('.')).ok_or("no assertion")?;
    let decode = |part: &str| URL_SAFE_NO_PAD.decode(part).map_err(|_| "no base64");
    let account = RsaKeyPair::from_pkcs8(&der(&published["service_account"]["info"]["private_key"])).unwrap();
    let key = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, account.public());
    key.verify(text.as_bytes(), &decode(signature)?).map_err(|_| "another signature")?;
    let (header, claims) = text.split_once('.').ok_or("no claims")?;
    let json = |part: &str| serde_json::from_slice::<Value>(&decode(part)?).map_err(|_| "no JSON");
    let (header, claims) = (json(header)?, json(claims)?);
    let (issued, expires) = (claims["iat"].as_i64().ok_or("no iat")?, claims["exp"].as_i64().ok_or("no exp")?);
    let is_right = header["kid"] == published["service_account"]["info"]["private_key_id"]
        && claims["iss"] == published["service_account"]["info"]["client_email"]
        && claims["aud"] == "https://oauth2.googleapis.com/token"
        && claims["scope"] == published["service_account"]["scope"]
        && (issued..=issued + 3600).contains(&expires)
        && (now - 60..=now + 60).contains(&issued);
    if is_right { Ok(()) } else { Err("other claims") }
}

fn reply(body: &Value) -> Reply {
    Reply::json(body.to_string())
}

fn google_error(status: u16, reason: &str) -> Reply {
    let error = json!({ "code": status, "message": "secret words of the provider", "errors": [{ "reason": reason }] });
    reply(&json!({ "error": error })).with_status(status)
}

/// Decodes PEM to DER.
fn der(pem: &Value) -> Vec<u8> {
    let lines = pem.as_str().unwrap().lines().filter(|line| !line.starts_with('-'));
    STANDARD.decode(lines.collect::<String>()).unwrap()
}
