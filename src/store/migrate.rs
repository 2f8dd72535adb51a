//! From an empty file or an older schema to today's.
//!
//! A new file gets `schema.sql` whole. An older one gets the steps it lacks, each once, in one transaction, after a
//! copy was put beside it. Steps are only ever appended; a test holds both ways equal.

use std::{collections::BTreeMap, io::Read, path::Path};

use flate2::read::GzDecoder;
use rusqlite::{Connection, TransactionBehavior};

use super::files;
use crate::error::{Code, Error, Result};

/// Marks the file as ours, so that another program's database is not migrated by mistake ("YARW").
const APPLICATION_ID: i32 = 0x5941_5257;

/// Today's schema, as `build.rs` packs it: only whoever makes or compares a database reads it.
const SCHEMA: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/schema.sql.gz"));
/// The files of `migrations`, packed in their order with a NUL between them. Step `n` (from 1) takes a database from
/// version `n - 1` to version `n`.
const STEPS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/migrations.sql.gz"));

/// What may be done to a file whose schema is not today's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Upkeep {
    /// Nothing: somebody else has the data directory's lock.
    None,
    /// One without any gets today's.
    Make,
    /// An older one is migrated, too.
    Migrate,
}

/// The version that this program reads and writes.
pub const SCHEMA_VERSION: usize = include!(concat!(env!("OUT_DIR"), "/schema-version"));

/// Reads what the file is, and changes nothing in it.
///
/// # Errors
/// `data_directory_unusable` for a file of another program, for a newer schema, and for an older one that may not be
/// migrated now.
pub(super) fn refuse_unusable(connection: &Connection, upkeep: Upkeep) -> Result<()> {
    let version = version_of(connection)?;
    if version > SCHEMA_VERSION {
        return Err(Error::new(Code::DataDirectoryUnusable).detail(format!(
            "The database has schema version {version}; this program knows versions up to {SCHEMA_VERSION}. \
             Use the newer program, or restore a backup made before it."
        )));
    }
    let may_be_done = if version == 0 { upkeep != Upkeep::None } else { upkeep == Upkeep::Migrate };
    if version < SCHEMA_VERSION && !may_be_done {
        return Err(Error::new(Code::DataDirectoryUnusable).detail(format!(
            "The database was made by an older version (schema version {version}, this program's is {SCHEMA_VERSION}). \
             The server migrates it when it starts: start it, or restart it, with this version first."
        )));
    }
    Ok(())
}

/// Makes today's schema of what [`refuse_unusable`] let pass.
pub(super) fn bring_up_to_date(connection: &mut Connection, path: &Path) -> Result<()> {
    match version_of(connection)? {
        SCHEMA_VERSION => Ok(()),
        0 => create(connection),
        version => migrate(connection, path, version),
    }
}

/// The version of a file's schema.
///
/// # Errors
/// `data_directory_unusable` for a file of another program.
pub(super) fn version_of(connection: &Connection) -> Result<usize> {
    let foreign = || Error::new(Code::DataDirectoryUnusable).detail("The database file was not made by Yarrow.");
    let pragma = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i32>(0));
    let application = pragma("application_id").map_err(|error| match error.sqlite_error_code() {
        Some(rusqlite::ErrorCode::NotADatabase) => foreign().caused_by(error),
        _ => error.into(),
    })?;
    let version = pragma("user_version")?;
    let tables: i64 = connection.query_row("select count(*) from sqlite_schema", [], |row| row.get(0))?;
    if application != APPLICATION_ID && tables > 0 {
        return Err(foreign());
    }
    usize::try_from(version).map_err(Error::internal)
}

fn create(connection: &mut Connection) -> Result<()> {
    apply(connection, &[unpacked(SCHEMA)?])
}

fn steps() -> Result<Vec<String>> {
    Ok(unpacked(STEPS)?.split('\0').map(str::to_owned).collect())
}

fn unpacked(packed: &[u8]) -> Result<String> {
    let mut text = String::new();
    GzDecoder::new(packed).read_to_string(&mut text).map_err(Error::internal)?;
    Ok(text)
}

fn migrate(connection: &mut Connection, path: &Path, version: usize) -> Result<()> {
    // For the copy, and as much for the log of what is migrated.
    files::demand_space(files::parent_of(path), files::database_size(path).saturating_mul(2))?;
    let copy = path.with_extension(format!("db.before-version-{SCHEMA_VERSION}"));
    // One that is there is of an earlier attempt, or of before somebody went back to the older version for a while.
    copy_database(connection, &copy)?;
    tracing::info!(from = version, to = SCHEMA_VERSION, copy = %copy.display(), "migrating the database");
    let missing = &steps()?[version..];
    // What a step sorts, such as for an index of ten million rows, need not fit into memory.
    let kept_in: i64 = connection.pragma_query_value(None, "temp_store", |row| row.get(0))?;
    connection.pragma_update(None, "temp_store", "file")?;
    let outcome = apply(connection, missing);
    connection.pragma_update(None, "temp_store", kept_in)?;
    match outcome {
        Err(error) if finds_no_temporary_directory(&error) => {
            tracing::warn!("no temporary directory may be written to (TMPDIR, /var/tmp, /tmp): migrating in memory");
            apply(connection, missing)
        }
        outcome => outcome,
    }
}

/// In a container whose root may only be read there is none, unless it is told of one.
fn finds_no_temporary_directory(error: &Error) -> bool {
    let found = error.source.as_ref().and_then(|source| source.downcast_ref::<rusqlite::Error>());
    let failure = found.and_then(rusqlite::Error::sqlite_error);
    failure.is_some_and(|failure| failure.extended_code == libsqlite3_sys::SQLITE_IOERR_GETTEMPPATH)
}

fn apply(connection: &mut Connection, scripts: &[String]) -> Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Exclusive)?;
    for script in scripts {
        transaction.execute_batch(script)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", i64::try_from(SCHEMA_VERSION).map_err(Error::internal)?)?;
    Ok(transaction.commit()?)
}

/// Writes a consistent copy under a temporary name, syncs it, and only then gives it its name.
fn copy_database(connection: &Connection, copy: &Path) -> Result<()> {
    let unfinished = copy.with_extension("unfinished");
    files::remove_if_there(&unfinished).map_err(Error::internal)?;
    let write = || -> Result<()> {
        files::make_new(&unfinished)?;
        connection.execute("vacuum into ?1", [unfinished.to_string_lossy()])?;
        files::publish(&unfinished, copy)
    };
    // A part of a copy would only keep the disk full.
    write().inspect_err(|_| drop(std::fs::remove_file(&unfinished)))
}

/// Tables, triggers and indexes that are missing or other than this program makes them, and those that it does not
/// make. What a backup carries, that somebody put in place by hand, is none of them.
///
/// # Errors
/// Storage errors.
pub(super) fn schema_faults(connection: &Connection) -> Result<Vec<String>> {
    let mut fresh = Connection::open_in_memory()?;
    create(&mut fresh)?;
    let (expected, found) = (objects_of(&fresh)?, objects_of(connection)?);
    let wrong = expected.iter().filter_map(|(name, sql)| match found.get(name) {
        None => Some(format!("{name} is missing")),
        Some(other) if other != sql => Some(format!("{name} is another one")),
        Some(_) => None,
    });
    let unknown = found.keys().filter(|name| !expected.contains_key(*name)).map(|name| format!("{name} is unknown"));
    Ok(wrong.chain(unknown).collect())
}

/// The schema as SQLite keeps it, by what each part is and is called. What the engine makes for itself, such as its
/// statistics, is nobody's matter.
fn objects_of(connection: &Connection) -> Result<BTreeMap<String, String>> {
    let sql = "select type || ' ' || name, coalesce(sql, '') from sqlite_schema \
               where name not like 'sqlite!_%' escape '!' and name <> 'backup_contents'";
    let mut statement = connection.prepare(sql)?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get::<_, String>(1)?)))?;
    Ok(rows.map(|row| row.map(|(name, sql)| (name, normalised(&sql)))).collect::<rusqlite::Result<_>>()?)
}

/// Without comments and with white space folded: a migrated schema is written in other lines than a fresh one.
fn normalised(sql: &str) -> String {
    let lines = sql.lines().map(|line| line.split("--").next().unwrap_or_default());
    let words = lines.flat_map(str::split_whitespace).collect::<Vec<_>>().join(" ");
    // A column that was added stands right behind the one before it.
    words.replace(" ,", ",").replace(" )", ")")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fresh_schema_equals_a_migrated_one() {
        let mut fresh = Connection::open_in_memory().unwrap();
        create(&mut fresh).unwrap();
        let mut migrated = Connection::open_in_memory().unwrap();
        apply(&mut migrated, &steps().unwrap()).unwrap();
        assert_eq!(objects_of(&fresh).unwrap(), objects_of(&migrated).unwrap());
        assert!(objects_of(&fresh).unwrap().len() > 5);
    }

    #[test]
    fn the_copy_before_a_migration_is_of_what_is_migrated() {
        let temporary = tempfile::tempdir().unwrap();
        let path = temporary.path().join("yarrow.db");
        let copy = path.with_extension(format!("db.before-version-{SCHEMA_VERSION}"));
        let nicknames = |path: &Path| -> Vec<String> {
            let database = Connection::open(path).unwrap();
            let mut statement = database.prepare("select nickname from users order by id").unwrap();
            statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
        };
        let mut first = Connection::open(&path).unwrap();
        apply(&mut first, &steps().unwrap()[..SCHEMA_VERSION - 1]).unwrap();
        first.pragma_update(None, "user_version", i64::try_from(SCHEMA_VERSION - 1).unwrap()).unwrap();
        drop(first);
        for name in ["first", "second"] {
            if copy.exists() {
                // Somebody has put the copy back, and goes on with the older version.
                std::fs::copy(&copy, &path).unwrap();
            }
            let mut older = Connection::open(&path).unwrap();
            older.execute("insert into users (phone_number, nickname, created_at) values (?1, ?1, 1)", [name]).unwrap();
            bring_up_to_date(&mut older, &path).unwrap();
        }
        assert_eq!(nicknames(&copy), ["first", "second"]);
    }

    #[test]
    fn orders_that_are_paid_have_their_price() {
        let mut older = Connection::open_in_memory().unwrap();
        apply(&mut older, &steps().unwrap()[..28]).unwrap();
        let insert = "insert into payment_orders (order_no, user_id, channel, amount_fen, coin_count, state, created_at, \
                     expires_at, paid_at) values (?1, 1, 'alipay', 600, 60, 'created', 1, 2, ?2)";
        older.execute(insert, ("paid", Some(1))).unwrap();
        older.execute(insert, ("unpaid", None::<i64>)).unwrap();
        older.execute(insert, ("returned", None::<i64>)).unwrap();
        let returned =
            "update payment_orders set state = 'refunded', refunded_fen = 600, refunded_at = 3 where order_no = ";
        older.execute(&format!("{returned} 'returned'"), []).unwrap();
        apply(&mut older, &steps().unwrap()[28..30]).unwrap();
        let known = "select group_concat(order_no || ' ' || paid_fen || ' ' || refunded_fen || ' ' || \
                     coalesce(paid_at, '-')) from payment_orders";
        let known: String = older.query_row(known, [], |row| row.get(0)).unwrap();
        assert_eq!(known, "paid 600 0 1,unpaid 0 0 -,returned 600 600 3");
        // More than the price may have come in, and go back.
        older.execute("update payment_orders set paid_fen = 700, refunded_fen = 700", []).unwrap();
    }

    #[test]
    fn the_network_log_keeps_its_entries_when_it_gets_blocks() {
        let mut older = Connection::open_in_memory().unwrap();
        apply(&mut older, &steps().unwrap()[..15]).unwrap();
        let fill = "with recursive numbers (n) as (select 7 union all select n + 1 from numbers where n < 10000) \
                    insert into access_log (id, at, user_id, client_ip, method, route, status, duration_us, request_id) \
                    select n, 5 * n, nullif(n % 3, 0), '::1', 'GET', nullif('/' || n % 7, '/0'), 200, n, 'r' || n \
                    from numbers";
        older.execute(fill, []).unwrap();
        let entries = |connection: &Connection| -> Vec<String> {
            let sql = "select json_array(id, at, user_id, client_ip, method, route, status, duration_us, request_id) \
                       from access_log order by id";
            let mut statement = connection.prepare(sql).unwrap();
            statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
        };
        let before = entries(&older);
        apply(&mut older, &steps().unwrap()[15..]).unwrap();
        assert_eq!((before.len(), entries(&older)), (9994, before));
    }

    #[test]
    fn tokens_learn_of_their_users() {
        let mut older = Connection::open_in_memory().unwrap();
        apply(&mut older, &steps().unwrap()[..19]).unwrap();
        older
            .execute_batch(
                "insert into users (id, phone_number, email, created_at) values (7, '13800138000', null, 1), (8, null, 'a@b.cd', 2); \
                 insert into tokens (token_sha256, user_id, expires_at, replaced_at, family, family_expires_at, created_at, \
                 label, signed_in_at, last_used_at) values (x'07', 7, 10, 11, x'0a', 12, 13, 'phone', 14, 15), \
                 (x'08', 8, 20, null, x'0b', 22, 23, 'tablet', 24, 25)",
            )
            .unwrap();
        apply(&mut older, &steps().unwrap()[19..]).unwrap();
        let tokens = |connection: &Connection| -> Vec<String> {
            let sql = "select json_array(hex(token_sha256), user_id, phone_number, email, user_created_at, expires_at, \
                       replaced_at, hex(family), family_expires_at, created_at, label, signed_in_at, last_used_at) \
                       from tokens order by user_id";
            let mut statement = connection.prepare(sql).unwrap();
            statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
        };
        let first = r#"["07",7,"13800138000",null,1,10,11,"0A",12,13,"phone",14,15]"#;
        assert_eq!(tokens(&older), [first, r#"["08",8,null,"a@b.cd",2,20,null,"0B",22,23,"tablet",24,25]"#]);
        older.execute_batch("update users set phone_number = '13900139000' where id = 8").unwrap();
        let second = r#"["08",8,"13900139000","a@b.cd",2,20,null,"0B",22,23,"tablet",24,25]"#;
        assert_eq!(tokens(&older), [first, second]);
        let nameless = |connection: &Connection| -> String {
            let sql =
                "select group_concat(hex(token_sha256) || ' ' || user_id, ', ' order by user_id) from nameless_tokens";
            connection.query_row(sql, [], |row| row.get(0)).unwrap()
        };
        assert_eq!(nameless(&older), "07 7, 08 8");
        older.execute_batch("pragma foreign_keys = on; delete from tokens where user_id = 7").unwrap();
        assert_eq!(nameless(&older), "08 8");
    }

    #[test]
    fn a_rewritten_check_finds_the_rows_as_they_were_and_refuses_what_it_refused() {
        let mut older = Connection::open_in_memory().unwrap();
        apply(&mut older, &steps().unwrap()[..21]).unwrap();
        let post = |connection: &Connection, seq: i64, kind: &str| {
            let sql = "insert into ledger_entries (user_id, asset, sequence, delta, balance_after, kind, created_at) \
                       values (7, 'coin', ?1, 1, ?1, ?2, 1)";
            connection.execute(sql, (seq, kind)).is_ok()
        };
        assert!(post(&older, 1, "topup"));
        let key = "insert into idempotency_keys (caller, route, key, request_sha256, status, body, created_at) \
                   values ('user:7', 'POST /coin/consume', 'k', x'01', 200, x'02', 3)";
        older.execute(key, []).unwrap();
        apply(&mut older, &steps().unwrap()[21..]).unwrap();
        let kinds = [
            "topup",
            "consume",
            "reset",
            "adjust",
            "signup_bonus",
            "cast",
            "invite_bonus",
            "invitee_bonus",
            "parked",
            "restored",
            "refund",
        ];
        assert!((2..).zip(kinds).all(|(seq, kind)| post(&older, seq, kind)));
        assert!(!post(&older, 13, "gift"));
        assert!(older.execute("delete from ledger_entries", []).is_err());
        let text = |sql: &str| -> String { older.query_row(sql, [], |row| row.get(0)).unwrap() };
        assert_eq!(
            text("select group_concat(seq || kind, ' ' order by seq) from ledger_entries where seq < 3"),
            "1topup 2topup"
        );
        assert_eq!(
            text("select caller || route || key || hex(body) from idempotency_keys"),
            "user:7POST /coin/consumek02"
        );
        assert_eq!(text("pragma integrity_check"), "ok");
    }

    #[test]
    fn what_requests_insert_makes_no_temporary_trees() {
        let mut fresh = Connection::open_in_memory().unwrap();
        create(&mut fresh).unwrap();
        let operations = |table: &str| -> Vec<String> {
            let mut columns = fresh.prepare(&format!("select name from pragma_table_info('{table}')")).unwrap();
            let names: Vec<String> = columns.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
            let values = vec!["null"; names.len()].join(", ");
            let sql = format!("explain insert into {table} ({}) values ({values})", names.join(", "));
            let mut steps = fresh.prepare(&sql).unwrap();
            steps.query_map([], |row| row.get(1)).unwrap().map(Result::unwrap).collect()
        };
        assert!(operations("payment_orders").contains(&"OpenEphemeral".to_owned()), "this is how they would be seen");
        for table in
            ["users", "codes", "tokens", "history", "balances", "ledger_entries", "idempotency_keys", "sessions"]
        {
            assert!(!operations(table).contains(&"OpenEphemeral".to_owned()), "{table}");
        }
    }

    #[test]
    fn a_newer_schema_and_a_foreign_file_are_refused() {
        let mut newer = Connection::open_in_memory().unwrap();
        create(&mut newer).unwrap();
        newer.pragma_update(None, "user_version", i32::MAX).unwrap();
        assert_eq!(refuse_unusable(&newer, Upkeep::Migrate).unwrap_err().code, Code::DataDirectoryUnusable);
        let foreign = Connection::open_in_memory().unwrap();
        foreign.execute_batch("create table theirs (id integer)").unwrap();
        assert_eq!(refuse_unusable(&foreign, Upkeep::Migrate).unwrap_err().code, Code::DataDirectoryUnusable);
    }
}
