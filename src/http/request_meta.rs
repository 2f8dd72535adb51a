//! The facts about a request before its parameters are read: id, client, endpoint, caller.
//!
//! Request layer, guard and handlers share one [`RequestMeta`]. Its cells are filled once, as the request proceeds, and
//! read for log lines, metrics and the network log.

use std::{
    net::IpAddr,
    sync::{Arc, OnceLock},
    time::Instant,
};

use axum::http::{HeaderMap, HeaderValue};

use crate::{
    config::WrongCodeStatus,
    domain::{
        identity::users::User,
        operations::{
            admins::Identity,
            audit::{AuditEvent, DescribeEvent},
            idempotency,
        },
    },
    error::{Error, Fault, FieldCode, FieldError},
    http::{
        content_negotiation::{language_tag, preferred_locale},
        held_bytes::{HeldBytes, HeldPools, Peer},
    },
    store::sliding_window::WindowUse,
    types::{Locale, UserId},
};

/// Longest `Idempotency-Key`, in characters.
const IDEMPOTENCY_KEY: usize = 255;

/// Facts about one request, shared by all stages that handle it.
#[derive(Debug)]
pub struct RequestMeta {
    pub request_id: String,
    pub client: IpAddr,
    pub started: Instant,
    /// The language that the client prefers, or Chinese.
    pub locale: Locale,
    /// The language that the client prefers, if it names one.
    pub named_locale: Option<Locale>,
    /// True if the client prefers traditional characters.
    pub is_traditional: bool,
    /// The status of a wrong verification code.
    pub wrong_code_status: WrongCodeStatus,
    /// The endpoint, once the router has matched it.
    pub endpoint: OnceLock<EndpointId>,
    /// The name of the console in the logs, for requests to its pages.
    pub console: OnceLock<&'static str>,
    /// The user whose token was sent, once it has been looked up.
    pub user: OnceLock<UserId>,
    /// The user that an administrator's request is about, once it has been looked up.
    pub subject: OnceLock<UserId>,
    /// The rest of the caller's budget at the endpoint, if the operation found it out.
    pub budget_use: OnceLock<(WindowUse, Instant)>,
    /// The reason that an administrator gave.
    pub reason: OnceLock<String>,
    /// The memory that the request holds, until the last part of the request and its response is gone.
    pub held: HeldBytes,
}

impl RequestMeta {
    pub fn new(request_id: String, client: IpAddr, started: Instant, headers: &HeaderMap) -> Self {
        let named_locale = preferred_locale(headers);
        Self {
            request_id,
            client,
            started,
            locale: named_locale.unwrap_or(Locale::Chinese),
            named_locale,
            is_traditional: named_locale.is_some() && language_tag(headers).is_traditional,
            wrong_code_status: WrongCodeStatus::Unauthorized,
            endpoint: OnceLock::new(),
            console: OnceLock::new(),
            user: OnceLock::new(),
            subject: OnceLock::new(),
            budget_use: OnceLock::new(),
            reason: OnceLock::new(),
            held: HeldBytes::default(),
        }
    }

    /// Replaces missing metadata of a request.
    pub fn unknown() -> Self {
        Self::new(String::new(), IpAddr::from([0; 4]), Instant::now(), &HeaderMap::new())
    }

    /// Enters the request into the ledger of held bytes. Only the first call counts.
    ///
    /// # Errors
    /// `overloaded` if the caller, the client network or all callers together hold too many bytes.
    pub fn admit(&self, pools: &HeldPools, caller: &Caller, headers: &HeaderMap) -> Result<(), Error> {
        let known = match caller {
            Caller::Anonymous | Caller::Admin(Identity::CommandLine) => None,
            Caller::User(user) => Some(Peer::User(user.id.0)),
            Caller::Admin(Identity::Account { id, .. }) => Some(Peer::Account(*id)),
            Caller::Admin(Identity::Key { id, .. }) => Some(Peer::Key(*id)),
        };
        self.held.admit(pools, known, self.client, headers)
    }

    /// Shows what the caller has left of the endpoint's budget now, so that the response needs no further read.
    pub fn show_budget(&self, budget_use: WindowUse) {
        self.budget_use.get_or_init(|| (budget_use, Instant::now()));
    }

    /// Returns what the caller has left of the endpoint's budget, if it is still known.
    pub fn budget_use(&self) -> Option<WindowUse> {
        self.budget_use.get().and_then(|(found, at)| found.after(at.elapsed()))
    }

    /// Returns the path template of the endpoint, or an empty text before one is matched.
    pub fn route(&self) -> &'static str {
        self.endpoint.get().map_or("", |endpoint| endpoint.path)
    }
}

/// Identifies an endpoint of the route table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts of a row of the route table")]
pub struct EndpointId {
    /// Position in the route table.
    pub index: usize,
    pub path: &'static str,
    /// True for the current API generation, below `/api/v1`. Requests of the first may name users besides the token.
    pub is_current_api: bool,
    /// True if suspended users may call it.
    pub admits_suspended: bool,
    /// True if pages of `server.allowed_origins` may read the responses.
    pub admits_pages: bool,
    /// True if sessions of administrators must have begun within the last ten minutes.
    pub needs_recent_sign_in: bool,
}

/// The caller, as proven by the token.
#[derive(Clone, Debug)]
pub enum Caller {
    Anonymous,
    User(User),
    Admin(Identity),
}

impl Caller {
    /// Returns a unique name of the caller, or `None` for anonymous callers.
    pub fn name(&self) -> Option<String> {
        match self {
            Self::Anonymous => None,
            Self::User(user) => Some(idempotency::user(user.id)),
            Self::Admin(identity) => Some(identity.actor()),
        }
    }
}

/// The `Idempotency-Key` of a request.
#[derive(Clone, Debug)]
pub struct IdempotencyHeader {
    pub value: HeaderValue,
    /// True if the request has another header with a different key.
    pub is_ambiguous: bool,
    /// Hash of path, query and body, by which a reused key is detected.
    pub request_sha256: [u8; 32],
}

impl IdempotencyHeader {
    /// Returns the key.
    ///
    /// # Errors
    /// `invalid_format` for an empty, too long or non-ASCII key.
    pub fn key(&self) -> Result<&str, FieldError> {
        let key = self.value.to_str().ok().map(str::trim).filter(|key| (1..=IDEMPOTENCY_KEY).contains(&key.len()));
        key.ok_or_else(|| {
            let message = (
                format!("must be 1 to {IDEMPOTENCY_KEY} visible ASCII characters"),
                format!("须为 1 到 {IDEMPOTENCY_KEY} 个可见 ASCII 字符"),
            );
            Fault::new(FieldCode::InvalidFormat, message).in_field("Idempotency-Key")
        })
    }
}

/// Returns a function that builds the audit event of an administrator's request from the facts known when it is called.
pub fn audit_event(meta: &Arc<RequestMeta>, actor: String, action: String) -> DescribeEvent {
    let meta = Arc::clone(meta);
    Arc::new(move |outcome| AuditEvent {
        actor: actor.clone(),
        action: action.clone(),
        user: meta.subject.get().copied(),
        reason: meta.reason.get().cloned(),
        outcome,
        client_ip: Some(meta.client.to_string()),
        request_id: meta.request_id.clone(),
        system_user: None,
    })
}
