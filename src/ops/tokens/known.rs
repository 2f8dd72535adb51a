//! What a worker thread remembers of tokens, so that not every request looks its token up.
//!
//! It is true for as long as the number in `token_changes` is what it was. That number is read once for each view of the
//! database, from the view itself; so whoever changes a token, be it another process, ends what is remembered of it
//! when their change becomes visible, and no sooner or later than that.

use std::{cell::RefCell, collections::HashMap, mem, sync::Arc};

use super::Lifetimes;
use crate::{
    error::Result,
    ops::users::{self, User},
    store::{Read, View},
    types::sha256,
};

/// Tokens of one generation. A thread remembers two: the one that grows, and the one before it.
const GENERATION: usize = 20_000;

thread_local! {
    static KNOWN: RefCell<Known> = RefCell::default();
}

/// A token as every request asks for it.
#[derive(Clone)]
pub(super) struct Holding {
    pub user: Arc<User>,
    pub lifetimes: Lifetimes,
}

#[derive(Default)]
struct Known {
    /// The view of which all this is known to be true.
    view: Option<View>,
    changes: i64,
    young: Generation,
    old: Generation,
}

/// Tokens by their hashes.
type Generation = HashMap<[u8; 32], Holding>;

/// What the token is worth, if it is one.
pub(super) fn holding_in(tx: &Read<'_>, token: &str) -> Result<Option<Holding>> {
    match tx.view() {
        Some(view) => KNOWN.with_borrow_mut(|known| known.holding_in(tx, view, token)),
        None => look_up_in(tx, token, &sha256(token)),
    }
}

impl Known {
    fn holding_in(&mut self, tx: &Read<'_>, view: View, token: &str) -> Result<Option<Holding>> {
        self.bring_up_to(tx, view)?;
        let hash = sha256(token);
        // That a token was used is no change of it: when to note the next use is known from the row alone.
        let is_good = |known: &Holding| !known.lifetimes.is_use_due(tx.now);
        if let Some(known) = self.young.get(&hash).filter(|known| is_good(known)) {
            return Ok(Some(known.clone()));
        }
        let found = match self.old.remove(&hash).filter(is_good) {
            None => look_up_in(tx, token, &hash)?,
            known => known,
        };
        if let Some(found) = &found {
            self.remember(hash, found.clone());
        }
        Ok(found)
    }

    /// Those that nobody has shown for a whole generation are forgotten.
    fn remember(&mut self, hash: [u8; 32], holding: Holding) {
        if self.young.len() >= GENERATION {
            self.old = mem::take(&mut self.young);
        }
        self.young.insert(hash, holding);
    }

    /// Forgets everything unless it is true of this view as well.
    fn bring_up_to(&mut self, tx: &Read<'_>, view: View) -> Result<()> {
        if self.view == Some(view) {
            return Ok(());
        }
        let changes = tx.first("select number from token_changes where id = 0", (), |row| row.get(0))?.unwrap_or(0);
        if self.changes != changes || !self.view.is_some_and(|last| last.is_beside(view)) {
            (self.young, self.old) = Default::default();
            self.changes = changes;
        }
        self.view = Some(view);
        Ok(())
    }
}

fn look_up_in(tx: &Read<'_>, token: &str, hash: &[u8; 32]) -> Result<Option<Holding>> {
    let Some(user) = super::named_in(tx, token, hash)? else { return Ok(None) };
    tx.first(
        "select expires_at, replaced_at, family_expires_at, last_used_at, phone_number, email, user_created_at \
         from tokens where user_id = ?1 and token_sha256 = ?2",
        (user.0, hash),
        |row| {
            let user = Arc::new(users::addressed(row, user, 4)?);
            Ok(Holding { user, lifetimes: super::lifetimes_of(row, 0)? })
        },
    )
}

#[cfg(test)]
mod tests {
    use std::{path::Path, thread, time::Duration};

    use super::*;
    use crate::{
        clock::Clock,
        config::Config,
        keys::ServerKey,
        ops::{tokens, users::Address},
        store::{Store, Tuning, Write, thread_parks},
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
            let open = || Store::open(&path, &Tuning::SMALL, Clock::default(), true).unwrap();
            let (store, other) = (open(), open());
            let limits = Config::defaults().unwrap().auth;
            let issued = store.write(move |tx| {
                let address = Address::Phone(PhoneNumber::from_canonical("13800138000".into()));
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

        /// What this thread knows on a view of its own.
        fn known(&self) -> Option<Holding> {
            thread_parks();
            self.store.read(|tx| holding_in(tx, &self.token)).unwrap()
        }
    }

    /// Makes a change elsewhere and returns what a worker thread knows before and after.
    fn around(sql: &'static str) -> (Holding, Option<Holding>) {
        let worker = thread::spawn(move || {
            let opened = Opened::new();
            let before = opened.known().unwrap();
            opened.elsewhere(move |tx| tx.execute(sql, ()).map(drop));
            (before, opened.known())
        });
        worker.join().unwrap()
    }

    #[test]
    fn what_ends_a_token_ends_what_is_remembered_of_it() {
        for sql in ["delete from tokens", "delete from tokens where user_id > 0", "delete from users"] {
            assert!(around(sql).1.is_none(), "{sql}");
        }
    }

    #[test]
    fn what_a_token_is_worth_is_never_remembered_wrongly() {
        let replaced = around("update tokens set replaced_at = 1").1.unwrap();
        assert_eq!(replaced.lifetimes.replaced_at.map(|at| at.0), Some(1));
        let expired = around("update tokens set expires_at = 1, family_expires_at = 2").1.unwrap();
        assert_eq!((expired.lifetimes.expires_at.0, expired.lifetimes.family_ends.0), (1, 2));
        let moved = around("update users set phone_number = '13900139000', created_at = 7").1.unwrap();
        let phone_number = moved.user.phone_number.as_ref().map(PhoneNumber::as_str);
        assert_eq!((phone_number, moved.user.created_at.0), (Some("13900139000"), 7));
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
            let (before, after) = around(sql);
            assert!(Arc::ptr_eq(&before.user, &after.unwrap().user), "{sql}");
        }
    }

    #[test]
    fn a_token_whose_use_is_to_be_noted_is_looked_up_until_it_is() {
        let opened = Opened::new();
        let age = |hours| {
            let age = Duration::from_hours(hours);
            move |tx: &Write<'_>| tx.execute("update tokens set last_used_at = ?1", [tx.now.minus(age).0]).map(drop)
        };
        opened.elsewhere(age(2));
        let first = opened.known().unwrap();
        assert!(!Arc::ptr_eq(&first.user, &opened.known().unwrap().user), "is looked up while the use is due");
        opened.elsewhere(age(0));
        let noted = opened.known().unwrap();
        assert!(noted.lifetimes.last_used_at > first.lifetimes.last_used_at);
        assert!(Arc::ptr_eq(&noted.user, &opened.known().unwrap().user), "is remembered again");
    }

    #[test]
    fn a_token_from_before_tokens_named_their_user_works_on() {
        let opened = Opened::new();
        let (key, limits) =
            (ServerKey::of(Some(&"k".repeat(32).into()), Path::new("")).unwrap(), Config::defaults().unwrap().auth);
        let moved = opened.store.write(|tx| {
            tx.execute("update tokens set token_sha256 = ?1, family = ?1", [sha256("from before")])?;
            tx.execute(
                "insert into nameless_tokens (token_sha256, user_id) select ?1, id from users",
                [sha256("from before")],
            )
        });
        assert_eq!(moved.wait().unwrap(), 1);
        let found = opened.store.read(|tx| holding_in(tx, "from before")).unwrap().unwrap();
        assert!(opened.store.read(|tx| holding_in(tx, &opened.token)).unwrap().is_none());
        let replaced =
            opened.store.write(move |tx| tokens::replace_in(tx, &key, &limits, "from before")).wait().unwrap();
        assert!(replaced.token.reveal().starts_with(&format!("{}.", found.user.id)));
        let successor = opened.store.read(|tx| holding_in(tx, replaced.token.reveal())).unwrap().unwrap();
        assert_eq!(successor.user.id, found.user.id);
        opened.store.write(|tx| tokens::revoke_in(tx, "from before")).wait().unwrap();
        let left = "select (select count(*) from tokens) + (select count(*) from nameless_tokens)";
        assert_eq!(opened.store.read(|tx| tx.one(left, (), |row| row.get::<i64>(0))).unwrap(), 0);
    }

    #[test]
    fn what_is_no_token_is_nobody_s() {
        let opened = Opened::new();
        let (user, bits) = opened.token.split_once('.').unwrap();
        let texts = ["", ".", "1.", ".x", "-1.x", "99999999999999999999.x", "1", bits];
        for text in texts.map(ToOwned::to_owned).into_iter().chain([
            format!("0{user}.{bits}"),
            format!("+{user}.{bits}"),
            format!("{user}1.{bits}"),
            format!("{user}.{bits}."),
            format!("{user}.{}", bits.to_lowercase()),
        ]) {
            assert!(opened.store.read(|tx| holding_in(tx, &text)).unwrap().is_none(), "{text}");
        }
    }

    #[test]
    fn a_store_knows_nothing_of_another_s_tokens() {
        let (one, other) = (Opened::new(), Opened::new());
        assert!(one.known().is_some());
        thread_parks();
        assert!(other.store.read(|tx| holding_in(tx, &one.token)).unwrap().is_none());
        assert!(one.known().is_some());
    }

    #[test]
    fn only_what_was_shown_lately_is_remembered() {
        let opened = Opened::new();
        let shown = opened.known().unwrap();
        let pass = |tokens: usize| {
            KNOWN.with_borrow_mut(|known| {
                for number in 0..tokens {
                    known.remember(sha256(&format!("{number} of {tokens}")), shown.clone());
                }
                assert!(known.young.len() <= GENERATION && known.old.len() <= GENERATION);
            });
        };
        pass(GENERATION);
        assert!(Arc::ptr_eq(&shown.user, &opened.known().unwrap().user), "is remembered into the next generation");
        pass(GENERATION - 1);
        assert!(Arc::ptr_eq(&shown.user, &opened.known().unwrap().user), "and from there into the one after it");
        pass(GENERATION);
        pass(GENERATION + 1);
        assert!(!Arc::ptr_eq(&shown.user, &opened.known().unwrap().user), "is forgotten");
    }
}
