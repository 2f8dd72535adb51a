//! What a handler knows of the call besides its parameters: the application, the caller, the request.

use std::{
    net::IpAddr,
    sync::{Arc, OnceLock},
    time::Instant,
};

use crate::{
    app::App,
    error::{Code, Error, Result},
    http::params::Claims,
    ops::users::{self, User},
    store::Pending,
    types::{Locale, PhoneNumber, UserId},
};

/// One request, from its first byte to its log line.
#[derive(Debug)]
pub struct Context {
    pub request_id: String,
    pub client: IpAddr,
    pub started: Instant,
    /// The route's template, once the router has found it.
    pub route: OnceLock<&'static str>,
    /// The user whose token was shown, once it was looked up.
    pub user: OnceLock<UserId>,
}

/// Who is calling, as proved by the token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caller {
    Anonymous,
    User(UserId),
}

/// A call that has passed its guard.
pub struct Call {
    pub app: Arc<App>,
    pub context: Arc<Context>,
    pub caller: Caller,
    pub locale: Locale,
    /// The client asked for an event stream.
    pub wants_stream: bool,
}

impl Call {
    /// The user who is calling.
    ///
    /// # Errors
    /// `unauthenticated`, which the guard has ruled out wherever a token is needed.
    pub fn user(&self) -> Result<UserId> {
        match self.caller {
            Caller::User(user) => Ok(user),
            Caller::Anonymous => Err(Code::Unauthenticated.into()),
        }
    }

    /// The user who is calling, if those whom the request names are nobody else.
    ///
    /// # Errors
    /// `not_yours`, before anything is looked up, so that nobody learns whether the other user exists.
    pub fn acting_for(&self, claims: &Claims) -> Result<UserId> {
        let user = self.user()?;
        if claims.users().any(|claimed| claimed != user) {
            return Err(Code::NotYours.into());
        }
        if let Some(claimed) = &claims.phone_number {
            let own = self.app.store.read(|tx| users::find_in(tx, user))?;
            if own.phone_number.as_ref() != Some(claimed) {
                return Err(Code::NotYours.into());
            }
        }
        Ok(user)
    }

    /// Like [`Self::acting_for`], with the addresses that answers of the first generation carry.
    pub fn acting_user(&self, claims: &Claims) -> Result<User> {
        let user = self.user()?;
        if claims.users().any(|claimed| claimed != user) {
            return Err(Code::NotYours.into());
        }
        let own = self.app.store.read(|tx| users::find_in(tx, user))?;
        match &claims.phone_number {
            Some(claimed) if own.phone_number.as_ref() != Some(claimed) => Err(Code::NotYours.into()),
            _ => Ok(own),
        }
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
        tokio::task::spawn_blocking(move || operation(&app)).await.unwrap_or_else(|panic| Err(Error::internal(panic)))
    }
}

/// The phone number of a user, as answers of the first generation show it.
pub fn shown_phone(user: &User) -> Option<&str> {
    user.phone_number.as_ref().map(PhoneNumber::as_str)
}
