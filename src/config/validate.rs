//! Checks combinations of settings that are each valid alone, and reports all faults at once.

use secrecy::ExposeSecret;

use super::{Config, EmailProvider, EmailTls, LlmProvider, ModerationProvider, PaymentProvider, SmsProvider, bounds};
use crate::types::{EmailAddress, PhoneNumber, clean_line};

/// Maximum characters of the service's name.
const LONGEST_BRAND: usize = 40;

impl Config {
    /// Returns the faults, as messages for the operator.
    pub(super) fn validate(&self) -> Vec<String> {
        let mut faults = Vec::new();
        let mut require = |holds: bool, fault: &str| {
            if !holds {
                faults.push(fault.to_owned());
            }
        };
        require(
            self.auth.allowed_regions.contains(&self.auth.default_region),
            "auth.default_region: must be one of auth.allowed_regions",
        );
        require(
            self.auth.token_renewal < self.auth.token_lifetime,
            "auth.token_renewal: must be shorter than auth.token_lifetime",
        );
        require(
            self.retention.code_sends >= self.auth.resend_after,
            "retention.code_sends: must be at least auth.resend_after, which is computed from them",
        );
        require(
            self.limits.page_size <= self.limits.page_size_max,
            "limits.page_size: must be at most limits.page_size_max",
        );
        if let Err(fault) = clean_line(&self.brand.name, LONGEST_BRAND) {
            require(false, &format!("brand.name: {}", fault.message));
        }
        require(!self.brand.name.is_empty(), "brand.name: must not be empty");
        require(self.limits.first_page <= 1, "limits.first_page: must be 0 or 1");
        let backup = &self.backup;
        if backup.s3_endpoint.is_some() {
            require(!backup.s3_bucket.is_empty(), "backup.s3_bucket: is required with backup.s3_endpoint");
            require(
                !backup.s3_access_key_id.is_empty(),
                "backup.s3_access_key_id: is required with backup.s3_endpoint",
            );
            let has_secret = backup.s3_secret_access_key.is_some();
            require(has_secret, "backup.s3_secret_access_key: is required with backup.s3_endpoint");
        }
        bounds::check(self, &mut require);
        self.check_tls(&mut require);
        self.check_sign_in(&mut require);
        self.check_sms(&mut require);
        self.check_email(&mut require);
        self.check_moderation(&mut require);
        self.check_llm(&mut require);
        self.check_payment(&mut require);
        self.check_review_accounts(&mut require);
        faults
    }

    fn check_tls(&self, require: &mut impl FnMut(bool, &str)) {
        let server = &self.server;
        require(
            server.tls_certificate.is_some() == server.tls_key.is_some(),
            "server.tls_certificate: needs server.tls_key, and vice versa",
        );
        require(
            server.domain.is_empty() || server.tls_certificate.is_none(),
            "server.domain: obtains its certificate by ACME; it cannot be combined with server.tls_certificate",
        );
        require(
            server.has_tls() || server.redirect_listen.is_none(),
            "server.redirect_listen: redirects to HTTPS, which needs server.domain or server.tls_certificate",
        );
    }

    fn check_sms(&self, require: &mut impl FnMut(bool, &str)) {
        let providers = match self.sms.orders() {
            Ok(orders) => orders.providers,
            Err(fault) => {
                require(false, &format!("sms.countries: {fault}"));
                self.sms.order()
            }
        };
        let is_console = providers.contains(&SmsProvider::Console);
        require(
            !is_console || providers.len() == 1,
            "sms.fallbacks: `console` cannot be combined with other providers",
        );
        if providers.contains(&SmsProvider::Tencent) {
            let tencent = &self.sms_tencent;
            for (name, value) in [
                ("secret_id", &tencent.secret_id),
                ("app_id", &tencent.app_id),
                ("sign_name", &tencent.sign_name),
                ("template_id", &tencent.template_id),
            ] {
                require(!value.is_empty(), &format!("sms.tencent.{name}: is required by the provider `tencent`"));
            }
            require(tencent.secret_key.is_some(), "sms.tencent.secret_key: is required by the provider `tencent`");
        }
        if providers.contains(&SmsProvider::Http) {
            require(!self.sms_http.url.is_empty(), "sms.http.url: is required by the provider `http`");
            require(
                self.sms_http.accepted_member.is_empty() || !self.sms_http.accepted_values.is_empty(),
                "sms.http.accepted_values: is required with sms.http.accepted_member",
            );
        }
        if providers.contains(&SmsProvider::Aliyun) {
            require(!self.sms.access_key_id.is_empty(), "sms.access_key_id: is required by the provider `aliyun`");
            require(
                self.sms.access_key_secret.is_some(),
                "sms.access_key_secret: is required by the provider `aliyun`",
            );
            require(!self.sms.sign_name.is_empty(), "sms.sign_name: is required by the provider `aliyun`");
            require(!self.sms.template_code.is_empty(), "sms.template_code: is required by the provider `aliyun`");
        }
    }

    /// The driver checks sender and certificates when it is built.
    fn check_email(&self, require: &mut impl FnMut(bool, &str)) {
        let email = &self.email;
        let uses = |provider| email.provider == provider || email.fallback == Some(provider);
        require(
            email.fallback.is_none_or(|fallback| fallback != email.provider)
                && (email.fallback.is_none() || !uses(EmailProvider::Console)),
            "email.fallback: must be another provider than email.provider, and neither of them `console`",
        );
        if uses(EmailProvider::Http) {
            require(!self.email_http.url.is_empty(), "email.http.url: is required by the provider `http`");
            require(!email.from.is_empty(), "email.from: is required by the provider `http`");
            require(
                self.email_http.accepted_member.is_empty() || !self.email_http.accepted_values.is_empty(),
                "email.http.accepted_values: is required with email.http.accepted_member",
            );
        }
        if uses(EmailProvider::Smtp) {
            require(!email.host.is_empty(), "email.host: is required by the provider `smtp`");
            require(!email.from.is_empty(), "email.from: is required by the provider `smtp`");
        }
        require(
            email.username.is_some() == email.password.is_some(),
            "email.password: set both email.username and email.password, or neither",
        );
        let is_here = matches!(email.host.as_str(), "localhost" | "127.0.0.1" | "::1");
        require(
            email.tls != EmailTls::None || email.password.is_none() || is_here,
            "email.tls: must not be `none` if a password is sent to another machine",
        );
    }

    fn check_moderation(&self, require: &mut impl FnMut(bool, &str)) {
        let moderation = &self.moderation;
        if moderation.provider == ModerationProvider::Aliyun {
            let needs = "is required by the provider `aliyun`";
            require(!moderation.access_key_id.is_empty(), &format!("moderation.access_key_id: {needs}"));
            require(moderation.access_key_secret.is_some(), &format!("moderation.access_key_secret: {needs}"));
        }
        if moderation.provider == ModerationProvider::Http {
            let needs = "is required by the provider `http`";
            require(!moderation.judge_url.is_empty(), &format!("moderation.judge_url: {needs}"));
            require(moderation.judge_secret.is_some(), &format!("moderation.judge_secret: {needs}"));
        }
        if moderation.provider == ModerationProvider::Llm {
            require(!moderation.llm_model.is_empty(), "moderation.llm_model: is required by the provider `llm`");
        }
    }

    fn check_llm(&self, require: &mut impl FnMut(bool, &str)) {
        if self.llm.provider == LlmProvider::Openai {
            require(!self.llm.model.is_empty(), "llm.model: is required by the provider `openai`");
        }
        self.check_llm_fallback(require);
        let models = [&self.llm.model, &self.llm_fallback.model];
        let is_priced = |model: &&String| model.is_empty() || self.llm.prices.contains_key(*model);
        require(
            (self.llm.cost_per_day.is_none() && self.llm.user_cost_per_day.is_none()) || models.iter().all(is_priced),
            "llm.prices: must have the price of each model if llm.cost_per_day or llm.user_cost_per_day is set",
        );
    }

    fn check_llm_fallback(&self, require: &mut impl FnMut(bool, &str)) {
        if self.llm_fallback.base_url.is_none() {
            return;
        }
        require(!self.llm_fallback.model.is_empty(), "llm.fallback.model: is required by llm.fallback.base_url");
        require(
            self.llm.provider == LlmProvider::Openai,
            "llm.fallback.base_url: has no effect with llm.provider `builtin`, which always responds",
        );
    }

    fn check_sign_in(&self, require: &mut impl FnMut(bool, &str)) {
        for (setting, url) in [
            ("auth.apple.keys_url", &self.auth_apple.keys_url),
            ("auth.google.keys_url", &self.auth_google.keys_url),
            ("auth.wechat.base_url", &self.auth_wechat.base_url),
            ("auth.one_tap.endpoint", &self.auth_one_tap.endpoint),
        ] {
            let is_local =
                ["http://127.0.0.1", "http://localhost", "http://[::1]"].iter().any(|it| url.starts_with(it));
            require(url.starts_with("https://") || is_local, &format!("{setting}: must be an https URL"));
        }
        for (section, id, secret) in [
            ("auth.wechat", ("app_id", &self.auth_wechat.app_id), ("app_secret", &self.auth_wechat.app_secret)),
            (
                "auth.one_tap",
                ("access_key_id", &self.auth_one_tap.access_key_id),
                ("access_key_secret", &self.auth_one_tap.access_key_secret),
            ),
        ] {
            let fault =
                format!("{section}.{}: set both {section}.{} and {section}.{}, or neither", id.0, id.0, secret.0);
            require(id.1.is_empty() == secret.1.is_none(), &fault);
        }
    }

    /// The gateway checks its keys when it is built.
    fn check_payment(&self, require: &mut impl FnMut(bool, &str)) {
        let payment = &self.payment;
        let channels = self.payment_channels();
        let is_free = channels.contains(&PaymentProvider::Sandbox);
        let has_real = payment.private_key.is_some()
            || !self.payment_wechat.merchant_id.is_empty()
            || self.payment_stripe.secret_key.is_some();
        require(
            !is_free || payment.private_key.is_none(),
            "payment.gateway: is `sandbox`, whose payments are free, although payment.private_key is set",
        );
        require(
            !is_free || payment.private_key.is_some() || !has_real,
            "payment.channels: has `sandbox`, whose payments are free, although another channel is configured",
        );
        let is_unique = channels.iter().enumerate().all(|(index, channel)| !channels[..index].contains(channel));
        require(
            is_unique && (!is_free || channels.len() == 1),
            "payment.channels: must not repeat a channel or combine `sandbox` with others",
        );
        let is_known = self.server.public_url.is_some() || !self.server.domain.is_empty();
        let sells = |provider| channels.contains(&provider);
        require(
            !sells(PaymentProvider::Alipay) || payment.notify_url.is_some() || is_known,
            "payment.notify_url: is required by the gateway `alipay`, unless server.public_url is set",
        );
        require(
            !sells(PaymentProvider::Wechat) || self.payment_wechat.notify_url.is_some() || is_known,
            "payment.wechat.notify_url: is required by the channel `wechat`, unless server.public_url is set",
        );
        require(!payment.packages.0.is_empty(), "payment.packages: must have at least one package");
        require(
            !payment.checks.is_empty() && payment.checks.is_sorted(),
            "payment.checks: must have at least one age, in ascending order",
        );
        require(
            payment.order_reuse < payment.order_lifetime,
            "payment.order_reuse: must be shorter than payment.order_lifetime",
        );
    }

    fn check_review_accounts(&self, require: &mut impl FnMut(bool, &str)) {
        for (address, code) in &self.auth.review_accounts {
            let is_email = EmailAddress::parse(address).is_ok_and(|email| email.as_str() == address);
            let is_phone =
                PhoneNumber::parse(address, &self.phone_rules()).is_ok_and(|number| number.as_str() == address);
            require(
                is_email || is_phone,
                &format!("auth.review_accounts: `{address}` is not a phone number or email address in canonical form"),
            );
            let (code, digits) = (code.expose_secret(), if is_email { 8 } else { 6 });
            require(
                code.len() == digits && code.bytes().all(|byte| byte.is_ascii_digit()),
                &format!("auth.review_accounts: the code of `{address}` must be {digits} digits"),
            );
        }
    }
}
