//! WeChat Pay's settings, and all faults that can be detected before the first call.

use std::{fmt, time::Duration};

use super::PROVIDER;
use crate::providers::{
    client::BaseUrl,
    payment::setting_fault::{SettingFault, fault, require_safe_endpoint},
};

/// The operator's settings. `Debug` shows no key.
#[derive(Clone)]
pub struct WeChatSettings {
    /// The id of our app on the open platform, bound to the merchant.
    pub app_id: String,
    /// The merchant number, in digits.
    pub merchant_id: String,
    /// The serial number of the certificate of our private key, in hexadecimal digits.
    pub merchant_serial: String,
    /// Our RSA private key, in any form that [`PrivateKey::parse`](crate::providers::rsa::PrivateKey::parse) reads.
    pub private_key: String,
    /// The `APIv3` key: 32 bytes of text, used as they are.
    pub api_v3_key: String,
    /// `PUB_KEY_ID_` and digits, for merchants in public-key mode.
    pub public_key_id: Option<String>,
    /// The key of `public_key_id`, as PEM.
    pub public_key: Option<String>,
    /// Platform certificates as PEM. Without them and without a public key they are fetched.
    pub platform_certificates: Option<String>,
    /// `https://api.mch.weixin.qq.com` in production.
    pub base_url: String,
    /// The URL for notifications: https, at most 255 characters, no query.
    pub notify_url: String,
    /// The timeout of one call, including connecting.
    pub timeout: Duration,
}

impl WeChatSettings {
    /// Returns the faults of all settings except the keys.
    pub(super) fn plain_faults(&self) -> Vec<SettingFault> {
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let mut faults = Vec::new();
        let is_word = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if !is_word(&self.app_id) || self.app_id.len() > 32 {
            faults.push(fault("app_id", "must be the id of the app on the open platform, such as wx0123456789abcdef"));
        }
        if !digits(&self.merchant_id) || self.merchant_id.len() > 32 {
            faults.push(fault("merchant_id", "must be the digits of the merchant number"));
        }
        let is_hex = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !is_hex(&self.merchant_serial) || self.merchant_serial.len() > 64 {
            faults
                .push(fault("merchant_serial", "must be the hexadecimal serial number of the merchant's certificate"));
        }
        if self.public_key_id.is_some() != self.public_key.is_some() {
            faults.push(fault("public_key_id", "and public_key belong together: set both or neither"));
        }
        if self.public_key_id.as_ref().is_some_and(|id| !id.starts_with("PUB_KEY_ID_") || id.len() > 64) {
            faults.push(fault("public_key_id", "must be PUB_KEY_ID_ and the digits that the provider shows"));
        }
        require_safe_endpoint(PROVIDER, "base_url", &self.base_url, &mut faults);
        let is_https = BaseUrl::parse(PROVIDER, &self.notify_url).is_ok() && self.notify_url.starts_with("https://");
        if !is_https || self.notify_url.len() > 255 {
            faults.push(fault("notify_url", "must be an https address without a query, at most 255 characters"));
        }
        faults
    }
}

impl fmt::Debug for WeChatSettings {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut output = formatter.debug_struct("WeChatSettings");
        output.field("app_id", &self.app_id).field("merchant_id", &self.merchant_id);
        output.field("merchant_serial", &self.merchant_serial).field("public_key_id", &self.public_key_id);
        output.field("base_url", &self.base_url).field("notify_url", &self.notify_url);
        output.finish_non_exhaustive()
    }
}
