//! Purchases in the App Store: signed transactions, server notifications, and the server API.
//!
//! Everything that counts is a message signed by Apple, whose certificates lead to the configured root. The app, the
//! notifications and the API bring the same messages, so one verifier judges them all and no channel is trusted more.
//!
//! The surprise: production apps under review buy in the test environment. See [`AppleEnvironment`].

use std::{fmt, time::Duration};

use super::{
    CONNECT_TIMEOUT, SettingFault,
    setting_fault::{fault, keep, require_safe_endpoint},
};
use crate::{
    providers::{
        WallClock,
        client::{BaseUrl, Client, Limits},
        jws::Es256Key,
    },
    types::parse_pem,
};

use chain::ChainVerifier;

pub use notification::{AppleEvent, AppleNotification, MAX_APPLE_NOTIFICATION_BYTES};
pub use server::{
    AppleConsumption, AppleHistoryPage, AppleNotificationPage, AppleNotificationQuery, AppleRefundPreference,
};
pub use transaction::{AppleEnvironment, AppleTransaction};
pub use verifier::AppStoreVerifier;

mod chain;
mod transaction;
mod verifier;
mod notification;
mod server;
#[cfg(test)]
mod tests;

pub const PROVIDER: &str = "apple";
/// Apple Root CA - G3, valid until 2039.
const ROOT: &[u8] = include_bytes!("apple/AppleRootCA-G3.cer");

/// The operator's settings. `Debug` shows no key.
#[derive(Clone)]
pub struct AppStoreSettings {
    pub bundle_id: String,
    /// The app's number in the store. If set, production notifications for another app are rejected.
    pub app_apple_id: Option<i64>,
    /// The environments whose purchases are accepted.
    pub environments: Vec<AppleEnvironment>,
    /// Another root as PEM, for tests. Apple's is compiled in.
    pub root: Option<String>,
    /// The issuer id of the in-app purchase key, a UUID.
    pub issuer_id: String,
    /// The id of the in-app purchase key.
    pub key_id: String,
    /// The in-app purchase key: the text of the `.p8` file.
    pub private_key: String,
    /// `https://api.storekit.apple.com` in production.
    pub base_url: String,
    /// `https://api.storekit-sandbox.apple.com`.
    pub sandbox_base_url: String,
    /// The timeout of one call, including connecting.
    pub timeout: Duration,
}

/// The connection to the App Store for one app.
pub struct AppStore {
    pub verifier: AppStoreVerifier,
    issuer_id: String,
    key_id: String,
    key: Es256Key,
    base: BaseUrl,
    sandbox_base: BaseUrl,
    client: Client,
    clock: WallClock,
}

impl AppStore {
    /// Builds the connection, or returns every fault of the settings.
    pub fn new(settings: &AppStoreSettings, clock: WallClock) -> Result<Self, Vec<SettingFault>> {
        let mut faults = Vec::new();
        let is_id = |text: &str| {
            let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b".-".contains(&byte);
            (1..=155).contains(&text.len()) && text.bytes().all(is_allowed)
        };
        for (setting, text) in
            [("bundle_id", &settings.bundle_id), ("issuer_id", &settings.issuer_id), ("key_id", &settings.key_id)]
        {
            if !is_id(text) {
                faults.push(fault(setting, "must be the id from App Store Connect"));
            }
        }
        if settings.environments.is_empty() {
            faults.push(fault("environments", "must name Production, Sandbox or both"));
        }
        for (setting, url) in [("base_url", &settings.base_url), ("sandbox_base_url", &settings.sandbox_base_url)] {
            require_safe_endpoint(PROVIDER, setting, url, &mut faults);
        }
        let key = keep(Es256Key::parse(&settings.private_key), "private_key", &mut faults);
        let chain = keep(root_of(settings), "root", &mut faults);
        let bases = [&settings.base_url, &settings.sandbox_base_url].map(|url| BaseUrl::parse(PROVIDER, url));
        let (Some(key), Some(chain), [Ok(base), Ok(sandbox_base)]) = (key, chain, bases) else { return Err(faults) };
        if !faults.is_empty() {
            return Err(faults);
        }
        let limits = Limits::for_whole_calls(CONNECT_TIMEOUT, settings.timeout, true);
        Ok(Self {
            verifier: AppStoreVerifier {
                bundle_id: settings.bundle_id.clone(),
                app_apple_id: settings.app_apple_id,
                environments: settings.environments.clone(),
                chain,
            },
            issuer_id: settings.issuer_id.clone(),
            key_id: settings.key_id.clone(),
            key,
            base,
            sandbox_base,
            client: Client::new(PROVIDER, "payment.apple.base_url", limits),
            clock,
        })
    }
}

fn root_of(settings: &AppStoreSettings) -> Result<ChainVerifier, &'static str> {
    let configured = settings.root.as_ref().map(|text| parse_pem(text.as_bytes()));
    let root = match &configured {
        None => ROOT,
        Some(Ok(blocks)) => blocks.first().map_or(&[][..], |block| &block.der),
        Some(Err(_)) => &[],
    };
    ChainVerifier::new(root).ok_or("must be the certificate of an authority as PEM")
}

impl fmt::Debug for AppStoreSettings {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut output = formatter.debug_struct("AppStoreSettings");
        output.field("bundle_id", &self.bundle_id).field("environments", &self.environments);
        output.field("key_id", &self.key_id).field("base_url", &self.base_url);
        output.finish_non_exhaustive()
    }
}
