//! Access rules: every endpoint's rule, and the check that enforces it.
//!
//! The guard runs before the body is read. A bad token is rejected even where none is needed, because a client that
//! sends one believes that it is signed in.

use axum::http::{HeaderMap, header};

use crate::{
    app::App,
    domain::{
        identity::tokens::{self, Authentication},
        operations::admins,
    },
    error::{Code, Error, Result},
    http::request_context::{Caller, RequestMeta},
};

/// The callers that an endpoint admits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Everyone.
    Anyone,
    /// The holder of the token that the request is about, sent as a parameter or as the Bearer token. The operation
    /// decides about a bad one.
    TokenHolder,
    /// A sender with the payment provider's signature. A token is ignored.
    Signature,
    /// Signed-in users, on what is their own.
    OwnUser,
    /// Signed-in users for their own data, and administrators for everyone's. The latter is audited.
    OwnUserOrAdmin,
    /// Administrators. Every call is audited.
    Admin,
}

impl Access {
    /// The rule in words, for the documentation.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Anyone => "No token needed.",
            Self::TokenHolder => "The token is the credential; it may come as a parameter or as the Bearer token.",
            Self::Signature => "Proved by the payment provider's signature; no token needed.",
            Self::OwnUser => "Needs the token of the user it is about.",
            Self::OwnUserOrAdmin => "Needs the token of the user it is about, or an administrator's, who is audited.",
            Self::Admin => "Needs an administrator's token or an API key, and is audited.",
        }
    }

    pub const fn needs_token(self) -> bool {
        matches!(self, Self::OwnUser | Self::OwnUserOrAdmin | Self::Admin)
    }

    pub const fn admits_admins(self) -> bool {
        !matches!(self, Self::OwnUser)
    }

    pub const fn admits_users(self) -> bool {
        !matches!(self, Self::Admin)
    }

    /// Returns true if an administrator's call is audited.
    pub const fn is_audited(self) -> bool {
        matches!(self, Self::OwnUserOrAdmin | Self::Admin)
    }
}

const BEARER: &[u8] = b"bearer ";

/// The token of the `Authorization` header.
///
/// # Errors
/// `unauthenticated` for a header that is not `Bearer <token>`.
pub fn bearer_token(headers: &HeaderMap) -> Result<Option<&str>> {
    let Some(value) = headers.get(header::AUTHORIZATION) else { return Ok(None) };
    let token = value.as_bytes().split_at_checked(BEARER.len()).and_then(|(scheme, token)| {
        scheme.eq_ignore_ascii_case(BEARER).then(|| std::str::from_utf8(token.trim_ascii()).ok()).flatten()
    });
    match token {
        Some(token) if !token.is_empty() => Ok(Some(token)),
        _ => Err(unauthenticated()),
    }
}

/// Admits the call and returns its caller, or rejects it.
///
/// # Errors
/// `unauthenticated`, the same for every reason; `forbidden` for known users and administrators without the right;
/// `address_not_allowed` for an administrator's credential from another network.
pub async fn admit(app: &App, access: Access, headers: &HeaderMap, meta: &RequestMeta) -> Result<Caller> {
    if matches!(access, Access::TokenHolder | Access::Signature) {
        return Ok(Caller::Anonymous);
    }
    let Some(token) = bearer_token(headers)? else {
        return if access.needs_token() { Err(unauthenticated()) } else { Ok(Caller::Anonymous) };
    };
    if admins::is_credential(token) {
        return admit_admin(app, access, token, meta).await;
    }
    match app.store.read(|tx| tokens::authenticate_in(tx, &app.config.auth, token))? {
        Authentication::User { user, is_use_due } => {
            if is_use_due {
                // Not awaited: the response does not depend on it.
                drop(tokens::record_use(app, token));
            }
            meta.user.get_or_init(|| user.id);
            if access.admits_users() { Ok(Caller::User(user)) } else { Err(Code::Forbidden.into()) }
        }
        Authentication::Reused => {
            tracing::warn!(request_id = meta.request_id, client_ip = %meta.client, "a replaced token was used");
            tokens::revoke_reused_family(app, token).await?;
            Err(unauthenticated())
        }
        Authentication::Invalid => Err(unauthenticated()),
    }
}

async fn admit_admin(app: &App, access: Access, token: &str, meta: &RequestMeta) -> Result<Caller> {
    let standing = app.store.read(|tx| {
        admins::networks::admit_in(tx, meta.client)?;
        admins::authenticate_in(tx, &app.config.admin, token)
    })?;
    let Some(standing) = standing else { return Err(unauthenticated()) };
    if standing.is_use_due {
        admins::note_use(app, token).await?;
    }
    if access.admits_admins() { Ok(Caller::Admin(standing.identity)) } else { Err(Code::Forbidden.into()) }
}

fn unauthenticated() -> Error {
    Code::Unauthenticated.into()
}
