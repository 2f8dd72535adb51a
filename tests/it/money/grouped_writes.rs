//! Writes that run as sets leave what they leave one by one, and answer the same.

use std::{borrow::Cow, collections::BTreeMap, sync::mpsc::channel};

use yarrow::{
    app::App,
    domain::{
        divination::history::{self, HistoryDraft, HistoryEdit, RecordVersion},
        identity::users::{self, Address},
        money::{
            coins::{self, Consumed},
            ledger::{self, Asset, Authority, EntryKind, Posting},
        },
        operations::idempotency::{Claim, IdempotentOutcome, IdempotentRequest, StoredResponse},
    },
    error::{Error, Result},
    store::Pending,
    types::{EmailAddress, JsonText, UserId},
};

use super::ledger::Random;
use crate::support::{Database, allow_changes, create_trigger, open_app};

const USERS: i64 = 6;
/// An account that was changed outside the service.
const FORGED: i64 = 5;
/// No user has this id.
const UNKNOWN: i64 = 7;
/// A text that is inserted alone.
const LARGE: u64 = 1000;
const ROUNDS: usize = 25;
const MOST: u64 = 40;

impl Random {
    fn user(&mut self) -> i64 {
        i64::try_from(self.below(UNKNOWN.unsigned_abs())).unwrap() + 1
    }
}

#[derive(Clone, Debug)]
enum Item {
    /// A use, perhaps with a key and the number of its request.
    Use(i64, Option<(u64, u8)>),
    Save {
        user: i64,
        record: u64,
        text: Option<u64>,
        /// None for any version, false for an old one, true for the newest one before the group.
        base: Option<bool>,
    },
    /// A closure, which no set contains.
    Topup(i64),
    /// A closure of a user whose saves wait beside it.
    Deletion(i64, u64),
}

impl Item {
    fn random(random: &mut Random) -> Self {
        let user = random.user();
        match random.below(20) {
            0..8 => Self::Use(user, None),
            8..12 => Self::Use(user, Some((random.below(6), u8::from(random.below(8) == 0)))),
            12..18 => Self::Save {
                user,
                record: if random.below(3) == 0 { random.below(4) } else { 1000 + random.below(1 << 40) },
                text: (random.below(4) > 0).then(|| if random.below(30) == 0 { LARGE } else { random.below(100) }),
                base: (random.below(5) == 0).then(|| random.below(2) == 0),
            },
            18 => Self::Topup(user),
            _ => Self::Deletion(user, random.below(4)),
        }
    }
}

/// One of two services that get the same writes.
struct World {
    app: App,
    database: Database,
    _directory: tempfile::TempDir,
    versions: BTreeMap<(i64, u64), RecordVersion>,
}

/// The answer to a write, once it is there.
type Answer<'world> = Box<dyn FnOnce(&mut BTreeMap<(i64, u64), RecordVersion>) -> String + 'world>;

impl World {
    fn new(settings: &[(&str, &str)]) -> Self {
        let (directory, app) = open_app(settings);
        let database = Database::open(directory.path());
        let world = Self { app, database, _directory: directory, versions: BTreeMap::new() };
        for user in 1..=USERS {
            let address = Address::Email(EmailAddress::parse(&format!("user{user}@example.com")).unwrap());
            let created = world.app.core.store.write(move |tx| users::create_in(tx, &address)).wait().unwrap();
            assert_eq!(created.id, UserId(user));
            // The last user gets the first coins while the writes run.
            if user < USERS {
                world.top_up(user).wait().unwrap();
            }
            let records = [0, 2, 126, 129, 139, 30][usize::try_from(user).unwrap() - 1];
            let edits = (0..records).map(|number| edit(10_000 + number, Some(number), None)).collect();
            let saved = history::save_all(&world.app.core, UserId(user), edits).wait().unwrap();
            assert!(saved.iter().all(Result::is_ok));
        }
        let forge = format!("update balances set balance = 1000 where user_id = {FORGED}");
        world.database.execute(&forge, ()).unwrap();
        world
    }

    fn top_up(&self, user: i64) -> Pending<i64> {
        let (user, asset, kind) = (UserId(user), Asset::Coin, EntryKind::Topup);
        self.app
            .core
            .store
            .write(move |tx| ledger::post_in(tx, Posting { user, asset, delta: 20, kind, reference: None }))
    }

    fn begin(&self, item: Item) -> Answer<'_> {
        let core = &self.app.core;
        match item {
            Item::Use(user, key) => {
                let user = UserId(user);
                let done = coins::consume(core, user, once(user, key));
                Box::new(move |_| match done.wait() {
                    Ok(IdempotentOutcome::Fresh(done, stored)) => format!("{done:?} {stored:?}"),
                    Ok(IdempotentOutcome::Replayed(stored)) => format!("again {stored:?}"),
                    Err(error) => error.code.name().to_owned(),
                })
            }
            Item::Save { user, record, text, base } => {
                let newest = self.versions.get(&(user, record)).copied();
                let base = base.map(|is_newest| newest.filter(|_| is_newest).unwrap_or(RecordVersion(1)));
                let saved = history::save(core, UserId(user), edit(record, text, base));
                Box::new(move |versions| match saved.wait() {
                    Ok(Ok(saved)) => {
                        versions.insert((user, record), saved.version);
                        format!("{:?}", saved.draft)
                    }
                    Ok(Err(newer)) => format!("{:?}", newer.map(|newer| newer.draft)),
                    Err(error) => error.code.name().to_owned(),
                })
            }
            Item::Topup(user) => {
                let done = self.top_up(user);
                Box::new(move |_| format!("{:?}", done.wait().map_err(|error| error.code.name())))
            }
            Item::Deletion(user, record) => {
                let deleted = history::delete(core, UserId(user), vec![id_of(record)]);
                Box::new(move |_| format!("{:?}", deleted.wait().map_err(|error| error.code.name())))
            }
        }
    }

    /// Returns the answers to uses that wait at the same time.
    fn use_together(&mut self, uses: &[(i64, Option<(u64, u8)>)]) -> Vec<String> {
        self.run_together(uses.iter().map(|(user, key)| Item::Use(*user, *key)).collect())
    }

    /// Runs writes that wait at the same time.
    fn run_together(&mut self, items: Vec<Item>) -> Vec<String> {
        let mut versions = std::mem::take(&mut self.versions);
        let ((started, start), (release, released)) = (channel(), channel::<()>());
        let held = self.app.core.store.write(move |_| {
            started.send(()).unwrap();
            released.recv().unwrap();
            Ok(())
        });
        start.recv().unwrap();
        self.versions.clone_from(&versions);
        let answers: Vec<_> = items.into_iter().map(|item| self.begin(item)).collect();
        release.send(()).unwrap();
        held.wait().unwrap();
        let answers = answers.into_iter().map(|answer| answer(&mut versions)).collect();
        self.versions = versions;
        answers
    }

    /// Runs writes of which each waits for the one before, as if all had been sent at the same time.
    fn run_in_turn(&mut self, items: Vec<Item>) -> Vec<String> {
        let mut versions = self.versions.clone();
        let answers = items.into_iter().map(|item| self.begin(item)(&mut versions)).collect();
        self.versions = versions;
        answers
    }

    /// Returns the rows, without times and what follows from them.
    fn rows(&self) -> Vec<Vec<String>> {
        let texts = |sql: &str| self.database.texts(sql);
        vec![
            texts(
                "select seq || ':' || user_id || ':' || asset || ':' || sequence || ':' || delta || ':' || balance_after \
                 || ':' || kind || ':' || coalesce(ref, '') from ledger_entries order by seq",
            ),
            texts(
                "select user_id || ':' || asset || ':' || balance || ':' || last_sequence || ':' || \
                 (case when suspended_at is null then 'open' else 'suspended' end) from balances order by user_id, asset",
            ),
            texts(
                "select caller || ':' || route || ':' || key || ':' || hex(request_sha256) || ':' || status || ':' || \
                 hex(body) || ':' || is_free from idempotency_keys order by id"
                    .replace("hex(", if crate::support::postgresql().is_some() { "md5(" } else { "hex(" })
                    .as_str(),
            ),
            texts(
                "select user_id || ':' || sequence || ':' || local_record_id || ':' || coalesce(question, '') || ':' || \
                 coalesce(json_data, '') || ':' || bytes || ':' || \
                 row_number() over (partition by user_id order by change) from history order by user_id, sequence",
            ),
            texts(
                "select user_id || ':' || visible || ':' || hidden || ':' || bytes from history_sums order by user_id",
            ),
            texts("select user_id || ':' || subject from deletions order by user_id, number"),
        ]
    }

    fn commits(&self) -> u64 {
        self.app.core.store.writer_metrics().operations.get().buckets.iter().sum()
    }
}

fn id_of(record: u64) -> String {
    format!("r-{record}")
}

fn edit(record: u64, text: Option<u64>, base_version: Option<RecordVersion>) -> HistoryEdit {
    let draft = HistoryDraft {
        local_record_id: Cow::Owned(id_of(record)),
        question_type: None,
        question: text.map(|text| Cow::Owned(format!("question {text}"))),
        // A few are so large that they are not inserted with others.
        json_data: text.map(|text| {
            let lines = "7,".repeat(if text == LARGE { 40_000 } else { 1 });
            JsonText::from_stored(format!("{{\"lines\":[{lines}{text}]}}"))
        }),
        ai_result: None,
        client_timestamp: None,
    };
    HistoryEdit { draft, base_version }
}

fn once(user: UserId, key: Option<(u64, u8)>) -> IdempotentRequest<Consumed> {
    let Some((key, request)) = key else { return IdempotentRequest::without_key(Some(user)) };
    let claim = Claim {
        caller: format!("user:{user}"),
        route: "/coin/consume".into(),
        key: format!("key-{key}"),
        request_sha256: [request; 32],
        kept_for: std::time::Duration::from_hours(1),
        free_responses: 2,
    };
    IdempotentRequest::with_key(Some(user), claim, |outcome: Result<&Consumed, &Error>| {
        let body = match outcome {
            Ok(consumed) => format!("{consumed:?}"),
            Err(error) => error.code.name().to_owned(),
        };
        Ok(StoredResponse { status: if outcome.is_ok() { 200 } else { 402 }, body: body.into_bytes() })
    })
}

/// Compares two services that get the same random groups of writes.
fn compare(seed: u64, settings: &[(&str, &str)]) {
    println!("seed {seed}");
    let mut random = Random(seed);
    let (mut grouped, mut single) = (World::new(settings), World::new(settings));
    let before = grouped.commits();
    let mut writes = 0;
    for round in 0..ROUNDS {
        let items: Vec<_> = (0..=random.below(MOST)).map(|_| Item::random(&mut random)).collect();
        writes += items.len() as u64;
        let (together, in_turn) = (grouped.run_together(items.clone()), single.run_in_turn(items.clone()));
        for (number, item) in items.iter().enumerate() {
            assert!(together[number] == in_turn[number], "round {round}, {number}: {item:?} of {items:#?}");
        }
        for (together, in_turn) in grouped.rows().into_iter().zip(single.rows()) {
            assert!(together == in_turn, "round {round}: {items:#?}");
        }
    }
    assert!(grouped.commits() - before < writes / 3, "few writes ran together");
    for World { app, .. } in [&grouped, &single] {
        let by = Authority { actor: "cli".into(), reason: "test".into(), request_id: "test".into() };
        assert_eq!(coins::synchronise(&app.core, &by).unwrap().repaired, 1, "the forged account");
        assert!(ledger::verify(&app.core, &mut |_, _| ()).unwrap().is_consistent());
        for user in 1..=USERS {
            assert!(app.core.store.read(|tx| history::are_right_in(tx, UserId(user))).unwrap());
        }
    }
}

#[test]
fn a_set_that_the_database_refuses_runs_one_by_one() {
    let mut world = World::new(&[]);
    let refuse = "select raise(abort, 'refused')";
    let refuse = if crate::support::postgresql().is_some() {
        format!("if new.user_id = 2 then {refuse}; end if")
    } else {
        format!("{refuse} where new.user_id = 2")
    };
    world.database.execute_batch(&create_trigger("refused", "before insert on balances", &refuse)).unwrap();
    // A key that is used twice, and two users who are refused: by the database, and because the account was forged.
    let uses = [
        (1, Some((1, 0))),
        (2, Some((1, 0))),
        (3, None),
        (FORGED, None),
        (1, Some((1, 0))),
        (4, Some((2, 0))),
        (1, None),
    ];
    let answers = world.use_together(&uses);
    let consumed = |balance: i64| format!("{:?}", Consumed { consumed: 1, balance });
    let is_stored = |answer: &str, balance| answer.starts_with(&format!("{} Some(", consumed(balance)));
    assert!(is_stored(&answers[0], 19), "{answers:?}");
    assert_eq!(
        answers[1..4],
        ["internal".to_owned(), format!("{} None", consumed(19)), "account_inconsistent".to_owned()]
    );
    assert!(answers[4].starts_with("again ") && is_stored(&answers[5], 19), "{answers:?}");
    assert_eq!(answers[6], format!("{} None", consumed(18)));
    assert_eq!(world.database.texts("select cast(count(*) as text) from ledger_entries where kind = 'consume'"), ["4"]);
    // The key of the refused one is free, and the others are replayed.
    world.database.execute_batch(&allow_changes("balances")).unwrap();
    let again = world.use_together(&uses);
    assert!(again[0].starts_with("again ") && again[5].starts_with("again "), "{again:?}");
    assert!(is_stored(&again[1], 19), "{again:?}");
    let by = Authority { actor: "cli".into(), reason: "test".into(), request_id: "test".into() };
    assert_eq!(coins::synchronise(&world.app.core, &by).unwrap().repaired, 1, "the forged account");
    assert!(ledger::verify(&world.app.core, &mut |_, _| ()).unwrap().is_consistent());
}

fn seeds() -> [u64; 2] {
    let time = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().subsec_nanos();
    [0x2545_f491_4f6c_dd1d, u64::from(time) << 7 | 1]
}

#[test]
fn sets_leave_what_single_writes_leave() {
    for seed in seeds() {
        compare(seed, &[("LIMITS_HISTORY_RECORDS", "140")]);
    }
}

#[test]
fn sets_keep_the_limit_of_bytes() {
    for seed in seeds() {
        compare(seed, &[("LIMITS_HISTORY_RECORDS", "1000"), ("LIMITS_HISTORY_SIZE", "8 KiB")]);
    }
}
