//! All settings, each declared once: section, key, type, default, help.
//!
//! The declaration generates the field of [`Config`], the TOML key, the environment variable, the flag if there is one,
//! and the lines of `config show` and `config sample`. `[llm] base_url` becomes `YARROW_LLM_BASE_URL`;
//! `YARROW_LLM_BASE_URL_FILE` names a file with the value. A flag takes precedence over the environment, the
//! environment over the file, and the file over the default. All faults are reported at once. No other module reads the
//! environment.

mod bounds;
mod validate;
mod declare;
mod masking;
mod settings;
mod sources;
mod suspension_rule;
mod match_rule;
mod values;

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
};

pub use declare::{Declaration, ResolvedSetting, SettingOrigin};
pub use masking::mask_url_secrets;
pub use match_rule::{CONTENT_TYPES, MATCH_WAYS, MatchRule, SEVERITIES};
pub use settings::*;
pub use sources::{LoadedConfig, Sources, arguments, load, load_with_checks, proxy_variables};
pub use suspension_rule::SuspensionRule;
pub use values::{
    Bytes, Directory, EmailProvider, EmailTls, LlmProvider, LogFormat, MatchAction, ModerationProvider, Packages,
    PaymentProvider, Prices, S3Addressing, SmsProvider, TokenPrice, WrongCodeStatus,
};

use crate::{
    error::{Code, Error, Result},
    types::PhoneRules,
};

impl Config {
    /// Returns the payment channels that take new orders. The first is the default.
    pub fn payment_channels(&self) -> Vec<PaymentProvider> {
        if self.payment.channels.is_empty() { vec![self.payment.gateway] } else { self.payment.channels.clone() }
    }

    /// Returns for each provider its section, and whether its driver is only meant for development.
    pub fn drivers(&self) -> [(&'static str, bool); 4] {
        [
            ("sms", self.sms.provider == SmsProvider::Console),
            ("email", self.email.provider == EmailProvider::Console),
            ("llm", self.llm.provider == LlmProvider::Builtin),
            ("payment", self.payment_channels().contains(&PaymentProvider::Sandbox)),
        ]
    }

    /// Returns the effect of the driver for development of a section, in English and Chinese.
    pub fn development_effect(section: &str) -> [&'static str; 2] {
        match section {
            "sms" => ["codes are printed and not sent", "验证码只打印，不发送"],
            "email" => ["messages are printed and not sent", "邮件只打印，不发送"],
            "llm" => ["the offline interpreter answers", "由离线解卦程序回答"],
            _ => ["payments cost nothing", "付款不收费"],
        }
    }
}

impl Config {
    /// Returns true if any push service is configured.
    pub fn has_push(&self) -> bool {
        !self.push_apns.topic.is_empty() || self.push_fcm.service_account.is_some() || !self.push_http.url.is_empty()
    }
}

/// The SMS providers that may send, and the order in which they are tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SmsOrders {
    /// Those of the usual order first.
    pub providers: Vec<SmsProvider>,
    /// Other orders, as positions in `providers`, by the first digits of numbers.
    pub by_prefix: Vec<(String, Vec<usize>)>,
}

impl SmsConfig {
    /// Returns the providers in their usual order.
    pub fn order(&self) -> Vec<SmsProvider> {
        let mut order = vec![self.provider];
        for provider in &self.fallbacks {
            if !order.contains(provider) {
                order.push(*provider);
            }
        }
        order
    }

    /// Returns all providers that may send, with their orders.
    ///
    /// # Errors
    /// The fault of `sms.countries`.
    pub fn orders(&self) -> Result<SmsOrders, String> {
        let (mut all, mut by_prefix) = (self.order(), Vec::new());
        for (prefix, names) in &self.countries {
            let digits = prefix.trim_start_matches('+');
            if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
                return Err(format!("`{prefix}` must be digits"));
            }
            let mut order = Vec::new();
            for name in names.split_whitespace() {
                let provider = SmsProvider::from_name(name).ok_or_else(|| format!("`{name}` is not a provider"))?;
                let position = all.iter().position(|known| *known == provider).unwrap_or_else(|| {
                    all.push(provider);
                    all.len() - 1
                });
                order.push(position);
            }
            if order.is_empty() {
                return Err(format!("`{prefix}` has no provider"));
            }
            by_prefix.push((digits.to_owned(), order));
        }
        Ok(SmsOrders { providers: all, by_prefix })
    }
}

impl ServerConfig {
    /// Returns true if the service terminates TLS itself.
    pub fn has_tls(&self) -> bool {
        !self.domain.is_empty() || self.tls_certificate.is_some()
    }

    /// Returns the main listener's address. With only a domain configured, it is the public HTTPS port.
    pub fn address(&self) -> SocketAddr {
        let is_default = self.listen == SocketAddr::from(([127, 0, 0, 1], 8080));
        if is_default && !self.domain.is_empty() { any_address(443) } else { self.listen }
    }

    /// Returns the base URL for clients, as far as the configuration determines it.
    pub fn base_url(&self) -> String {
        let scheme = if self.has_tls() { "https" } else { "http" };
        let named = self.domain.first().map(|name| format!("https://{name}"));
        self.public_url.clone().or(named).unwrap_or_else(|| format!("{scheme}://{}", self.address()))
    }

    /// Returns the address of the plain listener beside TLS, if there is one.
    pub fn redirect_address(&self) -> Option<SocketAddr> {
        self.redirect_listen.or_else(|| (!self.domain.is_empty()).then(|| any_address(80)))
    }

    /// Returns the number of worker threads; by default one per core.
    pub fn worker_threads(&self) -> u32 {
        let cores = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        if self.workers > 0 { u32::from(self.workers) } else { u32::try_from(cores()).unwrap_or(1) }
    }
}

fn any_address(port: u16) -> SocketAddr {
    SocketAddr::from((std::net::Ipv6Addr::UNSPECIFIED, port))
}

impl Config {
    /// Returns the defaults, for the help of the command line and for tests.
    ///
    /// # Errors
    /// `configuration` if a default is invalid.
    pub fn defaults() -> Result<Self> {
        load(Sources::default()).map(|loaded| loaded.config)
    }

    /// Returns true if changed pages are shipped to a bucket.
    pub fn has_continuous_backup(&self) -> bool {
        self.backup.s3_endpoint.is_some() && !self.backup.follow.is_zero()
    }

    /// Returns the directory of local backups.
    pub fn backup_directory(&self) -> PathBuf {
        let default = || self.data_dir().join("backups");
        self.backup.directory.as_ref().map_or_else(default, |directory| directory.0.clone())
    }

    /// Returns the number of model call and violation records kept per user: at least those counted for the hourly
    /// limits.
    pub fn max_records_per_user(&self) -> u32 {
        self.limits.interpretation_records.max(self.llm.calls_per_user_hour)
    }

    /// Returns the listening addresses, each with its setting.
    pub fn listeners(&self) -> Vec<(&'static str, SocketAddr)> {
        let server = &self.server;
        let others = [
            ("server.admin_listen", server.admin_listen),
            ("server.redirect_listen", server.redirect_address()),
            ("metrics.listen", self.metrics.listen),
        ];
        let others = others.into_iter().filter_map(|(setting, address)| Some((setting, address?)));
        [("server.listen", server.address())].into_iter().chain(others).collect()
    }

    pub fn data_dir(&self) -> &Path {
        &self.paths.data_dir.0
    }

    pub fn phone_rules(&self) -> PhoneRules {
        PhoneRules { default_region: self.auth.default_region, allowed_regions: self.auth.allowed_regions.clone() }
    }
}

/// Returns the error for a configuration with these faults.
pub fn configuration_error(faults: &[String]) -> Error {
    Error::new(Code::Configuration).english_detail(faults.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_sms_provider_is_tried_once() {
        let mut config = Config::defaults().unwrap();
        config.sms.provider = SmsProvider::Aliyun;
        config.sms.fallbacks = vec![SmsProvider::Http, SmsProvider::Aliyun, SmsProvider::Tencent, SmsProvider::Http];
        assert_eq!(config.sms.order(), [SmsProvider::Aliyun, SmsProvider::Http, SmsProvider::Tencent]);
    }
}
