//! The measured endpoints: point reads and writes, lists, counts, and administrators' reports.

use crate::{
    fill::{Filled, client_of, phone_number, token, trace_id},
    support::requests::{Kind, NUMBER, Requests, request},
};

/// The growth that an endpoint's cost is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// Reads or writes a few rows: only the depth of the B-trees grows.
    Point,
    /// Reads one page, or the rows of one user.
    Page,
    /// Reads an index or counters over all users.
    Tally,
}

pub struct Case {
    pub name: &'static str,
    pub bound: Bound,
    make: Make,
}

enum Make {
    User(fn(i64) -> Vec<u8>),
    Write(Kind, fn(i64) -> Vec<u8>),
    Admin(fn(&str, i64) -> Vec<u8>),
}

const USERS_ASKED: i64 = 20_000;

impl Case {
    /// Returns the requests, spread over at most `USERS_ASKED` users.
    pub fn requests(&self, filled: &Filled) -> Requests {
        // Spread over all users; otherwise only a few pages of the file would be used.
        let asked = filled.users.min(USERS_ASKED);
        let users = (0..asked).map(|number| number * filled.users / asked + 1);
        match self.make {
            Make::User(make) => Requests::reading(users.map(make).collect()),
            Make::Write(kind, make) => Requests::writing(kind, users.map(make).collect()),
            Make::Admin(make) => {
                let headers = format!("authorization: Bearer {}\r\n", filled.admin_key);
                Requests::reading(users.take(1000).map(|user| make(&headers, user)).collect())
            }
        }
    }
}

const fn user(name: &'static str, bound: Bound, make: fn(i64) -> Vec<u8>) -> Case {
    Case { name, bound, make: Make::User(make) }
}

const fn admin(name: &'static str, bound: Bound, make: fn(&str, i64) -> Vec<u8>) -> Case {
    Case { name, bound, make: Make::Admin(make) }
}

const fn write(name: &'static str, kind: Kind, make: fn(i64) -> Vec<u8>) -> Case {
    Case { name, bound: Bound::Point, make: Make::Write(kind, make) }
}

/// A month in the past, the same for every request.
const SPAN: &str = "startTime=2026-10-01&endTime=2026-11-01";

/// Returns the cases, in the order of the report.
pub fn all() -> Vec<Case> {
    let mut cases = of_users();
    cases.extend(of_administrators());
    cases
}

fn of_users() -> Vec<Case> {
    vec![
        user("profile", Bound::Point, |user| get(user, "/user/profile")),
        user("coin balance", Bound::Point, |user| get(user, "/coin/balance")),
        user("points", Bound::Point, |user| get(user, "/api/v1/points")),
        user("preferences", Bound::Point, |user| get(user, "/api/v1/preferences")),
        user("account", Bound::Point, |user| get(user, "/api/v1/account")),
        user("devices", Bound::Point, |user| get(user, "/api/v1/auth/tokens")),
        user("record by trace", Bound::Point, |user| {
            get(user, &format!("/divination/records/trace/{}", trace_id(user - 1)))
        }),
        write("save a casting", Kind::Save, save),
        write("consume a coin", Kind::Consume, |user| request("POST", "/coin/consume", &authorization(user), "")),
        write("mark all read", Kind::Read, |user| {
            request("PATCH", "/api/v1/notifications/mark-all-read", &authorization(user), "")
        }),
        user("castings, first page", Bound::Page, |user| castings(user, 1)),
        user("castings, last page", Bound::Page, |user| castings(user, 5)),
        user("count of castings", Bound::Page, |user| {
            get(user, &format!("/divination-history/count/{}", phone_number(user)))
        }),
        user("records of a user", Bound::Page, |user| get(user, &format!("/divination/records/user/{user}"))),
        user("records of a month", Bound::Page, |user| {
            get(user, &format!("/divination/records/user/{user}/daterange?{SPAN}"))
        }),
        user("count of records", Bound::Page, |user| get(user, &format!("/divination/stats/user/{user}/count"))),
        user("points ledger", Bound::Page, |user| get(user, "/api/v1/points/ledger")),
        user("inbox", Bound::Page, |user| get(user, "/api/v1/notifications")),
        user("unread count", Bound::Page, |user| get(user, "/api/v1/notifications/unread-count")),
        user("newest notifications", Bound::Page, |user| get(user, "/notifications/all")),
        user("newest broadcast", Bound::Point, |user| get(user, "/notifications/latest")),
        user("sessions", Bound::Page, |user| get(user, "/api/v1/sessions")),
    ]
}

#[rustfmt::skip]
fn of_administrators() -> Vec<Case> {
    vec![
        admin("log of a user", Bound::Page, |key, user| ask(key, &format!("/admin/network-logs/user/{user}"))),
        admin("log of an address", Bound::Page, |key, user| {
            ask(key, &format!("/admin/network-logs/ip/{}", client_of(user)))
        }),
        admin("log of an hour", Bound::Page, |key, _| ask(key, &format!("/admin/network-logs/time-range?{SPAN}"))),
        admin("failed requests", Bound::Page, |key, _| ask(key, "/admin/network-logs/failed")),
        admin("suspicious addresses", Bound::Tally, |key, _| ask(key, "/admin/network-logs/suspicious")),
        admin("requests by address", Bound::Tally, |key, _| ask(key, "/admin/network-logs/count/ip")),
        admin("failed records", Bound::Page, |key, _| ask(key, "/divination/records/failed")),
        admin("slow records", Bound::Page, |key, _| ask(key, "/divination/records/slow?durationMs=9000")),
        admin("records of a month, counted", Bound::Tally, |key, _| ask(key, &format!("/divination/stats/daterange/count?{SPAN}"))),
        admin("orders", Bound::Page, |key, _| ask(key, "/admin/payments")),
        admin("report of orders", Bound::Tally, |key, _| ask(key, "/admin/payments/report?startTime=2026-01-01&endTime=2026-01-31")),
        admin("notifications sent", Bound::Page, |key, _| ask(key, "/admin/notifications")),
        admin("refused texts", Bound::Page, |key, _| ask(key, "/admin/violations/list")),
        admin("refused texts by type", Bound::Tally, |key, _| ask(key, "/admin/violations/stats/types")),
        admin("feedback", Bound::Page, |key, _| ask(key, "/admin/feedback")),
        admin("audit", Bound::Page, |key, _| ask(key, "/admin/audit")),
        admin("a user validated", Bound::Page, |key, user| ask(key, &format!("/admin/user-data/validate/user/{user}"))),
    ]
}

fn ask(headers: &str, path: &str) -> Vec<u8> {
    request("GET", path, headers, "")
}

fn get(user: i64, path: &str) -> Vec<u8> {
    request("GET", path, &authorization(user), "")
}

fn authorization(user: i64) -> String {
    format!("authorization: Bearer {}\r\n", token(user))
}

fn castings(user: i64, page: u32) -> Vec<u8> {
    let body = format!(r#"{{"page":{page},"size":20}}"#);
    request("POST", "/divination-history/get", &authorization(user), &body)
}

pub fn save(user: i64) -> Vec<u8> {
    let body = format!(
        r#"{{"localRecordId":"{NUMBER}","questionType":"career","question":"今年换工作合适吗？","jsonData":{{"lines":[7,8,8,8,7,6],"method":"coins"}}}}"#
    );
    request("POST", "/divination-history/save", &authorization(user), &body)
}
