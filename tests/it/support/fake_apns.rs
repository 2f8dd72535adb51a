//! A fake of Apple's push service: HTTP/2 without TLS, which checks provider tokens.

use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{Arc, Mutex},
    thread,
};

use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use hyper::body::Bytes;
use ring::{
    rand::SystemRandom,
    signature::{
        ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _, UnparsedPublicKey,
    },
};
use serde_json::{Value, json};

use super::Setup;

pub const TOPIC: &str = "com.example.yarrow";
pub const TEAM: &str = "TEAM123456";
pub const KEY_ID: &str = "KEY1234567";

/// A request that arrived.
#[derive(Clone, Debug)]
pub struct ReceivedPush {
    /// The token in the path.
    pub token: String,
    pub headers: HashMap<String, String>,
    pub body: Value,
    pub status: u16,
}

/// A running fake.
pub struct FakeApns {
    address: SocketAddr,
    key: String,
    book: Arc<Mutex<ApnsBook>>,
    _stop: tokio::sync::oneshot::Sender<()>,
}

#[derive(Default)]
struct ApnsBook {
    pushes: Vec<ReceivedPush>,
    /// Answers to tokens of phones, in place of 200.
    answers: HashMap<String, (u16, Value)>,
    /// An answer to all requests.
    outage: Option<(u16, Value)>,
    connections: usize,
    /// Closes each connection after this many requests.
    requests_per_connection: Option<usize>,
}

impl FakeApns {
    pub fn start() -> Self {
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new()).unwrap();
        let pair =
            EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, pkcs8.as_ref(), &SystemRandom::new()).unwrap();
        let public = pair.public_key().as_ref().to_vec();
        let key =
            format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n", STANDARD.encode(pkcs8.as_ref()));
        let book = Arc::new(Mutex::new(ApnsBook::default()));
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let shared = Arc::clone(&book);
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
            runtime.spawn(serve(listener, public, shared));
            // Ends when the fake is dropped.
            drop(runtime.block_on(stopped));
            runtime.shutdown_background();
        });
        Self { address, key, book, _stop: stop }
    }

    /// Configures pushes to iPhones.
    pub fn configure(&self, setup: Setup) -> Setup {
        setup
            .with("PUSH_APNS_BASE_URL", format!("http://{}", self.address))
            .with("PUSH_APNS_TEAM_ID", TEAM)
            .with("PUSH_APNS_KEY_ID", KEY_ID)
            .with("PUSH_APNS_PRIVATE_KEY", &self.key)
            .with("PUSH_APNS_TOPIC", TOPIC)
    }

    pub fn pushes(&self) -> Vec<ReceivedPush> {
        self.book.lock().unwrap().pushes.clone()
    }

    pub fn connections(&self) -> usize {
        self.book.lock().unwrap().connections
    }

    /// Answers pushes to a phone with an error.
    pub fn answer(&self, token: &str, status: u16, body: Value) {
        self.book.lock().unwrap().answers.insert(token.to_owned(), (status, body));
    }

    /// Answers all pushes with an error, or none any more.
    pub fn fail(&self, outage: Option<(u16, Value)>) {
        self.book.lock().unwrap().outage = outage;
    }

    /// Closes each connection after this many requests.
    pub fn close_after(&self, requests: usize) {
        self.book.lock().unwrap().requests_per_connection = Some(requests);
    }
}

async fn serve(listener: std::net::TcpListener, key: Vec<u8>, book: Arc<Mutex<ApnsBook>>) {
    let listener = tokio::net::TcpListener::from_std(listener).unwrap();
    while let Ok((stream, _)) = listener.accept().await {
        book.lock().unwrap().connections += 1;
        tokio::spawn(serve_connection(stream, key.clone(), Arc::clone(&book)));
    }
}

async fn serve_connection(stream: tokio::net::TcpStream, key: Vec<u8>, book: Arc<Mutex<ApnsBook>>) {
    let Ok(mut connection) = h2::server::handshake(stream).await else { return };
    let mut served = 0;
    while let Some(Ok((request, mut respond))) = connection.accept().await {
        let (head, mut body) = request.into_parts();
        let (book, key) = (Arc::clone(&book), key.clone());
        let limit = book.lock().unwrap().requests_per_connection;
        served += 1;
        tokio::spawn(async move {
            let mut bytes = Vec::new();
            while let Some(chunk) = body.data().await {
                // A killed client leaves a part of a request, which counts for nothing.
                let Ok(chunk) = chunk else { return };
                drop(body.flow_control().release_capacity(chunk.len()));
                bytes.extend_from_slice(&chunk);
            }
            let (status, answer) = answer(&head, &bytes, &key, &mut book.lock().unwrap());
            let id = head.headers.get("apns-id").cloned().unwrap();
            let response = http::Response::builder().status(status).header("apns-id", id).body(()).unwrap();
            if status == 200 {
                drop(respond.send_response(response, true));
            } else if let Ok(mut stream) = respond.send_response(response, false) {
                drop(stream.send_data(Bytes::from(answer.to_string()), true));
            }
        });
        if limit.is_some_and(|limit| served >= limit) {
            connection.graceful_shutdown();
        }
    }
}

fn answer(head: &http::request::Parts, body: &[u8], key: &[u8], book: &mut ApnsBook) -> (u16, Value) {
    let text = |name: &str| head.headers.get(name).map(|value| value.to_str().unwrap().to_owned());
    let token = head.uri.path().strip_prefix("/3/device/").unwrap_or_default().to_owned();
    let judged = judge(head.method.as_str(), &text, body, key);
    let (status, answer) = match (judged, &book.outage, book.answers.get(&token)) {
        (Err(reason), ..) => (403, json!({ "reason": reason })),
        (_, Some(outage), _) => outage.clone(),
        (_, _, Some(answer)) => answer.clone(),
        _ if !token.bytes().all(|byte| byte.is_ascii_hexdigit()) || token.len() < 64 => {
            (400, json!({ "reason": "BadDeviceToken" }))
        }
        _ => (200, Value::Null),
    };
    let headers = head.headers.iter();
    let headers = headers.map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned())).collect();
    let body = serde_json::from_slice(body).unwrap();
    book.pushes.push(ReceivedPush { token, headers, body, status });
    (status, answer)
}

/// Checks what Apple checks before it looks at the token of the phone.
fn judge(method: &str, header: &dyn Fn(&str) -> Option<String>, body: &[u8], key: &[u8]) -> Result<(), &'static str> {
    if method != "POST" || body.len() > 4096 {
        return Err("PayloadTooLarge");
    }
    if header("apns-topic").as_deref() != Some(TOPIC) || header("apns-push-type").as_deref() != Some("alert") {
        return Err("BadTopic");
    }
    let authorization = header("authorization").ok_or("MissingProviderToken")?;
    let jwt = authorization.strip_prefix("bearer ").ok_or("InvalidProviderToken")?;
    let (signed, signature) = jwt.rsplit_once('.').ok_or("InvalidProviderToken")?;
    let signature = URL_SAFE_NO_PAD.decode(signature).map_err(|_| "InvalidProviderToken")?;
    let verified = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, key).verify(signed.as_bytes(), &signature);
    verified.map_err(|_| "InvalidProviderToken")?;
    let part = |index: usize| -> Value {
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(signed.split('.').nth(index).unwrap()).unwrap()).unwrap()
    };
    let (head, claims) = (part(0), part(1));
    if head["alg"] != "ES256" || head["kid"] != KEY_ID || claims["iss"] != TEAM {
        return Err("InvalidProviderToken");
    }
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let age = i64::try_from(now).unwrap() - claims["iat"].as_i64().ok_or("InvalidProviderToken")?;
    if (-60..3600).contains(&age) { Ok(()) } else { Err("ExpiredProviderToken") }
}
