//! The workloads and their requests.

use crate::{
    report::Contestant,
    seed::{self, Account, Seed},
    support::requests::{Kind, NUMBER, Requests, request},
};

/// A kind of traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Workload {
    Profile,
    Balance,
    UnreadCount,
    Crowd,
    Save,
    SaveAlone,
    Consume,
    KeyedConsume,
    KeyedAtRandom,
    /// A new order for each request, with its signed order string.
    Order,
    Mix,
    List,
    CompressedList,
    SignIn,
    FirstSignIn,
}

impl Workload {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Profile => "profile read",
            Self::Balance => "balance read",
            Self::UnreadCount => "unread count",
            Self::Crowd => "balance, 2 000 clients",
            Self::SaveAlone => "save, one client",
            Self::Consume => "coin consume",
            Self::KeyedConsume => "coin consume, with_key",
            Self::KeyedAtRandom => "consume, random keys",
            Self::Order => "order to pay",
            Self::Save => "durable history save",
            Self::Mix => "90% reads, 10% saves",
            Self::List => "list of 20",
            Self::CompressedList => "list of 20, gzip",
            Self::SignIn => "sign-in by code",
            Self::FirstSignIn => "first sign-in",
        }
    }

    /// Returns the number of connections, if it differs from the default.
    pub const fn connections(self) -> Option<usize> {
        match self {
            Self::SaveAlone => Some(1),
            Self::Crowd => Some(2_000),
            _ => None,
        }
    }

    /// Returns the settings that the workload needs.
    pub const fn settings(self) -> &'static [(&'static str, &'static str)] {
        match self {
            // Otherwise most requests would return an open order.
            Self::Order => &[("YARROW_PAYMENT_ORDER_REUSE", "0 s")],
            _ => &[],
        }
    }

    /// Returns the servers that support this workload.
    pub const fn contestants(self) -> &'static [Contestant] {
        match self {
            Self::Save | Self::SaveAlone => &Contestant::ALL,
            Self::Profile | Self::Balance | Self::Mix | Self::List => &[
                Contestant::Bare,
                Contestant::Yarrow,
                Contestant::Fastify,
                Contestant::FastApi,
                Contestant::PocketBase,
            ],
            Self::KeyedConsume => &[Contestant::Bare, Contestant::Yarrow, Contestant::Fastify, Contestant::FastApi],
            _ => &[Contestant::Bare, Contestant::Yarrow],
        }
    }
}

impl Workload {
    /// Returns the requests for the service and for peers with its API.
    pub fn requests(self, seed: &Seed) -> Requests {
        let of_all = |make: fn(&Account) -> Vec<u8>| seed.accounts.iter().map(make).collect();
        let of_all_at = |path: &str| seed.accounts.iter().map(|account| get(path, account)).collect();
        let of_readers = |make: fn(&Account) -> Vec<u8>| seed.readers().iter().map(make).collect();
        match self {
            Self::Profile => Requests::reading(of_all(|account| get("/user/profile", account))),
            Self::Balance | Self::Crowd => Requests::reading(of_all(|account| get("/coin/balance", account))),
            Self::UnreadCount => {
                Requests::reading(of_all(|account| get("/api/v1/notifications/unread-count", account)))
            }
            Self::Save | Self::SaveAlone => Requests::writing(Kind::Save, of_all(save)),
            Self::Consume => Requests::writing(Kind::Consume, of_all(|account| consume(account, ""))),
            Self::KeyedConsume => Requests::writing(Kind::Consume, of_all(|account| consume_once(account, ""))),
            Self::KeyedAtRandom => {
                let scattered = |account: &Account| {
                    let place = account.user_id.cast_unsigned().wrapping_mul(0x9E37_79B9_7F4A_7C15);
                    consume_once(account, &format!("{place:016x}"))
                };
                Requests::writing(Kind::Consume, of_all(scattered))
            }
            Self::Order => {
                let path = "/payment/gateway/order?amount=6.00&coinCount=60";
                Requests::writing(Kind::Order, of_all_at(path))
            }
            Self::Mix => Requests::mixed(of_all(|account| get("/user/profile", account)), 10, Kind::Save, of_all(save)),
            Self::List => Requests::reading(of_readers(|account| list(account, ""))),
            Self::CompressedList => Requests::reading(of_readers(|account| list(account, "accept-encoding: gzip\r\n"))),
            Self::SignIn => sign_ins(&seed::returning(seed.size).collect::<Vec<_>>()),
            Self::FirstSignIn => sign_ins(&seed::newcomers(seed.size).collect::<Vec<_>>()),
        }
    }
}

/// Returns the request for the server that returns a constant.
pub fn hello() -> Requests {
    Requests::reading(vec![request("GET", "/hello", "", "")])
}

pub fn get(path: &str, account: &Account) -> Vec<u8> {
    request("GET", path, &authorization(account), "")
}

pub fn authorization(account: &Account) -> String {
    format!("authorization: Bearer {}\r\n", account.token)
}

fn consume(account: &Account, more: &str) -> Vec<u8> {
    request("POST", "/coin/consume", &(authorization(account) + more), "")
}

/// Uses an idempotency key as long as a UUID. With an empty `start` the key begins with the counter, like a UUID of
/// version 7; otherwise consecutive keys land anywhere in the index, like random ones.
fn consume_once(account: &Account, start: &str) -> Vec<u8> {
    let end = &"-7000-8000-0000000000000"[start.len()..];
    consume(account, &format!("idempotency-key: {start}{NUMBER}{end}\r\n"))
}

fn save(account: &Account) -> Vec<u8> {
    let casting = Casting::sample();
    let body = format!(
        r#"{{"userId":"{}","questionType":"{}","question":"{}","jsonData":{},"timestamp":{},"localRecordId":"{NUMBER}"}}"#,
        account.user_id, casting.question_type, casting.question, casting.json_data, casting.timestamp,
    );
    request("POST", "/divination-history/save", &authorization(account), &body)
}

fn list(account: &Account, more: &str) -> Vec<u8> {
    let body = format!(r#"{{"phoneNumber":"{}","page":1,"size":20}}"#, account.phone_number);
    request("POST", "/divination-history/get", &(authorization(account) + more), &body)
}

/// Signs users in so that consecutive numbers are far apart. People do not sign in by number, and sequential numbers
/// would make index writes cheaper.
fn sign_ins(phone_numbers: &[String]) -> Requests {
    /// A prime, coprime to the number of codes.
    const STRIDE: usize = 61_813;
    let count = phone_numbers.len();
    Requests::once((0..count).map(|number| sign_in(&phone_numbers[number * STRIDE % count])).collect())
}

fn sign_in(phone_number: &str) -> Vec<u8> {
    let body = format!(r#"{{"phoneNumber":"{phone_number}","code":"{}"}}"#, seed::CODE);
    request("POST", "/auth/login", "", &body)
}

/// The casting that every save sends, with `jsonData` of half a kilobyte.
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
