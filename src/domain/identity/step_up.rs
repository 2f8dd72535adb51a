//! Step-up: the recent proof of identity that destructive actions require.
//!
//! A code that was sent for any purpose is a proof and stays valid until it expires, because cancelling an account takes
//! several requests. It is useless without the user's token.

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
    pub code: Option<OwnCode>,
}

/// A code with the length of an SMS code and of an email code.
#[derive(Clone, Debug)]
pub struct OwnCode {
    pub by_sms: String,
    pub by_email: String,
    pub client: IpAddr,
}

impl StepUp {
    /// Requires the right code or, without a code, a recent sign-in.
    ///
    /// # Errors
    /// `step_up_required`, also for a wrong code: `invalid_code` has a status at which apps sign out. The attempt stays
    /// counted. `too_many_requests`; `unauthenticated` if the token was revoked.
    pub fn require_in(&self, tx: &Write<'_>, key: &ServerKey, limits: &AuthConfig, user: UserId) -> Result<()> {
        match &self.code {
            Some(code) => code.verify_in(tx, key, limits, user),
            None => tokens::require_recent_sign_in_in(tx, limits, self.token.reveal()),
        }
    }
}

impl OwnCode {
    /// Verifies a code that was sent to an address of the user.
    fn verify_in(&self, tx: &Write<'_>, key: &ServerKey, limits: &AuthConfig, user: UserId) -> Result<()> {
        let client = ClientNetworks::of(self.client);
        let mut attempts = Vec::new();
        for address in users::find_in(tx, user)?.addresses() {
            let code = match &address {
                Address::Phone(_) => &self.by_sms,
                Address::Email(_) => &self.by_email,
            };
            let attempt = |&purpose| Attempt::new(key, address.as_str(), purpose, code, client.clone());
            attempts.extend(Purpose::ALL.iter().map(attempt));
        }
        codes::verify_any_in(tx, limits, &client, &attempts).map(drop).map_err(|error| match error.code {
            Code::InvalidCode => Error::new(Code::StepUpRequired)
                .detail((
                    "The code is wrong, expired or already used. Request a new code, or sign in again.",
                    "验证码错误、已过期或已使用，请重新获取，或重新登录。",
                ))
                .keeping_changes(),
            _ => error,
        })
    }
}
