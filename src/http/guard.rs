//! Access rules of endpoints and their check.
//!
//! The guard runs before the body is read. It rejects an invalid token even where none is required, because a client
//! that sends a token believes that it is signed in.

use axum::http::HeaderMap;

use crate::{
    app::App,
    domain::{
        identity::tokens::{self, Authentication},
        operations::admins,
    },
    error::{Code, Result},
    http::{
        bearer::bearer_token,
        request_meta::{Caller, RequestMeta},
    },
};

/// The callers that an endpoint admits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Everyone.
    Anyone,
    /// Holders of the token that the request is about, sent as a parameter or as the bearer token. The operation
    /// checks it.
    TokenHolder,
    /// The payment provider, proven by its signature. Tokens are ignored.
    Signature,
    /// Users, for their own data.
    OwnUser,
    /// Users for their own data, and administrators for all users. Requests of administrators are audited.
    OwnUserOrAdmin,
    /// Administrators. Every request is audited.
    Admin,
}

impl Access {
    /// Returns the description for the API document.
    pub const fn description(self) -> &'static str {
        match self {
            Self::Anyone => "No token required.",
            Self::TokenHolder => "The token is the credential. Send it as a parameter or as the Bearer token.",
            Self::Signature => "Requires the payment provider's signature and no token.",
            Self::OwnUser => "Requires the token of the user.",
            Self::OwnUserOrAdmin => {
                "Requires the token of the user or of an administrator. Requests of administrators are audited."
            }
            Self::Admin => "Requires an administrator's token or an API key. Requests are audited.",
        }
    }

    pub const fn requires_token(self) -> bool {
        matches!(self, Self::OwnUser | Self::OwnUserOrAdmin | Self::Admin)
    }

    pub const fn admits_admins(self) -> bool {
        !matches!(self, Self::OwnUser)
    }

    pub const fn admits_users(self) -> bool {
        !matches!(self, Self::Admin)
    }

    /// Returns true if requests of administrators create audit events.
    pub const fn is_audited(self) -> bool {
        matches!(self, Self::OwnUserOrAdmin | Self::Admin)
    }
}

/// Authenticates the caller and checks the access rule.
///
/// # Errors
/// `unauthenticated`, the same for every reason; `forbidden` for known callers without access; `address_not_allowed`
/// for an administrator's credential from an address outside the allowed networks.
pub async fn authorize(app: &App, access: Access, headers: &HeaderMap, meta: &RequestMeta) -> Result<Caller> {
    if matches!(access, Access::TokenHolder | Access::Signature) {
        return Ok(Caller::Anonymous);
    }
    let Some(token) = bearer_token(headers)? else {
        return if access.requires_token() { Err(Code::Unauthenticated.into()) } else { Ok(Caller::Anonymous) };
    };
    if admins::is_credential(token) {
        return authorize_admin(app, access, token, meta).await;
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
            Err(Code::Unauthenticated.into())
        }
        Authentication::Invalid => Err(Code::Unauthenticated.into()),
    }
}

async fn authorize_admin(app: &App, access: Access, token: &str, meta: &RequestMeta) -> Result<Caller> {
    let credential = app.store.read(|tx| {
        admins::networks::admit_in(tx, meta.client)?;
        admins::authenticate_in(tx, &app.config.admin, token)
    })?;
    let Some(credential) = credential else { return Err(Code::Unauthenticated.into()) };
    if credential.is_use_due {
        admins::note_use(app, token).await?;
    }
    if access.admits_admins() { Ok(Caller::Admin(credential.identity)) } else { Err(Code::Forbidden.into()) }
}
