//! Administrators: accounts with a password, and API keys with a label.
//!
//! Passwords are stored as Argon2id hashes, whose cost is limited by a limit on attempts and by a semaphore. An attempt
//! is counted before the password is checked, so that parallel attempts count separately. One owner always remains.

pub mod demo_owner;
pub mod first_run;
pub mod keys;
pub mod networks;
mod one_time_link;
mod passwords;
pub mod roles;
pub mod second_factor;
pub mod sessions;
mod sign_ins;
pub mod step_up;

use std::{net::IpAddr, sync::Arc, time::Duration};

use self::{
    one_time_link::OneTimeLink,
    passwords::{DUMMY_HASH, PasswordHasher, Waiting},
    roles::Role,
};
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    config,
    core::Core,
    domain::identity::codes::ClientNetworks,
    error::{Code, Error, Fault, FieldCode, RateLimit, Result},
    store::{
        Pending, Read, Row, Write,
        sliding_window::{self, Window, WindowRows, WindowUse, window_rows},
    },
    types::{Secret, Timestamp, sha256},
};

const SESSION_PREFIX: &str = "ys_";
const KEY_PREFIX: &str = "yk_";
/// A prefix and 256 bits in base64.
const CREDENTIAL_LENGTH: usize = 46;
/// Minimum characters of a password.
pub const MIN_PASSWORD: u32 = 12;
const MAX_PASSWORD: u32 = 256;
/// The precision of the stored time of a credential's last use.
const LAST_USE_INTERVAL: Duration = Duration::from_mins(1);

const ATTEMPTS_OF_CLIENT: WindowRows = window_rows!("admin_attempts", "tried_at", "client_network = ?1");

/// The service that hashes and checks administrators' passwords.
pub struct Administrators {
    pub core: Core,
    passwords: PasswordHasher,
    /// Signs in the owner of a demonstration.
    demo: OneTimeLink,
}

impl Administrators {
    pub fn new(core: Core) -> Self {
        Self { core, passwords: PasswordHasher::new(), demo: OneTimeLink::default() }
    }
}

/// An authenticated administrator or API key, or the command line, whose user can read the files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Identity {
    Account { id: i64, name: String, role: Role },
    Key { id: i64, label: String, role: Role },
    CommandLine,
}

impl Identity {
    /// The name in audit events.
    pub fn actor(&self) -> String {
        match self {
            Self::Account { name, .. } => format!("admin:{name}"),
            Self::Key { label, .. } => format!("key:{label}"),
            Self::CommandLine => self.name().to_owned(),
        }
    }

    /// The name of the account or the label of the key.
    pub fn name(&self) -> &str {
        match self {
            Self::Account { name, .. } => name,
            Self::Key { label, .. } => label,
            Self::CommandLine => "cli",
        }
    }

    pub const fn role(&self) -> Role {
        match self {
            Self::Account { role, .. } | Self::Key { role, .. } => *role,
            Self::CommandLine => Role::Owner,
        }
    }
}

/// The owner of a valid credential.
#[derive(Clone, Debug)]
pub struct ValidCredential {
    pub identity: Identity,
    /// The stored time of its last use is old; see [`record_use`].
    pub is_use_due: bool,
}

/// A new session.
#[derive(Clone, Debug)]
pub struct IssuedSession {
    pub token: Secret,
    pub expires_at: Timestamp,
}

/// An administrator.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Administrator)]
pub struct Admin {
    #[serde(skip)]
    pub id: i64,
    #[schema(example = "alice")]
    pub name: String,
    pub role: Role,
    pub created_at: Timestamp,
    pub has_second_factor: bool,
}

/// Creates an administrator. Blocks on the hash.
///
/// # Errors
/// `invalid_parameters` for an invalid name or password; `already_exists`.
pub fn create(admins: &Administrators, name: &str, password: &str, role: Role) -> Result<Admin> {
    let name = valid_name("name", name)?;
    let password_hash = admins.passwords.acquire(Waiting::Known(&name))?.hash(valid_password(password)?)?;
    let insert = move |tx: &Write<'_>| {
        let id = tx.first(
            "insert into admins (name, password_hash, role, created_at) values (?1, ?2, ?3, ?4) \
             on conflict (name) do nothing returning id",
            (&name, &password_hash, role.name(), tx.now.0),
            |row| row.get(0),
        )?;
        let id = id.ok_or(Code::AlreadyExists)?;
        Ok(Admin { id, name, role, created_at: tx.now, has_second_factor: false })
    };
    admins.core.store.write(insert).wait()
}

/// The changes of an administrator. Only the given ones are made.
#[derive(Clone, Copy, Debug)]
pub struct AdminChange<'a> {
    /// Applies to their sessions at once.
    pub role: Option<Role>,
    /// Ends their sessions.
    pub password: Option<&'a str>,
}

/// Changes an administrator: everything or nothing. Blocks on the hash of a password.
///
/// # Errors
/// `invalid_parameters` for an invalid password; `not_found`; `last_owner` if no owner would remain.
pub fn change(admins: &Administrators, name: &str, change: AdminChange<'_>) -> Result<()> {
    let hash = |password| admins.passwords.acquire(Waiting::Known(name))?.hash(valid_password(password)?);
    let password_hash = change.password.map(hash).transpose()?;
    let name = name.to_owned();
    let update = move |tx: &Write<'_>| {
        let admin = id_of_in(tx, &name)?;
        if let Some(role) = change.role {
            tx.execute("update admins set role = ?2 where id = ?1", (admin, role.name()))?;
            require_owner_in(tx)?;
        }
        if let Some(password_hash) = &password_hash {
            tx.execute("update admins set password_hash = ?2 where id = ?1", (admin, password_hash))?;
            sessions::end_all_in(tx, admin)?;
        }
        Ok(())
    };
    admins.core.store.write(update).wait()
}

/// Lists the administrators by name.
pub fn list(core: &Core) -> Result<Vec<Admin>> {
    core.store.read(|tx| {
        tx.all(
            "select id, name, role, created_at, exists (select 1 from admin_second_factors \
             where admin_id = admins.id and confirmed_at is not null) from admins order by name",
            (),
            |row| {
                Ok(Admin {
                    id: row.get(0)?,
                    name: row.get(1)?,
                    role: row.get_parsed(2, Role::from_name)?,
                    created_at: Timestamp(row.get(3)?),
                    has_second_factor: row.get(4)?,
                })
            },
        )
    })
}

/// Returns an administrator by name.
///
/// # Errors
/// `not_found`.
pub fn find(core: &Core, name: &str) -> Result<Admin> {
    let found = list(core)?.into_iter().find(|admin| admin.name == name);
    found.ok_or_else(|| Code::NotFound.into())
}

/// Returns true if there is an administrator with this name.
pub fn exists_in(tx: &Read<'_>, name: &str) -> Result<bool> {
    tx.first("select true from admins where name = ?1", [name], |row| row.get(0)).map(|found| found == Some(true))
}

/// Returns the role that the administrator or API key of an audit event has now; `None` for others, and for those that
/// are gone.
pub fn role_of_actor_in(tx: &Read<'_>, actor: &str) -> Result<Option<Role>> {
    let role = |row: &Row<'_>| row.get_parsed(0, Role::from_name);
    match actor.split_once(':') {
        Some(("admin", name)) => tx.first("select role from admins where name = ?1", [name], role),
        Some(("key", label)) => tx.first("select role from api_keys where label = ?1", [label], role),
        _ => Ok(None),
    }
}

/// Deletes an administrator with their sessions. Their audit events stay.
///
/// # Errors
/// `not_found`; `last_owner` if administrators remain of which none is an owner.
pub fn remove(core: &Core, name: &str) -> Pending<()> {
    let name = name.to_owned();
    core.store.write(move |tx| match tx.execute("delete from admins where name = ?1", [&name])? {
        1 => require_owner_in(tx),
        _ => Err(Code::NotFound.into()),
    })
}

/// Fails if there are administrators but no owner among them.
fn require_owner_in(tx: &Read<'_>) -> Result<()> {
    let lacks_owner: bool = tx.one(
        "select exists (select 1 from admins) and not exists (select 1 from admins where role = ?1)",
        [Role::Owner.name()],
        |row| row.get(0),
    )?;
    if lacks_owner { Err(Code::LastOwner.into()) } else { Ok(()) }
}

/// Ends a session. API keys are ended by [`keys::revoke`] only.
pub fn sign_out(core: &Core, token: &Secret) -> Pending<()> {
    let hash = sha256(token.reveal());
    core.store.write(move |tx| tx.execute("delete from admin_tokens where token_sha256 = ?1", [hash]).map(drop))
}

/// An attempt to sign in.
#[derive(Clone, Debug)]
pub struct SignInAttempt {
    pub name: String,
    pub password: Secret,
    /// The code of the second factor.
    pub totp: Option<String>,
    pub client: IpAddr,
    pub request_id: String,
}

/// Starts a session by name, password and, if the administrator has a second factor, its code. Blocks on the hash. The
/// outcome is audited.
///
/// # Errors
/// `too_many_requests` after several failures of this name or client; `invalid_credentials`; `totp_required` if only the
/// code is missing, which does not count as a failure; `address_not_allowed`.
pub fn sign_in(admins: &Administrators, attempted: &SignInAttempt) -> Result<IssuedSession> {
    let core = &admins.core;
    let SignInAttempt { name, password, totp, client, .. } = attempted;
    let (config, owned_name, networks) = (Arc::clone(&core.config), name.clone(), ClientNetworks::of(*client));
    // Checked before a permit is taken, so that blocked clients do not starve others.
    core.store.read(|tx| {
        networks::admit_in(tx, *client)?;
        require_attempt_in(tx, &config.admin, &owned_name, &networks)
    })?;
    let permit = admins.passwords.acquire(Waiting::Stranger(&networks))?;
    let reserve = move |tx: &Write<'_>| {
        let attempt = reserve_attempt_in(tx, &config.admin, &owned_name, &networks)?;
        Ok((attempt, password_of_in(tx, &owned_name)?))
    };
    let (attempt, account) = core.store.write(reserve).wait()?;
    let hash = account.as_ref().map_or(DUMMY_HASH, |(_, hash)| hash);
    let is_right = permit.verify(hash, password.reveal())?;
    let is_known = account.is_some();
    let Some((admin, _)) = account.filter(|_| is_right) else {
        let attempted = attempted.clone();
        // Not awaited, so that the response time does not reveal known names.
        drop(
            core.store.write(move |tx| sign_ins::record_failure_in(tx, &attempted, is_known, Code::InvalidCredentials)),
        );
        return Err(Code::InvalidCredentials.into());
    };
    let (config, keys, totp, attempted) =
        (Arc::clone(&core.config), core.keys.clone(), totp.clone(), attempted.clone());
    let finish = move |tx: &Write<'_>| {
        let proof = second_factor::verify_in(tx, &keys, admin, totp.as_deref());
        let forget = || tx.execute("delete from admin_attempts where id = ?1", [attempt]);
        match proof {
            Err(error) if matches!(error.code, Code::TotpRequired | Code::InvalidCredentials) => {
                // Clients may ask for the code only when it is needed, so this is not a failure.
                if error.code == Code::TotpRequired {
                    forget()?;
                }
                sign_ins::record_failure_in(tx, &attempted, true, error.code)?;
                Err(error.keeping_changes())
            }
            Err(error) => Err(error),
            Ok(()) => {
                forget()?;
                sign_ins::record_success_in(tx, &attempted)?;
                issue_in(tx, &config.admin, admin)
            }
        }
    };
    core.store.write(finish).wait()
}

/// Returns true for an administrator's token. A user's token has another length.
pub fn is_credential(token: &str) -> bool {
    token.len() == CREDENTIAL_LENGTH && (token.starts_with(SESSION_PREFIX) || token.starts_with(KEY_PREFIX))
}

/// Returns true for the token of a session.
pub fn is_session(token: &str) -> bool {
    is_credential(token) && token.starts_with(SESSION_PREFIX)
}

/// Finds the owner of a credential in one point query. Returns nothing if it is invalid.
pub fn authenticate_in(tx: &Read<'_>, limits: &config::AdminConfig, token: &str) -> Result<Option<ValidCredential>> {
    let hash = sha256(token);
    if token.starts_with(KEY_PREFIX) {
        return tx.first(
            "select id, label, role, last_used_at from api_keys where key_sha256 = ?1 and revoked_at is null \
             and suspended_at is null and (expires_at is null or expires_at > ?2)",
            (hash, tx.now.0),
            |row| {
                let identity =
                    Identity::Key { id: row.get(0)?, label: row.get(1)?, role: row.get_parsed(2, Role::from_name)? };
                let last_used_at: Option<i64> = row.get(3)?;
                Ok(ValidCredential { identity, is_use_due: is_use_due(tx.now, last_used_at) })
            },
        );
    }
    let idle_since = tx.now.minus(limits.session_idle);
    tx.first(
        "select admins.id, admins.name, admins.role, admin_tokens.last_used_at from admin_tokens \
         join admins on admins.id = admin_tokens.admin_id \
         where token_sha256 = ?1 and expires_at > ?2 and last_used_at > ?3",
        (hash, tx.now.0, idle_since.0),
        |row| {
            let identity =
                Identity::Account { id: row.get(0)?, name: row.get(1)?, role: row.get_parsed(2, Role::from_name)? };
            Ok(ValidCredential { identity, is_use_due: is_use_due(tx.now, row.get(3)?) })
        },
    )
}

/// Stores the time of a credential's use.
pub fn record_use(core: &Core, token: &str) -> Pending<()> {
    let (hash, is_key) = (sha256(token), token.starts_with(KEY_PREFIX));
    core.store.write(move |tx| {
        let sql = if is_key {
            "update api_keys set last_used_at = ?2 where key_sha256 = ?1"
        } else {
            "update admin_tokens set last_used_at = ?2 where token_sha256 = ?1"
        };
        tx.execute(sql, (hash, tx.now.0)).map(drop)
    })
}

/// Deletes up to `limit` expired sessions, and as many attempts that no longer count.
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
    last_used_at.is_none_or(|at| now >= Timestamp(at).plus(LAST_USE_INTERVAL))
}

fn id_of_in(tx: &Read<'_>, name: &str) -> Result<i64> {
    let id = tx.first("select id from admins where name = ?1", [name], |row| row.get(0))?;
    id.ok_or_else(|| {
        Error::new(Code::NotFound)
            .detail((format!("There is no administrator `{name}`."), format!("没有管理员 `{name}`。")))
    })
}

/// Validates a password. Trims it, as the sign-in does with every text.
fn valid_password(password: &str) -> Result<&str> {
    let password = password.trim();
    if (MIN_PASSWORD..=MAX_PASSWORD).contains(&u32::try_from(password.chars().count()).unwrap_or(u32::MAX)) {
        return Ok(password);
    }
    let message = (
        format!("must have {MIN_PASSWORD} to {MAX_PASSWORD} characters"),
        format!("须有 {MIN_PASSWORD} 到 {MAX_PASSWORD} 个字符"),
    );
    Err(Error::field("password", Fault::new(FieldCode::OutOfRange, message)))
}

/// Validates a name, which appears in audit events and on command lines.
fn valid_name(field: &str, name: &str) -> Result<String> {
    let is_valid = |character: char| character.is_alphanumeric() || "-_.@".contains(character);
    let name = name.trim();
    if (1..=64).contains(&name.chars().count()) && name.chars().all(is_valid) {
        return Ok(name.to_owned());
    }
    let message = ("must be 1 to 64 letters, digits, or any of - _ . @", "须为 1 到 64 个字母、数字或 - _ . @");
    Err(Error::field(field, Fault::new(FieldCode::InvalidFormat, message)))
}

fn random_credential(prefix: &str) -> Result<Secret> {
    Ok(Secret::from_text(format!("{prefix}{}", Secret::random()?.reveal())))
}

/// Counts an attempt before its outcome is known.
fn reserve_attempt_in(
    tx: &Write<'_>,
    limits: &config::AdminConfig,
    name: &str,
    client: &ClientNetworks,
) -> Result<i64> {
    require_attempt_in(tx, limits, name, client)?;
    tx.one(
        "insert into admin_attempts (name, client_network, wide_network, widest_network, tried_at) \
         values (?1, ?2, ?3, ?4, ?5) returning id",
        (name, &client.own, &client.wide, &client.widest, tx.now.0),
        |row| row.get(0),
    )
}

/// Rejects the attempt if this name, the client or one of the networks around it has reached its limit.
fn require_attempt_in(tx: &Read<'_>, limits: &config::AdminConfig, name: &str, client: &ClientNetworks) -> Result<()> {
    let by_name = window_rows!("admin_attempts", "tried_at", "name = ?1");
    let by_network = [
        ATTEMPTS_OF_CLIENT,
        window_rows!("admin_attempts", "tried_at", "wide_network = ?1"),
        window_rows!("admin_attempts", "tried_at", "widest_network = ?1"),
    ];
    let limit = attempts_limit(limits);
    let mut windows = vec![Window { limit, rows: by_name, key: name }];
    windows.extend(client.limits(limit.quota).zip(by_network).map(|((key, quota), rows)| {
        let limit = RateLimit { quota, ..limit };
        Window { limit, rows, key }
    }));
    sliding_window::require_open_in(tx, &windows)
}

/// Returns the limit on failed sign-ins.
pub const fn attempts_limit(limits: &config::AdminConfig) -> RateLimit {
    RateLimit { name: "admin-sign-ins", quota: limits.attempts, window: limits.attempts_window }
}

/// Returns how many more times a client may fail to sign in.
pub fn attempts_use_in(tx: &Read<'_>, client: IpAddr, limits: &config::AdminConfig) -> Result<WindowUse> {
    let key = ClientNetworks::of(client).own;
    Window { limit: attempts_limit(limits), rows: ATTEMPTS_OF_CLIENT, key }.use_in(tx)
}

fn password_of_in(tx: &Read<'_>, name: &str) -> Result<Option<(i64, String)>> {
    tx.first("select id, password_hash from admins where name = ?1", [name], |row| Ok((row.get(0)?, row.get(1)?)))
}

fn issue_in(tx: &Write<'_>, limits: &config::AdminConfig, admin: i64) -> Result<IssuedSession> {
    let token = random_credential(SESSION_PREFIX)?;
    let expires_at = tx.now.plus(limits.session_lifetime);
    tx.execute(
        "insert into admin_tokens (token_sha256, admin_id, expires_at, last_used_at, created_at, proved_at, \
         proof_began_at) values (?1, ?2, ?3, ?4, ?4, ?4, ?4)",
        (sha256(token.reveal()), admin, expires_at.0, tx.now.0),
    )?;
    Ok(IssuedSession { token, expires_at })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distinguishes_credentials_from_user_tokens() {
        assert!(is_credential(random_credential(SESSION_PREFIX).unwrap().reveal()));
        assert!(is_credential(random_credential(KEY_PREFIX).unwrap().reveal()));
        assert!(!is_credential(Secret::random().unwrap().reveal()));
        assert!(!is_credential(&format!("yk_{}", "a".repeat(40))));
    }
}
