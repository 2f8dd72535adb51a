//! A stub gateway on a local port that checks our signatures and sends the replies of a test.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::providers::payment::form::{self, FormField};
use crate::providers::payment::signing::{Signer, Verifier};
use crate::providers::payment::vectors;

/// A reply to the next request.
#[derive(Clone)]
pub(super) enum StubReply {
    /// The object, signed by the provider's key.
    Signed(String),
    SignedByOther(String),
    Unsigned(String),
    /// Status and body, sent unchanged.
    Raw(u16, String),
    /// The head announces more bytes than follow.
    Cut(String),
    /// The connection is closed without a response.
    HangUp,
    Silence(Duration),
}

/// A request with a valid signature and correctly placed parameters.
#[derive(Clone)]
pub(super) struct Seen {
    pub(super) method: String,
    pub(super) content: Value,
}

pub(super) struct StubProvider {
    pub(super) url: String,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl StubProvider {
    /// Replies to one request for each reply, in order, and refuses connections after that.
    pub(super) fn start(replies: Vec<StubReply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/gateway.do", listener.local_addr().unwrap());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let recorded = Arc::clone(&seen);
        thread::spawn(move || {
            for reply in replies {
                let (stream, _) = listener.accept().unwrap();
                serve(&stream, reply, &recorded);
            }
        });
        Self { url, seen }
    }

    /// Returns all valid requests, in order.
    pub(super) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }
}

fn serve(stream: &TcpStream, reply: StubReply, seen: &Mutex<Vec<Seen>>) {
    let (target, body) = read_request(stream);
    let outcome = check_request(&target, &body);
    let (method, fault) = match outcome {
        Ok(request) => {
            let method = request.method.clone();
            seen.lock().unwrap().push(request);
            (method, None)
        }
        Err(fault) => (String::new(), Some(fault)),
    };
    match fault {
        Some(fault) => send(stream, 500, &format!("the request is wrong: {fault}"), 0),
        None => answer(stream, &format!("{}_response", method.replace('.', "_")), reply),
    }
}

fn answer(stream: &TcpStream, key: &str, reply: StubReply) {
    let platform = Signer::Rsa2(vectors::platform_key());
    match reply {
        StubReply::Signed(object) => {
            let signature = platform.sign(&object).unwrap();
            send(stream, 200, &format!("{{\"{key}\":{object},\"sign\":\"{signature}\"}}"), 0);
        }
        StubReply::SignedByOther(object) => {
            let signature = Signer::Rsa2(vectors::merchant_key()).sign(&object).unwrap();
            send(stream, 200, &format!("{{\"{key}\":{object},\"sign\":\"{signature}\"}}"), 0);
        }
        StubReply::Unsigned(object) => send(stream, 200, &format!("{{\"{key}\":{object}}}"), 0),
        StubReply::Raw(status, body) => send(stream, status, &body, 0),
        StubReply::Cut(body) => send(stream, 200, &body, 500),
        StubReply::HangUp => {}
        StubReply::Silence(duration) => thread::sleep(duration),
    }
}

/// Checks that we signed the query and body together and that only the body holds the content.
fn check_request(target: &str, body: &str) -> Result<Seen, &'static str> {
    let (path, query) = target.split_once('?').ok_or("no query")?;
    let query = form::decode(query.as_bytes()).map_err(|_| "query unreadable")?;
    let body = form::decode(body.as_bytes()).map_err(|_| "body unreadable")?;
    if path != "/gateway.do" || body.len() != 1 || form::value_of(&query, "biz_content").is_some() {
        return Err("placement");
    }
    let all: Vec<FormField> = query.into_iter().chain(body).collect();
    let verifier = Verifier::Rsa2(vectors::merchant_key().public_key());
    let signature = form::value_of(&all, "sign").ok_or("no signature")?;
    if !verifier.verifies(form::request_text(&all).as_bytes(), signature) {
        return Err("signature");
    }
    let fixed = [("app_id", "2021000000000001"), ("charset", "utf-8"), ("sign_type", "RSA2"), ("version", "1.0")];
    if fixed.iter().any(|&(name, value)| form::value_of(&all, name) != Some(value)) {
        return Err("common parameters");
    }
    let content = form::value_of(&all, "biz_content").ok_or("no content")?;
    let content = serde_json::from_str(content).map_err(|_| "content unreadable")?;
    Ok(Seen { method: form::value_of(&all, "method").ok_or("no method")?.to_owned(), content })
}

fn read_request(stream: &TcpStream) -> (String, String) {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    let target = line.split_whitespace().nth(1).unwrap_or_default().to_owned();
    let mut length = 0;
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).unwrap();
        let header = header.trim().to_ascii_lowercase();
        if header.is_empty() {
            break;
        }
        if let Some(value) = header.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    (target, String::from_utf8(body).unwrap())
}

/// The client may have disconnected already, as some tests intend.
fn send(mut stream: &TcpStream, status: u16, body: &str, missing_bytes: usize) {
    let length = body.len() + missing_bytes;
    let head =
        format!("HTTP/1.1 {status} x\r\ntrace_id: trace-1\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n");
    let _ = stream.write_all(format!("{head}{body}").as_bytes());
}
