//! Alipay's settings, and all faults that can be detected before the first call.

use std::fmt;
use std::time::Duration;

use super::{AlipayCertificateTexts, PROVIDER};
use crate::providers::client::BaseUrl;
use crate::providers::payment::setting_fault::{SettingFault, fault, require_safe_endpoint};

/// The operator's settings. `Debug` shows no key.
#[derive(Clone)]
pub struct AlipaySettings {
    /// The app id that the provider assigned, in digits.
    pub app_id: String,
    /// `2088` and 12 digits. If set, callbacks for another seller are rejected.
    pub seller_id: Option<String>,
    /// Our RSA private key, in any form that [`PrivateKey::parse`](crate::providers::rsa::PrivateKey::parse) reads.
    pub private_key: String,
    /// The provider's RSA public key, in any form that [`PublicKey::parse`](crate::providers::rsa::PublicKey::parse)
    /// reads. Empty in certificate mode.
    pub alipay_public_key: String,
    /// Set for an app in certificate mode.
    pub certificates: Option<AlipayCertificateTexts>,
    /// `https://openapi.alipay.com/gateway.do` in production.
    pub gateway_url: String,
    /// The URL for callbacks: absolute, at most 256 characters, no query.
    pub notify_url: String,
    /// The timeout of one call, including connecting.
    pub timeout: Duration,
}

impl AlipaySettings {
    /// Returns the faults of all settings except the keys.
    pub(super) fn plain_faults(&self) -> Vec<SettingFault> {
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let mut faults = Vec::new();
        if !digits(&self.app_id) || self.app_id.len() > 32 {
            faults.push(fault("app_id", "must be the digits that the provider assigned"));
        }
        let is_seller = |seller: &String| digits(seller) && seller.len() == 16 && seller.starts_with("2088");
        if !self.seller_id.as_ref().is_none_or(is_seller) {
            faults.push(fault("seller_id", "must be 2088 and 12 more digits"));
        }
        require_safe_endpoint(PROVIDER, "gateway_url", &self.gateway_url, &mut faults);
        if BaseUrl::parse(PROVIDER, &self.notify_url).is_err() || self.notify_url.len() > 256 {
            faults.push(fault(
                "notify_url",
                "must be an absolute http or https address without a query, at most 256 characters",
            ));
        }
        faults
    }
}

impl fmt::Debug for AlipaySettings {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut output = formatter.debug_struct("Settings");
        output.field("app_id", &self.app_id).field("seller_id", &self.seller_id);
        output.field("gateway_url", &self.gateway_url).field("notify_url", &self.notify_url);
        output.finish_non_exhaustive()
    }
}
