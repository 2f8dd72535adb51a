//! A cache of valid tokens, so that most requests need no token query.
//!
//! Triggers increase the number in `token_changes` with every change that matters to a cached token. A cached token is
//! valid while that number is the one with which it was read. The number is read once for each database snapshot. So a
//! revocation takes effect with its commit, even if another process made it.

use std::{
    cell::Cell,
    collections::HashMap,
    sync::{Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
};

use crate::{
    concurrency::lock::lock_unpoisoned,
    domain::identity::users::User,
    error::Result,
    store::{Read, SnapshotId, Write},
    types::Timestamp,
};

/// Maximum tokens in the cache; a full cache is cleared.
const MAX_TOKENS: usize = 40_000;

thread_local! {
    /// The number at the last snapshot of this thread.
    static CHANGES: Cell<Option<ChangesAt>> = const { Cell::new(None) };
}

/// Valid tokens of one database.
#[derive(Default)]
pub struct TokenCache {
    /// Valid tokens by SHA-256.
    tokens: RwLock<HashMap<[u8; 32], CachedToken>>,
    /// The number at the last snapshot of any thread. On a server, reads of several threads have the same snapshot id.
    changes: Mutex<Option<ChangesAt>>,
}

/// The number in `token_changes` at a snapshot.
#[derive(Clone, Copy)]
struct ChangesAt {
    snapshot: SnapshotId,
    number: i64,
}

/// The user of a valid token.
struct CachedToken {
    user: User,
    /// The number in `token_changes` when it was read.
    changes: i64,
    /// End of validity, or the time at which the last use must be updated.
    valid_until: Timestamp,
}

impl TokenCache {
    /// Returns the user of a cached token. Finds nothing in a read without a snapshot id.
    pub(super) fn find_in(&self, tx: &Read<'_>, hash: &[u8; 32]) -> Result<Option<User>> {
        let Some(snapshot) = tx.snapshot_id() else { return Ok(None) };
        let changes = match self.known_changes(snapshot) {
            Some(changes) => changes,
            None => self.read_changes_in(tx, snapshot)?,
        };
        Ok(self.find_after(changes, hash, tx.now))
    }

    /// Returns the user of a cached token without a read. Finds nothing unless a read had this snapshot id before.
    pub(super) fn find_at(&self, snapshot: SnapshotId, hash: &[u8; 32], now: Timestamp) -> Option<User> {
        self.known_changes(snapshot).and_then(|changes| self.find_after(changes, hash, now))
    }

    fn find_after(&self, changes: i64, hash: &[u8; 32], now: Timestamp) -> Option<User> {
        let tokens = self.tokens();
        let token = tokens.get(hash).filter(|token| token.changes == changes && now < token.valid_until)?;
        Some(token.user.clone())
    }

    /// Caches a token that was found to be valid in this transaction.
    pub(super) fn insert_in(&self, tx: &Read<'_>, hash: [u8; 32], user: User, valid_until: Timestamp) -> Result<()> {
        // The transaction may see another state than the first one of its snapshot id.
        let changes = last_change_in(tx)?;
        let mut tokens = self.tokens_mut();
        if tokens.len() >= MAX_TOKENS {
            tokens.clear();
        }
        tokens.insert(hash, CachedToken { user, changes, valid_until });
        Ok(())
    }

    fn known_changes(&self, snapshot: SnapshotId) -> Option<i64> {
        if let Some(number) = snapshot.watched() {
            return Some(number);
        }
        let is_current = |known: &ChangesAt| known.snapshot == snapshot;
        if let Some(known) = CHANGES.get().filter(is_current) {
            return Some(known.number);
        }
        let known = lock_unpoisoned(&self.changes).filter(is_current)?;
        CHANGES.set(Some(known));
        Some(known.number)
    }

    fn read_changes_in(&self, tx: &Read<'_>, snapshot: SnapshotId) -> Result<i64> {
        let number = last_change_in(tx)?;
        let changes = ChangesAt { snapshot, number };
        CHANGES.set(Some(changes));
        let previous = lock_unpoisoned(&self.changes).replace(changes);
        if previous.is_some_and(|previous| previous.number < number) {
            // No token is valid any more, and some users may be gone.
            self.tokens_mut().clear();
        }
        Ok(number)
    }

    fn tokens(&self) -> RwLockReadGuard<'_, HashMap<[u8; 32], CachedToken>> {
        self.tokens.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn tokens_mut(&self) -> RwLockWriteGuard<'_, HashMap<[u8; 32], CachedToken>> {
        self.tokens.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Selects the number in `token_changes`.
pub(super) const LAST_CHANGE: &str = "select number from token_changes where id = 0";

/// Returns the number in `token_changes`.
pub(super) fn last_change_in(tx: &Read<'_>) -> Result<i64> {
    Ok(tx.first(LAST_CHANGE, (), |row| row.get(0))?.unwrap_or(0))
}

/// Makes all caches drop their tokens.
pub(super) fn invalidate_in(tx: &Write<'_>) -> Result<()> {
    let count = "insert into token_changes (id, number) values (0, 1) \
                 on conflict (id) do update set number = token_changes.number + 1";
    tx.execute(count, ()).map(drop)
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;
    use crate::{
        clock::Clock,
        config::Config,
        domain::identity::{
            tokens::{Authentication, authenticate_in, issue_in},
            users::{self, Address},
        },
        store::{SchemaPolicy, Store, Tuning, on_thread_park},
        types::{PhoneNumber, sha256},
    };

    /// A store with one token, and a second store on the same file, like that of another process.
    struct Fixture {
        store: Store,
        other: Store,
        cache: TokenCache,
        token: String,
        _directory: tempfile::TempDir,
    }

    impl Fixture {
        fn new() -> Self {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("yarrow.db");
            let open = || Store::open(&path, &Tuning::SMALL, Clock::default(), SchemaPolicy::Migrate).unwrap();
            let (store, other) = (open(), open());
            let limits = Config::defaults().unwrap().auth;
            let issued = store.write(move |tx| {
                let address = Address::Phone(PhoneNumber::from_canonical("13800138000"));
                let (user, _) = users::find_or_create_in(tx, &address)?;
                issue_in(tx, &limits, &user, "")
            });
            let token = issued.wait().unwrap().token.reveal().to_owned();
            Self { store, other, cache: TokenCache::default(), token, _directory: directory }
        }

        /// Writes through the second store, on a thread that may block.
        fn write_elsewhere(&self, change: impl FnOnce(&Write<'_>) -> Result<()> + Send + 'static) {
            thread::scope(|scope| scope.spawn(|| self.other.write(change).wait().unwrap()).join().unwrap());
        }

        /// Authenticates the token in a new snapshot. Also returns true if it was cached.
        fn authenticate(&self) -> (Authentication, bool) {
            on_thread_park();
            let limits = Config::defaults().unwrap().auth;
            let read = self.store.read(|tx| {
                let is_cached = self.cache.find_in(tx, &sha256(&self.token))?.is_some();
                Ok((authenticate_in(tx, &self.cache, &limits, &self.token)?, is_cached))
            });
            read.unwrap()
        }

        fn is_cached(&self) -> bool {
            self.authenticate().1
        }

        /// Authenticates any token.
        fn authenticate_as(&self, token: &str) -> Authentication {
            let limits = Config::defaults().unwrap().auth;
            self.store.read(|tx| authenticate_in(tx, &self.cache, &limits, token)).unwrap()
        }
    }

    /// Caches a token, changes the database elsewhere, and authenticates the token again.
    fn authenticate_after(sql: &'static str) -> (Authentication, bool) {
        let worker = thread::spawn(move || {
            let fixture = Fixture::new();
            assert!(!fixture.is_cached());
            assert!(fixture.is_cached());
            fixture.write_elsewhere(move |tx| tx.execute(sql, ()).map(drop));
            fixture.authenticate()
        });
        worker.join().unwrap()
    }

    fn user(authentication: Authentication) -> User {
        match authentication {
            Authentication::User { user, .. } => user,
            Authentication::Suspended(..) | Authentication::Reused | Authentication::Invalid => {
                panic!("{authentication:?}")
            }
        }
    }

    #[test]
    fn drops_tokens_that_another_process_ended() {
        for sql in [
            "delete from tokens",
            "delete from tokens where user_id > 0",
            "delete from users",
            "update tokens set expires_at = 1",
            "update tokens set token_sha256 = x'00'",
        ] {
            assert!(matches!(authenticate_after(sql), (Authentication::Invalid, false)), "{sql}");
        }
        let replaced = authenticate_after("update tokens set replaced_at = 1");
        assert!(matches!(replaced, (Authentication::Reused, false)));
    }

    #[test]
    fn drops_tokens_whose_user_changed() {
        let sql = "update users set phone_number = '13900139000', created_at = 7";
        let (authentication, was_cached) = authenticate_after(sql);
        let changed = user(authentication);
        let phone_number = changed.phone_number.as_ref().map(PhoneNumber::as_str);
        assert_eq!((phone_number, changed.created_at.0, was_cached), (Some("13900139000"), 7, false));
        let (authentication, _) = authenticate_after("update users set email = 'ada@example.com'");
        assert!(user(authentication).email.is_some());
    }

    #[test]
    fn keeps_tokens_after_unrelated_changes() {
        for sql in [
            "update tokens set label = 'elsewhere'",
            "update tokens set last_used_at = last_used_at - 1",
            "update users set nickname = 'elsewhere'",
            "insert into users (phone_number, created_at) values ('13900139000', 1)",
            "insert into tokens select null, randomblob(32), user_id, expires_at, replaced_at, family, \
             family_expires_at, created_at, label, signed_in_at, last_used_at from tokens",
        ] {
            assert!(authenticate_after(sql).1, "{sql}");
        }
    }

    #[test]
    fn caches_until_expiry_or_the_next_use_update() {
        let fixture = Fixture::new();
        let set = |column: &'static str, hours: i64| {
            fixture.write_elsewhere(move |tx| {
                let at = tx.now.0 + hours * 3_600_000;
                tx.execute(&format!("update tokens set {column} = ?1"), [at]).map(drop)
            });
        };
        set("last_used_at", -2);
        for _ in 0..2 {
            assert!(matches!(fixture.authenticate(), (Authentication::User { is_use_due: true, .. }, false)));
        }
        set("last_used_at", 0);
        assert!(matches!(fixture.authenticate(), (Authentication::User { is_use_due: false, .. }, false)));
        assert!(fixture.is_cached());
        set("expires_at", -1);
        assert!(matches!(fixture.authenticate(), (Authentication::Invalid, false)));
        set("expires_at", 1);
        set("replaced_at", 0);
        for _ in 0..2 {
            let in_grace = fixture.authenticate();
            assert!(matches!(in_grace, (Authentication::User { is_use_due: false, .. }, false)));
        }
    }

    #[test]
    fn rejects_texts_that_are_no_token() {
        let fixture = Fixture::new();
        let token = &fixture.token;
        let variants =
            [String::new(), ".".into(), "1".into(), format!("1.{token}"), format!("{token}="), token.to_lowercase()];
        for text in variants {
            assert!(matches!(fixture.authenticate_as(&text), Authentication::Invalid), "{text}");
        }
    }

    #[test]
    fn separates_stores() {
        let (one, other) = (Fixture::new(), Fixture::new());
        user(one.authenticate().0);
        on_thread_park();
        assert!(matches!(other.authenticate_as(&one.token), Authentication::Invalid));
        user(one.authenticate().0);
    }

    #[test]
    fn clears_a_full_cache() {
        let fixture = Fixture::new();
        let cached = user(fixture.authenticate().0);
        let fill = |tokens: usize| {
            on_thread_park();
            let filled = fixture.store.read(|tx| {
                (0..tokens).try_for_each(|number| {
                    fixture.cache.insert_in(tx, sha256(&number.to_string()), cached.clone(), Timestamp(i64::MAX))
                })
            });
            filled.unwrap();
        };
        fill(MAX_TOKENS - 1);
        assert!(fixture.is_cached());
        fill(MAX_TOKENS + 1);
        assert!(!fixture.is_cached());
        assert!(fixture.cache.tokens().len() <= MAX_TOKENS);
    }
}
