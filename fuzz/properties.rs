//! Properties that every parser of untrusted input has for any bytes. Each function panics if its property is violated.

use std::net::IpAddr;

use http::{HeaderMap, HeaderValue};
use ipnet::IpNet;
use yarrow::{
    domain::{
        divination::hexagram,
        messaging::notifications::Payload,
        moderation::{
            engine::{ContentType, Engine, Word, mask, normalise},
            words,
        },
        money::invites::InviteCode,
    },
    http::{
        body::{encoded_pairs, pairs},
        client_ip::client_ip,
    },
    providers::{
        llm::{
            builtin::{Reading, View, Written, interpret},
            event_stream::EventStream,
        },
        payment::form,
    },
    types::{Cursor, EmailAddress, Fen, PhoneNumber, PhoneRules, TimeZone, Timestamp},
};

type Target = fn(&[u8]);

/// Every target by name, which is also the name of its file and of its seeds.
pub const TARGETS: [(&str, Target); 14] = [
    ("amount", amount),
    ("casting", casting),
    ("cursor", cursor),
    ("email", email),
    ("event_stream", event_stream),
    ("forwarded", forwarded),
    ("invite", invite),
    ("notify_form", notify_form),
    ("parameters", parameters),
    ("payload", payload),
    ("phone", phone),
    ("screening", screening),
    ("time", time),
    ("words", word_list),
];

/// An accepted amount of money is printed and parsed as the same amount.
pub fn amount(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else { return };
    if let Ok(amount) = Fen::parse(text) {
        assert_eq!(Fen::parse(&amount.to_string()), Ok(amount));
    }
}

/// Any casting text can be read, for a question that is the same text, in each language and script.
pub fn casting(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else { return };
    let facts = hexagram::read(text);
    for written in [Written::Simplified, Written::Traditional, Written::English] {
        let answer = interpret(&Reading {
            written,
            question_type: None,
            question: text.to_owned(),
            asker: None,
            facts: facts.clone(),
            method: None,
            chart: None,
            view: View::default(),
            is_about_missing_person: false,
        });
        let is_named = facts.primary.is_none_or(|primary| answer.contains(primary.sign()));
        assert!(is_named && !answer.is_empty());
    }
}

/// A cursor has one text.
pub fn cursor(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else { return };
    if let Ok(cursor) = Cursor::parse(text) {
        assert_eq!(cursor.to_string(), text);
    }
}

/// An accepted email address is in canonical form.
pub fn email(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else { return };
    if let Ok(address) = EmailAddress::parse(text) {
        assert_eq!(EmailAddress::parse(address.as_str()).as_ref(), Ok(&address));
        assert!(address.as_str().is_ascii() && !address.as_str().contains(char::is_whitespace));
    }
}

/// A language model's events do not depend on how the bytes are split. The first byte is the chunk size.
pub fn event_stream(data: &[u8]) {
    let Some((size, bytes)) = data.split_first() else { return };
    let pieces = || bytes.chunks(usize::from(*size).max(1));
    assert_eq!(events(std::iter::once(bytes)), events(pieces()));
}

fn events<'data>(pieces: impl Iterator<Item = &'data [u8]>) -> Result<Vec<String>, ()> {
    let mut stream = EventStream::new(4096);
    let mut events = Vec::new();
    for piece in pieces {
        events.extend(stream.push(piece).map_err(drop)?.into_iter().map(|event| format!("{event:?}")));
    }
    events.extend(stream.finish().map_err(drop)?.into_iter().map(|event| format!("{event:?}")));
    Ok(events)
}

/// A client cannot override the address that the proxy reported. One line is one header.
pub fn forwarded(data: &[u8]) {
    let trusted: [IpNet; 2] = ["127.0.0.0/8", "10.0.0.0/8"].map(|network| network.parse().unwrap());
    let mut headers = HeaderMap::new();
    for line in data.split(|byte| *byte == b'\n').filter_map(|line| HeaderValue::from_bytes(line).ok()) {
        headers.append("x-forwarded-for", line);
    }
    let stranger = IpAddr::from([203, 0, 113, 9]);
    assert_eq!(client_ip(stranger, &headers, &trusted).address, stranger);
    let _ = client_ip([127, 0, 0, 1].into(), &headers, &trusted);
    let seen = IpAddr::from([198, 51, 100, 7]);
    headers.append("x-forwarded-for", HeaderValue::from_static("198.51.100.7"));
    assert_eq!(client_ip([127, 0, 0, 1].into(), &headers, &trusted).address, seen);
}

/// An invite code is canonical or rejected.
pub fn invite(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else { return };
    if let Ok(code) = InviteCode::parse(text) {
        assert_eq!(InviteCode::parse(&format!(" {}-", text.to_ascii_lowercase())).as_ref(), Ok(&code));
    }
}

/// A payment notification's form has one reading or is rejected.
pub fn notify_form(data: &[u8]) {
    if let Ok(fields) = form::decode(data) {
        assert_eq!(fields.len(), data.split(|byte| *byte == b'&').count());
        assert!(fields.iter().all(|(name, _)| !name.is_empty() && !name.contains(['&', '=', '%'])));
    }
}

/// Any query or body is parsed or rejected.
pub fn parameters(data: &[u8]) {
    if let Ok(text) = str::from_utf8(data)
        && let Ok(read) = encoded_pairs(text)
    {
        assert!(read.len() <= text.split('&').count());
    }
    for content_type in ["application/json", "application/x-www-form-urlencoded", "text/plain"] {
        let mut headers = HeaderMap::new();
        headers.insert("content-type", HeaderValue::from_static(content_type));
        let _ = pairs(data, &headers, Some("items"));
    }
}

/// A notification's payload is stored as parsed, and opens allowed hosts only.
pub fn payload(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else { return };
    let hosts = ["example.com".parse().unwrap()];
    if let Ok(payload) = Payload::parse(text, &hosts) {
        let kept = payload.to_json();
        assert!(!kept.contains("://") || !kept.contains("open_url") || kept.contains("https://example.com"), "{kept}");
        assert_eq!(Payload::parse(&kept, &hosts), Ok(payload));
    }
}

/// An accepted phone number is in canonical form.
pub fn phone(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else { return };
    let regions = vec!["CN".parse().unwrap(), "GB".parse().unwrap()];
    let rules = PhoneRules { default_region: "CN".parse().unwrap(), allowed_regions: regions };
    if let Ok(number) = PhoneNumber::parse(text, &rules) {
        assert_eq!(PhoneNumber::parse(number.as_str(), &rules).as_ref(), Ok(&number));
        let international = number.e164(&rules);
        assert!(international.starts_with('+') && international[1..].bytes().all(|byte| byte.is_ascii_digit()));
        assert_eq!(PhoneNumber::parse(&international, &rules), Ok(number));
    }
}

/// Any text can be screened by any word list. The first line is a listed word, the rest is the text.
pub fn screening(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else { return };
    let (word, text) = text.split_once('\n').unwrap_or(("赌博", text));
    let words = [word, "赌博", "casino", "加vx", "11"];
    let words =
        words.map(|text| Word { text: text.to_owned(), kind: "other".into(), by_sound: true, ..Word::default() });
    let engine = Engine::build(&words, &[]);
    assert_eq!(normalise(&normalise(text)), normalise(text));
    let characters: Vec<char> = text.chars().collect();
    for content_type in ContentType::ALL {
        let matches = engine.check(content_type, text);
        assert_eq!(mask(text, &matches).chars().count(), characters.len());
        for found in matches {
            assert_eq!(characters[found.start..found.end].iter().collect::<String>(), found.text);
        }
    }
}

/// A time is printed and parsed as the same time.
pub fn time(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else { return };
    let zone: TimeZone = "Asia/Shanghai".parse().unwrap();
    if let Ok(time) = Timestamp::parse(text, &zone) {
        assert_eq!(Timestamp::from_rfc3339(&time.to_string()), Some(time));
    }
}

/// Every line of a word list is a word, skipped with a reason, or empty.
pub fn word_list(data: &[u8]) {
    let lines = data.split(|byte| matches!(byte, b'\n' | b'\r')).count();
    let (words, skipped) = words::parse(data, &words::ImportOptions::default(), |_| {});
    assert!(words.len() + skipped.len() <= lines);
    assert!(words.iter().all(|word| !word.text.trim().is_empty()));
}
