//! The round trips of each write. All copies wait while a commit makes them, so they decide how many writes a second there
//! are if the database is on another machine.

use std::thread;

use serde_json::json;

use super::SharedDatabase;
use crate::support::{Caller, Request, Server, eventually, send_concurrently};

/// Requests that share a commit.
const TOGETHER: usize = 64;
/// A job of the service may write beside a request that is counted, so each is counted several times.
const REPEATS: usize = 4;

/// Of requests that the service does not send to the writer all at once.
const NOT_TOGETHER: f64 = f64::INFINITY;

/// A kind of write.
struct Operation {
    name: &'static str,
    /// The round trips of one request that has its commit to itself.
    alone: u64,
    /// At most these of a request that shares its commit with 63 others.
    together: f64,
    /// Makes the next request of a user.
    request: fn(&World, &Caller) -> Request,
}

const fn operation(
    name: &'static str,
    alone: u64,
    together: f64,
    request: fn(&World, &Caller) -> Request,
) -> Operation {
    Operation { name, alone, together, request }
}

/// Two round trips of each commit are its begin with the lock of all copies, and its end.
const OPERATIONS: [Operation; 18] = [
    operation("use of a coin", 1, 0.07, |world, user| world.server.post("/coin/consume").by(user)),
    operation("use with a key", 2, 0.09, |world, user| keyed(world, user, world.next())),
    operation("repeated use with a key", 2, 0.07, |world, user| keyed(world, user, 0)),
    operation("history save", 2, 0.09, |world, user| save(world, user, world.next())),
    operation("changed history record", 3, 1.07, |world, user| save(world, user, 0)),
    operation("deleted history record", 3, 3.04, |world, user| {
        world.server.post("/divination-history/delete").by(user).json(&json!({ "localRecordIds": ["r-0"] }))
    }),
    operation("casting", 4, 4.04, |world, user| {
        let body = json!({ "question": "今年换工作合适吗？", "method": "three_coins" });
        world.server.post("/api/v1/sessions").by(user).json(&body)
    }),
    operation("order", 2, 2.04, |world, user| {
        let coins = [("6", "60"), ("30", "330")][world.next() % 2];
        world.server.post("/payment/gateway/order").by(user).json(&json!({ "amount": coins.0, "coinCount": coins.1 }))
    }),
    operation("nickname", 3, 3.04, |world, user| {
        world.server.put("/user/nickname").by(user).json(&json!({ "nickname": format!("甲{}", world.next()) }))
    }),
    operation("preferences", 2, 2.04, |world, user| {
        let zone = ["Asia/Shanghai", "Europe/Berlin"][world.next() % 2];
        world.server.patch("/api/v1/preferences").by(user).json(&json!({ "timeZone": zone }))
    }),
    operation("mark all as read", 6, 6.04, |world, user| {
        world.server.patch("/api/v1/notifications/mark-all-read").by(user)
    }),
    operation("feedback", 5, 5.04, |world, user| {
        world.server.post("/feedback").by(user).json(&json!({ "content": format!("text {}", world.next()) }))
    }),
    operation("code", 12, NOT_TOGETHER, |world, _| {
        world.server.post("/auth/send-code").form(&[("phoneNumber", &world.unused_number())])
    }),
    operation("sign-in", 2, 2.04, |world, user| sign_in(world, &user.phone_number)),
    operation("first sign-in", 7, 7.1, |world, _| sign_in(world, &world.unused_number())),
    operation("wrong code", 2, 2.1, |world, _| {
        world.server.post("/auth/login").form(&[("phoneNumber", &world.unused_number()), ("code", "000000")])
    }),
    operation("refreshed token", 2, 2.1, |world, _| {
        let user = world.server.sign_in(&world.unused_number());
        world.server.post("/api/v1/auth/refresh").by(&user)
    }),
    operation("sign-out", 2, 2.1, |world, _| {
        let user = world.server.sign_in(&world.unused_number());
        world.server.post("/api/v1/auth/logout").by(&user)
    }),
];

/// A service with users.
struct World {
    database: SharedDatabase,
    server: Server,
    metrics: String,
    users: Vec<Caller>,
    numbers: std::cell::Cell<usize>,
}

impl World {
    fn start() -> Self {
        let database = SharedDatabase::create();
        let limits = ["AUTH_SENDS_PER_ADDRESS_HOUR", "AUTH_SENDS_PER_ADDRESS_DAY", "AUTH_SENDS_PER_DAY"];
        let setup = limits.iter().fold(database.setup(), |setup, limit| setup.with(limit, 100_000));
        let mut server = setup
            .with("AUTH_RESEND_AFTER", "0 s")
            .with("COINS_INITIAL", 100_000)
            .with("LIMITS_FEEDBACK_PER_USER", 1000)
            .with_metrics()
            .start();
        let metrics = server.metrics();
        let users = (0..=TOGETHER).map(|number| server.sign_in(&format!("1380013{number:04}"))).collect();
        let world = Self { database, server, metrics, users, numbers: std::cell::Cell::new(1) };
        let url = world.database.url_at(&world.database.socket);
        let settings = [("YARROW_DATABASE_URL", url.as_str()), ("YARROW_AUTH_SECRET_KEY", &"0".repeat(64))];
        for user in &world.users {
            let adjust = ["points", "adjust", &user.phone_number, "1000", "--reason", "test"];
            world.server.command_with(&settings, &adjust).expect(0);
        }
        world
    }

    /// Returns a number that was not returned before.
    fn next(&self) -> usize {
        self.numbers.replace(self.numbers.get() + 1)
    }

    fn unused_number(&self) -> String {
        format!("139{:08}", self.next())
    }

    /// Returns the round trips of all commits so far.
    fn round_trips(&self) -> u64 {
        let page = Request::new("GET", &self.metrics).send().expect(200).text();
        let found = page.lines().find_map(|line| line.strip_prefix("yarrow_writer_round_trips_total "));
        found.expect("the page has the round trips").parse().unwrap()
    }

    /// Returns the round trips of a request beside those of its commit.
    fn of_one(&self, operation: &Operation) -> u64 {
        let request = (operation.request)(self, &self.users[0]);
        let before = self.round_trips();
        let response = request.send();
        assert!(response.status < 500, "{}: {}", operation.name, response.text());
        (self.round_trips() - before).saturating_sub(2)
    }

    /// Returns the round trips of a request of a full commit, with its share of the commit's own.
    fn of_many(&self, operation: &Operation) -> f64 {
        let first = self.server.post("/coin/consume").by(&self.users[TOGETHER]);
        let of_first = self.of_one(&OPERATIONS[0]) + 2;
        let requests: Vec<_> = self.users[..TOGETHER].iter().map(|user| (operation.request)(self, user)).collect();
        let before = self.round_trips();
        let waiting = |count| {
            eventually("the writes wait", || Server::waiting_changes(&self.metrics) >= count);
        };
        let mut holder = self.database.client(&self.database.name);
        thread::scope(|scope| {
            let mut lock = holder.transaction().unwrap();
            lock.execute("select 1 from store_state for update", &[]).unwrap();
            // The writer has begun its commit, and waits for the lock.
            let first = scope.spawn(|| first.send());
            waiting(1);
            let all = scope.spawn(|| send_concurrently(requests));
            waiting(1 + TOGETHER as u64);
            lock.rollback().unwrap();
            first.join().unwrap().expect(200);
            for response in all.join().unwrap() {
                assert!(response.status < 500, "{}: {}", operation.name, response.text());
            }
        });
        #[expect(clippy::cast_precision_loss, reason = "far below a float's exact range")]
        let each = (self.round_trips() - before - of_first) as f64 / TOGETHER as f64;
        each
    }
}

fn keyed(world: &World, user: &Caller, number: usize) -> Request {
    world.server.post("/coin/consume").by(user).header("idempotency-key", &format!("key-{number}"))
}

fn save(world: &World, user: &Caller, number: usize) -> Request {
    let body = json!({ "localRecordId": format!("r-{number}"), "question": "q", "jsonData": { "lines": [7, 8] } });
    world.server.post("/divination-history/save").by(user).json(&body)
}

fn sign_in(world: &World, phone_number: &str) -> Request {
    let code = world.server.request_code(phone_number);
    world.server.post("/auth/login").form(&[("phoneNumber", phone_number), ("code", &code)])
}

#[test]
#[ignore = "needs PostgreSQL; tests/postgresql/run starts it"]
fn each_write_makes_no_more_round_trips_than_listed() {
    let world = World::start();
    let mut faults = Vec::new();
    println!("{:<26} {:>6} {:>9}", "write", "alone", "together");
    for operation in &OPERATIONS {
        // The first ones prepare statements.
        world.of_one(operation);
        if operation.together.is_finite() {
            world.of_many(operation);
        }
        let alone = (0..REPEATS).map(|_| world.of_one(operation)).min().unwrap();
        let together = if operation.together.is_finite() {
            (0..REPEATS).map(|_| world.of_many(operation)).fold(f64::INFINITY, f64::min)
        } else {
            f64::INFINITY
        };
        println!("{:<26} {alone:>6} {together:>9.2}", operation.name);
        if alone != operation.alone || together > operation.together {
            faults.push(operation.name);
        }
    }
    assert!(faults.is_empty(), "not as listed: {}", faults.join(", "));
}
