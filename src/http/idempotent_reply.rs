//! Replies to requests with an `Idempotency-Key`. Each is executed once and replayed afterwards.

use std::sync::Arc;

use axum::http::StatusCode;
use serde::Serialize;

use super::{
    reply::{Replayable, stored_problem, stored_resource},
    request_context::RequestContext,
    request_meta::Caller,
};
use crate::{
    app::App,
    domain::operations::idempotency::{Claim, IdempotentOutcome, IdempotentRequest},
    error::{Code, Error, Result},
    store::Pending,
};

impl RequestContext {
    /// Runs a write once for each `Idempotency-Key`, and replays the stored response to repeated requests.
    ///
    /// The operation stores the response in the transaction of its effect. `shown` converts its result.
    ///
    /// # Errors
    /// Errors of the operation; `idempotency_key_reused`; `invalid_parameters` for an invalid key.
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

    /// Like [`Self::respond_once`], for a write that screens texts first. See [`Self::screened`].
    ///
    /// # Errors
    /// As [`Self::respond_once`].
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

    /// Like [`Self::respond_once`], for an operation that blocks and stores its response itself.
    ///
    /// # Errors
    /// As [`Self::respond_once`].
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

    /// Returns the request with its key, for operations that answer with more than the stored response.
    ///
    /// # Errors
    /// `invalid_parameters` for an invalid key.
    pub fn once<T, W, S>(&self, status: StatusCode, shown: S) -> Result<IdempotentRequest<T>>
    where
        W: Serialize,
        S: Fn(&T) -> W + Send + 'static,
    {
        let asker = match self.caller {
            Caller::User(ref user) => Some(user.id),
            Caller::Anonymous | Caller::Admin(_) => None,
        };
        let Some(claim) = self.claim()? else { return Ok(IdempotentRequest::without_key(asker)) };
        let meta = Arc::clone(&self.meta);
        Ok(IdempotentRequest::with_key(asker, claim, move |outcome| match outcome {
            Ok(done) => stored_resource(status, &shown(done)),
            Err(error) => stored_problem(error, &meta),
        }))
    }

    fn claim(&self) -> Result<Option<Claim>> {
        let Some(header) = self.idempotency.as_deref() else { return Ok(None) };
        if header.is_ambiguous {
            let detail =
                ("Idempotency-Key was given twice with different values.", "Idempotency-Key 出现了两个不同的值。");
            return Err(Error::new(Code::ConflictingParameter).detail(detail));
        }
        let key = header.key().map_err(|fault| Error::fields(vec![fault]))?;
        let Some(caller) = self.caller.name() else { return Ok(None) };
        Ok(Some(Claim {
            caller,
            route: self.meta.route().to_owned(),
            key: key.to_owned(),
            request_sha256: header.request_sha256,
            kept_for: self.app.core.config.retention.idempotency_keys,
            free_responses: self.app.core.config.limits.free_responses,
        }))
    }
}

fn replayable<T, W>(status: StatusCode, shown: impl Fn(&T) -> W, answered: IdempotentOutcome<T>) -> Replayable<W> {
    match answered {
        IdempotentOutcome::Fresh(_, Some(response)) => Replayable::Stored(response),
        IdempotentOutcome::Fresh(done, None) => Replayable::Fresh(status, shown(&done)),
        IdempotentOutcome::Replayed(response) => Replayable::Replayed(response),
    }
}
