//! Verifies messages of the App Store, and the rules for environments.
//!
//! Purchases of the store's test environment come to the production app during review. So the environment is read from
//! the verified message, and the settings say which are accepted. `Xcode` and `LocalTesting` sign with keys that anybody
//! can make, and are never accepted.

use serde::{Deserialize, de::DeserializeOwned};

use super::{
    chain::ChainVerifier,
    transaction::{AppleEnvironment, AppleTransaction},
};
use crate::providers::json;
use crate::providers::{jws::CompactJws, payment::RejectionReason};

/// Verifies messages about one app.
pub struct AppStoreVerifier {
    pub(super) bundle_id: String,
    /// The app's number in the store, which production notifications name.
    pub(super) app_apple_id: Option<i64>,
    pub(super) environments: Vec<AppleEnvironment>,
    pub(super) chain: ChainVerifier,
}

#[derive(Deserialize)]
struct JwsHeader {
    alg: String,
    #[serde(default)]
    x5c: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SigningTime {
    signed_date: i64,
}

impl AppStoreVerifier {
    /// Returns the environments whose messages are accepted.
    pub fn environments(&self) -> &[AppleEnvironment] {
        &self.environments
    }

    /// Verifies a signed transaction of our app. `now` is in epoch milliseconds.
    ///
    /// A verified transaction is genuine; [`AppleTransaction::check`] tells if it may be credited.
    pub fn transaction(&self, jws: &str, now: i64) -> Result<AppleTransaction, RejectionReason> {
        let transaction: AppleTransaction = self.payload(jws, now)?;
        self.accept_app(Some(&transaction.bundle_id), &transaction.environment_name)?;
        if transaction.transaction_id.is_empty() || transaction.transaction_id.len() > 64 {
            return Err(RejectionReason::FieldMissing("transactionId"));
        }
        if !(1..=1000).contains(&transaction.quantity) {
            return Err(RejectionReason::InvalidAmount("quantity"));
        }
        Ok(transaction)
    }

    /// Verifies the signature and parses the payload.
    pub(super) fn payload<T: DeserializeOwned>(&self, jws: &str, now: i64) -> Result<T, RejectionReason> {
        let message = CompactJws::parse(jws.trim()).ok_or(RejectionReason::Malformed)?;
        let header: JwsHeader = json::from_slice(&message.header).map_err(|_| RejectionReason::Malformed)?;
        if header.alg != "ES256" {
            return Err(RejectionReason::WrongSignType);
        }
        let signed: SigningTime = json::from_slice(&message.payload).map_err(|_| RejectionReason::Malformed)?;
        let key = self.chain.key_of(&header.x5c, signed.signed_date, now);
        let key = key.ok_or(RejectionReason::UntrustedCertificate)?;
        if !message.is_signed_es256(&key) {
            return Err(RejectionReason::SignatureInvalid);
        }
        json::from_slice(&message.payload).map_err(|_| RejectionReason::Malformed)
    }

    /// Checks that a message is about our app in an accepted environment.
    pub(super) fn accept_app(
        &self,
        bundle_id: Option<&str>,
        environment: &str,
    ) -> Result<AppleEnvironment, RejectionReason> {
        if bundle_id != Some(&self.bundle_id) {
            return Err(RejectionReason::WrongApp);
        }
        let environment = AppleEnvironment::from_name(environment).ok_or(RejectionReason::WrongEnvironment)?;
        if self.environments.contains(&environment) { Ok(environment) } else { Err(RejectionReason::WrongEnvironment) }
    }
}
