//! Proofs of identity that apps get from Apple, Google, WeChat or the carrier.
//!
//! Each provider is off until it is configured. Proving blocks: keys are fetched and codes exchanged. A client that
//! sends many invalid proofs is limited like one that sends wrong codes.

use std::net::IpAddr;

use crate::{
    concurrency::semaphore::{Semaphore, WaitLimits, WaitingSemaphore},
    config::Config,
    core::Core,
    domain::identity::{
        codes::{self, ClientNetworks},
        identities::{IdentityKey, IdentityProvider, SingleUse},
    },
    error::{Code, Error, Result},
    providers::{
        WallClock,
        identity::{
            ProofFault,
            id_token::{IdTokenSettings, IdTokenVerifier},
            one_tap::{OneTap, OneTapSettings},
            wechat::{WeChatSignIn, WeChatSignInSettings},
        },
    },
    types::{EmailAddress, PhoneNumber, Secret, Timestamp, sha256},
};

const APPLE_ISSUERS: &[&str] = &["https://appleid.apple.com"];
/// Google lets people use addresses of other domains too, which may have another owner since.
const GOOGLE_DOMAINS: &[&str] = &["gmail.com", "googlemail.com"];
const GOOGLE_ISSUERS: &[&str] = &["https://accounts.google.com", "accounts.google.com"];

/// Proofs that wait to be checked. Each occupies a thread.
const WAITING_CHECKS: u32 = 128;
/// Notifications of Apple that wait for its keys. Each occupies a thread.
const EVENTS: u32 = 32;

/// The configured providers.
pub struct IdentityProviders {
    pub core: Core,
    pub(super) apple: Option<IdTokenVerifier>,
    google: Option<IdTokenVerifier>,
    wechat: Option<WeChatSignIn>,
    one_tap: Option<OneTap>,
    /// Limits the proofs that are checked at once, also of each client network.
    checks: WaitingSemaphore<String>,
    /// Permits for notifications of Apple that wait for its keys, which anybody can send.
    pub events: Semaphore,
}

/// A proof as the app sends it.
#[derive(Clone, Debug)]
pub enum IdentityProof {
    /// A signed token, with the nonce that the app chose.
    Apple {
        token: Secret,
        nonce: Option<String>,
    },
    Google {
        token: Secret,
        nonce: Option<String>,
    },
    /// A code that WeChat gave to the app.
    Wechat {
        code: Secret,
    },
    /// An access token of the carrier's SDK.
    Phone {
        access_token: Secret,
    },
}

/// The person or phone number that a proof names.
#[derive(Clone, Debug)]
pub enum Proved {
    Identity(ProvedIdentity),
    Phone(PhoneNumber),
}

/// An identity, just proved.
#[derive(Clone, Debug)]
pub struct ProvedIdentity {
    pub key: IdentityKey,
    /// Another id of the same person, under which earlier sign-ins may have stored the identity.
    pub former_key: Option<IdentityKey>,
    /// An address that the provider verified.
    pub email: Option<EmailAddress>,
    /// The provider has authority over the address.
    pub is_email_proved: bool,
    pub single_use: Option<SingleUse>,
}

impl IdentityProviders {
    /// Builds the connections to the configured providers.
    pub fn new(core: Core) -> Self {
        let clock = || -> WallClock {
            let clock = core.clock.clone();
            Box::new(move || clock.now().0)
        };
        let permits = core.config.auth.max_identity_checks;
        let checks = WaitingSemaphore::new(WaitLimits {
            permits,
            permits_per_key: permits.div_ceil(2),
            waiting: WAITING_CHECKS,
            waiting_per_key: WAITING_CHECKS / 2,
            max_wait: core.config.auth.identity_timeout,
        });
        let config = &core.config;
        Self {
            apple: apple(config, clock()),
            google: google(config, clock()),
            wechat: wechat(config),
            one_tap: one_tap(config, clock()),
            checks,
            events: Semaphore::new(EVENTS),
            core,
        }
    }

    /// Checks a proof. Blocks.
    ///
    /// # Errors
    /// `invalid_identity`; `too_many_requests` for a client with too many invalid proofs; `not_configured`; those of the
    /// provider; `overloaded` and `too_many_requests` if too many are being checked.
    pub(super) fn prove(&self, proof: &IdentityProof, client: IpAddr) -> Result<Proved> {
        let core = &self.core;
        let client = ClientNetworks::of(client);
        core.store.read(|tx| codes::require_attempt_in(tx, &core.config.auth, &client))?;
        let _permit = self.checks.acquire(client.own.clone())?;
        let proved = match proof {
            IdentityProof::Apple { token, nonce } => {
                signed(self.apple.as_ref(), IdentityProvider::Apple, token, nonce.as_deref())
            }
            IdentityProof::Google { token, nonce } => {
                signed(self.google.as_ref(), IdentityProvider::Google, token, nonce.as_deref())
            }
            IdentityProof::Wechat { code } => self.wechat_person(code),
            IdentityProof::Phone { access_token } => self.phone_number(access_token),
        };
        match proved {
            Err(error) if error.code == Code::InvalidIdentity => {
                core.store.write(move |tx| codes::record_failure_in(tx, &client)).wait()?;
                Err(error)
            }
            proved => proved,
        }
    }

    fn wechat_person(&self, code: &Secret) -> Result<Proved> {
        let wechat = self.wechat.as_ref().ok_or_else(|| not_configured("wechat"))?;
        let person = wechat.exchange(code.reveal()).map_err(|fault| error_of("wechat", fault))?;
        let key = |subject| IdentityKey { provider: IdentityProvider::Wechat, subject };
        let (key, former_key) = match person.union_id {
            Some(union_id) => (key(union_id), Some(key(person.open_id))),
            None => (key(person.open_id), None),
        };
        Ok(Proved::Identity(ProvedIdentity { key, former_key, email: None, is_email_proved: false, single_use: None }))
    }

    fn phone_number(&self, access_token: &Secret) -> Result<Proved> {
        let one_tap = self.one_tap.as_ref().ok_or_else(|| not_configured("one_tap"))?;
        let number = one_tap.phone_number(access_token.reveal()).map_err(|fault| error_of("one_tap", fault))?;
        let number = PhoneNumber::parse(&number, &self.core.phone_rules);
        let fault =
            |_| Error::new(Code::InvalidIdentity).detail(("This phone number may not sign in.", "此手机号不能登录。"));
        number.map(Proved::Phone).map_err(fault)
    }
}

/// Checks a signed token with the verifier of its provider, if that is configured.
fn signed(
    verifier: Option<&IdTokenVerifier>,
    provider: IdentityProvider,
    token: &Secret,
    nonce: Option<&str>,
) -> Result<Proved> {
    let verifier = verifier.ok_or_else(|| not_configured(provider.name()))?;
    let proved = verifier.verify(token.reveal(), nonce).map_err(|fault| error_of(provider.name(), fault))?;
    Ok(Proved::Identity(ProvedIdentity {
        key: IdentityKey { provider, subject: proved.subject },
        former_key: None,
        email: proved.email.and_then(|email| EmailAddress::parse(&email).ok()),
        is_email_proved: proved.is_email_proved,
        single_use: Some(SingleUse { token_sha256: sha256(token.reveal()), expires_at: Timestamp(proved.expires_at) }),
    }))
}

pub(super) fn not_configured(provider: &str) -> Error {
    Error::new(Code::NotConfigured)
        .detail((format!("The operator has not set `auth.{provider}`."), format!("运营方未设置 `auth.{provider}`。")))
}

/// Returns the error for the app. The reason is logged, because it tells a forger what to change.
pub(super) fn error_of(provider: &'static str, fault: ProofFault) -> Error {
    match fault {
        ProofFault::Rejected(reason) => {
            tracing::info!(provider, reason, "rejected a proof of identity");
            Code::InvalidIdentity.into()
        }
        ProofFault::Failed(failure) => failure.into(),
    }
}

fn apple(config: &Config, clock: WallClock) -> Option<IdTokenVerifier> {
    let settings = IdTokenSettings {
        provider: "apple",
        issuers: APPLE_ISSUERS,
        audiences: config.auth_apple.client_ids.clone(),
        keys_url: config.auth_apple.keys_url.clone(),
        setting: "auth.apple.keys_url",
        email_domains: &[],
        has_hashed_nonces: true,
        timeout: config.auth.identity_timeout,
    };
    verifier(settings, clock)
}

fn google(config: &Config, clock: WallClock) -> Option<IdTokenVerifier> {
    let settings = IdTokenSettings {
        provider: "google",
        issuers: GOOGLE_ISSUERS,
        audiences: config.auth_google.client_ids.clone(),
        keys_url: config.auth_google.keys_url.clone(),
        setting: "auth.google.keys_url",
        email_domains: GOOGLE_DOMAINS,
        has_hashed_nonces: false,
        timeout: config.auth.identity_timeout,
    };
    verifier(settings, clock)
}

/// Builds the verifier of a provider at which the operator has apps.
fn verifier(settings: IdTokenSettings, clock: WallClock) -> Option<IdTokenVerifier> {
    (!settings.audiences.is_empty()).then(|| IdTokenVerifier::new(settings, clock))
}

fn wechat(config: &Config) -> Option<WeChatSignIn> {
    let wechat = &config.auth_wechat;
    let settings = WeChatSignInSettings {
        app_id: wechat.app_id.clone(),
        app_secret: wechat.app_secret.clone()?,
        base_url: wechat.base_url.clone(),
        timeout: config.auth.identity_timeout,
    };
    (!wechat.app_id.is_empty()).then(|| WeChatSignIn::new(settings))
}

fn one_tap(config: &Config, clock: WallClock) -> Option<OneTap> {
    let one_tap = &config.auth_one_tap;
    let settings = OneTapSettings {
        endpoint: one_tap.endpoint.clone(),
        access_key_id: one_tap.access_key_id.clone(),
        access_key_secret: one_tap.access_key_secret.clone()?,
        timeout: config.auth.identity_timeout,
    };
    (!one_tap.access_key_id.is_empty()).then(|| OneTap::new(settings, clock))
}
