//! Signing in and out: an address, a code sent to it, a token for whoever proves to have read the code.

use std::net::IpAddr;

use secrecy::{ExposeSecret, SecretString};

use crate::{
    app::App,
    error::{Code, Error, Result},
    ops::{
        codes::{self, Purpose},
        coins,
        tokens::{self, Issued, Standing},
        users::{self, User},
    },
    providers::{FailureKind, sms::CodeMessage},
    store::Pending,
    types::{PhoneNumber, Secret, Timestamp},
};

const SMS_CODE_DIGITS: usize = 6;

/// A user who has just signed in.
#[derive(Clone, Debug)]
pub struct SignedIn {
    pub user: User,
    pub issued: Issued,
    pub is_new_user: bool,
}

/// What a validated token stands for now.
#[derive(Clone, Debug)]
pub struct Validated {
    pub user: User,
    /// The token to use from now on.
    pub token: Secret,
    pub expires_at: Timestamp,
    /// The token is another than the one that was shown.
    pub refreshed: bool,
}

/// Sends a sign-in code by SMS. Blocks on the provider.
///
/// # Errors
/// `too_many_requests` when a budget is spent. When the provider fails, `provider_unavailable`: no code is left live
/// and no budget used. When it is unknown whether the message went out, `provider_timeout`: the code stays live and
/// the budget used, because the message may well arrive.
pub fn send_code(app: &App, phone_number: &PhoneNumber, client: IpAddr) -> Result<()> {
    let address = phone_number.as_str().to_owned();
    let limits = app.config.auth.clone();
    if let Some(fixed) = app.config.auth.review_accounts.get(&address) {
        let hmac = codes::hmac(&app.keys, &address, Purpose::SignIn, fixed.expose_secret());
        return app
            .store
            .write(move |tx| codes::make_fixed_live_in(tx, &limits, &address, Purpose::SignIn, hmac))
            .wait();
    }
    let _slot = app.sms_sending.enter()?;
    let code = codes::random(SMS_CODE_DIGITS)?;
    let hmac = codes::hmac(&app.keys, &address, Purpose::SignIn, code.reveal());
    let network = codes::client_network(client);
    let reserved_address = address.clone();
    let reservation = app
        .store
        .write(move |tx| {
            let reservation = codes::reserve_in(tx, &limits, &reserved_address, &network)?;
            codes::make_live_in(tx, &limits, &reserved_address, Purpose::SignIn, hmac)?;
            Ok(reservation)
        })
        .wait()?;
    let message = message(app, phone_number, &code);
    let sent = app.sms_breaker.run(|| app.clock.now().0, || app.sms.send_code(&message));
    let Err(failure) = sent else { return Ok(()) };
    tracing::warn!(%failure, "a verification code could not be sent");
    if !failure.is_certainly_not_accepted() {
        return Err(Error::new(Code::ProviderTimeout).caused_by(failure));
    }
    app.store
        .write(move |tx| {
            codes::withdraw_in(tx, &address, Purpose::SignIn, hmac)?;
            codes::give_back_in(tx, reservation)
        })
        .wait()?;
    let code = match failure.kind {
        FailureKind::RecipientLimited => Code::TooManyRequests,
        _ => Code::ProviderUnavailable,
    };
    Err(Error { retry_after: failure.retry_after, ..Error::new(code).caused_by(failure) })
}

/// Exchanges an address and its code for a token, making the account if the address is new.
///
/// # Errors
/// `invalid_code`, whatever it is that does not fit.
pub fn sign_in(app: &App, phone_number: PhoneNumber, code: &str) -> Pending<SignedIn> {
    let hmac = codes::hmac(&app.keys, phone_number.as_str(), Purpose::SignIn, code);
    let (limits, initial_coins, key) = (app.config.auth.clone(), app.config.coins.initial, app.keys.clone());
    app.store.write(move |tx| {
        codes::consume_in(tx, phone_number.as_str(), Purpose::SignIn, hmac)?;
        let (user, is_new_user) = users::find_or_create_in(tx, &phone_number)?;
        if is_new_user {
            coins::open_in(tx, &key, user.id, &phone_number, initial_coins)?;
        }
        let issued = tokens::issue_in(tx, &limits, user.id)?;
        Ok(SignedIn { user, issued, is_new_user })
    })
}

/// Says whom a token speaks for, replacing it when it is close to its end. Nothing for a token that is no good.
pub fn validate_token(app: &App, token: &Secret) -> Pending<Option<Validated>> {
    let limits = &app.config.auth;
    let known = app.store.read(|tx| match tokens::standing_in(tx, limits, token.reveal())? {
        Standing::Valid { user, expires_at, renewable: false } => {
            let user = users::find_in(tx, user)?;
            Ok(Some(Some(Validated { user, token: token.clone(), expires_at, refreshed: false })))
        }
        Standing::Unknown => Ok(Some(None)),
        Standing::Valid { .. } | Standing::InGrace { .. } | Standing::Reused => Ok(None),
    });
    match known {
        Ok(Some(answer)) => Pending::known(Ok(answer)),
        Ok(None) => validate_by_replacing(app, token),
        Err(error) => Pending::known(Err(error)),
    }
}

fn validate_by_replacing(app: &App, token: &Secret) -> Pending<Option<Validated>> {
    let (token, limits, key) = (token.clone(), app.config.auth.clone(), app.keys.clone());
    app.store.write(move |tx| match tokens::replace_in(tx, &key, &limits, token.reveal()) {
        Ok(issued) => {
            let user = users::find_in(tx, issued.user)?;
            Ok(Some(Validated { user, token: issued.token, expires_at: issued.expires_at, refreshed: true }))
        }
        Err(error) if error.code == Code::Unauthenticated => Ok(None),
        Err(error) => Err(error),
    })
}

/// Replaces a token by its successor.
///
/// # Errors
/// `unauthenticated` for a token that is no good.
pub fn refresh_token(app: &App, token: &Secret) -> Pending<Issued> {
    let (token, limits, key) = (token.clone(), app.config.auth.clone(), app.keys.clone());
    app.store.write(move |tx| tokens::replace_in(tx, &key, &limits, token.reveal()))
}

/// Ends the sign-in that the token belongs to. An unknown token is as signed out as one can be.
pub fn sign_out(app: &App, token: &Secret) -> Pending<()> {
    let token = token.clone();
    app.store.write(move |tx| tokens::revoke_in(tx, token.reveal()))
}

fn message(app: &App, phone_number: &PhoneNumber, code: &Secret) -> CodeMessage {
    let minutes = app.config.auth.code_lifetime.as_secs().div_ceil(60);
    CodeMessage {
        phone_number: phone_number.e164(&app.phone_rules),
        code: SecretString::from(code.reveal()),
        expires_in_minutes: u32::try_from(minutes).unwrap_or(u32::MAX),
    }
}
