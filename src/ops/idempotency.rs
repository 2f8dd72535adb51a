//! Doing what a request asks for once, however often the request comes.
//!
//! A client that got no answer sends its request again with the same `Idempotency-Key` and gets the first answer. The
//! answer is stored in the transaction of what it answers, so that a crash leaves both or neither. Because one thread
//! writes, a copy of a request never meets its first one half done: it waits behind it and gets its answer.

use std::time::Duration;

use crate::{
    error::{Code, Error, Result},
    store::Write,
    types::Timestamp,
};

/// A request that carries a key.
#[derive(Clone, Debug)]
pub struct Claim {
    /// Whose key it is: two callers may choose the same one.
    pub caller: String,
    /// Method and template, such as `POST /coin/consume`.
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
pub struct Once<T>(Option<(Claim, Render<T>)>);

impl<T> Once<T> {
    /// For callers that never repeat themselves, and requests without a key.
    pub fn unkeyed() -> Self {
        Self(None)
    }

    /// Keeps what `render` makes of the outcome under the claim's key.
    pub fn keyed(claim: Claim, render: impl FnOnce(Result<&T, &Error>) -> Result<Kept> + Send + 'static) -> Self {
        Self(Some((claim, Box::new(render))))
    }

    /// Runs `effect`, unless the same request was answered before.
    ///
    /// An effect that fails is undone, with all that the write did before it. If it would fail the same way again (the
    /// balance is too small), the failure is kept as the answer; any other failure leaves the key free for another
    /// try.
    ///
    /// # Errors
    /// Those of the effect; `idempotency_key_reused` if the key came with another request.
    pub fn run_in(self, tx: &Write<'_>, effect: impl FnOnce(&Write<'_>) -> Result<T>) -> Result<Answered<T>> {
        let Some((claim, render)) = self.0 else { return effect(tx).map(Answered::Now) };
        if let Some((request_sha256, kept)) = find_in(tx, &claim)? {
            if request_sha256 != claim.request_sha256 {
                return Err(Code::IdempotencyKeyReused.into());
            }
            return Ok(Answered::Before(kept));
        }
        match effect(tx) {
            Ok(done) => {
                insert_in(tx, &claim, &render(Ok(&done))?)?;
                Ok(Answered::Now(done))
            }
            Err(error) if is_final(error.code) => {
                tx.undo()?;
                insert_in(tx, &claim, &render(Err(&error))?)?;
                Err(error.keeping_changes())
            }
            Err(error) => Err(error),
        }
    }
}

/// Deletes up to `limit` answers that are older than `age`.
pub fn delete_older_in(tx: &Write<'_>, age: Duration, limit: u32) -> Result<usize> {
    tx.execute(
        "delete from idempotency_keys where id in (select id from idempotency_keys order by id limit ?2) \
         and created_at <= ?1",
        (tx.now.minus(age).0, limit),
    )
}

/// Failures that are the answer to the request, and not an accident on the way to one.
const fn is_final(code: Code) -> bool {
    matches!(code, Code::InsufficientCoins | Code::InsufficientPoints | Code::BalanceTooLarge)
}

/// The answer that is kept under the key. One that is past its time and not yet deleted gives way.
fn find_in(tx: &Write<'_>, claim: &Claim) -> Result<Option<([u8; 32], Kept)>> {
    let found = tx.first(
        "select id, created_at, request_sha256, status, body from idempotency_keys \
         where caller = ?1 and route = ?2 and key = ?3",
        (&claim.caller, &claim.route, &claim.key),
        |row| Ok((row.get::<_, i64>(0)?, row.get(1)?, row.get(2)?, Kept { status: row.get(3)?, body: row.get(4)? })),
    )?;
    let Some((id, created_at, request_sha256, kept)) = found else { return Ok(None) };
    if tx.now < Timestamp(created_at).plus(claim.kept_for) {
        return Ok(Some((request_sha256, kept)));
    }
    tx.execute("delete from idempotency_keys where id = ?1", [id])?;
    Ok(None)
}

fn insert_in(tx: &Write<'_>, claim: &Claim, kept: &Kept) -> Result<()> {
    tx.execute(
        "insert into idempotency_keys (caller, route, key, request_sha256, status, body, created_at) \
         values (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        (&claim.caller, &claim.route, &claim.key, claim.request_sha256, kept.status, &kept.body, tx.now.0),
    )
    .map(drop)
}
