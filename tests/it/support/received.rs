//! A request as the fake provider received it.

use std::fmt::Write as _;
use std::io::{self, BufRead, BufReader, Read};
use std::net::TcpStream;

use ring::{digest, hmac};

/// A recorded request.
#[derive(Clone, Debug)]
pub struct ReceivedRequest {
    pub method: String,
    /// Path and query, still encoded.
    pub target: String,
    /// In order of arrival, names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// The index of the connection, starting at 0.
    pub connection: usize,
}

impl ReceivedRequest {
    /// Returns the first header with this lower-case name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(candidate, _)| candidate == name).map(|(_, value)| value.as_str())
    }

    /// Returns the path without the query.
    pub fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }

    /// Returns the decoded query parameters in order.
    pub fn query(&self) -> Vec<(String, String)> {
        parameters(self.target.split_once('?').map_or("", |(_, query)| query))
    }

    /// Returns a decoded query parameter.
    pub fn parameter(&self, name: &str) -> Option<String> {
        self.query().into_iter().find(|(candidate, _)| candidate == name).map(|(_, value)| value)
    }

    /// Returns the decoded fields of a form body.
    pub fn form(&self) -> Vec<(String, String)> {
        parameters(std::str::from_utf8(&self.body).expect("a form is text"))
    }

    /// Parses the body as JSON.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).expect("a JSON body")
    }

    /// Verifies an ACS3-HMAC-SHA256 signature from the received request and its list of signed headers. The error says
    /// what is wrong.
    pub fn check_acs3(&self, access_key_id: &str, access_key_secret: &str) -> Result<(), String> {
        let authorization = self.header("authorization").ok_or("no authorization")?;
        let members = authorization.strip_prefix("ACS3-HMAC-SHA256 ").ok_or("another algorithm")?;
        let member = |name: &str| {
            let find = members.split(',').find_map(|part| part.strip_prefix(name)?.strip_prefix('='));
            find.ok_or_else(|| format!("no {name}"))
        };
        if member("Credential")? != access_key_id {
            return Err("another key".to_owned());
        }
        let names: Vec<&str> = member("SignedHeaders")?.split(';').collect();
        self.check_signed_names(&names)?;
        let body_hash = hex(digest::digest(&digest::SHA256, &self.body).as_ref());
        if self.header("x-acs-content-sha256") != Some(&body_hash) {
            return Err("the body has another hash".to_owned());
        }
        let canonical = self.canonical_request(&names, &body_hash);
        let hashed = hex(digest::digest(&digest::SHA256, canonical.as_bytes()).as_ref());
        let key = hmac::Key::new(hmac::HMAC_SHA256, access_key_secret.as_bytes());
        let expected = hex(hmac::sign(&key, format!("ACS3-HMAC-SHA256\n{hashed}").as_bytes()).as_ref());
        if member("Signature")? == expected { Ok(()) } else { Err(format!("another signature over\n{canonical}")) }
    }

    fn check_signed_names(&self, names: &[&str]) -> Result<(), String> {
        if !names.is_sorted() {
            return Err("the signed names are not sorted".to_owned());
        }
        for (name, _) in &self.headers {
            let must_be_signed = name == "host" || name.starts_with("x-acs-") || name == "content-type";
            if must_be_signed && !names.contains(&name.as_str()) {
                return Err(format!("{name} is not signed"));
            }
        }
        for name in ["host", "x-acs-action", "x-acs-version", "x-acs-date", "x-acs-signature-nonce"] {
            self.header(name).ok_or_else(|| format!("no {name}"))?;
        }
        Ok(())
    }

    fn canonical_request(&self, names: &[&str], body_hash: &str) -> String {
        let mut pairs: Vec<String> =
            self.query().iter().map(|(name, value)| format!("{}={}", encode(name), encode(value))).collect();
        pairs.sort();
        let mut text = [self.method.as_str(), self.path(), &pairs.join("&"), ""].join("\n");
        for name in names {
            let value = self.header(name).unwrap_or_default().trim();
            writeln!(text, "{name}:{value}").expect("writing to a String");
        }
        text + "\n" + &names.join(";") + "\n" + body_hash
    }
}

/// Reads a request except for its last byte. It stays in the socket so that the connection can still be reset.
pub(super) fn read_request(
    reader: &mut BufReader<TcpStream>,
    connection: usize,
) -> io::Result<Option<ReceivedRequest>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut words = line.split_whitespace().map(str::to_owned);
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let mut headers: Vec<(String, String)> = Vec::new();
    loop {
        let mut header = String::new();
        read_line_but_its_end(reader, &mut header)?;
        if header.is_empty() {
            break;
        }
        let mut line_feed = [0];
        reader.read_exact(&mut line_feed)?;
        let (name, value) = header.split_once(':').unwrap_or((&header, ""));
        headers.push((name.trim().to_lowercase(), value.trim().to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length: usize = length.and_then(|(_, value)| value.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    if let Some(last) = length.checked_sub(1) {
        let mut line_feed = [0];
        reader.read_exact(&mut line_feed)?;
        reader.read_exact(&mut body[..last])?;
        reader.get_ref().peek(&mut body[last..])?;
    }
    Ok(Some(ReceivedRequest { method, target, headers, body, connection }))
}

/// Reads a line up to its carriage return and leaves the line feed.
fn read_line_but_its_end(reader: &mut BufReader<TcpStream>, line: &mut String) -> io::Result<()> {
    let mut bytes = Vec::new();
    reader.read_until(b'\r', &mut bytes)?;
    if bytes.pop() != Some(b'\r') {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    *line = String::from_utf8(bytes).map_err(|_| io::ErrorKind::InvalidData)?;
    Ok(())
}

fn parameters(text: &str) -> Vec<(String, String)> {
    let pairs = text.split('&').filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .map(|(name, value)| (decode(name), decode(value)))
        .collect()
}

fn decode(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let digits = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let (byte, used) = match (first, digits.and_then(|digits| u8::from_str_radix(digits, 16).ok())) {
            (b'%', Some(byte)) => (byte, 3),
            (b'+', _) => (b' ', 1),
            _ => (first, 1),
        };
        bytes.push(byte);
        rest = &rest[used..];
    }
    String::from_utf8(bytes).expect("parameters are text")
}

fn encode(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                encoded.push(byte as char);
            }
            _ => write!(encoded, "%{byte:02X}").expect("writing to a String"),
        }
    }
    encoded
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::new();
    for byte in bytes {
        write!(text, "{byte:02x}").expect("writing to a String");
    }
    text
}
