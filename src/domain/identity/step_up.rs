//! Step-up: the recent proof of identity that destructive actions require.
//!
//! A code for the purpose `cancellation` stays valid until it expires, because cancelling an account takes several
//! requests. It is useless without the user's token.

use std::net::IpAddr;

use crate::{
    config::AuthConfig,
    domain::identity::{
        codes::{self, Attempt, ClientNetworks, Purpose},
        tokens,
        users::{self, Address},
    },
    error::{Code, Error, Result},
    keys::ServerKey,
    store::Write,
    types::{Secret, UserId},
};

/// The proof that a user sends with a destructive action.
#[derive(Clone, Debug)]
pub struct StepUp {
    pub token: Secret,
    /// Replaces a recent sign-in.
    pub code: Option<CancellationCode>,
}

/// A code with the length of an SMS code and of an email code.
#[derive(Clone, Debug)]
pub struct CancellationCode {
    pub by_sms: String,
    pub by_email: String,
    pub client: IpAddr,
}

impl StepUp {
    /// Requires the right code or, without a code, a recent sign-in.
    ///
    /// # Errors
    /// `step_up_required`; `invalid_code`; `unauthenticated` if the token was revoked.
    pub fn require_in(&self, tx: &Write<'_>, key: &ServerKey, limits: &AuthConfig, user: UserId) -> Result<()> {
        match &self.code {
            Some(code) => code.verify_in(tx, key, limits, user),
            None => tokens::require_recent_sign_in_in(tx, limits, self.token.reveal()),
        }
    }
}

impl CancellationCode {
    /// Verifies a code that was sent to an address of the user.
    ///
    /// # Errors
    /// `invalid_code`, whatever the mismatch. The attempt stays counted. `too_many_requests`.
    pub fn verify_in(&self, tx: &Write<'_>, key: &ServerKey, limits: &AuthConfig, user: UserId) -> Result<()> {
        const PURPOSE: Purpose = Purpose::Cancellation;
        for address in users::find_in(tx, user)?.addresses() {
            let code = match &address {
                Address::Phone(_) => &self.by_sms,
                Address::Email(_) => &self.by_email,
            };
            let client = ClientNetworks::of(self.client);
            let attempt = Attempt::new(key, address.as_str(), PURPOSE, code, client);
            match codes::verify_in(tx, limits, &attempt) {
                Err(error) if error.code == Code::InvalidCode => {}
                outcome => return outcome,
            }
        }
        Err(Error::new(Code::InvalidCode).keeping_changes())
    }
}
