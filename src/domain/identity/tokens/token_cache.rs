//! What a worker thread remembers of tokens, so that not every request looks its token up.
//!
//! It is true for as long as the number in `token_changes` is what it was. That number is read once for each view of
//! the database, from the view itself; so whoever changes a token, be it another process, ends what is remembered of it
//! when their change becomes visible, and no sooner or later than that.

use std::{
    array,
    cell::RefCell,
    collections::HashMap,
    hash::{BuildHasherDefault, Hash, Hasher},
    mem,
};

use super::{Bearer, Lifetimes, Presence, Standing, USE_IS_NOTED_AFTER, changes_in};
use crate::{
    config::Auth,
    domain::identity::users::{self, User},
    error::Result,
    store::{Read, SnapshotId},
    types::{Timestamp, sha256},
};

/// Tokens of one generation. A thread remembers two: the one that grows, and the one before it.
const GENERATION: usize = 20_000;

thread_local! {
    static KNOWN: RefCell<Known> = RefCell::default();
}

/// A token that speaks for its user and needs nothing more, until then. All of it lies in one place: what a request
/// looks up somewhere else costs it as much as computing for a while.
#[derive(Clone, Debug)]
struct Holding {
    user: User,
    good_until: Timestamp,
}

#[derive(Default)]
struct Known {
    /// The view of which all this is known to be true.
    view: Option<SnapshotId>,
    changes: i64,
    young: Generation,
    old: Generation,
}

type Generation = HashMap<Key, Holding, BuildHasherDefault<AsItIs>>;

/// The first half of a token's SHA-256. Nobody finds another token that begins like one there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Key(u64, u64);

impl Key {
    fn of(hash: &[u8; 32]) -> Self {
        let number_at = |begin: usize| u64::from_ne_bytes(array::from_fn(|offset| hash[begin + offset]));
        Self(number_at(0), number_at(8))
    }
}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.0);
    }
}

/// Takes a number for its own hash, as a part of one is.
#[derive(Default)]
struct AsItIs(u64);

impl Hasher for AsItIs {
    fn write(&mut self, bytes: &[u8]) {
        self.0 = bytes.iter().fold(self.0, |number, byte| (number << 8) | u64::from(*byte));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = number;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// Whom the token speaks for.
pub(super) fn bearer_in(tx: &Read<'_>, limits: &Auth, token: &str) -> Result<Bearer> {
    let hash = sha256(token);
    if let Some(view) = tx.snapshot_id() {
        return KNOWN.with_borrow_mut(|known| known.bearer_in(tx, view, limits, token, &hash));
    }
    let Some(row) = look_up_in(tx, token, &hash)? else { return Ok(Bearer::Unknown) };
    Ok(row.bearer(tx, limits, changes_in(tx)?))
}

/// Who shows a good token while the number in `token_changes` is this.
fn present(user: User, changes: i64, is_use_due: bool) -> Bearer {
    let presence = Presence { user: user.id, changes };
    Bearer::User { user, presence, is_use_due }
}

impl Known {
    fn bearer_in(
        &mut self,
        tx: &Read<'_>,
        view: SnapshotId,
        limits: &Auth,
        token: &str,
        hash: &[u8; 32],
    ) -> Result<Bearer> {
        self.bring_up_to(tx, view)?;
        let key = Key::of(hash);
        // That a token was used is no change of it: when to note the next use is known from the row alone.
        let is_good = |known: &Holding| tx.now < known.good_until;
        if let Some(known) = self.young.get(&key).filter(|known| is_good(known)) {
            return Ok(present(known.user.clone(), self.changes, false));
        }
        if let Some(known) = self.old.remove(&key).filter(is_good) {
            self.remember(key, known.clone());
            return Ok(present(known.user, self.changes, false));
        }
        let Some(row) = look_up_in(tx, token, hash)? else { return Ok(Bearer::Unknown) };
        if let Some(holding) = row.holding() {
            self.remember(key, holding);
        }
        Ok(row.bearer(tx, limits, self.changes))
    }

    /// Those that nobody has shown for a whole generation are forgotten.
    fn remember(&mut self, key: Key, holding: Holding) {
        if self.young.len() >= GENERATION {
            self.old = mem::take(&mut self.young);
        }
        self.young.insert(key, holding);
    }

    /// Forgets everything unless it is true of this view as well.
    fn bring_up_to(&mut self, tx: &Read<'_>, view: SnapshotId) -> Result<()> {
        if self.view == Some(view) {
            return Ok(());
        }
        let changes = changes_in(tx)?;
        if self.changes != changes || !self.view.is_some_and(|last| last.is_same_store(view)) {
            (self.young, self.old) = Default::default();
            self.changes = changes;
        }
        self.view = Some(view);
        Ok(())
    }
}

/// A token as it is stored.
struct Row {
    user: User,
    lifetimes: Lifetimes,
}

impl Row {
    fn bearer(self, tx: &Read<'_>, limits: &Auth, changes: i64) -> Bearer {
        match self.lifetimes.standing(self.user.id, tx.now, limits) {
            Standing::Valid { is_use_due, .. } => present(self.user, changes, is_use_due),
            Standing::InGrace { .. } => present(self.user, changes, false),
            Standing::Reused => Bearer::Reused,
            Standing::Unknown => Bearer::Unknown,
        }
    }

    /// Nothing for a token that was replaced: for how long it is good depends on more.
    fn holding(&self) -> Option<Holding> {
        let Lifetimes { expires_at, replaced_at, last_used_at, .. } = self.lifetimes;
        let good_until = expires_at.min(last_used_at.plus(USE_IS_NOTED_AFTER));
        replaced_at.is_none().then(|| Holding { user: self.user.clone(), good_until })
    }
}

fn look_up_in(tx: &Read<'_>, token: &str, hash: &[u8; 32]) -> Result<Option<Row>> {
    let Some(user) = super::user_named_by(token) else { return Ok(None) };
    tx.first(
        "select expires_at, replaced_at, family_expires_at, last_used_at, phone_number, email, user_created_at \
         from tokens where user_id = ?1 and token_sha256 = ?2",
        (user.0, hash),
        |row| Ok(Row { user: users::addressed(row, user, 4)?, lifetimes: super::lifetimes_of(row, 0)? }),
    )
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;
    use crate::{
        clock::Clock,
        config::Config,
        domain::identity::{tokens, users::Address},
        store::{SchemaPolicy, Store, Tuning, Write, on_thread_park},
        types::PhoneNumber,
    };

    /// A store with one token, and a second store of the same file, as another process has it.
    struct Opened {
        store: Store,
        other: Store,
        token: String,
        _directory: tempfile::TempDir,
    }

    impl Opened {
        fn new() -> Self {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("yarrow.db");
            let open = || Store::open(&path, &Tuning::SMALL, Clock::default(), SchemaPolicy::Migrate).unwrap();
            let (store, other) = (open(), open());
            let limits = Config::defaults().unwrap().auth;
            let issued = store.write(move |tx| {
                let address = Address::Phone(PhoneNumber::from_canonical("13800138000"));
                let (user, _) = users::find_or_create_in(tx, &address)?;
                tokens::issue_in(tx, &limits, &user, "")
            });
            let token = issued.wait().unwrap().token.reveal().to_owned();
            Self { store, other, token, _directory: directory }
        }

        /// Changes something elsewhere, on a thread that may wait for it.
        fn elsewhere(&self, change: impl FnOnce(&Write<'_>) -> Result<()> + Send + 'static) {
            thread::scope(|scope| scope.spawn(|| self.other.write(change).wait().unwrap()).join().unwrap());
        }

        /// What the token is worth on a view of its own, and whether this thread remembered it.
        fn shown(&self) -> (Bearer, bool) {
            on_thread_park();
            let limits = Config::defaults().unwrap().auth;
            let key = Key::of(&sha256(&self.token));
            let asked = self.store.read(|tx| {
                let is_remembered: Result<bool> = KNOWN.with_borrow_mut(|known| {
                    known.bring_up_to(tx, tx.snapshot_id().unwrap())?;
                    let found = known.young.get(&key).or_else(|| known.old.get(&key));
                    Ok(found.is_some_and(|known| tx.now < known.good_until))
                });
                Ok((bearer_in(tx, &limits, &self.token)?, is_remembered?))
            });
            asked.unwrap()
        }

        fn is_remembered(&self) -> bool {
            self.shown().1
        }

        /// What any token is worth.
        fn bearer(&self, token: &str) -> Bearer {
            let limits = Config::defaults().unwrap().auth;
            self.store.read(|tx| bearer_in(tx, &limits, token)).unwrap()
        }
    }

    /// Makes a change elsewhere and returns what the token is worth after it, and whether it was remembered.
    fn after(sql: &'static str) -> (Bearer, bool) {
        let worker = thread::spawn(move || {
            let opened = Opened::new();
            assert!(!opened.is_remembered());
            assert!(opened.is_remembered());
            opened.elsewhere(move |tx| tx.execute(sql, ()).map(drop));
            opened.shown()
        });
        worker.join().unwrap()
    }

    fn user(bearer: Bearer) -> User {
        match bearer {
            Bearer::User { user, .. } => user,
            Bearer::Reused | Bearer::Unknown => panic!("{bearer:?}"),
        }
    }

    #[test]
    fn what_ends_a_token_ends_what_is_remembered_of_it() {
        for sql in [
            "delete from tokens",
            "delete from tokens where user_id > 0",
            "delete from users",
            "update tokens set expires_at = 1",
        ] {
            assert!(matches!(after(sql), (Bearer::Unknown, false)), "{sql}");
        }
        assert!(matches!(after("update tokens set replaced_at = 1"), (Bearer::Reused, false)));
    }

    #[test]
    fn what_a_token_is_worth_is_never_remembered_wrongly() {
        let (moved, was_remembered) = after("update users set phone_number = '13900139000', created_at = 7");
        let moved = user(moved);
        let phone_number = moved.phone_number.as_ref().map(PhoneNumber::as_str);
        assert_eq!((phone_number, moved.created_at.0, was_remembered), (Some("13900139000"), 7, false));
        let long = "0086 (138) 0013-8000, in another spelling";
        let (spelled, _) = after("update users set phone_number = '0086 (138) 0013-8000, in another spelling'");
        assert_eq!(user(spelled).phone_number.as_ref().map(PhoneNumber::as_str), Some(long));
    }

    #[test]
    fn who_has_left_is_missed_and_nobody_else() {
        let opened = Opened::new();
        let shown = || match opened.shown().0 {
            Bearer::User { presence, .. } => presence,
            Bearer::Reused | Bearer::Unknown => panic!("the token is good"),
        };
        let is_there = |presence: Presence| {
            on_thread_park();
            opened.store.read(|tx| presence.require_in(tx)).is_ok()
        };
        let (first, remembered) = (shown(), shown());
        assert_eq!(first, remembered);
        assert!(is_there(first));
        opened.elsewhere(|tx| tx.execute("update tokens set expires_at = expires_at - 1", ()).map(drop));
        let later = shown();
        assert!(first != later && is_there(first) && is_there(later));
        opened.elsewhere(|tx| tx.execute("delete from users", ()).map(drop));
        assert!(!is_there(first) && !is_there(later));
    }

    #[test]
    fn what_is_no_change_of_a_token_leaves_it_remembered() {
        for sql in [
            "update tokens set label = 'elsewhere'",
            "update tokens set last_used_at = last_used_at - 1",
            "update users set nickname = 'elsewhere'",
            "insert into tokens select null, user_id, randomblob(32), phone_number, email, user_created_at, expires_at, \
             replaced_at, family, family_expires_at, created_at, label, signed_in_at, last_used_at from tokens",
        ] {
            assert!(after(sql).1, "{sql}");
        }
    }

    #[test]
    fn a_token_is_remembered_until_its_use_is_to_be_noted_or_it_ends() {
        let opened = Opened::new();
        let set = |column: &'static str, hours: i64| {
            let change = move |tx: &Write<'_>| {
                let at = tx.now.0 + hours * 3_600_000;
                tx.execute(&format!("update tokens set {column} = ?1"), [at]).map(drop)
            };
            opened.elsewhere(change);
        };
        set("last_used_at", -2);
        for _ in 0..2 {
            assert!(matches!(opened.shown(), (Bearer::User { is_use_due: true, .. }, false)));
        }
        set("last_used_at", 0);
        assert!(matches!(opened.shown(), (Bearer::User { is_use_due: false, .. }, false)));
        assert!(opened.is_remembered());
        set("expires_at", -1);
        assert!(matches!(opened.shown(), (Bearer::Unknown, false)));
        set("expires_at", 1);
        set("replaced_at", 0);
        for _ in 0..2 {
            assert!(matches!(opened.shown(), (Bearer::User { is_use_due: false, .. }, false)), "in its grace");
        }
    }

    #[test]
    fn what_is_no_token_is_nobody_s() {
        let opened = Opened::new();
        let (number, bits) = opened.token.split_once('.').unwrap();
        let texts = ["", ".", "1.", ".x", "-1.x", "99999999999999999999.x", "1", bits];
        for text in texts.map(ToOwned::to_owned).into_iter().chain([
            format!("0{number}.{bits}"),
            format!("+{number}.{bits}"),
            format!("{number}1.{bits}"),
            format!("{number}.{bits}."),
            format!("{number}.{}", bits.to_lowercase()),
        ]) {
            assert!(matches!(opened.bearer(&text), Bearer::Unknown), "{text}");
        }
    }

    #[test]
    fn a_store_knows_nothing_of_another_s_tokens() {
        let (one, other) = (Opened::new(), Opened::new());
        user(one.shown().0);
        on_thread_park();
        assert!(matches!(other.bearer(&one.token), Bearer::Unknown));
        user(one.shown().0);
    }

    #[test]
    fn only_what_was_shown_lately_is_remembered() {
        let opened = Opened::new();
        let shown = Holding { user: user(opened.shown().0), good_until: Timestamp(i64::MAX) };
        let pass = |tokens: usize| {
            KNOWN.with_borrow_mut(|known| {
                for number in 0..tokens {
                    known.remember(Key::of(&sha256(&format!("{number} of {tokens}"))), shown.clone());
                }
                assert!(known.young.len() <= GENERATION && known.old.len() <= GENERATION);
            });
        };
        pass(GENERATION);
        assert!(opened.is_remembered(), "into the next generation");
        pass(GENERATION - 1);
        assert!(opened.is_remembered(), "and from there into the one after it");
        pass(GENERATION);
        pass(GENERATION + 1);
        assert!(!opened.is_remembered());
    }
}
