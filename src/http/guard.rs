//! Access rules of endpoints and their check.
//!
//! The guard runs before the body is read. Where no token is required, an invalid one counts as none: apps send their
//! last token with every request, so rejecting it would keep them from signing in again.

use axum::http::HeaderMap;

use crate::{
    app::App,
    domain::{
        identity::tokens::{self, Authentication},
        operations::admins::{self, roles::Right, step_up},
    },
    error::{Code, Result},
    http::{
        request_meta::{Caller, RequestMeta},
        request_token::{request_tokens, unauthenticated},
        token_choice,
    },
    types::Secret,
};

/// The callers that an endpoint admits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Everyone alike. Tokens are ignored.
    Public,
    /// Everyone. A valid token identifies the caller.
    Anyone,
    /// Holders of the token that the request is about, sent as a parameter or in a header. The operation checks it.
    TokenHolder,
    /// The payment provider, proven by its signature. Tokens are ignored.
    Signature,
    /// Users, for their own data.
    OwnUser,
    /// Users for their own data, and administrators with the right for all users. Requests of administrators are audited.
    OwnUserOrAdmin(Right),
    /// Administrators with the right. Every request is audited.
    Admin(Right),
}

impl Access {
    /// Returns the description for the API document.
    pub const fn description(self) -> &'static str {
        match self {
            Self::Public => "No token required. One that is sent is ignored.",
            Self::Anyone => "No token required. An invalid one counts as none.",
            Self::TokenHolder => {
                "The token is the credential. Send it as a parameter or in a header; of several the valid one counts."
            }
            Self::Signature => "Requires the payment provider's signature and no token.",
            Self::OwnUser => "Requires the token of the user.",
            Self::OwnUserOrAdmin(_) => {
                "Requires the token of the user or of an administrator. Requests of administrators are audited."
            }
            Self::Admin(_) => "Requires an administrator's token or an API key. Requests are audited.",
        }
    }

    /// Returns the right that administrators need.
    pub const fn right(self) -> Option<Right> {
        match self {
            Self::OwnUserOrAdmin(right) | Self::Admin(right) => Some(right),
            _ => None,
        }
    }

    pub const fn requires_token(self) -> bool {
        matches!(self, Self::OwnUser | Self::OwnUserOrAdmin(_) | Self::Admin(_))
    }

    pub const fn admits_admins(self) -> bool {
        !matches!(self, Self::OwnUser)
    }

    pub const fn admits_users(self) -> bool {
        !matches!(self, Self::Admin(_))
    }

    /// Returns true if requests of administrators create audit events.
    pub const fn is_audited(self) -> bool {
        self.right().is_some()
    }
}

/// The caller of a request, with the token that proves it.
pub struct Authorized {
    pub caller: Caller,
    /// The chosen token. `None` if none was sent or needed.
    pub token: Option<Secret>,
}

impl Authorized {
    const ANONYMOUS: Self = Self { caller: Caller::Anonymous, token: None };
}

/// Authenticates the caller and checks the access rule.
///
/// # Errors
/// `unauthenticated` where a token is required. `user_suspended` for suspended users, except where no token is required
/// and where the endpoint admits them. `forbidden` for known callers without access. `step_up_required`. `address_not_allowed` for
/// an administrator's credential from an address outside the allowed networks.
pub async fn authorize(app: &App, access: Access, headers: &HeaderMap, meta: &RequestMeta) -> Result<Authorized> {
    if matches!(access, Access::Public | Access::TokenHolder | Access::Signature) {
        return Ok(Authorized::ANONYMOUS);
    }
    let token = sent_token(app, access, headers, meta)?;
    let caller = match token {
        Some(token) if admins::is_credential(token) => authenticate_admin(app, access, token, meta).await?,
        Some(token) => authenticate_user(app, access, token, meta).await?,
        None => None,
    };
    match caller {
        Some(Caller::User(_)) if !access.admits_users() => Err(Code::Forbidden.into()),
        Some(Caller::Admin(_)) if !access.admits_admins() => Err(Code::Forbidden.into()),
        Some(Caller::Admin(identity)) => {
            if let Some(right) = access.right() {
                identity.role().require(right)?;
            }
            if meta.endpoint.get().is_some_and(|endpoint| endpoint.needs_recent_sign_in) {
                require_recent_sign_in(app, token).await?;
            }
            Ok(Authorized { caller: Caller::Admin(identity), token: token.map(Secret::from_text) })
        }
        Some(caller) => Ok(Authorized { caller, token: token.map(Secret::from_text) }),
        None if access.requires_token() => Err(unauthenticated(headers, &app.core.config.auth)),
        None => Ok(Authorized::ANONYMOUS),
    }
}

/// Rejects a session of an administrator without a recent proof of identity. An API key belongs to a program, which
/// cannot prove who it is again.
async fn require_recent_sign_in(app: &App, token: Option<&str>) -> Result<()> {
    let Some(session) = token.filter(|token| admins::is_session(token)) else { return Ok(()) };
    match step_up::use_recent(&app.core, &Secret::from_text(session.to_owned())) {
        Ok(Some(extended)) => extended.await,
        Ok(None) => Ok(()),
        Err(error) if error.code == Code::StepUpRequired => Err(error.detail((
            "This requires a proof of identity within the last ten minutes. Sign in again at `/admin/login`.",
            "此操作需要十分钟内的身份验证，请在 `/admin/login` 重新登录。",
        ))),
        Err(error) => Err(error),
    }
}

/// Returns the token that counts. Where none is required, tokens of different users count as none: they must not keep
/// anybody from signing in.
fn sent_token<'request>(
    app: &App,
    access: Access,
    headers: &'request HeaderMap,
    meta: &RequestMeta,
) -> Result<Option<&'request str>> {
    let tokens = request_tokens(headers, &app.core.config.auth);
    if let [] | [_] = tokens[..] {
        return Ok(tokens.first().copied());
    }
    match app.core.store.read(|tx| token_choice::choose_in(tx, &app.core.config, &tokens, meta.client)) {
        Err(error) if error.code == Code::ConflictingParameter && !access.requires_token() => Ok(None),
        chosen => chosen.map(Some),
    }
}

/// Returns the user of a valid token.
async fn authenticate_user(app: &App, access: Access, token: &str, meta: &RequestMeta) -> Result<Option<Caller>> {
    match tokens::authenticate(&app.core, &app.token_cache, token)? {
        Authentication::User { user, is_use_due } => {
            if is_use_due {
                // Not awaited: the response does not depend on it.
                drop(tokens::record_use(&app.core, token));
            }
            meta.user.get_or_init(|| user.id);
            Ok(Some(Caller::User(user)))
        }
        Authentication::Suspended(user, suspension) => {
            meta.user.get_or_init(|| user.id);
            let is_admitted = meta.endpoint.get().is_some_and(|endpoint| endpoint.admits_suspended);
            if access.requires_token() && !is_admitted {
                return Err(suspension.error(&app.core.config.limits.time_zone));
            }
            Ok(Some(Caller::User(user)))
        }
        Authentication::Reused if access.requires_token() => {
            tracing::warn!(request_id = meta.request_id, client_ip = %meta.client, "a replaced token was used");
            tokens::revoke_reused_family(&app.core, token).await?;
            Ok(None)
        }
        Authentication::Reused | Authentication::Invalid => Ok(None),
    }
}

/// Returns the administrator of a valid credential.
async fn authenticate_admin(app: &App, access: Access, token: &str, meta: &RequestMeta) -> Result<Option<Caller>> {
    let credential = app.core.store.read(|tx| {
        if access.requires_token() {
            admins::networks::admit_in(tx, meta.client)?;
        }
        let credential = admins::authenticate_in(tx, &app.core.config.admin, token)?;
        if credential.is_some() {
            admins::networks::admit_in(tx, meta.client)?;
        }
        Ok(credential)
    })?;
    let Some(credential) = credential else { return Ok(None) };
    if credential.is_use_due {
        admins::record_use(&app.core, token).await?;
    }
    Ok(Some(Caller::Admin(credential.identity)))
}
