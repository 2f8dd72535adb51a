//! The cost of reading the inbox, in steps of SQLite's virtual machine and by query plans, does not depend on the
//! number of broadcasts or users.

use std::io::Write as _;

use tempfile::TempDir;

use super::{
    Audience, NotificationDraft, NotificationKind, Payload, blocks, erase_readings_in, erase_user_in, export_in,
    inbox::{list_in, mark_all_read_in, mark_read_in, unread_count_in},
    send_in,
};
use crate::{
    clock::Clock,
    domain::identity::users,
    store::{SchemaPolicy, Store, Tuning, Write},
    types::{CursorRange, PhoneNumber, PhoneRules, Region, Timestamp, UserId},
};

const MAX_PER_USER: u32 = 500;

/// A store with users, broadcasts, and one user with many direct notifications.
struct Inbox {
    store: Store,
    user: UserId,
    _directory: TempDir,
}

/// The steps that each operation took.
#[derive(Debug)]
struct Steps {
    page: u64,
    deep_page: u64,
    count: u64,
    mark_one: u64,
    mark_all: u64,
    broadcast: u64,
}

impl Inbox {
    fn new(users: u32, broadcasts: u32, direct: u32) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let tuning = Tuning { cache_kib: 65_536, ..Tuning::SMALL };
        let store =
            Store::open(&directory.path().join("yarrow.db"), &tuning, Clock::default(), SchemaPolicy::Migrate).unwrap();
        let make = move |tx: &Write<'_>| {
            tx.execute(
                "with recursive number (n) as (select 1 union all select n + 1 from number where n < ?1) \
                 insert into users (phone_number, created_at) select 'user ' || n, 1 from number",
                [users],
            )?;
            let (user, _) = users::find_or_create_in(tx, &users::Address::Phone(phone_number()))?;
            tx.execute("update users set created_at = 1 where id = ?1", [user.id.0])?;
            Ok(user.id)
        };
        let user = store.write(make).wait().unwrap();
        store
            .write(move |tx| {
                for number in 0..broadcasts.max(direct) {
                    if number < broadcasts {
                        send_in(tx, &draft(Audience::Everybody), MAX_PER_USER)?;
                    }
                    if number < direct {
                        send_in(tx, &draft(Audience::Users(vec![user])), MAX_PER_USER)?;
                    }
                }
                Ok(())
            })
            .wait()
            .unwrap();
        Self { store, user, _directory: directory }
    }

    fn steps(&self) -> Steps {
        let user = self.user;
        let page = |before| {
            self.store.file().unwrap().counting_steps(|tx| list_in(tx, user, CursorRange { before, limit: 20 }))
        };
        let (first, page_steps) = page(None);
        assert_eq!(first.items.len(), 20);
        let (last, deep_page) = page(Some(30));
        assert!(!last.items.is_empty());
        let (_, count) = self.store.file().unwrap().counting_steps(|tx| unread_count_in(tx, user, Timestamp(0)));
        let newest = first.items[0].notification.id;
        let (_, mark_one) = self.store.file().unwrap().counting_steps(|tx| mark_read_in(tx, user, newest));
        let (_, mark_all) = self.store.file().unwrap().counting_steps(|tx| mark_all_read_in(tx, user));
        let (_, broadcast) =
            self.store.file().unwrap().counting_steps(|tx| send_in(tx, &draft(Audience::Everybody), MAX_PER_USER));
        Steps { page: page_steps, deep_page, count, mark_one, mark_all, broadcast }
    }
}

fn phone_number() -> PhoneNumber {
    let region: Region = "CN".parse().unwrap();
    let rules = PhoneRules { default_region: region, allowed_regions: vec![region] };
    PhoneNumber::parse("13800138000", &rules).unwrap()
}

fn draft(audience: Audience) -> NotificationDraft {
    NotificationDraft {
        audience,
        kind: NotificationKind::Activity,
        title: "六十四卦".into(),
        body: "更新后即可使用。".into(),
        payload: Payload::None {},
        expires_at: None,
    }
}

/// These bounds hold for any number of broadcasts and users. A block of 512 broadcasts costs a dozen steps.
#[track_caller]
fn assert_bounded(few: &Steps, many: &Steps) {
    let blocks_more = 20;
    assert!(many.page <= few.page + 50, "{few:?} {many:?}");
    assert!(many.deep_page <= few.deep_page + 50, "{few:?} {many:?}");
    assert!(many.count <= few.count + 40 * blocks_more, "{few:?} {many:?}");
    assert!(many.mark_one <= few.mark_one + 150, "{few:?} {many:?}");
    assert!(many.mark_all <= few.mark_all + 80 * blocks_more, "{few:?} {many:?}");
    assert!(many.broadcast <= few.broadcast + 50, "{few:?} {many:?}");
}

#[test]
fn costs_do_not_grow_with_broadcasts() {
    let few = Inbox::new(10, 100, 100);
    let many = Inbox::new(1_000, 10_000, 100);
    let count = |inbox: &Inbox| {
        inbox.store.file().unwrap().counting_steps(|tx| unread_count_in(tx, inbox.user, Timestamp(0))).0
    };
    assert_eq!((count(&few), count(&many)), (200, 10_100));
    assert_bounded(&few.steps(), &many.steps());
}

#[test]
fn the_unread_count_reads_no_read_notifications() {
    let count = |direct: u32| {
        let inbox = Inbox::new(1, 1, direct);
        let user = inbox.user;
        let read = move |tx: &Write<'_>| {
            let sql = "select notification_id from notification_recipients where user_id = ?1 order by notification_id";
            let received: Vec<i64> = tx.all(sql, [user.0], |row| row.get(0))?;
            received[3..].iter().try_for_each(|id| mark_read_in(tx, user, *id).map(drop))
        };
        inbox.store.write(read).wait().unwrap();
        inbox.store.file().unwrap().counting_steps(|tx| unread_count_in(tx, user, Timestamp(0)))
    };
    let (few, many) = (count(4), count(400));
    assert_eq!((few.0, many.0), (4, 4));
    assert_eq!(few.1, many.1);
}

/// The long version with a million users: `cargo test --release --lib million -- --ignored --nocapture`.
#[test]
#[ignore = "takes a minute; the short form above has the same bounds"]
fn costs_do_not_grow_to_a_million_users() {
    let few = Inbox::new(10, 100, 100);
    let many = Inbox::new(1_000_000, 10_000, 100);
    let (few, many_steps) = (few.steps(), many.steps());
    writeln!(std::io::stderr(), "few: {few:?}\nmany: {many_steps:?}").unwrap();
    assert_bounded(&few, &many_steps);
    for (name, operation) in [
        (
            "page",
            (|tx, user| list_in(tx, user, CursorRange { before: None, limit: 20 }).map(drop))
                as fn(&Write<'_>, UserId) -> _,
        ),
        ("count", |tx, user| unread_count_in(tx, user, Timestamp(0)).map(drop)),
        ("mark all", |tx, user| mark_all_read_in(tx, user).map(drop)),
        ("broadcast", |tx, _| send_in(tx, &draft(Audience::Everybody), MAX_PER_USER).map(drop)),
    ] {
        let user = many.user;
        let time = || {
            let begun = std::time::Instant::now();
            many.store.write(move |tx| operation(tx, user)).wait().unwrap();
            begun.elapsed()
        };
        // Measured apart, because the WAL of the setup is still being checkpointed.
        let first = time();
        let mut later: Vec<_> = (0..21).map(|_| time()).collect();
        later.sort();
        writeln!(std::io::stderr(), "{name}: first {first:?}, then {:?} in the middle", later[10]).unwrap();
    }
}

/// Extracts the SQL statements of this module from its sources: quoted texts, with the columns that macros add.
fn statements() -> Vec<String> {
    let sources = [include_str!("inbox.rs"), include_str!("blocks.rs"), include_str!("sending.rs")];
    let pieces: Vec<_> = sources.iter().map(|source| source.split('"').collect::<Vec<_>>()).collect();
    let literals = pieces.iter().flat_map(|pieces| pieces.chunks_exact(2)).map(|piece| (piece[0], piece[1]));
    let whole = literals.map(|(before, text)| {
        let text = text.replace('\\', "").split_whitespace().collect::<Vec<_>>().join(" ");
        if before.ends_with("select_notifications!(") {
            return [select_notifications!(""), &text].concat();
        }
        if before.trim_end().ends_with("select_items!(") {
            return [select_items!(""), &text].concat();
        }
        if before.ends_with("read_at!(") {
            return ["select ", read_at!("?2")].concat();
        }
        if text.ends_with(" returning") { [&text, " ", notification_columns!()].concat() } else { text }
    });
    let is_sql = |text: &String| ["select ", "insert ", "update ", "delete "].iter().any(|verb| text.starts_with(verb));
    whole.filter(is_sql).collect()
}

#[test]
fn statements_scan_no_table() {
    let inbox = Inbox::new(1, 1, 1);
    let file = inbox.store.file().unwrap();
    let statements = statements();
    assert!(statements.len() > 20, "{statements:#?}");
    for statement in statements {
        let tables = ["notification_recipients", "notification_reads"];
        let sql = statement.replace("{table}", tables[0]);
        let lines = file.query_plan(&sql);
        // The sender's list scans the table in its own order, a page at a time, and counts it.
        let is_sender_list =
            sql.contains("order by id desc limit ?1 offset ?2") || sql == "select count(*) from notifications";
        let scans =
            |line: &String| line.starts_with("SCAN") && !line.contains("CONSTANT") && !line.contains("SUBQUERY");
        let is_fine = !lines.iter().any(|line| scans(line) || line.contains("TEMP B-TREE"));
        let is_of_one_user = sql.contains(" union ");
        assert!(is_fine || is_sender_list || is_of_one_user, "{sql}\n{lines:#?}");
    }
}

#[test]
fn erasure_deletes_all_rows_of_the_user() {
    let inbox = Inbox::new(1, 3, 2);
    let user = inbox.user;
    let other = UserId(1);
    let (left, exported) = inbox
        .store
        .write(move |tx| {
            send_in(tx, &draft(Audience::Users(vec![user, other])), MAX_PER_USER)?;
            mark_read_in(tx, user, 1)?;
            mark_all_read_in(tx, user)?;
            let mut exported = Vec::new();
            export_in(tx, user, &mut |item| {
                exported.push(item);
                Ok(())
            })?;
            erase_user_in(tx, user)?;
            assert_eq!(erase_readings_in(tx, user, 16)?, 2);
            let count = |table: &str| tx.one(&format!("select count(*) from {table}"), (), |row| row.get::<i64>(0));
            let tables = [
                "notifications",
                "notification_recipients",
                "notification_reads",
                "notification_read_blocks",
                "notification_marks",
            ];
            let left = tables.into_iter().map(count).collect::<Result<Vec<_>, _>>()?;
            Ok((left, exported))
        })
        .wait()
        .unwrap();
    // Three broadcasts, and the notification that the other user also received.
    assert_eq!(left, [4, 1, 0, 0, 0]);
    assert_eq!(exported.len(), 4);
    assert!(exported.iter().all(|told| told["readAt"].is_string() && told["title"].is_string()), "{exported:?}");
    let readers = inbox.store.read(|tx| blocks::reader_count_in(tx, 1)).unwrap();
    assert_eq!(readers, 1);
}
