//! Requests as bytes, made before the measurement: many users, each with their own token.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::{
    report::Contestant,
    seed::{self, Account, Seed},
};

/// A kind of traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Workload {
    Profile,
    Balance,
    Save,
    Consume,
    KeyedConsume,
    Mix,
    List,
    CompressedList,
    SignIn,
}

impl Workload {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Profile => "profile read",
            Self::Balance => "balance read",
            Self::Consume => "coin consume",
            Self::KeyedConsume => "coin consume, keyed",
            Self::Save => "durable history save",
            Self::Mix => "90% reads, 10% saves",
            Self::List => "list of 20",
            Self::CompressedList => "list of 20, gzip",
            Self::SignIn => "sign-in by code",
        }
    }

    /// Which servers know this traffic.
    pub const fn contestants(self) -> &'static [Contestant] {
        match self {
            Self::Save => &[Contestant::Bare, Contestant::Yarrow, Contestant::EachCommits],
            _ => &[Contestant::Bare, Contestant::Yarrow],
        }
    }
}

/// What a request was, for whoever counts what was stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Read,
    Save,
    Consume,
}

/// A source of requests that never waits.
pub struct Requests {
    reads: Vec<Vec<u8>>,
    writes: Writes,
    writes_of_100: u64,
    written: AtomicU64,
    /// Each of these is good for one use.
    once: Option<(Vec<Vec<u8>>, AtomicU64)>,
}

/// Templates of requests that change something.
struct Writes {
    kind: Kind,
    templates: Vec<Vec<u8>>,
    /// How far from the end the digits begin that are counted up, for requests that must not be the same.
    digits_from_end: Option<usize>,
}

impl Requests {
    /// For the server that answers a constant.
    pub fn hello() -> Self {
        Self::reading(vec![get("/hello", None, "")])
    }

    pub fn of(workload: Workload, seed: &Seed) -> Self {
        let profiles = || seed.accounts.iter().map(|account| get("/user/profile", Some(account), "")).collect();
        let saves = || Writes {
            kind: Kind::Save,
            templates: seed.accounts.iter().map(save).collect(),
            // The record id is the last member: digits, quote, brace.
            digits_from_end: Some(DIGITS + 2),
        };
        let consumes = |more: &str, digits_from_end| Writes {
            kind: Kind::Consume,
            templates: seed.accounts.iter().map(|account| post("/coin/consume", Some(account), more, "")).collect(),
            digits_from_end,
        };
        let key = format!("idempotency-key: {}\r\n", "0".repeat(DIGITS));
        match workload {
            Workload::Profile => Self::reading(profiles()),
            Workload::Balance => {
                Self::reading(seed.accounts.iter().map(|account| get("/coin/balance", Some(account), "")).collect())
            }
            Workload::Save => Self { writes: saves(), writes_of_100: 100, ..Self::reading(Vec::new()) },
            Workload::Consume => Self { writes: consumes("", None), writes_of_100: 100, ..Self::reading(Vec::new()) },
            // The key is the last header but one, and there is no body.
            Workload::KeyedConsume => {
                let from_end = DIGITS + "\r\n".len() + NO_BODY.len();
                Self { writes: consumes(&key, Some(from_end)), writes_of_100: 100, ..Self::reading(Vec::new()) }
            }
            Workload::Mix => Self { writes: saves(), writes_of_100: 10, ..Self::reading(profiles()) },
            Workload::List => Self::reading(seed.readers().iter().map(|account| list(account, "")).collect()),
            Workload::CompressedList => {
                let accepts = "accept-encoding: gzip\r\n";
                Self::reading(seed.readers().iter().map(|account| list(account, accepts)).collect())
            }
            Workload::SignIn => {
                let sign_ins = seed::newcomers().map(|phone_number| sign_in(&phone_number)).collect();
                Self { once: Some((sign_ins, AtomicU64::new(0))), ..Self::reading(Vec::new()) }
            }
        }
    }

    fn reading(reads: Vec<Vec<u8>>) -> Self {
        let writes = Writes { kind: Kind::Save, templates: Vec::new(), digits_from_end: None };
        Self { reads, writes, writes_of_100: 0, written: AtomicU64::new(0), once: None }
    }

    /// Writes the next request; nothing if there are no more.
    pub fn next(&self, random: &mut Random, request: &mut Vec<u8>) -> Option<Kind> {
        if let Some((once, used)) = &self.once {
            let number = usize::try_from(used.fetch_add(1, Ordering::Relaxed)).ok()?;
            request.extend_from_slice(once.get(number)?);
            return Some(Kind::Read);
        }
        if random.below(100) < self.writes_of_100 {
            let template = &self.writes.templates[random.index(self.writes.templates.len())];
            request.extend_from_slice(template);
            if let Some(from_end) = self.writes.digits_from_end {
                self.count_up(request, from_end);
            }
            return Some(self.writes.kind);
        }
        request.extend_from_slice(&self.reads[random.index(self.reads.len())]);
        Some(Kind::Read)
    }

    /// Writes a number that no other request has over the digits that begin so far from the end.
    fn count_up(&self, request: &mut [u8], from_end: usize) {
        let mut number = self.written.fetch_add(1, Ordering::Relaxed);
        let begin = request.len() - from_end;
        for digit in request[begin..begin + DIGITS].iter_mut().rev() {
            *digit = b'0' + u8::try_from(number % 10).unwrap_or(0);
            number /= 10;
        }
    }
}

const DIGITS: usize = 12;
/// How a request without a body ends after its own headers.
const NO_BODY: &str = "content-length: 0\r\n\r\n";

fn get(path: &str, account: Option<&Account>, more: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\n{}{more}\r\n", authorization(account)).into_bytes()
}

fn authorization(account: Option<&Account>) -> String {
    account.map(|account| format!("authorization: Bearer {}\r\n", account.token)).unwrap_or_default()
}

fn post(path: &str, account: Option<&Account>, more: &str, body: &str) -> Vec<u8> {
    if body.is_empty() {
        let head = format!("POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\n{}{more}{NO_BODY}", authorization(account));
        return head.into_bytes();
    }
    format!(
        "POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\n{}{more}content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        authorization(account),
        body.len(),
    )
    .into_bytes()
}

fn save(account: &Account) -> Vec<u8> {
    let casting = Casting::sample();
    let body = format!(
        r#"{{"userId":"{}","questionType":"{}","question":"{}","jsonData":{},"timestamp":{},"localRecordId":"{}"}}"#,
        account.user_id,
        casting.question_type,
        casting.question,
        casting.json_data,
        casting.timestamp,
        "0".repeat(DIGITS),
    );
    post("/divination-history/save", Some(account), "", &body)
}

fn list(account: &Account, more: &str) -> Vec<u8> {
    let body = format!(r#"{{"phoneNumber":"{}","page":1,"size":20}}"#, account.phone_number);
    post("/divination-history/get", Some(account), more, &body)
}

fn sign_in(phone_number: &str) -> Vec<u8> {
    let body = format!(r#"{{"phoneNumber":"{phone_number}","code":"{}"}}"#, seed::CODE);
    post("/auth/login", None, "", &body)
}

/// The casting that everybody saves: `jsonData` of half a kilobyte.
pub struct Casting {
    pub question_type: &'static str,
    pub question: &'static str,
    pub json_data: String,
    pub timestamp: i64,
}

impl Casting {
    pub fn sample() -> Self {
        let line = |position: usize| {
            format!(r#"{{"position":{position},"coins":[2,3,3],"value":8,"moving":false,"name":"六二"}}"#)
        };
        let lines: Vec<_> = (1..=6).map(line).collect();
        let json_data = format!(
            r#"{{"method":"coins","lines":[{}],"primary":{{"number":3,"name":"水雷屯"}},"changed":null,"castAt":"2026-01-02T03:04:05Z"}}"#,
            lines.join(",")
        );
        Self {
            question_type: "career", question: "今年换工作合适吗？", json_data, timestamp: 1_767_225_600_000
        }
    }
}

/// A small generator (xorshift): the same requests in every run, and no cost.
pub struct Random(u64);

impl Random {
    pub fn new(number: usize) -> Self {
        Self(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(number as u64 + 1))
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % bound
    }

    fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).unwrap_or(0)
    }
}
