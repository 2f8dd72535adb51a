//! Idempotency keys: a repeated request gets the stored response of the first.
//!
//! A client that got no response repeats its request with the same `Idempotency-Key`. The response is stored in the
//! transaction of its effect, so that a crash leaves both or neither. A single thread writes, so a repeated request
//! waits for the first and never runs beside it.
//!
//! A response that cost nothing, such as a refusal for lack of coins, could be stored without limit under ever new
//! keys. So only the newest of a caller are kept. A repeated request whose response was deleted is executed again,
//! which is safe: the first one changed nothing.

use std::{borrow::Cow, collections::HashMap, time::Duration};

use serde_json::Value;

use crate::{
    core::Core,
    domain::identity::users,
    error::{Code, Error, Result},
    store::{Read, RowResult, SqlParameters, Write},
    types::{Timestamp, UserId},
};

/// The body of a response that was erased.
const NO_BODY: &[u8] = &[];
/// The hash of its request.
const NO_REQUEST: [u8; 32] = [0; 32];
/// Surplus rows deleted with each new one: more than one, for a limit that was lowered.
const SURPLUS_DELETED: u32 = 10;

/// An idempotency key with the request that carries it.
#[derive(Clone, Debug)]
pub struct Claim {
    /// The caller, because two callers may choose the same key. Users are named by [`user`].
    pub caller: String,
    /// The path template of the endpoint, such as `/coin/consume`. Only POST requests have keys.
    pub route: String,
    pub key: String,
    /// Detects another request with the same key.
    pub request_sha256: [u8; 32],
    pub kept_for: Duration,
    /// The number of responses that changed nothing, kept of one caller.
    pub free_responses: u32,
}

impl Claim {
    fn name(&self) -> ClaimName<'_> {
        [&self.caller, &self.route, &self.key].map(|part| Cow::Borrowed(part.as_str()))
    }
}

/// Caller, route and key.
type ClaimName<'claim> = [Cow<'claim, str>; 3];

/// A stored response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredResponse {
    pub status: u16,
    pub body: Vec<u8>,
}

/// The outcome of an idempotent request.
#[derive(Clone, Debug)]
pub enum IdempotentOutcome<T> {
    /// The request was executed now. With a key it has the response that was stored, which is sent as it is.
    Fresh(T, Option<StoredResponse>),
    /// The request was executed before, with this response.
    Replayed(StoredResponse),
}

impl<T> IdempotentOutcome<T> {
    /// Returns the result of a request without a key, which is never replayed.
    ///
    /// # Errors
    /// `internal` for a replayed response.
    pub fn fresh(self) -> Result<T> {
        match self {
            Self::Fresh(done, _) => Ok(done),
            Self::Replayed(_) => Err(Error::internal("a request without an idempotency key got a replayed response")),
        }
    }
}

/// Renders an outcome as a response.
type Render<T> = Box<dyn Fn(Result<&T, &Error>) -> Result<StoredResponse> + Send>;

/// A request that is executed once at most if it has a key.
pub struct IdempotentRequest<T> {
    /// The user who makes the request, if it is a user.
    user: Option<UserId>,
    key: Option<(Claim, Render<T>)>,
}

impl<T> IdempotentRequest<T> {
    /// For commands, and for requests without a key.
    pub fn without_key(user: Option<UserId>) -> Self {
        Self { user, key: None }
    }

    /// Stores the response that `render` makes of the outcome under the claim's key.
    pub fn with_key(
        user: Option<UserId>,
        claim: Claim,
        render: impl Fn(Result<&T, &Error>) -> Result<StoredResponse> + Send + 'static,
    ) -> Self {
        Self { user, key: Some((claim, Box::new(render))) }
    }

    /// Returns the key, if there is one.
    pub fn key(&self) -> Option<&str> {
        self.key.as_ref().map(|(claim, _)| claim.key.as_str())
    }

    /// Returns the stored response, for operations that call a provider before their write.
    ///
    /// # Errors
    /// `idempotency_key_reused` if the key came with another request; `not_found` if the created resource was deleted.
    pub fn stored_response(&self, core: &Core) -> Result<Option<StoredResponse>> {
        let Some((claim, _)) = &self.key else { return Ok(None) };
        let found = core.store.read(|tx| find_in(tx, claim))?;
        found.filter(|row| row.is_live).map(|row| row.response_for(claim)).transpose()
    }

    /// Runs `effect` unless the request was executed before.
    ///
    /// A failed effect is rolled back. If it would fail the same way again (the balance is too small), the failure is
    /// stored as the response. Any other failure leaves the key free for another attempt.
    ///
    /// # Errors
    /// Those of the effect; `unauthenticated` for a deleted user; `idempotency_key_reused` if the key came with another
    /// request; `not_found` if the created resource was deleted.
    pub fn run_in(self, tx: &Write<'_>, effect: impl FnOnce(&Write<'_>) -> Result<T>) -> Result<IdempotentOutcome<T>> {
        self.run_unless_void_in(tx, |_| Ok(false), effect)
    }

    /// Like [`Self::run_in`], for an effect that can fail after its response was stored. A stored response for which
    /// `is_void` returns true counts as none, and the request is executed again.
    ///
    /// # Errors
    /// Those of [`Self::run_in`] and of `is_void`.
    pub fn run_unless_void_in(
        self,
        tx: &Write<'_>,
        is_void: impl FnOnce(&StoredResponse) -> Result<bool>,
        effect: impl FnOnce(&Write<'_>) -> Result<T>,
    ) -> Result<IdempotentOutcome<T>> {
        if let Some(user) = self.user {
            users::require_in(tx, user)?;
        }
        let Some((claim, render)) = self.key else { return Ok(IdempotentOutcome::Fresh(effect(tx)?, None)) };
        let found = find_in(tx, &claim)?;
        let has_row = found.is_some();
        if let Some(row) = found.filter(|row| row.is_live) {
            let response = row.response_for(&claim)?;
            if !is_void(&response)? {
                return Ok(IdempotentOutcome::Replayed(response));
            }
        }
        // Deletes an expired row only now, because a failed effect must change nothing.
        let store = |response: &StoredResponse, is_free| {
            if has_row {
                delete_in(tx, &claim)?;
            }
            insert_in(tx, &claim, response, is_free)
        };
        match effect(tx) {
            Ok(value) => {
                let is_free = tx.changed() == 0;
                let response = render(Ok(&value))?;
                store(&response, is_free)?;
                Ok(IdempotentOutcome::Fresh(value, Some(response)))
            }
            Err(error) if is_final(error.code) => {
                tx.undo()?;
                store(&render(Err(&error))?, true)?;
                Err(error.keeping_changes())
            }
            Err(error) => Err(error),
        }
    }
}

/// The stored responses to a set of requests, and the new ones that are to be stored.
pub struct ResponseSet<'set> {
    stored: HashMap<ClaimName<'set>, Row>,
    new: Vec<NewResponse<'set>>,
    is_single: bool,
}

struct NewResponse<'set> {
    claim: &'set Claim,
    response: StoredResponse,
    is_free: bool,
    /// A response to the key is stored whose retention is over.
    replaces: bool,
}

impl<'set> ResponseSet<'set> {
    /// Reads the responses that are stored.
    ///
    /// # Errors
    /// Storage errors.
    pub fn load_in<T: 'set>(
        tx: &Read<'_>,
        requests: impl Iterator<Item = &'set IdempotentRequest<T>> + Clone,
    ) -> Result<Self> {
        let claims = requests.filter_map(|request| request.key.as_ref().map(|(claim, _)| claim));
        let mut set = Self { stored: HashMap::new(), new: Vec::new(), is_single: claims.clone().nth(1).is_none() };
        // The retention is a setting, and the same for all.
        if let Some(claim) = claims.clone().next() {
            tx.each_of(FIND, claims.map(|claim| (&claim.caller, &claim.route, &claim.key)), |row| {
                let name = [row.get(5)?, row.get(6)?, row.get(7)?].map(Cow::Owned);
                set.stored.insert(name, row_of(tx, claim, row)?);
                Ok(())
            })?;
        }
        Ok(set)
    }

    /// Returns false if the outcome depends on responses that the new ones delete: those that changed nothing, or whose
    /// retention is zero.
    pub fn can_run<T>(&self, request: &IdempotentRequest<T>) -> bool {
        let Some((claim, _)) = &request.key else { return true };
        if claim.kept_for.is_zero() {
            return self.new.is_empty();
        }
        let is_free_of_caller = |new: &NewResponse<'_>| new.is_free && new.claim.caller == claim.caller;
        !self.find(claim).is_some_and(|row| row.is_free) || !self.new.iter().any(is_free_of_caller)
    }

    fn find<'a>(&'a self, claim: &'a Claim) -> Option<&'a Row> {
        self.stored.get(&claim.name())
    }

    /// Runs `effect` unless the request was executed before, as [`IdempotentRequest::run_in`] does. The effect decides a
    /// change in memory, and nothing if it fails. [`Self::store_in`] writes the response.
    ///
    /// # Errors
    /// The outer one means that the set must not be stored.
    pub fn run<T>(
        &mut self,
        request: &'set IdempotentRequest<T>,
        effect: impl FnOnce() -> Result<T>,
    ) -> Result<Result<IdempotentOutcome<T>>> {
        let Some((claim, render)) = &request.key else {
            return Ok(effect().map(|value| IdempotentOutcome::Fresh(value, None)));
        };
        let found = self.find(claim);
        if let Some(row) = found.filter(|row| row.is_live) {
            return Ok(row.clone().response_for(claim).map(IdempotentOutcome::Replayed));
        }
        let replaces = found.is_some();
        let outcome = effect();
        let is_free = match &outcome {
            Ok(_) => false,
            Err(error) if is_final(error.code) => true,
            Err(_) => return Ok(outcome.map(|value| IdempotentOutcome::Fresh(value, None))),
        };
        let response = render(outcome.as_ref())?;
        if !self.is_single {
            let row = Row { is_live: true, is_free, request_sha256: claim.request_sha256, response: response.clone() };
            self.stored.insert(claim.name(), row);
        }
        self.new.push(NewResponse { claim, response: response.clone(), is_free, replaces });
        Ok(outcome.map(|value| IdempotentOutcome::Fresh(value, Some(response))).map_err(Error::keeping_changes))
    }

    /// Stores the new responses in the order of their requests.
    ///
    /// # Errors
    /// Storage errors.
    pub fn store_in(self, tx: &Write<'_>) -> Result<()> {
        for NewResponse { claim, .. } in self.new.iter().filter(|new| new.replaces) {
            delete_in(tx, claim)?;
        }
        let rows = self.new.iter().map(|new| row_to_insert(tx, new.claim, &new.response, new.is_free));
        tx.insert_all_later(INSERT, rows)?;
        self.new.iter().filter(|new| new.is_free).try_for_each(|new| delete_surplus_in(tx, new.claim))
    }
}

/// Returns the caller's name of a user.
pub fn user(user: UserId) -> String {
    format!("user:{user}")
}

/// Erases a stored response because the resource created at that moment is deleted. The key stays used.
pub fn forget_in(tx: &Write<'_>, caller: &str, route: &str, key: &str, at: Timestamp) -> Result<()> {
    tx.execute(
        "update idempotency_keys set body = ?5, request_sha256 = ?6 \
         where caller = ?1 and route = ?2 and key = ?3 and created_at = ?4",
        (caller, route, key, at.0, NO_BODY, NO_REQUEST),
    )
    .map(drop)
}

/// The stored responses to administrators that identify a user. They are searched in a read, because no index lists them
/// and a write must not take long.
#[derive(Clone, Debug)]
pub struct UserResponses {
    user: UserId,
    /// Responses to administrators that contain the user's phone number.
    identifying: Vec<i64>,
    /// The newest id at the time of the search, or 0.
    newest: i64,
}

/// Returns the ids of the responses to a user. Reads all keys, because no index lists them by caller.
pub fn ids_of_user_in(tx: &Read<'_>, user_id: UserId) -> Result<Vec<i64>> {
    tx.all("select id from idempotency_keys where caller = ?1", [user(user_id)], |row| row.get(0))
}

/// Deletes a response to a user. Another caller may have got the id since.
pub fn delete_of_user_in(tx: &Write<'_>, user_id: UserId, id: i64) -> Result<()> {
    tx.execute("delete from idempotency_keys where id = ?1 and caller = ?2", (id, user(user_id))).map(drop)
}

/// Searches the responses to administrators that identify the user.
pub fn find_user_in(tx: &Read<'_>, user_id: UserId) -> Result<UserResponses> {
    let newest = tx.one("select coalesce(max(id), 0) from idempotency_keys", (), |row| row.get(0))?;
    let others = tx.all("select id from idempotency_keys where caller not like 'user:%'", (), |row| row.get(0))?;
    Ok(UserResponses { user: user_id, identifying: identifying_in(tx, user_id, others)?, newest })
}

/// Erases the responses that identify the user, including those stored after the search.
pub fn erase_user_in(tx: &Write<'_>, found: &UserResponses) -> Result<()> {
    let UserResponses { user: user_id, identifying, newest } = found;
    // Ids continue after the newest row, and start again if that was deleted.
    let since = "select coalesce(max(id), 0) from idempotency_keys where id = ?1";
    let since: i64 = tx.one(since, [newest], |row| row.get(0))?;
    let others = "select id from idempotency_keys where id >= ?1 and caller not like 'user:%'";
    let mut candidates: Vec<i64> = tx.all(others, [since], |row| row.get(0))?;
    candidates.extend(identifying);
    // Checked again, because another response may have taken the id since.
    for id in identifying_in(tx, *user_id, candidates)? {
        let forget = "update idempotency_keys set body = ?2, request_sha256 = ?3 where id = ?1";
        tx.execute(forget, (id, NO_BODY, NO_REQUEST))?;
    }
    Ok(())
}

/// Filters the ids of responses to administrators that identify the user.
fn identifying_in(tx: &Read<'_>, user: UserId, ids: Vec<i64>) -> Result<Vec<i64>> {
    let mut identifying = Vec::new();
    for id in ids {
        let body = "select body from idempotency_keys where id = ?1 and caller not like 'user:%'";
        let body: Option<Vec<u8>> = tx.first(body, [id], |row| row.get(0))?;
        if body.is_some_and(|body| identifies(&body, user)) {
            identifying.push(id);
        }
    }
    Ok(identifying)
}

/// Returns true if a response contains the user's phone number, or a text of or about the user. The id alone identifies
/// nobody once the user is deleted.
fn identifies(body: &[u8], user: UserId) -> bool {
    let Ok(response) = serde_json::from_slice::<Value>(body) else { return false };
    response["userId"] == user.to_string()
        && ["phoneNumber", "content", "reason"].iter().any(|member| !response[*member].is_null())
}

/// Deletes up to `limit` responses older than `age`, or dated further ahead than `age` by a wrong clock.
pub fn delete_older_in(tx: &Write<'_>, age: Duration, limit: u32) -> Result<usize> {
    tx.execute(
        "delete from idempotency_keys where id in (select id from idempotency_keys order by id limit ?2) \
         and (created_at <= ?1 or created_at > ?3)",
        (tx.now.minus(age).0, limit, tx.now.plus(age).0),
    )
}

/// Returns true for failures that a repeated request would get again.
const fn is_final(code: Code) -> bool {
    matches!(code, Code::InsufficientCoins | Code::InsufficientPoints | Code::BalanceTooLarge)
}

/// A row of the table.
#[derive(Clone)]
struct Row {
    /// False once the retention is over, although the row may still exist.
    is_live: bool,
    /// The request changed nothing.
    is_free: bool,
    request_sha256: [u8; 32],
    response: StoredResponse,
}

impl Row {
    fn response_for(self, claim: &Claim) -> Result<StoredResponse> {
        if self.response.body.is_empty() {
            return Err(Error::new(Code::NotFound)
                .detail(("The resource that this request created has been deleted.", "此请求创建的内容已被删除。")));
        }
        if self.request_sha256 != claim.request_sha256 {
            return Err(Code::IdempotencyKeyReused.into());
        }
        Ok(self.response)
    }
}

const FIND: &str = "select created_at, request_sha256, status, body, is_free, caller, route, key from idempotency_keys \
                    where caller = ?1 and route = ?2 and key = ?3";

fn find_in(tx: &Read<'_>, claim: &Claim) -> Result<Option<Row>> {
    tx.first(FIND, (&claim.caller, &claim.route, &claim.key), |row| row_of(tx, claim, row))
}

fn row_of(tx: &Read<'_>, claim: &Claim, row: &crate::store::Row<'_>) -> RowResult<Row> {
    let response = StoredResponse { status: row.get(2)?, body: row.get(3)? };
    let is_live = Timestamp(row.get(0)?).is_near(claim.kept_for, tx.now);
    Ok(Row { is_live, is_free: row.get(4)?, request_sha256: row.get(1)?, response })
}

fn delete_in(tx: &Write<'_>, claim: &Claim) -> Result<()> {
    tx.execute_later(
        "delete from idempotency_keys where caller = ?1 and route = ?2 and key = ?3",
        (&claim.caller, &claim.route, &claim.key),
    )
}

const INSERT: &str = "insert into idempotency_keys (caller, route, key, request_sha256, status, body, created_at, is_free) \
                      values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";

/// Stores a response. Of those that changed nothing, only the caller's newest stay.
fn insert_in(tx: &Write<'_>, claim: &Claim, response: &StoredResponse, is_free: bool) -> Result<()> {
    tx.execute_later(INSERT, row_to_insert(tx, claim, response, is_free))?;
    if is_free { delete_surplus_in(tx, claim) } else { Ok(()) }
}

fn row_to_insert<'claim>(
    tx: &Read<'_>,
    claim: &'claim Claim,
    response: &'claim StoredResponse,
    is_free: bool,
) -> impl SqlParameters + use<'claim> {
    let Claim { caller, route, key, request_sha256, .. } = claim;
    (caller, route, key, request_sha256, response.status, &response.body, tx.now.0, is_free)
}

fn delete_surplus_in(tx: &Write<'_>, claim: &Claim) -> Result<()> {
    tx.execute_later(
        "delete from idempotency_keys where id in (select id from idempotency_keys \
         where caller = ?1 and is_free = 1 order by id desc limit ?2 offset ?3)",
        (&claim.caller, SURPLUS_DELETED, claim.free_responses),
    )
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
            free_responses: 1,
        }
    }

    /// Deletes one of two users, running `since` between search and deletion. Returns the remaining keys.
    fn keys_after_erasure(since: impl FnOnce(&Write<'_>) -> Result<()> + Send + 'static) -> String {
        let directory = tempfile::tempdir().unwrap();
        let store =
            Store::open(&directory.path().join("yarrow.db"), &Tuning::SMALL, Clock::default(), SchemaPolicy::Migrate)
                .unwrap();
        let keep = |tx: &Write<'_>, caller, key| {
            insert_in(tx, &claim(caller, key), &StoredResponse { status: 200, body: vec![1] }, false)
        };
        let before = store.write(move |tx| {
            keep(tx, UserId(1), "b")?;
            keep(tx, UserId(2), "a")
        });
        before.wait().unwrap();
        let found = store.read(|tx| find_user_in(tx, UserId(1))).unwrap();
        let erased = store.write(move |tx| {
            since(tx)?;
            keep(tx, UserId(1), "c")?;
            keep(tx, UserId(2), "d")?;
            erase_user_in(tx, &found)
        });
        erased.wait().unwrap();
        let own = store.read(|tx| ids_of_user_in(tx, UserId(1))).unwrap();
        let delete = move |tx: &Write<'_>| own.iter().try_for_each(|id| delete_of_user_in(tx, UserId(1), *id));
        store.write(delete).wait().unwrap();
        let left = "select group_concat(caller || key, ' ' order by key) from idempotency_keys";
        store.read(|tx| tx.one(left, (), |row| row.get(0))).unwrap()
    }

    #[test]
    fn erases_responses_stored_before_and_after_the_search() {
        assert_eq!(keys_after_erasure(|_| Ok(())), "user:2a user:2d");
        let all_deleted = |tx: &Write<'_>| tx.execute("delete from idempotency_keys", ()).map(drop);
        assert_eq!(keys_after_erasure(all_deleted), "user:2d");
        let newest_deleted = |tx: &Write<'_>| tx.execute("delete from idempotency_keys where key = 'a'", ()).map(drop);
        assert_eq!(keys_after_erasure(newest_deleted), "user:2d");
        let repeated = |tx: &Write<'_>| {
            delete_in(tx, &claim(UserId(1), "b"))?;
            insert_in(tx, &claim(UserId(1), "b"), &StoredResponse { status: 200, body: vec![2] }, false)
        };
        assert_eq!(keys_after_erasure(repeated), "user:2a user:2d");
    }
}
