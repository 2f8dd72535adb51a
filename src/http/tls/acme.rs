//! Certificates by ACME (RFC 8555): ordered if there is none, renewed when a third of their lifetime is left.
//!
//! Names are validated by `http-01`, through the listener that redirects to HTTPS. Without a certificate, handshakes
//! fail and everything else works. Failures are logged and retried with a delay that doubles up to some hours, because
//! certificate authorities limit failures. They also limit certificates, so nothing is ordered while the disk has no
//! space for the result, and a certificate that cannot be stored is still used.

use std::{
    collections::HashMap,
    pin::Pin,
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{
    body::Bytes,
    http::{Request, Response},
};
use http_body_util::{BodyExt, Full};
use instant_acme::{
    Account, AccountBuilder, AccountCredentials, AuthorizationStatus, BodyWrapper, BytesResponse, ChallengeType,
    HttpClient, Identifier, NewAccount, NewOrder, Order, OrderStatus, RetryPolicy,
};

use super::{acme_files::AcmeStorage, certificates::Certificates};
use crate::{
    app::App,
    certificate::Certificate,
    concurrency::lock::lock_unpoisoned,
    error::{Code, Error, Result},
    providers::authority::CertificateAuthority,
    types::Timestamp,
};

/// Interval of checks for a due renewal. Short, because the clock may be changed in between.
const CHECK_INTERVAL: Duration = Duration::from_hours(1);
const MAX_RETRY_DELAY: Duration = Duration::from_hours(6);
/// Timeout for the certificate authority to validate the names and to issue the certificate.
const ORDER_TIMEOUT: Duration = Duration::from_mins(2);
const ACCOUNT_DOES_NOT_EXIST: &str = "urn:ietf:params:acme:error:accountDoesNotExist";

/// The responses to `/.well-known/acme-challenge/TOKEN`, by token.
#[derive(Clone, Default)]
pub struct Challenges(Arc<Mutex<HashMap<String, String>>>);

impl Challenges {
    pub fn answer(&self, token: &str) -> Option<String> {
        lock_unpoisoned(&self.0).get(token).cloned()
    }

    fn put(&self, token: &str, answer: &str) {
        lock_unpoisoned(&self.0).insert(token.to_owned(), answer.to_owned());
    }

    fn clear(&self) {
        lock_unpoisoned(&self.0).clear();
    }
}

pub struct Acme {
    app: Arc<App>,
    certificates: Arc<Certificates>,
    challenges: Challenges,
    authority: Arc<CertificateAuthority>,
    storage: AcmeStorage,
    /// A certificate that could not be stored yet.
    unstored: Option<String>,
    renewal: Option<Timestamp>,
}

impl Acme {
    /// Activates the stored certificate, if there is one.
    ///
    /// # Errors
    /// `configuration` for an invalid root certificate; storage errors.
    pub fn open(app: &Arc<App>, certificates: Arc<Certificates>, challenges: Challenges) -> Result<Self> {
        let root = app.core.config.acme.root_certificate.as_deref();
        let authority = Arc::new(CertificateAuthority::new(root).map_err(Error::misconfigured)?);
        let storage = AcmeStorage::of(&app.core.config)?;
        let (app, unstored, renewal) = (Arc::clone(app), None, None);
        let mut acme = Self { app, certificates, challenges, authority, storage, unstored, renewal };
        match acme.storage.0.read() {
            Ok(Some(certificate)) => acme.show(certificate),
            Ok(None) => {}
            Err(fault) => tracing::error!(fault, "the stored certificate cannot be read; a new one is ordered"),
        }
        Ok(acme)
    }

    fn show(&mut self, certificate: Certificate) {
        let until = certificate.validity.until;
        if until <= self.app.core.clock.now() {
            tracing::warn!(%until, "loaded an ACME certificate that has expired");
        } else {
            tracing::info!(%until, "loaded the ACME certificate");
        }
        self.renewal = Some(certificate.validity.renewal());
        self.certificates.show(certificate);
    }

    fn is_due(&self) -> bool {
        self.renewal.is_none_or(|renewal| self.app.core.clock.now() >= renewal)
    }

    /// Orders, stores and activates a certificate. It is activated even if it cannot be stored.
    async fn renew(&mut self) -> Result<()> {
        self.storage.check_space()?;
        let outcome = self.order().await;
        self.challenges.clear();
        let pem = outcome?;
        let certificate = Certificate::parse(pem.as_bytes(), pem.as_bytes()).map_err(Error::internal)?;
        self.unstored = Some(pem);
        self.store_pending();
        self.show(certificate);
        Ok(())
    }

    /// Stores the certificate unless it is stored. If that fails until a restart, a new one is ordered.
    fn store_pending(&mut self) {
        let Some(pem) = &self.unstored else { return };
        match AcmeStorage::write(&self.storage.0.certificate, pem.as_bytes()) {
            Ok(()) => self.unstored = None,
            Err(error) => tracing::error!(%error, "could not store the ACME certificate; retrying"),
        }
    }

    /// Returns the delay until the next check.
    fn check_delay(&self) -> Duration {
        if self.unstored.is_some() { self.app.core.config.acme.retry_after.min(CHECK_INTERVAL) } else { CHECK_INTERVAL }
    }

    /// Orders a certificate and returns its chain and key.
    async fn order(&self) -> Result<String> {
        let mut order = self.create_order().await?;
        let mut authorizations = order.authorizations();
        while let Some(authorization) = authorizations.next().await {
            let mut authorization = authorization.map_err(failed("read an authorization"))?;
            if authorization.status == AuthorizationStatus::Valid {
                continue;
            }
            let challenge = authorization.challenge(ChallengeType::Http01);
            let mut challenge =
                challenge.ok_or_else(|| acme_error("the certificate authority offers no http-01 challenge"))?;
            self.challenges.put(&challenge.token, challenge.key_authorization().as_str());
            challenge.set_ready().await.map_err(failed("submit a challenge"))?;
        }
        let retry_policy = RetryPolicy::new().timeout(ORDER_TIMEOUT);
        let status = order.poll_ready(&retry_policy).await.map_err(failed("validate the names"))?;
        if status != OrderStatus::Ready {
            let why = validation_errors(&mut order).await;
            return Err(acme_error(&format!("the order is {status:?}: the names could not be validated{why}")));
        }
        let key = order.finalize().await.map_err(failed("finalize the order"))?;
        let chain = order.poll_certificate(&retry_policy).await.map_err(failed("download the certificate"))?;
        Ok(format!("{chain}\n{key}"))
    }

    /// Creates an order, with a new account if the authority no longer knows the stored one, as after its reset.
    async fn create_order(&self) -> Result<Order> {
        let names: Vec<_> = self.app.core.config.server.domain.iter().cloned().map(Identifier::Dns).collect();
        let new = NewOrder::new(&names);
        let mut created = self.account().await?.new_order(&new).await;
        if let Err(instant_acme::Error::Api(problem)) = &created
            && problem.r#type.as_deref() == Some(ACCOUNT_DOES_NOT_EXIST)
        {
            let file = self.storage.0.account.display();
            tracing::warn!(%file, "the certificate authority does not know the ACME account; creating a new one");
            created = self.create_account().await?.new_order(&new).await;
        }
        created.map_err(failed("create the order"))
    }

    /// Returns the account at the certificate authority, created on first use.
    async fn account(&self) -> Result<Account> {
        if let Some(stored) = AcmeStorage::read(&self.storage.0.account)? {
            // The library's errors may quote the file, which holds the account's key.
            let unusable = || {
                let path = self.storage.0.account.display();
                acme_error(&format!("the account in {path} is unusable: move the file away to create a new account"))
            };
            let credentials: AccountCredentials = serde_json::from_slice(&stored).map_err(|_| unusable())?;
            return self.account_builder().from_credentials(credentials).await.map_err(|error| match error {
                instant_acme::Error::Crypto | instant_acme::Error::KeyRejected | instant_acme::Error::Str(_) => {
                    unusable()
                }
                other => failed("read the directory")(other),
            });
        }
        self.create_account().await
    }

    fn account_builder(&self) -> AccountBuilder {
        Account::builder_with_http(Box::new(Transport(Arc::clone(&self.authority))))
    }

    /// Creates an account and stores it in place of the previous one.
    async fn create_account(&self) -> Result<Account> {
        let settings = &self.app.core.config.acme;
        let contact = settings.contact.as_ref().map(|address| format!("mailto:{address}"));
        let contact: Vec<_> = contact.iter().map(String::as_str).collect();
        let new = NewAccount { contact: &contact, terms_of_service_agreed: true, only_return_existing: false };
        let made = self.account_builder().create(&new, settings.directory.clone(), None).await;
        let (account, credentials) = made.map_err(failed("create an account"))?;
        AcmeStorage::write(&self.storage.0.account, &serde_json::to_vec(&credentials).map_err(Error::internal)?)?;
        Ok(account)
    }
}

/// Describes a failed step with the authority's message.
fn failed(step: &'static str) -> impl FnOnce(instant_acme::Error) -> Error {
    move |error| acme_error(&format!("could not {step}: {error}"))
}

fn acme_error(why: &str) -> Error {
    Error::new(Code::ProviderFailed).english_detail(format!("ACME failed: {why}"))
}

/// Returns the authority's reasons for failed validations.
async fn validation_errors(order: &mut Order) -> String {
    let (mut said, mut authorizations) = (String::new(), order.authorizations());
    while let Some(Ok(mut authorization)) = authorizations.next().await {
        let Ok(state) = authorization.refresh().await else { continue };
        for problem in state.challenges.iter().filter_map(|challenge| challenge.error.as_ref()) {
            said.push_str("; ");
            said.push_str(&problem.to_string());
        }
    }
    said
}

pub async fn run(mut acme: Acme) {
    let first_delay = acme.app.core.config.acme.retry_after;
    let mut delay = first_delay;
    loop {
        if !acme.is_due() {
            tokio::time::sleep(acme.check_delay()).await;
            acme.store_pending();
            continue;
        }
        match acme.renew().await {
            Ok(()) if !acme.is_due() => {
                delay = first_delay;
                continue;
            }
            // A wrong clock must not use up the weekly limit of the authority.
            Ok(()) => {
                tracing::error!("the new certificate is due for renewal; is the clock of this machine right?");
            }
            Err(error) => {
                tracing::error!(%error, retry_after_s = delay.as_secs(), "could not obtain a certificate by ACME");
            }
        }
        tokio::time::sleep(delay).await;
        delay = (delay * 2).min(MAX_RETRY_DELAY);
    }
}

/// Sends the library's requests with the service's own HTTP client, which blocks.
struct Transport(Arc<CertificateAuthority>);

impl HttpClient for Transport {
    fn request(
        &self,
        request: Request<BodyWrapper<Bytes>>,
    ) -> Pin<Box<dyn Future<Output = Result<BytesResponse, instant_acme::Error>> + Send>> {
        let authority = Arc::clone(&self.0);
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let body = match body.collect().await {
                Ok(body) => body.to_bytes().to_vec(),
                Err(never) => match never {},
            };
            let request = Request::from_parts(parts, body);
            let other = |error: Box<dyn std::error::Error + Send + Sync>| instant_acme::Error::Other(error);
            let answer = tokio::task::spawn_blocking(move || authority.ask(request)).await;
            let answer: Response<Vec<u8>> =
                answer.map_err(|panic| other(panic.into()))?.map_err(|failure| other(failure.into()))?;
            Ok(BytesResponse::from(answer.map(|body| Full::new(Bytes::from(body)))))
        })
    }
}
