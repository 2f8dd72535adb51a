//! What is wrong between settings that are each right by themselves. All of it is told at once.

use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};

use super::{Config, EmailProvider, EmailTls, LlmProvider, ModerationProvider, PaymentGateway, SmsProvider, bounds};
use crate::types::{EmailAddress, PhoneNumber};

impl Config {
    /// The faults, in the operator's words.
    pub(super) fn contradictions(&self) -> Vec<String> {
        let mut faults = Vec::new();
        let mut demand = |holds: bool, fault: &str| {
            if !holds {
                faults.push(fault.to_owned());
            }
        };
        demand(
            self.auth.allowed_regions.contains(&self.auth.default_region),
            "auth.default_region: must be one of auth.allowed_regions",
        );
        demand(
            self.auth.token_renewal < self.auth.token_lifetime,
            "auth.token_renewal: must be shorter than auth.token_lifetime",
        );
        demand(self.retention.code_sends >= Duration::from_hours(24), "retention.code_sends: must be at least a day");
        demand(
            self.retention.code_sends >= self.auth.resend_after,
            "retention.code_sends: must be at least auth.resend_after, which is measured by them",
        );
        demand(
            (1..=self.limits.page_size_max).contains(&self.limits.page_size),
            "limits.page_size: must be between 1 and limits.page_size_max",
        );
        let webhook = self.alerts.webhook_url.as_ref().map(ExposeSecret::expose_secret);
        demand(webhook.is_none_or(is_url), "alerts.webhook_url: must be an http or https address");
        let backup = &self.backup;
        demand(
            backup.s3_endpoint.as_deref().is_none_or(is_url),
            "backup.s3_endpoint: must be an http or https address",
        );
        if backup.s3_endpoint.is_some() {
            demand(!backup.s3_bucket.is_empty(), "backup.s3_bucket: is needed with backup.s3_endpoint");
            demand(!backup.s3_access_key_id.is_empty(), "backup.s3_access_key_id: is needed with backup.s3_endpoint");
            let has_secret = backup.s3_secret_access_key.is_some();
            demand(has_secret, "backup.s3_secret_access_key: is needed with backup.s3_endpoint");
        }
        demand(
            is_log_filter(&self.log.level),
            "log.level: must be a level or a filter such as `info,yarrow::http=debug`",
        );
        bounds::check(self, &mut demand);
        self.check_tls(&mut demand);
        self.check_sms(&mut demand);
        self.check_email(&mut demand);
        self.check_moderation(&mut demand);
        self.check_llm(&mut demand);
        self.check_payment(&mut demand);
        self.check_secrets(&mut demand);
        faults
    }

    fn check_tls(&self, demand: &mut impl FnMut(bool, &str)) {
        let server = &self.server;
        demand(
            server.tls_certificate.is_some() == server.tls_key.is_some(),
            "server.tls_certificate: needs server.tls_key, and the other way round",
        );
        demand(
            server.domain.is_empty() || server.tls_certificate.is_none(),
            "server.domain: its certificate is got by ACME, and server.tls_certificate names another one",
        );
        demand(
            server.has_tls() || server.redirect_listen.is_none(),
            "server.redirect_listen: sends to HTTPS, which needs server.domain or server.tls_certificate",
        );
        for name in &server.domain {
            demand(is_domain(name), &format!("server.domain: `{name}` is not a domain name in lower-case ASCII"));
        }
        let public_url = self.server.public_url.as_deref();
        demand(public_url.is_none_or(is_url), "server.public_url: must be an http or https address");
        demand(is_url(&self.acme.directory), "acme.directory: must be an http or https address");
    }

    fn check_sms(&self, demand: &mut impl FnMut(bool, &str)) {
        if self.sms.provider == SmsProvider::Aliyun {
            demand(is_url(&self.sms.endpoint), "sms.endpoint: must be an http or https address");
            demand(!self.sms.access_key_id.is_empty(), "sms.access_key_id: is needed by the provider `aliyun`");
            demand(self.sms.access_key_secret.is_some(), "sms.access_key_secret: is needed by the provider `aliyun`");
            demand(!self.sms.sign_name.is_empty(), "sms.sign_name: is needed by the provider `aliyun`");
            demand(!self.sms.template_code.is_empty(), "sms.template_code: is needed by the provider `aliyun`");
        }
    }

    /// Sender and certificates are checked by the driver, when it is built.
    fn check_email(&self, demand: &mut impl FnMut(bool, &str)) {
        let email = &self.email;
        if email.provider == EmailProvider::Smtp {
            demand(!email.host.is_empty(), "email.host: is needed by the provider `smtp`");
            demand(!email.from.is_empty(), "email.from: is needed by the provider `smtp`");
        }
        demand(
            email.username.is_some() == email.password.is_some(),
            "email.password: email.username and email.password come together",
        );
        let is_here = matches!(email.host.as_str(), "localhost" | "127.0.0.1" | "::1");
        demand(
            email.tls != EmailTls::None || email.password.is_none() || is_here,
            "email.tls: must not be `none` where a password travels to another machine",
        );
    }

    fn check_moderation(&self, demand: &mut impl FnMut(bool, &str)) {
        let moderation = &self.moderation;
        demand((0.0..=1.0).contains(&moderation.shadow_share), "moderation.shadow_share: must be between 0 and 1");
        if moderation.provider == ModerationProvider::Aliyun {
            demand(is_url(&moderation.endpoint), "moderation.endpoint: must be an http or https address");
            let backup = moderation.backup_endpoint.as_deref();
            demand(backup.is_none_or(is_url), "moderation.backup_endpoint: must be an http or https address");
            let needs = "is needed by the provider `aliyun`";
            demand(!moderation.access_key_id.is_empty(), &format!("moderation.access_key_id: {needs}"));
            demand(moderation.access_key_secret.is_some(), &format!("moderation.access_key_secret: {needs}"));
        }
    }

    fn check_llm(&self, demand: &mut impl FnMut(bool, &str)) {
        let temperature = self.llm.temperature.unwrap_or(1.0);
        demand((0.0..=2.0).contains(&temperature), "llm.temperature: must be between 0 and 2");
        if self.llm.provider == LlmProvider::Openai {
            demand(is_url(&self.llm.base_url), "llm.base_url: must be an http or https address");
            demand(!self.llm.model.is_empty(), "llm.model: is needed by the provider `openai`");
        }
        self.check_llm_fallback(demand);
        let models = [&self.llm.model, &self.llm_fallback.model];
        let is_priced = |model: &&String| model.is_empty() || self.llm.prices.contains_key(*model);
        demand(
            (self.llm.cost_per_day.is_none() && self.llm.user_cost_per_day.is_none()) || models.iter().all(is_priced),
            "llm.prices: needs the price of each model when llm.cost_per_day or llm.user_cost_per_day is set",
        );
    }

    fn check_llm_fallback(&self, demand: &mut impl FnMut(bool, &str)) {
        let Some(base_url) = &self.llm_fallback.base_url else { return };
        demand(is_url(base_url), "llm.fallback.base_url: must be an http or https address");
        demand(!self.llm_fallback.model.is_empty(), "llm.fallback.model: is needed by llm.fallback.base_url");
        demand(
            self.llm.provider == LlmProvider::Openai,
            "llm.fallback.base_url: has no use while llm.provider is `builtin`, which always answers",
        );
    }

    /// The gateway's keys are checked by the gateway, when it is built.
    fn check_payment(&self, demand: &mut impl FnMut(bool, &str)) {
        let payment = &self.payment;
        demand(
            payment.gateway == PaymentGateway::Alipay || payment.private_key.is_none(),
            "payment.gateway: is `sandbox`, whose payments cost nothing, although payment.private_key is set",
        );
        let is_known = self.server.public_url.is_some() || !self.server.domain.is_empty();
        let has_address = payment.notify_url.is_some() || is_known;
        demand(
            payment.gateway == PaymentGateway::Sandbox || has_address,
            "payment.notify_url: is needed by the gateway `alipay`, unless server.public_url is set",
        );
        demand(!payment.packages.0.is_empty(), "payment.packages: must have at least one package");
        demand(
            !payment.checks.is_empty() && payment.checks.is_sorted(),
            "payment.checks: must have at least one age, and the ages must grow",
        );
        demand(
            payment.order_reuse < payment.order_lifetime,
            "payment.order_reuse: must be shorter than payment.order_lifetime",
        );
    }

    fn check_secrets(&self, demand: &mut impl FnMut(bool, &str)) {
        let is_long = |key: &SecretString| key.expose_secret().len() >= 32;
        demand(self.auth.secret_key.as_ref().is_none_or(is_long), "auth.secret_key: must be at least 32 bytes long");
        for (address, code) in &self.auth.review_accounts {
            let is_email = EmailAddress::parse(address).is_ok_and(|email| email.as_str() == address);
            let is_phone =
                PhoneNumber::parse(address, &self.phone_rules()).is_ok_and(|number| number.as_str() == address);
            demand(
                is_email || is_phone,
                &format!("auth.review_accounts: `{address}` is no phone number or email address in canonical form"),
            );
            let (code, digits) = (code.expose_secret(), if is_email { 8 } else { 6 });
            demand(
                code.len() == digits && code.bytes().all(|byte| byte.is_ascii_digit()),
                &format!("auth.review_accounts: the code of `{address}` must be {digits} digits"),
            );
        }
    }
}

/// A name with at least one dot, as certificate authorities take it. They take no addresses.
fn is_domain(text: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let is_label =
        |label: &str| (1..=63).contains(&label.len()) && label.bytes().all(is_letter) && !label.starts_with('-');
    let is_address = text.parse::<std::net::IpAddr>().is_ok();
    text.len() <= 253 && text.contains('.') && text.split('.').all(is_label) && !is_address
}

fn is_url(text: &str) -> bool {
    ["http://", "https://"].iter().any(|scheme| text.strip_prefix(scheme).is_some_and(|rest| !rest.is_empty()))
}

/// A level, or what takes one and for whom. The library takes a mistyped level for the name of a part of the program, and
/// then nothing else is logged.
fn is_log_filter(text: &str) -> bool {
    let is_level = |text: &str| !text.is_empty() && text.parse::<tracing::level_filters::LevelFilter>().is_ok();
    text.split(',').all(|directive| match directive.split_once('=') {
        Some((part, level)) => !part.is_empty() && is_level(level),
        None => is_level(directive),
    })
}
