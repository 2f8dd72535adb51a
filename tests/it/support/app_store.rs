//! A fake App Store: it signs transactions and notifications with a chain of its own, and serves the server API.

use std::{
    collections::BTreeMap,
    sync::{Arc, LazyLock, Mutex},
};

use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use rcgen::{
    BasicConstraints, CertificateParams, CustomExtension, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384,
};
use ring::{
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, UnparsedPublicKey},
};
use serde_json::{Value, json};

use super::{
    fake_provider::{FakeProvider, ReceivedRequest, Reply},
    server::Setup,
};

/// The markers of Apple's certificates.
const LEAF_MARKER: &[u64] = &[1, 2, 840, 113_635, 100, 6, 11, 1];
const INTERMEDIATE_MARKER: &[u64] = &[1, 2, 840, 113_635, 100, 6, 2, 1];

pub const BUNDLE: &str = "com.example.yarrow";
pub const APP_APPLE_ID: i64 = 1_234_567_890;

/// Returns the published messages, keys and expectations.
pub fn published_app_store() -> Value {
    serde_json::from_str(include_str!("../../vectors/app_store.json")).unwrap()
}

/// A chain from a root to a leaf that signs messages.
struct SigningChain {
    /// Leaf, intermediate and root in DER form.
    certificates: [Vec<u8>; 3],
    leaf_key: Vec<u8>,
}

static CHAIN: LazyLock<SigningChain> = LazyLock::new(SigningChain::new);

impl SigningChain {
    fn new() -> Self {
        let params = |name: &str, ca: bool, marker: Option<&[u64]>| {
            let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
            params.distinguished_name.push(DnType::CommonName, name);
            params.is_ca = if ca { IsCa::Ca(BasicConstraints::Unconstrained) } else { IsCa::ExplicitNoCa };
            params.key_usages = vec![if ca { KeyUsagePurpose::KeyCertSign } else { KeyUsagePurpose::DigitalSignature }];
            params.use_authority_key_identifier_extension = true;
            let extension = |marker: &[u64]| CustomExtension::from_oid_content(marker, vec![5, 0]);
            params.custom_extensions = marker.map(extension).into_iter().collect();
            params
        };
        let root_key = KeyPair::generate_for(&PKCS_ECDSA_P384_SHA384).unwrap();
        let root_params = params("Test Root CA", true, None);
        let root = root_params.self_signed(&root_key).unwrap();
        let root_issuer = Issuer::new(root_params, root_key);
        let intermediate_key = KeyPair::generate_for(&PKCS_ECDSA_P384_SHA384).unwrap();
        let intermediate_params = params("Test Developer Authority", true, Some(INTERMEDIATE_MARKER));
        let intermediate = intermediate_params.signed_by(&intermediate_key, &root_issuer).unwrap();
        let intermediate_issuer = Issuer::new(intermediate_params, intermediate_key);
        let leaf_key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).unwrap();
        let leaf = params("Test Store Signing", false, Some(LEAF_MARKER)).signed_by(&leaf_key, &intermediate_issuer);
        let certificates = [leaf.unwrap(), intermediate, root].map(|certificate| certificate.der().to_vec());
        Self { certificates, leaf_key: leaf_key.serialize_der() }
    }
}

/// Returns the root of the fake store as one line of base64, for the settings.
pub fn store_root() -> String {
    STANDARD.encode(&CHAIN.certificates[2])
}

/// Configures purchases in the App Store, with a fake of its API.
pub fn with_app_store(setup: Setup, url: &str) -> Setup {
    let published = published_app_store();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    setup
        .with("PAYMENT_APPLE_BUNDLE_ID", BUNDLE)
        .with("PAYMENT_APPLE_APP_APPLE_ID", APP_APPLE_ID)
        .with("PAYMENT_APPLE_ISSUER_ID", text(&published["api_token"]["claims"]["iss"]))
        .with("PAYMENT_APPLE_KEY_ID", text(&published["api_token"]["header"]["kid"]))
        .with("PAYMENT_APPLE_PRIVATE_KEY", text(&published["api_token"]["key"]["private_pkcs8_pem"]))
        .with("PAYMENT_APPLE_ROOT", store_root())
        .with("PAYMENT_APPLE_BASE_URL", url)
        .with("PAYMENT_APPLE_SANDBOX_BASE_URL", url)
}

/// Returns a signed message with this payload.
pub fn sign_jws(payload: &Value) -> String {
    let chain: Vec<String> = CHAIN.certificates.iter().map(|der| STANDARD.encode(der)).collect();
    let header = json!({ "alg": "ES256", "x5c": chain });
    let encode = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let text = format!("{}.{}", encode(&header), encode(payload));
    let random = SystemRandom::new();
    let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &CHAIN.leaf_key, &random).unwrap();
    let signature = key.sign(&random, text.as_bytes()).unwrap();
    format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature))
}

/// Returns the payload of a purchase of 60 coins. `changes` override or add members.
pub fn store_transaction(id: &str, account_token: Option<&str>, now: i64, changes: &[(&str, Value)]) -> Value {
    let mut payload = json!({
        "transactionId": id, "originalTransactionId": id, "bundleId": BUNDLE, "productId": "com.example.yarrow.coins60",
        "purchaseDate": now - 10_000, "originalPurchaseDate": now - 10_000, "quantity": 1, "type": "Consumable",
        "inAppOwnershipType": "PURCHASED", "signedDate": now, "environment": "Production",
        "transactionReason": "PURCHASE", "storefront": "CHN", "storefrontId": "143465", "price": 6000, "currency": "CNY",
    });
    if let Some(token) = account_token {
        payload["appAccountToken"] = token.into();
    }
    for (name, value) in changes {
        payload[*name] = value.clone();
    }
    payload
}

/// Returns the members that a refund of this percentage (in thousandths) adds to a transaction.
pub fn revocation(percentage: u32, now: i64) -> [(&'static str, Value); 3] {
    let kind = if percentage == 100_000 { "REFUND_FULL" } else { "REFUND_PRORATED" };
    [("revocationDate", now.into()), ("revocationPercentage", percentage.into()), ("revocationType", kind.into())]
}

/// Returns the body of a notification about a transaction.
pub fn store_notification(kind: &str, uuid: &str, transaction: Option<&Value>, now: i64) -> String {
    json!({ "signedPayload": signed_notification(kind, uuid, transaction, now) }).to_string()
}

fn signed_notification(kind: &str, uuid: &str, transaction: Option<&Value>, now: i64) -> String {
    let environment = transaction.map_or(json!("Production"), |transaction| transaction["environment"].clone());
    let mut data = json!({ "environment": environment, "appAppleId": APP_APPLE_ID, "bundleId": BUNDLE });
    if let Some(transaction) = transaction {
        data["signedTransactionInfo"] = sign_jws(transaction).into();
    }
    sign_jws(&json!({
        "notificationType": kind, "notificationUUID": uuid, "version": "2.0", "signedDate": now, "data": data,
    }))
}

/// A running fake of the store's server API. One address serves both environments.
pub struct FakeAppStore {
    provider: FakeProvider,
    book: Arc<Mutex<StoreBook>>,
}

#[derive(Default)]
struct StoreBook {
    transactions: BTreeMap<String, Value>,
    notifications: Vec<String>,
    consumption: Vec<(String, Value)>,
    failure: Option<(u16, i64)>,
}

/// Messages on a page of a history.
const PAGE: usize = 2;

impl FakeAppStore {
    /// Starts the API with this clock, in seconds.
    pub fn start_at(clock: fn() -> i64) -> Self {
        let book = Arc::new(Mutex::new(StoreBook::default()));
        let keeper = Arc::clone(&book);
        let provider = FakeProvider::with_handler(move |request| match check_bearer(request, clock()) {
            Ok(()) => keeper.lock().unwrap().response(request),
            Err(fault) => Reply::status(401).body(fault),
        });
        Self { provider, book }
    }

    pub fn url(&self) -> String {
        self.provider.url()
    }

    pub fn add_transaction(&self, transaction: Value) {
        let id = transaction["transactionId"].as_str().unwrap().to_owned();
        self.book.lock().unwrap().transactions.insert(id, transaction);
    }

    /// Adds a notification to the history.
    pub fn add_notification(&self, kind: &str, uuid: &str, transaction: Option<&Value>, now: i64) {
        self.book.lock().unwrap().notifications.push(signed_notification(kind, uuid, transaction, now));
    }

    /// Fails all calls with this status and error code.
    pub fn fail(&self, status: u16, code: i64) {
        self.book.lock().unwrap().failure = Some((status, code));
    }

    /// Returns the consumption information received, by transaction.
    pub fn consumption(&self) -> Vec<(String, Value)> {
        self.book.lock().unwrap().consumption.clone()
    }
}

impl StoreBook {
    fn response(&mut self, request: &ReceivedRequest) -> Reply {
        if let Some((status, code)) = self.failure {
            return store_error(status, code);
        }
        let path: Vec<&str> = request.path().trim_start_matches('/').split('/').collect();
        match (request.method.as_str(), path.as_slice()) {
            ("GET", ["inApps", "v1", "transactions", id]) => match self.transactions.get(*id) {
                Some(transaction) => reply(&json!({ "signedTransactionInfo": sign_jws(transaction) })),
                None => store_error(404, 4_040_010),
            },
            ("GET", ["inApps", "v1", "lookup", _order]) => {
                let signed: Vec<String> = self.transactions.values().map(sign_jws).collect();
                reply(&json!({ "status": 0, "signedTransactions": signed }))
            }
            ("GET", ["inApps", "v2", "history", _]) => self.history(request),
            ("POST", ["inApps", "v1", "notifications", "history"]) => {
                assert!(request.json()["startDate"].is_i64() && request.json()["endDate"].is_i64());
                let start: usize = request.parameter("paginationToken").map_or(0, |token| token.parse().unwrap());
                let page = self.notifications.iter().skip(start).take(PAGE);
                let page: Vec<_> =
                    page.map(|payload| json!({ "signedPayload": payload, "sendAttempts": [] })).collect();
                let has_more = start + PAGE < self.notifications.len();
                let next = has_more.then(|| (start + PAGE).to_string());
                reply(&json!({ "notificationHistory": page, "hasMore": has_more, "paginationToken": next }))
            }
            ("POST", ["inApps", "v1", "notifications", "test"]) => {
                reply(&json!({ "testNotificationToken": "token-1" }))
            }
            ("GET", ["inApps", "v1", "notifications", "test", "token-1"]) => {
                reply(&json!({ "sendAttempts": [{ "attemptDate": 1, "sendAttemptResult": "SUCCESS" }] }))
            }
            ("PUT", ["inApps", "v2", "transactions", "consumption", id]) => {
                let content = request.json();
                if content["customerConsented"] != true {
                    return store_error(400, 4_000_000);
                }
                self.consumption.push(((*id).to_owned(), content));
                Reply::status(202)
            }
            other => panic!("unsupported call {other:?}"),
        }
    }

    fn history(&self, request: &ReceivedRequest) -> Reply {
        let start: usize = request.parameter("revision").map_or(0, |revision| revision.parse().unwrap());
        let page: Vec<String> = self.transactions.values().skip(start).take(PAGE).map(sign_jws).collect();
        let end = start + page.len();
        reply(&json!({
            "signedTransactions": page, "revision": end.to_string(), "hasMore": end < self.transactions.len(), "bundleId": BUNDLE,
        }))
    }
}

fn reply(body: &Value) -> Reply {
    Reply::json(body.to_string())
}

fn store_error(status: u16, code: i64) -> Reply {
    let body = json!({ "errorCode": code, "errorMessage": "secret words of the provider" });
    reply(&body).with_status(status)
}

/// Verifies the bearer token of a request with the published key.
fn check_bearer(request: &ReceivedRequest, now: i64) -> Result<(), &'static str> {
    let published = published_app_store();
    let token = request.header("authorization").and_then(|header| header.strip_prefix("Bearer ")).ok_or("no token")?;
    let (text, signature) = token.rsplit_once('.').ok_or("no signature")?;
    let (header, claims) = text.split_once('.').ok_or("no claims")?;
    let decode = |part: &str| URL_SAFE_NO_PAD.decode(part).map_err(|_| "no base64");
    let json = |part: &str| serde_json::from_slice::<Value>(&decode(part)?).map_err(|_| "no JSON");
    let pem = published["api_token"]["key"]["public_spki_pem"].as_str().unwrap();
    let der = STANDARD.decode(pem.lines().filter(|line| !line.starts_with('-')).collect::<String>()).unwrap();
    let key = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, &der[der.len() - 65..]);
    key.verify(text.as_bytes(), &decode(signature)?).map_err(|_| "another signature")?;
    let (header, claims) = (json(header)?, json(claims)?);
    let (issued, expires) = (claims["iat"].as_i64().ok_or("no iat")?, claims["exp"].as_i64().ok_or("no exp")?);
    let is_right = header == published["api_token"]["header"]
        && ["bid", "iss", "aud"].iter().all(|name| claims[*name] == published["api_token"]["claims"][*name])
        && (issued..=issued + 3600).contains(&expires)
        && (now - 60..=now + 60).contains(&issued);
    if is_right { Ok(()) } else { Err("other claims") }
}
