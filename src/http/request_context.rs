//! What a handler knows of the call besides its parameters: the application, the caller, the request.

use std::{
    net::IpAddr,
    sync::{Arc, OnceLock},
    time::Instant,
};

use axum::http::HeaderMap;
use axum::{
    body::Bytes,
    http::{HeaderName, HeaderValue, StatusCode, header},
};
use serde::Serialize;

use crate::{
    app::App,
    domain::{
        identity::users::{self, User},
        money::ledger::Authority,
        operations::{
            admins::Identity,
            audit::PendingAudit,
            idempotency::{self, Claim, IdempotentOutcome, IdempotentRequest},
        },
    },
    error::{Code, Error, Fault, FieldCode, FieldError, Result},
    http::{
        content_negotiation::{weight, weight_said},
        guard::bearer_token,
        params::{Claims, required},
        reply::{Replayable, kept_problem, kept_resource},
    },
    store::{Pending, Read},
    types::{Locale, Secret, UserId},
};

/// Characters of an `Idempotency-Key`.
const IDEMPOTENCY_KEY: usize = 255;

/// One request, from its first byte to its log line.
#[derive(Debug)]
pub struct RequestMeta {
    pub request_id: String,
    pub client: IpAddr,
    pub started: Instant,
    /// The route's template, once the router has found it.
    pub route: OnceLock<&'static str>,
    /// The user whose token was shown, once it was looked up.
    pub user: OnceLock<UserId>,
    /// The user whom an administrator's call is about, once that is known.
    pub subject: OnceLock<UserId>,
    /// The reason that an administrator gave.
    pub reason: OnceLock<String>,
}

/// Who is calling, as proved by the token.
#[derive(Clone, Debug)]
pub enum Caller {
    Anonymous,
    User(User),
    Admin(Identity),
}

impl Caller {
    /// How the caller is told apart from all others, unless it is anybody.
    pub fn name(&self) -> Option<String> {
        match self {
            Self::Anonymous => None,
            Self::User(user) => Some(idempotency::user(user.id)),
            Self::Admin(identity) => Some(identity.actor()),
        }
    }
}

/// A request that carries an `Idempotency-Key`.
#[derive(Clone, Debug)]
pub struct Repeatable {
    pub key: HeaderValue,
    /// It carries another one, too.
    pub is_ambiguous: bool,
    pub request_sha256: [u8; 32],
}

impl Repeatable {
    /// The key.
    ///
    /// # Errors
    /// What is wrong with one that is none.
    pub fn key(&self) -> Result<&str, FieldError> {
        let key = self.key.to_str().ok().map(str::trim).filter(|key| (1..=IDEMPOTENCY_KEY).contains(&key.len()));
        key.ok_or_else(|| {
            let message = format!("must be 1 to {IDEMPOTENCY_KEY} visible ASCII characters");
            Fault::new(FieldCode::InvalidFormat, message).in_field("Idempotency-Key")
        })
    }
}

/// Whether a route is one of the API that apps are written for now.
pub fn is_of_current_generation(route: &str) -> bool {
    route.starts_with("/api/v1/")
}

/// A call that has passed its guard.
pub struct RequestContext {
    pub app: Arc<App>,
    pub meta: Arc<RequestMeta>,
    pub caller: Caller,
    pub headers: HeaderMap,
    pub repeatable: Option<Box<Repeatable>>,
    /// What an administrator begins by it, if it is one whose calls are written down.
    pub act: Option<Arc<PendingAudit>>,
    /// The body as it came, for operations that read it themselves.
    pub body: Bytes,
}

impl RequestContext {
    /// The Bearer token, for operations that ask how it came to be.
    pub fn bearer(&self) -> Option<Secret> {
        bearer_token(&self.headers).ok().flatten().map(Secret::from_text)
    }

    /// The language that the client prefers.
    pub fn locale(&self) -> Locale {
        let header = self.header(header::ACCEPT_LANGUAGE);
        let weight_of = |code: &str| {
            let is_meant =
                |range: &&str| range.trim_start().get(..2).is_some_and(|start| start.eq_ignore_ascii_case(code));
            header.split(',').filter(is_meant).map(weight_said).fold(0.0, f32::max)
        };
        if weight_of("en") > weight_of("zh") { Locale::English } else { Locale::Chinese }
    }

    /// Whether the client asked for an event stream, and would not rather have JSON.
    pub fn wants_stream(&self) -> bool {
        let accepted = self.header(header::ACCEPT);
        let json = weight(accepted, "application/json").unwrap_or(0.0);
        weight(accepted, "text/event-stream").is_some_and(|weight| weight > 0.0 && weight >= json)
    }

    fn header(&self, name: HeaderName) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// The user who is calling.
    ///
    /// # Errors
    /// `unauthenticated`, which the guard has ruled out wherever a token is needed.
    pub fn user(&self) -> Result<UserId> {
        Ok(self.own()?.id)
    }

    /// The same with their addresses and the time of their registration.
    ///
    /// # Errors
    /// As [`Self::user`].
    pub fn own(&self) -> Result<&User> {
        match &self.caller {
            Caller::User(user) => Ok(user),
            Caller::Anonymous => Err(Code::Unauthenticated.into()),
            Caller::Admin(_) => Err(Code::Forbidden.into()),
        }
    }

    /// Whether this is a user's call of the first generation, in which whoever is named is compared with the caller.
    pub fn is_of_first_generation_user(&self) -> bool {
        let is_current = self.meta.route.get().is_some_and(|route| is_of_current_generation(route));
        matches!(self.caller, Caller::User(..)) && !is_current
    }

    pub fn is_admin(&self) -> bool {
        matches!(self.caller, Caller::Admin(_))
    }

    /// The administrator who is calling.
    ///
    /// # Errors
    /// `unauthenticated` or `forbidden`, which the guard has ruled out wherever an administrator is needed.
    pub fn admin(&self) -> Result<&Identity> {
        match &self.caller {
            Caller::Admin(identity) => Ok(identity),
            Caller::Anonymous => Err(Code::Unauthenticated.into()),
            Caller::User(..) => Err(Code::Forbidden.into()),
        }
    }

    /// The administrator and the reason they gave, for what is written down about a change.
    ///
    /// # Errors
    /// As [`Self::admin`].
    pub fn authority(&self, reason: Option<String>) -> Result<Authority> {
        let actor = self.admin()?.actor();
        let reason = reason.unwrap_or_default();
        if !reason.is_empty() {
            self.meta.reason.get_or_init(|| reason.clone());
        }
        Ok(Authority { actor, reason, request_id: self.meta.request_id.clone() })
    }

    /// Writes down that what an administrator asks for begins, where a crash must not hide it.
    ///
    /// # Errors
    /// Storage errors.
    pub async fn tell_beginning(&self) -> Result<()> {
        match &self.act {
            Some(act) => self.committed(act.record_start()).await,
            None => Ok(()),
        }
    }

    /// Those whom a request names. An administrator must name somebody, by this parameter if by no other.
    ///
    /// # Errors
    /// `invalid_parameters` if an administrator names nobody.
    pub fn naming(&self, claims: Claims, name: &str) -> Result<Claims> {
        if self.is_admin() && claims.is_empty() {
            return Err(Error::field(name, required()));
        }
        Ok(claims)
    }

    /// The user whom the request is about: the caller, or for an administrator the user whom it names.
    ///
    /// # Errors
    /// `not_yours` for a user who names another; for an administrator `not_found`, or `invalid_parameters` if the
    /// request names two different users.
    pub fn subject(&self, claims: &Claims) -> Result<User> {
        if !self.is_admin() {
            return self.acting_user(claims);
        }
        let find = |tx: &Read<'_>| match (claims.users().next(), &claims.phone_number) {
            (Some(id), _) => users::find_in(tx, id),
            (None, Some(phone_number)) => users::find_by_phone_in(tx, phone_number),
            (None, None) => Err(Code::NotFound.into()),
        };
        let user = self.app.store.read(find)?;
        let another = |name| Err(Error::field(name, Fault::new(FieldCode::UnknownValue, "must be the same user")));
        if claims.users().any(|claimed| claimed != user.id) {
            return another("userId");
        }
        if claims.phone_number.as_ref().is_some_and(|claimed| user.phone_number.as_ref() != Some(claimed)) {
            return another("phoneNumber");
        }
        self.meta.subject.get_or_init(|| user.id);
        Ok(user)
    }

    /// Like [`Self::subject`], when it is enough to know who: a caller who names nobody else is not looked up.
    ///
    /// # Errors
    /// As [`Self::subject`].
    pub fn subject_id(&self, claims: &Claims) -> Result<UserId> {
        if self.is_admin() { self.subject(claims).map(|user| user.id) } else { self.acting_for(claims) }
    }

    /// The user who is calling, if those whom the request names are nobody else.
    ///
    /// # Errors
    /// `not_yours`, before anything is looked up, so that nobody learns whether the other user exists.
    pub fn acting_for(&self, claims: &Claims) -> Result<UserId> {
        // Only a number has to be looked up to be compared.
        if claims.phone_number.is_some() {
            return self.acting_user(claims).map(|own| own.id);
        }
        self.unless_id_of_another(claims)
    }

    /// Like [`Self::acting_for`], with the addresses that answers of the first generation carry.
    pub fn acting_user(&self, claims: &Claims) -> Result<User> {
        self.unless_id_of_another(claims)?;
        let own = self.own()?;
        match &claims.phone_number {
            Some(claimed) if own.phone_number.as_ref() != Some(claimed) => Err(Code::NotYours.into()),
            _ => Ok(own.clone()),
        }
    }

    fn unless_id_of_another(&self, claims: &Claims) -> Result<UserId> {
        let user = self.user()?;
        if claims.users().all(|claimed| claimed == user) { Ok(user) } else { Err(Code::NotYours.into()) }
    }

    /// Waits until the write is on disk, or until the caller has waited long enough. The write goes on then.
    ///
    /// # Errors
    /// Those of the write; `overloaded` when the disk takes too long.
    pub async fn committed<T>(&self, pending: Pending<T>) -> Result<T> {
        match tokio::time::timeout(self.app.config.limits.write_timeout, pending).await {
            Ok(outcome) => outcome,
            Err(_) => {
                Err(Error::new(Code::Overloaded).detail("The disk takes too long; the change may still be made."))
            }
        }
    }

    /// Does what the request asks for once, however often it comes with the same `Idempotency-Key`.
    ///
    /// The operation gets what it needs to store its answer with its effect. `shown` makes the answer's resource.
    ///
    /// # Errors
    /// Those of the operation; `idempotency_key_reused`; `invalid_parameters` for a key that is none.
    pub async fn respond_once<T, W, S, O>(&self, status: StatusCode, shown: S, operation: O) -> Result<Replayable<W>>
    where
        T: 'static,
        W: Serialize,
        S: Fn(&T) -> W + Clone + Send + 'static,
        O: FnOnce(&App, IdempotentRequest<T>) -> Pending<IdempotentOutcome<T>>,
    {
        let once = self.once(status, shown.clone())?;
        Ok(replayable(status, &shown, self.committed(operation(&self.app, once)).await?))
    }

    /// Like [`Self::respond_once`], for what is asked for with texts that are screened first, like [`Self::screened`].
    ///
    /// # Errors
    /// Those of [`Self::respond_once`].
    pub async fn screened_once<T, W, S, O>(&self, status: StatusCode, shown: S, operation: O) -> Result<Replayable<W>>
    where
        T: Send + 'static,
        W: Serialize,
        S: Fn(&T) -> W + Clone + Send + 'static,
        O: FnOnce(&App, IdempotentRequest<T>) -> Pending<IdempotentOutcome<T>> + Send + 'static,
    {
        let once = self.once(status, shown.clone())?;
        Ok(replayable(status, &shown, self.screened(move |app| operation(app, once)).await?))
    }

    /// Like [`Self::respond_once`], for what blocks before its answer can be kept, and counts once by itself.
    ///
    /// # Errors
    /// Those of [`Self::respond_once`].
    pub async fn blocking_once<T, W, S, O>(&self, status: StatusCode, shown: S, operation: O) -> Result<Replayable<W>>
    where
        T: Send + 'static,
        W: Serialize,
        S: Fn(&T) -> W + Clone + Send + 'static,
        O: FnOnce(&App, IdempotentRequest<T>) -> Result<IdempotentOutcome<T>> + Send + 'static,
    {
        let once = self.once(status, shown.clone())?;
        Ok(replayable(status, &shown, self.blocking(move |app| operation(app, once)).await?))
    }

    /// What an operation needs to answer the same request once.
    fn once<T, W, S>(&self, status: StatusCode, shown: S) -> Result<IdempotentRequest<T>>
    where
        W: Serialize,
        S: Fn(&T) -> W + Send + 'static,
    {
        let asker = match self.caller {
            Caller::User(ref user) => Some(user.id),
            Caller::Anonymous | Caller::Admin(_) => None,
        };
        let Some(claim) = self.claim()? else { return Ok(IdempotentRequest::without_key(asker)) };
        let request_id = self.meta.request_id.clone();
        Ok(IdempotentRequest::with_key(asker, claim, move |outcome| match outcome {
            Ok(done) => kept_resource(status, &shown(done)),
            Err(error) => kept_problem(error, &request_id),
        }))
    }

    fn claim(&self) -> Result<Option<Claim>> {
        let Some(repeatable) = self.repeatable.as_deref() else { return Ok(None) };
        if repeatable.is_ambiguous {
            let detail = "Idempotency-Key was given twice with different values.";
            return Err(Error::new(Code::ConflictingParameter).detail(detail));
        }
        let key = repeatable.key().map_err(|fault| Error::fields(vec![fault]))?;
        let Some(caller) = self.caller.name() else { return Ok(None) };
        Ok(Some(Claim {
            caller,
            route: self.meta.route.get().copied().unwrap_or_default().to_owned(),
            key: key.to_owned(),
            request_sha256: repeatable.request_sha256,
            kept_for: self.app.config.retention.idempotency_keys,
        }))
    }

    /// Waits for a change whose texts are screened first: in place while only the local word list can be asked, and
    /// away from the worker threads where an outside service may be.
    ///
    /// # Errors
    /// Those of the operation; `overloaded` when the disk takes too long.
    pub async fn screened<T, F>(&self, operation: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&App) -> Pending<T> + Send + 'static,
    {
        let pending = if self.app.moderation.may_block() {
            self.blocking(move |app| Ok(operation(app))).await?
        } else {
            operation(&self.app)
        };
        self.committed(pending).await
    }

    /// Has texts judged, and waits for nothing else; in place or away from the worker threads like
    /// [`Self::screened`].
    ///
    /// # Errors
    /// Those of the operation.
    pub async fn judged<T, F>(&self, operation: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&App) -> Result<T> + Send + 'static,
    {
        if self.app.moderation.may_block() { self.blocking(operation).await } else { operation(&self.app) }
    }

    /// Runs an operation that blocks (a vendor call, a password hash, a scan) away from the worker threads.
    ///
    /// # Errors
    /// Those of the operation.
    pub async fn blocking<T, F>(&self, operation: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&App) -> Result<T> + Send + 'static,
    {
        let app = Arc::clone(&self.app);
        let (reply, answer) = oneshot::channel();
        away(Box::new(move || drop(reply.send(operation(&app))))).await?;
        answer.await.map_err(Error::internal)?
    }
}

/// Runs a job on a thread that may block. Boxed, so that the runtime's side of it is in the program once.
async fn away(job: Box<dyn FnOnce() + Send>) -> Result<()> {
    tokio::task::spawn_blocking(job).await.map_err(Error::internal)
}

fn replayable<T, W>(status: StatusCode, shown: impl Fn(&T) -> W, answered: IdempotentOutcome<T>) -> Replayable<W> {
    match answered {
        IdempotentOutcome::Fresh(done) => Replayable::Now(status, shown(&done)),
        IdempotentOutcome::Replayed(kept) => Replayable::Before(kept),
    }
}
