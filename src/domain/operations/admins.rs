//! The people and programs that operate the service: named accounts with a password, and keys with a label.
//!
//! There is none until the command line makes one. A password is kept as Argon2id, whose work is bounded twice: by
//! how often may be tried, and by how many hashes run at once. A try is counted before the password is looked at, so
//! that many tries at once are not one try.

pub mod keys;
pub mod networks;
pub mod second_factor;
pub mod sessions;

use std::{net::IpAddr, sync::Arc, time::Duration};

use argon2::{
    Argon2,
    password_hash::{PasswordHasher, PasswordVerifier, phc::PasswordHash},
};

use crate::{
    app::App,
    concurrency::semaphore::Permit,
    config,
    domain::identity::codes,
    error::{Code, Error, Fault, FieldCode, Result},
    store::{
        Pending, Read, Write,
        sliding_window::{self, Window},
    },
    types::{Secret, Timestamp, sha256},
};

const SESSION_PREFIX: &str = "ys_";
const KEY_PREFIX: &str = "yk_";
/// Characters of a prefix and 256 bits.
const CREDENTIAL_LENGTH: usize = 46;
const SHORTEST_PASSWORD: usize = 12;
const LONGEST_PASSWORD: usize = 256;
/// Each hash takes 19 MiB.
pub const HASHES_AT_ONCE: u32 = 4;
/// How exactly it is known when a credential was last used.
const USE_NOTED_EVERY: Duration = Duration::from_mins(1);

/// What a password is compared with when there is no such administrator, so that the answer takes as long.
const NOBODY: &str =
    "$argon2id$v=19$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

/// Who operates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Identity {
    Account { id: i64, name: String },
    Key { id: i64, label: String },
}

impl Identity {
    /// The name in audit rows.
    pub fn actor(&self) -> String {
        match self {
            Self::Account { name, .. } => format!("admin:{name}"),
            Self::Key { label, .. } => format!("key:{label}"),
        }
    }
}

/// A credential that is good.
#[derive(Clone, Debug)]
pub struct Standing {
    pub identity: Identity,
    /// Its last use is worth noting, by [`note_use`].
    pub is_use_due: bool,
}

/// A credential that was just made, for its owner.
#[derive(Clone, Debug)]
pub struct Issued {
    pub token: Secret,
    pub expires_at: Timestamp,
}

#[derive(Clone, Debug)]
pub struct Admin {
    pub id: i64,
    pub name: String,
    pub created_at: Timestamp,
    /// Signs in with a second factor.
    pub has_second_factor: bool,
}

fn hash(_: &Permit<'_>, password: &str) -> Result<String> {
    let hash = Argon2::default().hash_password(password.as_bytes());
    hash.map(|hash| hash.to_string()).map_err(|error| Error::internal(error.to_string()))
}

fn verify(_: &Permit<'_>, hash: &str, password: &str) -> Result<bool> {
    let hash = PasswordHash::new(hash).map_err(|error| Error::internal(error.to_string()))?;
    Ok(Argon2::default().verify_password(password.as_bytes(), &hash).is_ok())
}

/// Makes an administrator. Blocks on the hash.
///
/// # Errors
/// `invalid_parameters` for an unfit name or password; `already_exists`.
pub fn create(app: &App, name: &str, password: &str) -> Result<Admin> {
    let name = fit_name("name", name)?;
    let password_hash = hash(&app.hashing.try_acquire()?, fit_password(password)?)?;
    let insert = move |tx: &Write<'_>| {
        let id = tx.first(
            "insert into admins (name, password_hash, created_at) values (?1, ?2, ?3) \
             on conflict (name) do nothing returning id",
            (&name, &password_hash, tx.now.0),
            |row| row.get(0),
        )?;
        let id = id.ok_or(Code::AlreadyExists)?;
        Ok(Admin { id, name, created_at: tx.now, has_second_factor: false })
    };
    app.store.write(insert).wait()
}

/// Gives an administrator another password and ends their sessions. Blocks on the hash.
///
/// # Errors
/// `invalid_parameters` for an unfit password; `not_found`.
pub fn change_password(app: &App, name: &str, password: &str) -> Result<()> {
    let password_hash = hash(&app.hashing.try_acquire()?, fit_password(password)?)?;
    let name = name.to_owned();
    let update = move |tx: &Write<'_>| {
        let admin = id_of_in(tx, &name)?;
        tx.execute("update admins set password_hash = ?2 where id = ?1", (admin, &password_hash))?;
        tx.execute("delete from admin_tokens where admin_id = ?1", [admin]).map(drop)
    };
    app.store.write(update).wait()
}

/// The administrators by name.
pub fn list(app: &App) -> Result<Vec<Admin>> {
    app.store.read(|tx| {
        tx.all(
            "select id, name, created_at, exists (select 1 from admin_second_factors \
             where admin_id = admins.id and confirmed_at is not null) from admins order by name",
            (),
            |row| {
                Ok(Admin {
                    id: row.get(0)?,
                    name: row.get(1)?,
                    created_at: Timestamp(row.get(2)?),
                    has_second_factor: row.get(3)?,
                })
            },
        )
    })
}

/// Ends an administrator: the account, its password and its sessions. What they did stays in the audit.
///
/// # Errors
/// `not_found`.
pub fn remove(app: &App, name: &str) -> Pending<()> {
    let name = name.to_owned();
    app.store.write(move |tx| match tx.execute("delete from admins where name = ?1", [&name])? {
        1 => Ok(()),
        _ => Err(Code::NotFound.into()),
    })
}

/// Ends a session. A key is none, and is only ended by [`keys::revoke`].
pub fn sign_out(app: &App, token: &Secret) -> Pending<()> {
    let hash = sha256(token.reveal());
    app.store.write(move |tx| tx.execute("delete from admin_tokens where token_sha256 = ?1", [hash]).map(drop))
}

/// Exchanges name, password and, where there is one, a code of the second factor for a session. Blocks on the hash.
///
/// # Errors
/// `too_many_requests` after some failures of this name or this client; `invalid_credentials`, whichever is wrong;
/// `totp_required` when only the code is missing, which is no failure; `address_not_allowed`.
pub fn sign_in(app: &App, name: &str, password: &str, totp: Option<&str>, client: IpAddr) -> Result<Issued> {
    let (config, tried, network) = (Arc::clone(&app.config), name.to_owned(), codes::client_network(client));
    // Before a place is taken: those who may not try any more must not keep others from it.
    app.store.read(|tx| {
        networks::admit_in(tx, client)?;
        require_attempt_in(tx, &config.admin, &tried, &network)
    })?;
    let permit = app.hashing.try_acquire()?;
    let begin =
        move |tx: &Write<'_>| Ok((reserve_in(tx, &config.admin, &tried, &network)?, password_of_in(tx, &tried)?));
    let (attempt, known) = app.store.write(begin).wait()?;
    let hash = known.as_ref().map_or(NOBODY, |(_, hash)| hash);
    let is_right = verify(&permit, hash, password)?;
    let Some((admin, _)) = known.filter(|_| is_right) else { return Err(Code::InvalidCredentials.into()) };
    let (config, keys, totp) = (Arc::clone(&app.config), app.keys.clone(), totp.map(ToOwned::to_owned));
    let finish = move |tx: &Write<'_>| {
        let proved = second_factor::prove_in(tx, &keys, admin, totp.as_deref());
        let forget = || tx.execute("delete from admin_attempts where id = ?1", [attempt]);
        match proved {
            // A client that asks for the code only when it is needed has failed at nothing.
            Err(error) if error.code == Code::TotpRequired => forget().and_then(|_| Err(error.keeping_changes())),
            Err(error) => Err(error),
            Ok(()) => forget().and_then(|_| issue_in(tx, &config.admin, admin)),
        }
    };
    app.store.write(finish).wait()
}

/// Returns true for the credential of an administrator. A user's token is shorter.
pub fn is_credential(token: &str) -> bool {
    token.len() == CREDENTIAL_LENGTH && (token.starts_with(SESSION_PREFIX) || token.starts_with(KEY_PREFIX))
}

/// Says whom a credential speaks for, in one point query. Nothing for one that is no good.
pub fn standing_in(tx: &Read<'_>, limits: &config::Admin, token: &str) -> Result<Option<Standing>> {
    let hash = sha256(token);
    if token.starts_with(KEY_PREFIX) {
        return tx.first(
            "select id, label, last_used_at from api_keys where key_sha256 = ?1 and revoked_at is null",
            [hash],
            |row| {
                let identity = Identity::Key { id: row.get(0)?, label: row.get(1)? };
                let last_used_at: Option<i64> = row.get(2)?;
                Ok(Standing { identity, is_use_due: is_use_due(tx.now, last_used_at) })
            },
        );
    }
    let idle_since = tx.now.minus(limits.session_idle);
    tx.first(
        "select admins.id, admins.name, admin_tokens.last_used_at from admin_tokens \
         join admins on admins.id = admin_tokens.admin_id \
         where token_sha256 = ?1 and expires_at > ?2 and last_used_at > ?3",
        (hash, tx.now.0, idle_since.0),
        |row| {
            let identity = Identity::Account { id: row.get(0)?, name: row.get(1)? };
            Ok(Standing { identity, is_use_due: is_use_due(tx.now, row.get(2)?) })
        },
    )
}

/// Notes that a credential was used just now.
pub fn note_use(app: &App, token: &str) -> Pending<()> {
    let (hash, is_key) = (sha256(token), token.starts_with(KEY_PREFIX));
    app.store.write(move |tx| {
        let sql = if is_key {
            "update api_keys set last_used_at = ?2 where key_sha256 = ?1"
        } else {
            "update admin_tokens set last_used_at = ?2 where token_sha256 = ?1"
        };
        tx.execute(sql, (hash, tx.now.0)).map(drop)
    })
}

/// Deletes up to `limit` sessions that have expired and as many tries that count no longer.
pub fn delete_expired_in(tx: &Write<'_>, attempts_window: Duration, limit: u32) -> Result<usize> {
    let attempts_end = tx.now.minus(attempts_window.max(Duration::from_hours(24)));
    let sessions = tx.execute(
        "delete from admin_tokens where token_sha256 in \
         (select token_sha256 from admin_tokens where expires_at <= ?1 order by expires_at limit ?2)",
        (tx.now.0, limit),
    )?;
    let attempts = tx.execute(
        "delete from admin_attempts where id in \
         (select id from admin_attempts where tried_at <= ?1 order by tried_at limit ?2)",
        (attempts_end.0, limit),
    )?;
    Ok(sessions + attempts)
}

fn is_use_due(now: Timestamp, last_used_at: Option<i64>) -> bool {
    last_used_at.is_none_or(|at| now >= Timestamp(at).plus(USE_NOTED_EVERY))
}

fn id_of_in(tx: &Read<'_>, name: &str) -> Result<i64> {
    let id = tx.first("select id from admins where name = ?1", [name], |row| row.get(0))?;
    id.ok_or_else(|| Error::new(Code::NotFound).detail(format!("There is no administrator `{name}`.")))
}

/// Texts lose the spaces around them at every door, and so does the password when it is sent to sign in.
fn fit_password(password: &str) -> Result<&str> {
    let password = password.trim();
    if (SHORTEST_PASSWORD..=LONGEST_PASSWORD).contains(&password.chars().count()) {
        return Ok(password);
    }
    let message = format!("must have {SHORTEST_PASSWORD} to {LONGEST_PASSWORD} characters");
    Err(Error::field("password", Fault::new(FieldCode::OutOfRange, message)))
}

/// A name that stands in audit rows and on command lines.
fn fit_name(field: &str, name: &str) -> Result<String> {
    let is_fit = |character: char| character.is_alphanumeric() || "-_.@".contains(character);
    let name = name.trim();
    if (1..=64).contains(&name.chars().count()) && name.chars().all(is_fit) {
        return Ok(name.to_owned());
    }
    let message = "must be 1 to 64 letters, digits, or any of - _ . @";
    Err(Error::field(field, Fault::new(FieldCode::InvalidFormat, message)))
}

fn random_credential(prefix: &str) -> Result<Secret> {
    Ok(Secret::from_text(format!("{prefix}{}", Secret::random()?.reveal())))
}

/// Counts a try before it is known how it ends.
fn reserve_in(tx: &Write<'_>, limits: &config::Admin, name: &str, client_network: &str) -> Result<i64> {
    require_attempt_in(tx, limits, name, client_network)?;
    tx.one(
        "insert into admin_attempts (name, client_network, tried_at) values (?1, ?2, ?3) returning id",
        (name, client_network, tx.now.0),
        |row| row.get(0),
    )
}

/// Refuses one more try than are allowed by this name, or from this network.
fn require_attempt_in(tx: &Read<'_>, limits: &config::Admin, name: &str, client_network: &str) -> Result<()> {
    let by_name = "select tried_at from admin_attempts where name = ?1 and tried_at <= ?3 order by tried_at desc limit 1 offset ?2";
    let by_client = "select tried_at from admin_attempts where client_network = ?1 and tried_at <= ?3 order by tried_at desc limit 1 offset ?2";
    let (allowed, length) = (limits.attempts, limits.attempts_window);
    let windows = [(by_name, name), (by_client, client_network)];
    let windows = windows.map(|(newest_first, key)| Window { newest_first, key, allowed, length });
    sliding_window::require_open_in(tx, &windows)
}

fn password_of_in(tx: &Read<'_>, name: &str) -> Result<Option<(i64, String)>> {
    tx.first("select id, password_hash from admins where name = ?1", [name], |row| Ok((row.get(0)?, row.get(1)?)))
}

fn issue_in(tx: &Write<'_>, limits: &config::Admin, admin: i64) -> Result<Issued> {
    let token = random_credential(SESSION_PREFIX)?;
    let expires_at = tx.now.plus(limits.session_lifetime);
    tx.execute(
        "insert into admin_tokens (token_sha256, admin_id, expires_at, last_used_at, created_at) \
         values (?1, ?2, ?3, ?4, ?4)",
        (sha256(token.reveal()), admin, expires_at.0, tx.now.0),
    )?;
    Ok(Issued { token, expires_at })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::concurrency::semaphore::Semaphore;

    #[test]
    fn credentials_are_told_from_tokens_of_users() {
        assert!(is_credential(random_credential(SESSION_PREFIX).unwrap().reveal()));
        assert!(is_credential(random_credential(KEY_PREFIX).unwrap().reveal()));
        assert!(!is_credential(Secret::random().unwrap().reveal()));
        assert!(!is_credential(&format!("yk_{}", "a".repeat(40))));
    }

    #[test]
    fn nobody_has_a_hash_that_takes_the_work_and_fits_no_password() {
        let hashing = Semaphore::new(HASHES_AT_ONCE);
        let permit = hashing.try_acquire().unwrap();
        assert!(!verify(&permit, NOBODY, "").unwrap());
        let kept = hash(&permit, "correct horse battery").unwrap();
        assert!(kept.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"));
        assert!(verify(&permit, &kept, "correct horse battery").unwrap());
        assert!(!verify(&permit, &kept, "correct horse batteries").unwrap());
    }
}
