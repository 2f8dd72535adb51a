//! The request as a handler receives it: application, caller, headers and body.
//!
//! A handler reads in place, awaits writes with [`RequestContext::committed`] and runs everything that blocks with
//! [`RequestContext::blocking`].

use std::{any::Any, sync::Arc, time::Duration};

use axum::{
    body::Bytes,
    http::{HeaderMap, HeaderName, header},
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::{
    app::App,
    domain::{
        divination::help::Asker,
        identity::users::{self, User},
        money::{coins::GrantLimit, ledger::Authority},
        operations::{
            admins::{Identity, roles::Role},
            audit::PendingAudit,
        },
    },
    error::{Code, Error, Fault, FieldCode, Result},
    http::{
        claims::Claims,
        content_negotiation::{language_tag, quality},
        inbox_hub::InboxHub,
        live_interpretations::LiveInterpretations,
        request_meta::{Caller, IdempotencyHeader, RequestMeta},
    },
    providers::llm::builtin::Written,
    store::{Pending, Read},
    types::{Locale, Secret, UserId},
};

/// The longest time that a report waits for its turn.
const REPORT_WAIT: Duration = Duration::from_secs(20);

/// An authorized request.
#[derive(Clone)]
pub struct RequestContext {
    pub app: Arc<App>,
    pub meta: Arc<RequestMeta>,
    pub caller: Caller,
    /// The token of the caller.
    pub token: Option<Secret>,
    pub headers: HeaderMap,
    pub idempotency: Option<Box<IdempotencyHeader>>,
    /// The pending audit event of an administrator's request.
    pub audit: Option<Arc<PendingAudit>>,
    /// The permits of reports.
    pub reports: Arc<Semaphore>,
    /// The running interpretations of sessions.
    pub live: Arc<LiveInterpretations>,
    /// The open notification streams.
    pub inbox: Arc<InboxHub>,
    /// The unparsed body, for operations that verify its bytes.
    pub body: Bytes,
}

impl RequestContext {
    /// Returns the token of the caller.
    ///
    /// # Errors
    /// `unauthenticated`, which the guard rules out where a token is required.
    pub fn own_token(&self) -> Result<Secret> {
        self.token.clone().ok_or_else(|| Code::Unauthenticated.into())
    }

    /// Returns the language that the client prefers.
    pub fn locale(&self) -> Locale {
        self.meta.locale
    }

    /// Returns the language and script of texts about a question of the calling user.
    ///
    /// # Errors
    /// As [`Self::user`].
    pub fn written(&self, question: &str) -> Result<Written> {
        let (core, user) = (&self.app.core, self.user()?);
        let asker = Asker::find(core, user, language_tag(&self.headers), self.locale())?;
        Ok(asker.written(question, asker.locale.unwrap_or(self.locale())))
    }

    /// Returns true if the client accepts an event stream and does not prefer JSON.
    pub fn wants_stream(&self) -> bool {
        let accepted = self.header(header::ACCEPT);
        let json = quality(accepted, "application/json").unwrap_or(0.0);
        quality(accepted, "text/event-stream").is_some_and(|stream| stream > 0.0 && stream >= json)
    }

    fn header(&self, name: HeaderName) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// Returns the id of the calling user.
    ///
    /// # Errors
    /// `unauthenticated` or `forbidden`, which the guard rules out where a user is required.
    pub fn user(&self) -> Result<UserId> {
        Ok(self.current_user()?.id)
    }

    /// Returns the calling user with addresses and registration time.
    ///
    /// # Errors
    /// As [`Self::user`].
    pub fn current_user(&self) -> Result<&User> {
        match &self.caller {
            Caller::User(user) => Ok(user),
            Caller::Anonymous => Err(Code::Unauthenticated.into()),
            Caller::Admin(_) => Err(Code::Forbidden.into()),
        }
    }

    /// Returns true for users of the first API generation, whose requests may name users besides the token.
    pub fn may_claim_users(&self) -> bool {
        matches!(self.caller, Caller::User(..)) && !self.is_current_api()
    }

    /// Returns true for an endpoint under `/api/v1`.
    pub fn is_current_api(&self) -> bool {
        self.meta.endpoint.get().is_some_and(|endpoint| endpoint.is_current_api)
    }

    pub fn is_admin(&self) -> bool {
        matches!(self.caller, Caller::Admin(_))
    }

    /// Returns the calling administrator.
    ///
    /// # Errors
    /// `unauthenticated` or `forbidden`, which the guard rules out where an administrator is required.
    pub fn admin(&self) -> Result<&Identity> {
        match &self.caller {
            Caller::Admin(identity) => Ok(identity),
            Caller::Anonymous => Err(Code::Unauthenticated.into()),
            Caller::User(..) => Err(Code::Forbidden.into()),
        }
    }

    /// Names the user whom a request is about in its audit event.
    pub fn name_subject(&self, user: Option<UserId>) {
        if let Some(user) = user {
            self.meta.subject.get_or_init(|| user);
        }
    }

    /// Returns the calling administrator together with the reason for a change, and adds the reason to the audit event.
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

    /// Returns the limits of the calling administrator's grants; none for owners.
    ///
    /// # Errors
    /// As [`Self::admin`].
    pub fn grant_limit(&self) -> Result<Option<GrantLimit>> {
        let limits = &self.app.core.config.admin;
        let limit = GrantLimit { at_once: limits.support_grant, daily: limits.support_grants_daily };
        Ok((self.admin()?.role() != Role::Owner).then_some(limit))
    }

    /// Records the start of an administrator's request in the audit, for operations that a crash must not hide.
    ///
    /// # Errors
    /// Storage errors.
    pub async fn record_start(&self) -> Result<()> {
        match &self.audit {
            Some(audit) => self.committed(audit.record_start()).await,
            None => Ok(()),
        }
    }

    /// Returns the claims, which administrators must not leave empty.
    ///
    /// # Errors
    /// `invalid_parameters` for the field `name` if an administrator names no user.
    pub fn require_claims(&self, claims: Claims, name: &str) -> Result<Claims> {
        if self.is_admin() && claims.is_empty() {
            return Err(Error::field(name, Fault::new(FieldCode::Required, ("is required", "不能为空"))));
        }
        Ok(claims)
    }

    /// Returns the user that the request is about: the caller or, for an administrator, the named user.
    ///
    /// # Errors
    /// `not_yours` if a user names another; for an administrator `not_found`, or `invalid_parameters` if the request
    /// names two different users.
    pub fn subject(&self, claims: &Claims) -> Result<User> {
        if !self.is_admin() {
            return self.acting_user(claims);
        }
        let find = |tx: &Read<'_>| match (claims.users().next(), &claims.phone_number) {
            (Some(id), _) => users::find_in(tx, id),
            (None, Some(phone_number)) => users::find_by_phone_in(tx, phone_number),
            (None, None) => Err(Code::NotFound.into()),
        };
        let user = self.app.core.store.read(find)?;
        let another = |name| {
            Err(Error::field(name, Fault::new(FieldCode::UnknownValue, ("must be the same user", "须为同一用户"))))
        };
        if claims.users().any(|claimed| claimed != user.id) {
            return another("userId");
        }
        if claims.phone_number.as_ref().is_some_and(|claimed| user.phone_number.as_ref() != Some(claimed)) {
            return another("phoneNumber");
        }
        self.meta.subject.get_or_init(|| user.id);
        Ok(user)
    }

    /// Returns the id of [`Self::subject`] without loading a user who names only themselves.
    ///
    /// # Errors
    /// As [`Self::subject`].
    pub fn subject_id(&self, claims: &Claims) -> Result<UserId> {
        if self.is_admin() { self.subject(claims).map(|user| user.id) } else { self.acting_for(claims) }
    }

    /// Returns the id of the calling user if the claims name nobody else.
    ///
    /// # Errors
    /// `not_yours`, before any lookup, so that the error does not reveal whether the other user exists.
    pub fn acting_for(&self, claims: &Claims) -> Result<UserId> {
        if claims.phone_number.is_some() {
            return self.acting_user(claims).map(|user| user.id);
        }
        self.reject_other_ids(claims)
    }

    /// Returns the calling user if the claims name nobody else.
    ///
    /// # Errors
    /// As [`Self::acting_for`].
    pub fn acting_user(&self, claims: &Claims) -> Result<User> {
        self.reject_other_ids(claims)?;
        let user = self.current_user()?;
        match &claims.phone_number {
            Some(claimed) if user.phone_number.as_ref() != Some(claimed) => Err(Code::NotYours.into()),
            _ => Ok(user.clone()),
        }
    }

    fn reject_other_ids(&self, claims: &Claims) -> Result<UserId> {
        let user = self.user()?;
        if claims.users().all(|claimed| claimed == user) { Ok(user) } else { Err(Code::NotYours.into()) }
    }

    /// Waits until the write is on disk. The write continues if this times out.
    ///
    /// # Errors
    /// Errors of the write; `overloaded` when the disk takes too long.
    pub async fn committed<T>(&self, pending: Pending<T>) -> Result<T> {
        match tokio::time::timeout(self.app.core.config.limits.write_timeout, pending).await {
            Ok(outcome) => outcome,
            Err(_) => Err(Error::new(Code::Overloaded)
                .detail(("The disk takes too long; the change may still be made.", "磁盘响应过慢，更改仍可能生效。"))),
        }
    }

    /// Runs a write that screens texts first and waits for it. Runs in place with the local word list, and on a
    /// blocking thread if the external moderator may be called.
    ///
    /// # Errors
    /// Errors of the operation; `overloaded` when the disk takes too long.
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

    /// Screens texts without writing, on the thread that [`Self::screened`] would use.
    ///
    /// # Errors
    /// Errors of the operation.
    pub async fn judged<T, F>(&self, operation: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&App) -> Result<T> + Send + 'static,
    {
        if self.app.moderation.may_block() { self.blocking(operation).await } else { operation(&self.app) }
    }

    /// Runs an operation that blocks (a provider call, a password hash, a scan) on a blocking thread.
    ///
    /// # Errors
    /// Errors of the operation.
    pub async fn blocking<T, F>(&self, operation: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&App) -> Result<T> + Send + 'static,
    {
        let app = Arc::clone(&self.app);
        let outcome = run_blocking(Box::new(move || -> AnyBox { Box::new(operation(&app)) })).await?;
        let outcome = outcome.downcast().map_err(|_| Error::internal("a blocking operation had another outcome"))?;
        *outcome
    }

    /// Runs a report or list of administrators, which may read many rows, on a blocking thread. Waits while too many
    /// run, so that jobs and other requests always find a connection.
    ///
    /// # Errors
    /// Errors of the operation; `overloaded` after a long wait.
    pub async fn report<T, F>(&self, operation: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&App) -> Result<T> + Send + 'static,
    {
        let permit = self.report_permit().await?;
        // The operation keeps the permit if the client disconnects, because it goes on.
        self.blocking(move |app| {
            let _permit = permit;
            operation(app)
        })
        .await
    }

    /// Waits for the turn of a report.
    async fn report_permit(&self) -> Result<OwnedSemaphorePermit> {
        let permit = tokio::time::timeout(REPORT_WAIT, Arc::clone(&self.reports).acquire_owned()).await;
        let permit = permit.map_err(|_| {
            Error::new(Code::Overloaded)
                .detail(("Too many reports are running.", "正在运行的报表过多。"))
                .retry_after(REPORT_WAIT)
        })?;
        permit.map_err(Error::internal)
    }
}

/// A value whose type only its receiver knows.
type AnyBox = Box<dyn Any + Send>;

/// Runs a closure on a blocking thread. Not generic, because tokio's tasks would be compiled again for each closure.
async fn run_blocking(work: Box<dyn FnOnce() -> AnyBox + Send>) -> Result<AnyBox> {
    tokio::task::spawn_blocking(work).await.map_err(Error::internal)
}
