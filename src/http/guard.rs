//! Who may call what: the row that every endpoint has, and the check that it stands for.
//!
//! The guard runs before the body is read. A bad token is refused even where no token would have done, because a
//! client that shows one believes to be signed in.

use axum::http::{HeaderMap, header};

use crate::{
    app::App,
    domain::{
        identity::tokens::{self, Bearer},
        operations::admins,
    },
    error::{Code, Error, Result},
    http::request_context::{Caller, RequestMeta},
};

/// Who may call an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Everybody.
    Anyone,
    /// Whoever has the token that the request is about: it comes as a parameter or as the Bearer token, and what a
    /// bad one means is for the operation to say.
    TokenHolder,
    /// Whoever can show the payment provider's signature. A token adds nothing, and a bad one takes nothing away.
    Signature,
    /// Signed-in users, on what is their own.
    OwnUser,
    /// Signed-in users, on what is their own, and administrators on everybody's. The latter is audited.
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

    /// What an administrator does here leaves an audit row.
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

/// Lets the call in and says who it is, or refuses it.
///
/// # Errors
/// `unauthenticated`, the same for every reason; `forbidden` for users and administrators who are known and may not;
/// `address_not_allowed` for whatever looks like an administrator's credential and comes from elsewhere.
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
    match app.store.read(|tx| tokens::bearer_in(tx, &app.config.auth, token))? {
        Bearer::User { user, presence, is_use_due } => {
            if is_use_due {
                // Nobody waits for it: that a device was used is no part of what it was used for.
                drop(tokens::note_use(app, token));
            }
            meta.user.get_or_init(|| user.id);
            if access.admits_users() { Ok(Caller::User(user, presence)) } else { Err(Code::Forbidden.into()) }
        }
        Bearer::Reused => {
            tracing::warn!(request_id = meta.request_id, client_ip = %meta.client, "a replaced token was used");
            tokens::end_reused_family(app, token).await?;
            Err(unauthenticated())
        }
        Bearer::Unknown => Err(unauthenticated()),
    }
}

async fn admit_admin(app: &App, access: Access, token: &str, meta: &RequestMeta) -> Result<Caller> {
    let standing = app.store.read(|tx| {
        admins::networks::admit_in(tx, meta.client)?;
        admins::standing_in(tx, &app.config.admin, token)
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
