//! Doing what a request asks for once, however often the request comes.
//!
//! A client that got no answer sends its request again with the same `Idempotency-Key` and gets the first answer. The
//! answer is stored in the transaction of what it answers, so that a crash leaves both or neither. Because one thread
//! writes, a copy of a request never meets its first one half done: it waits behind it and gets its answer.

use std::time::Duration;

use serde_json::Value;

use crate::{
    core::Core,
    domain::identity::users,
    error::{Code, Error, Result},
    store::{Read, Write},
    types::{Timestamp, UserId},
};

/// A request that carries a key.
#[derive(Clone, Debug)]
pub struct Claim {
    /// Whose key it is: two callers may choose the same one. Users are named by [`user`].
    pub caller: String,
    /// The path of the endpoint, such as `/coin/consume`. Only POST requests have keys.
    pub route: String,
    pub key: String,
    /// Tells whether a second request with the key asks for the same.
    pub request_sha256: [u8; 32],
    pub kept_for: Duration,
}

/// An answer as it was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    pub status: u16,
    pub body: Vec<u8>,
}

/// What a request is answered with.
#[derive(Clone, Debug)]
pub enum Answered<T> {
    /// It was done now.
    Now(T),
    /// It was done before; this was the answer.
    Before(Kept),
}

/// Renders an outcome as its answer.
type Render<T> = Box<dyn FnOnce(Result<&T, &Error>) -> Result<Kept> + Send>;

/// Whether an effect is to happen once at most, and how its answer is kept.
pub struct Once<T> {
    /// The user who asks for the effect, if it is one.
    asker: Option<UserId>,
    kept: Option<(Claim, Render<T>)>,
}

impl<T> Once<T> {
    /// For callers that never repeat themselves, and requests without a key.
    pub fn unkeyed(asker: Option<UserId>) -> Self {
        Self { asker, kept: None }
    }

    /// Keeps what `render` makes of the outcome under the claim's key.
    pub fn keyed(
        asker: Option<UserId>,
        claim: Claim,
        render: impl FnOnce(Result<&T, &Error>) -> Result<Kept> + Send + 'static,
    ) -> Self {
        Self { asker, kept: Some((claim, Box::new(render))) }
    }

    /// The key, if there is one.
    pub fn key(&self) -> Option<&str> {
        self.kept.as_ref().map(|(claim, _)| claim.key.as_str())
    }

    /// The answer that the same request got before, for operations that have something to do before their write.
    ///
    /// # Errors
    /// `idempotency_key_reused` if the key came with another request; `not_found` if what was made is deleted.
    pub fn answered_before(&self, core: &Core) -> Result<Option<Kept>> {
        let Some((claim, _)) = &self.kept else { return Ok(None) };
        let found = core.store.read(|tx| find_in(tx, claim))?;
        found.filter(|row| row.is_live).map(|row| row.answer_to(claim)).transpose()
    }

    /// Runs `effect` if who asks for it is still there, and unless the same request was answered before.
    ///
    /// An effect that fails is undone, with all that the write did before it. If it would fail the same way again (the
    /// balance is too small), the failure is kept as the answer; any other failure leaves the key free for another
    /// try.
    ///
    /// # Errors
    /// Those of the effect; `unauthenticated` for a user who has left; `idempotency_key_reused` if the key came with
    /// another request; `not_found` if what the request made has been deleted since.
    pub fn run_in(self, tx: &Write<'_>, effect: impl FnOnce(&Write<'_>) -> Result<T>) -> Result<Answered<T>> {
        if let Some(asker) = self.asker {
            users::require_in(tx, asker)?;
        }
        let Some((claim, render)) = self.kept else { return effect(tx).map(Answered::Now) };
        let found = find_in(tx, &claim)?;
        let is_taken = found.is_some();
        if let Some(row) = found.filter(|row| row.is_live) {
            return row.answer_to(&claim).map(Answered::Before);
        }
        // Only now an answer whose time is over is taken away: an effect that fails changes nothing.
        let keep = |answer| {
            if is_taken {
                delete_in(tx, &claim)?;
            }
            insert_in(tx, &claim, answer)
        };
        match effect(tx) {
            Ok(done) => {
                keep(&render(Ok(&done))?)?;
                Ok(Answered::Now(done))
            }
            Err(error) if is_final(error.code) => {
                tx.undo()?;
                keep(&render(Err(&error))?)?;
                Err(error.keeping_changes())
            }
            Err(error) => Err(error),
        }
    }
}

/// How a user is named as the owner of keys.
pub fn user(user: UserId) -> String {
    format!("user:{user}")
}

/// Forgets what a request and its answer said, because what they told of, made at that moment, is deleted. The key
/// stays used; a later request that it was used for again is another one.
pub fn forget_in(tx: &Write<'_>, caller: &str, route: &str, key: &str, at: Timestamp) -> Result<()> {
    tx.execute(
        "update idempotency_keys set body = x'', request_sha256 = zeroblob(32) \
         where caller = ?1 and route = ?2 and key = ?3 and created_at = ?4",
        (caller, route, key, at.0),
    )
    .map(drop)
}

/// Whose answers are to be deleted, and where they are: no index has keys by their caller, so all are looked through,
/// for longer than a write may hold up the others.
#[derive(Clone, Debug)]
pub struct Found {
    user: UserId,
    ids: Vec<i64>,
    /// Answers to others that say who the user is.
    naming: Vec<i64>,
    /// The newest of all keys at that moment, 0 without any.
    newest: i64,
}

/// Looks for the answers to the user's requests, and for those to administrators that say who the user is.
pub fn find_user_in(tx: &Read<'_>, leaving: UserId) -> Result<Found> {
    let ids = tx.all("select id from idempotency_keys where caller = ?1", [user(leaving)], |row| row.get(0))?;
    let newest = tx.one("select coalesce(max(id), 0) from idempotency_keys", (), |row| row.get(0))?;
    let others = tx.all("select id from idempotency_keys where caller not like 'user:%'", (), |row| row.get(0))?;
    Ok(Found { user: leaving, ids, naming: naming_in(tx, leaving, others)?, newest })
}

/// Deletes the answers to the user's requests, and forgets what others said of who the user is: those that were found,
/// and those given since.
pub fn erase_user_in(tx: &Write<'_>, found: &Found) -> Result<()> {
    let Found { user: leaving, ids, naming, newest } = found;
    let caller = user(*leaving);
    // Ids go on from the newest while that is there, and may begin anew once it has gone. Asked for before anything is
    // deleted here, because the newest may be one of these.
    let since = "select coalesce(max(id), 0) from idempotency_keys where id = ?1";
    let since: i64 = tx.one(since, [newest], |row| row.get(0))?;
    for id in ids {
        tx.execute("delete from idempotency_keys where id = ?1 and caller = ?2", (id, &caller))?;
    }
    tx.execute("delete from idempotency_keys where id >= ?1 and caller = ?2", (since, &caller))?;
    let others = "select id from idempotency_keys where id >= ?1 and caller not like 'user:%'";
    let mut candidates: Vec<i64> = tx.all(others, [since], |row| row.get(0))?;
    candidates.extend(naming);
    // Looked at again, because another answer may have the id by now.
    for id in naming_in(tx, *leaving, candidates)? {
        let forget = "update idempotency_keys set body = x'', request_sha256 = zeroblob(32) where id = ?1";
        tx.execute(forget, [id])?;
    }
    Ok(())
}

/// Which of these answers are nobody's own and say who the user is.
fn naming_in(tx: &Read<'_>, user: UserId, ids: Vec<i64>) -> Result<Vec<i64>> {
    let mut naming = Vec::new();
    for id in ids {
        let body = "select body from idempotency_keys where id = ?1 and caller not like 'user:%'";
        let body: Option<Vec<u8>> = tx.first(body, [id], |row| row.get(0))?;
        if body.is_some_and(|body| says_who_is(&body, user)) {
            naming.push(id);
        }
    }
    Ok(naming)
}

/// Whether an answer tells the user's phone number, or one that was theirs. By the mere id nobody is found who has
/// left.
fn says_who_is(body: &[u8], user: UserId) -> bool {
    let Ok(answer) = serde_json::from_slice::<Value>(body) else { return false };
    answer["userId"] == user.to_string() && !answer["phoneNumber"].is_null()
}

/// Deletes up to `limit` answers that are older than `age`, or that a clock left that was ahead by more than that:
/// nobody gets those any more.
pub fn delete_older_in(tx: &Write<'_>, age: Duration, limit: u32) -> Result<usize> {
    tx.execute(
        "delete from idempotency_keys where id in (select id from idempotency_keys order by id limit ?2) \
         and (created_at <= ?1 or created_at > ?3)",
        (tx.now.minus(age).0, limit, tx.now.plus(age).0),
    )
}

/// Failures that are the answer to the request, and not an accident on the way to one.
const fn is_final(code: Code) -> bool {
    matches!(code, Code::InsufficientCoins | Code::InsufficientPoints | Code::BalanceTooLarge)
}

/// What is kept under a key.
struct Row {
    /// Its time is not over, although the row may still be there after it.
    is_live: bool,
    request_sha256: [u8; 32],
    kept: Kept,
}

impl Row {
    fn answer_to(self, claim: &Claim) -> Result<Kept> {
        if self.kept.body.is_empty() {
            return Err(Error::new(Code::NotFound).detail("What this request made has been deleted since."));
        }
        if self.request_sha256 != claim.request_sha256 {
            return Err(Code::IdempotencyKeyReused.into());
        }
        Ok(self.kept)
    }
}

fn find_in(tx: &Read<'_>, claim: &Claim) -> Result<Option<Row>> {
    tx.first(
        "select created_at, request_sha256, status, body from idempotency_keys \
         where caller = ?1 and route = ?2 and key = ?3",
        (&claim.caller, &claim.route, &claim.key),
        |row| {
            let created_at = Timestamp(row.get(0)?);
            let kept = Kept { status: row.get(2)?, body: row.get(3)? };
            let is_live = created_at.is_near(claim.kept_for, tx.now);
            Ok(Row { is_live, request_sha256: row.get(1)?, kept })
        },
    )
}

fn delete_in(tx: &Write<'_>, claim: &Claim) -> Result<()> {
    tx.execute(
        "delete from idempotency_keys where caller = ?1 and route = ?2 and key = ?3",
        (&claim.caller, &claim.route, &claim.key),
    )
    .map(drop)
}

fn insert_in(tx: &Write<'_>, claim: &Claim, kept: &Kept) -> Result<()> {
    tx.execute(
        "insert into idempotency_keys (caller, route, key, request_sha256, status, body, created_at) \
         values (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        (&claim.caller, &claim.route, &claim.key, claim.request_sha256, kept.status, &kept.body, tx.now.0),
    )
    .map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        clock::Clock,
        store::{SchemaPolicy, Store, Tuning},
    };

    fn claim(caller: UserId, key: &str) -> Claim {
        Claim {
            caller: user(caller),
            route: "POST /coin/consume".into(),
            key: key.into(),
            request_sha256: [0; 32],
            kept_for: Duration::from_hours(72),
        }
    }

    /// The keys that are left of two users', when one leaves who was looked for before `since`.
    fn left_after(since: impl FnOnce(&Write<'_>) -> Result<()> + Send + 'static) -> String {
        let directory = tempfile::tempdir().unwrap();
        let store =
            Store::open(&directory.path().join("yarrow.db"), &Tuning::SMALL, Clock::default(), SchemaPolicy::Migrate)
                .unwrap();
        let keep =
            |tx: &Write<'_>, caller, key| insert_in(tx, &claim(caller, key), &Kept { status: 200, body: vec![1] });
        let before = store.write(move |tx| {
            keep(tx, UserId(1), "b")?;
            keep(tx, UserId(2), "a")
        });
        before.wait().unwrap();
        let found = store.read(|tx| find_user_in(tx, UserId(1))).unwrap();
        assert_eq!(found.ids.len(), 1);
        let erased = store.write(move |tx| {
            since(tx)?;
            keep(tx, UserId(1), "c")?;
            keep(tx, UserId(2), "d")?;
            erase_user_in(tx, &found)
        });
        erased.wait().unwrap();
        let left = "select group_concat(caller || key, ' ' order by key) from idempotency_keys";
        store.read(|tx| tx.one(left, (), |row| row.get(0))).unwrap()
    }

    #[test]
    fn who_leaves_leaves_no_answer_whenever_it_was_given() {
        assert_eq!(left_after(|_| Ok(())), "user:2a user:2d");
        let all_swept = |tx: &Write<'_>| tx.execute("delete from idempotency_keys", ()).map(drop);
        assert_eq!(left_after(all_swept), "user:2d");
        let newest_gone = |tx: &Write<'_>| tx.execute("delete from idempotency_keys where key = 'a'", ()).map(drop);
        assert_eq!(left_after(newest_gone), "user:2d");
        let answered_anew = |tx: &Write<'_>| {
            delete_in(tx, &claim(UserId(1), "b"))?;
            insert_in(tx, &claim(UserId(1), "b"), &Kept { status: 200, body: vec![2] })
        };
        assert_eq!(left_after(answered_anew), "user:2a user:2d");
    }
}
