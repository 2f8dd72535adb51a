//! Builds the drivers that the settings name. Unknown names are rejected earlier, when the configuration is loaded.
//!
//! The payment gateway is built in `domain/money/payments`, because the sandbox stores its trades in the database.

use std::sync::Arc;

use secrecy::SecretString;

use crate::{
    clock::Clock,
    config::{Config, EmailProvider, EmailTls, LlmProvider, ModerationProvider, SmsOrders, SmsProvider},
    error::{Code, Error, Result},
    providers::{
        breaker::CircuitBreaker,
        email::{self, EmailSender, failover::FailoverMailer, http::HttpMailer, smtp},
        http_template::HttpTemplateSettings,
        llm::{
            models::{GuardedModel, Models},
            offline::Offline,
            openai,
        },
        moderation::{TextModerator, aliyun as aliyun_moderation, http_judge, llm_judge},
        sms::{
            SmsSender, aliyun,
            console::ConsoleSms,
            failover::{FailoverSms, SmsRoute},
            http::HttpSms,
            tencent::{TencentSms, TencentSmsSettings},
        },
    },
};

/// The usual ports of mail servers, by encryption.
const SMTP_PORTS: [(EmailTls, u16); 3] = [(EmailTls::None, 25), (EmailTls::Starttls, 587), (EmailTls::Tls, 465)];

/// Prints a line on the operator's console, for the development drivers.
pub type Announce = Arc<dyn Fn(&str) + Send + Sync>;

/// Builds the SMS driver, or several behind one that chooses among them.
pub fn sms_sender(config: &Config, clock: &Clock, announce: &Announce) -> Box<dyn SmsSender> {
    // Faults were reported when the configuration was loaded.
    let usual = |_| SmsOrders { providers: config.sms.order(), by_prefix: Vec::new() };
    let SmsOrders { providers, by_prefix: mut orders } = config.sms.orders().unwrap_or_else(usual);
    if let ([provider], []) = (providers.as_slice(), orders.as_slice()) {
        return sms_driver(config, *provider, clock.clone(), announce);
    }
    let route = |provider: SmsProvider| SmsRoute {
        sender: sms_driver(config, provider, clock.clone(), announce),
        breaker: Arc::new(CircuitBreaker::with_defaults(sms_breaker_name(provider))),
    };
    // Numbers without an order of their own use the usual one.
    orders.push((String::new(), (0..config.sms.order().len()).collect()));
    let routes = providers.into_iter().map(route).collect();
    let now = clock.clone();
    Box::new(FailoverSms::new(routes, orders, Box::new(move || now.now().0)))
}

const fn sms_breaker_name(provider: SmsProvider) -> &'static str {
    match provider {
        SmsProvider::Console => "sms console",
        SmsProvider::Aliyun => "sms aliyun",
        SmsProvider::Tencent => "sms tencent",
        SmsProvider::Http => "sms http",
    }
}

fn sms_driver(config: &Config, provider: SmsProvider, clock: Clock, announce: &Announce) -> Box<dyn SmsSender> {
    match provider {
        SmsProvider::Console => {
            let announce = Arc::clone(announce);
            Box::new(ConsoleSms::new(Box::new(move |line| announce(line))))
        }
        SmsProvider::Aliyun => {
            let settings = aliyun::AliyunSmsSettings {
                endpoint: config.sms.endpoint.clone(),
                access_key_id: config.sms.access_key_id.clone(),
                access_key_secret: config.sms.access_key_secret.clone().unwrap_or_default(),
                sign_name: config.sms.sign_name.clone(),
                template_code: config.sms.template_code.clone(),
            };
            Box::new(aliyun::AliyunSms::new(settings, Box::new(move || clock.now().0)))
        }
        SmsProvider::Tencent => {
            let tencent = &config.sms_tencent;
            let settings = TencentSmsSettings {
                endpoint: tencent.endpoint.clone(),
                region: tencent.region.clone(),
                secret_id: tencent.secret_id.clone(),
                secret_key: tencent.secret_key.clone().unwrap_or_default(),
                app_id: tencent.app_id.clone(),
                sign_name: tencent.sign_name.clone(),
                template_id: tencent.template_id.clone(),
                has_minutes: tencent.has_minutes,
            };
            Box::new(TencentSms::new(settings, Box::new(move || clock.now().0)))
        }
        SmsProvider::Http => {
            let http = &config.sms_http;
            Box::new(HttpSms::new(HttpTemplateSettings {
                method: http.method.clone(),
                url: http.url.clone(),
                headers: http.headers.clone(),
                body: http.body.clone(),
                accepted_member: http.accepted_member.clone(),
                accepted_values: http.accepted_values.clone(),
                id_member: http.id_member.clone(),
                timeout: http.timeout,
            }))
        }
    }
}

/// Builds the email driver.
///
/// # Errors
/// `configuration` for an invalid sender or invalid certificates.
pub fn email_sender(config: &Config, clock: &Clock, announce: &Announce) -> Result<Box<dyn EmailSender>> {
    let driver = |provider| email_driver(config, provider, clock.clone(), announce);
    let first = driver(config.email.provider)?;
    let Some(fallback) = config.email.fallback else { return Ok(first) };
    let now = clock.clone();
    Ok(Box::new(FailoverMailer::new(first, driver(fallback)?, Box::new(move || now.now().0))))
}

fn email_driver(
    config: &Config,
    provider: EmailProvider,
    clock: Clock,
    announce: &Announce,
) -> Result<Box<dyn EmailSender>> {
    let email = &config.email;
    match provider {
        EmailProvider::Console => {
            let announce = Arc::clone(announce);
            return Ok(Box::new(email::console::ConsoleMailer::new(Box::new(move |line| announce(line)))));
        }
        EmailProvider::Http => {
            let http = &config.email_http;
            let settings = HttpTemplateSettings {
                method: http.method.clone(),
                url: http.url.clone(),
                headers: http.headers.clone(),
                body: http.body.clone(),
                accepted_member: http.accepted_member.clone(),
                accepted_values: http.accepted_values.clone(),
                id_member: http.id_member.clone(),
                timeout: email.timeout,
            };
            return Ok(Box::new(HttpMailer::new(settings, email.from.clone())));
        }
        EmailProvider::Smtp => {}
    }
    let usual_port = SMTP_PORTS.iter().find(|(tls, _)| *tls == email.tls).map_or(0, |(_, port)| *port);
    let settings = smtp::SmtpSettings {
        host: email.host.clone(),
        port: if email.port == 0 { usual_port } else { email.port },
        encryption: match email.tls {
            EmailTls::None => smtp::Encryption::None,
            EmailTls::Starttls => smtp::Encryption::StartTls,
            EmailTls::Tls => smtp::Encryption::Tls,
        },
        ca: email.ca.clone(),
        username: email.username.clone(),
        password: email.password.clone(),
        from: email.from.clone(),
        timeout: email.timeout,
    };
    let sender = smtp::Smtp::new(settings, Box::new(move || clock.now().0));
    let wrong = |fault: String| Error::new(Code::Configuration).english_detail(fault);
    Ok(Box::new(sender.map_err(wrong)?))
}

/// Builds the external moderator, if one is configured.
pub fn text_moderator(config: &Config, clock: Clock) -> Option<Box<dyn TextModerator>> {
    let settings = &config.moderation;
    match settings.provider {
        ModerationProvider::None => None,
        ModerationProvider::Aliyun => {
            let settings = aliyun_moderation::AliyunModeratorSettings {
                endpoint: settings.endpoint.clone(),
                backup_endpoint: settings.backup_endpoint.clone(),
                access_key_id: settings.access_key_id.clone(),
                access_key_secret: settings.access_key_secret.clone().unwrap_or_default(),
                nickname_service: settings.nickname_service.clone(),
                prose_service: settings.text_service.clone(),
                output_service: settings.answer_service.clone(),
                ignored_labels: settings.ignored_labels.clone(),
                refuses_medium: settings.refuse_medium,
                connect: settings.connect_timeout,
                total: settings.timeout,
            };
            Some(Box::new(aliyun_moderation::AliyunModerator::new(settings, Box::new(move || clock.now().0))))
        }
        ModerationProvider::Http => {
            let settings = http_judge::HttpJudgeSettings {
                url: settings.judge_url.clone(),
                secret: settings.judge_secret.clone().unwrap_or_default(),
                connect: settings.connect_timeout,
                total: settings.timeout,
            };
            Some(Box::new(http_judge::HttpJudge::new(&settings, Box::new(move || clock.now().0))))
        }
        ModerationProvider::Llm => {
            let settings = llm_judge::LlmJudgeSettings {
                base_url: settings.llm_base_url.clone(),
                api_key: settings.llm_api_key.clone(),
                model: settings.llm_model.clone(),
                texts_per_day: settings.llm_texts_per_day,
                connect: settings.connect_timeout,
                total: settings.timeout,
            };
            Some(Box::new(llm_judge::LlmJudge::new(settings, Box::new(move || clock.now().0))))
        }
    }
}

/// Builds the language models, each behind its circuit breaker.
pub fn language_models(config: &Config) -> Models {
    let breaker = |name| CircuitBreaker::new(name, config.llm.breaker_threshold, config.llm.breaker_pause);
    let openai = |setting, base_url: &str, api_key: &Option<SecretString>, model: &str, name| {
        let settings = openai::OpenAiSettings {
            base_url: base_url.to_owned(),
            setting,
            api_key: api_key.clone(),
            model: model.to_owned(),
            connect_timeout: config.llm.connect_timeout,
            first_byte_timeout: config.llm.first_byte_timeout,
            idle_timeout: config.llm.idle_timeout,
            total_timeout: config.llm.total_timeout,
            max_retry_delay: config.llm.max_retry_delay,
            max_response_bytes: config.llm.max_response_bytes.as_usize(),
        };
        GuardedModel::new(Box::new(openai::OpenAi::new(settings)), breaker(name))
    };
    let (first, second) = (&config.llm, &config.llm_fallback);
    match first.provider {
        LlmProvider::Builtin => Models::new(GuardedModel::new(Box::new(Offline), breaker("builtin")), None),
        LlmProvider::Openai => Models::new(
            openai("llm.base_url", &first.base_url, &first.api_key, &first.model, "llm"),
            second.base_url.as_ref().map(|base_url| {
                openai("llm.fallback.base_url", base_url, &second.api_key, &second.model, "llm.fallback")
            }),
        ),
    }
}
