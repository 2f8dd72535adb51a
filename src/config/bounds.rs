//! The values that settings accept, beyond their types and the minimums in their declarations.

use std::ops::RangeInclusive;

use secrecy::{ExposeSecret, SecretString};

use super::{Config, LlmProvider, ModerationProvider, SmsProvider};
use crate::types::looks_like_key;

/// Headers with a meaning of their own.
const HEADERS_IN_USE: [&str; 7] =
    ["authorization", "cookie", "host", "content-type", "content-length", "x-forwarded-for", "x-request-id"];

/// The minimum length of a secret.
const SHORTEST_KEY: usize = 32;

/// Calls `require` for each bound with the result of the check and the fault to report.
pub(super) fn check(config: &Config, require: &mut impl FnMut(bool, &str)) {
    for (name, percent) in percentages(config) {
        require(percent <= 100, &format!("{name}: must be a percentage, from 0 to 100"));
    }
    for (name, number, range) in ranges(config) {
        let (least, most) = (range.start(), range.end());
        require(range.contains(&number), &format!("{name}: must be between {least} and {most}"));
    }
    for (name, address) in addresses(config) {
        require(address.is_none_or(is_url), &format!("{name}: must be an http or https address"));
    }
    for (name, address) in base_addresses(config) {
        let fault = format!("{name}: must be an address without user, password, query and fragment");
        require(address.is_none_or(|text| !is_url(text) || is_base_url(text)), &fault);
    }
    for name in &config.server.domain {
        require(is_domain(name), &format!("server.domain: `{name}` is not a domain name in lower-case ASCII"));
    }
    for name in &config.auth.token_headers {
        let fault = format!("auth.token_headers: `{name}` is not a header for tokens");
        require(is_header_name(name) && !HEADERS_IN_USE.contains(&name.to_ascii_lowercase().as_str()), &fault);
    }
    for name in &config.server.allowed_headers {
        require(is_header_name(name), &format!("server.allowed_headers: `{name}` is not the name of a header"));
    }
    for (name, path) in key_files(config) {
        let is_name = path.is_none_or(|path| !looks_like_key(path));
        require(is_name, &format!("{name}: must be the name of a file, not its content"));
    }
    for name in &config.server.hosts {
        require(is_domain(name), &format!("server.hosts: `{name}` is not a domain name in lower-case ASCII"));
    }
    let is_long = |key: &SecretString| key.expose_secret().len() >= SHORTEST_KEY;
    let key = config.auth.secret_key.as_ref();
    require(key.is_none_or(is_long), &format!("auth.secret_key: must be at least {SHORTEST_KEY} bytes long"));
    let is_file = config.database.url.is_none();
    require(
        is_file || config.server.domain.is_empty(),
        "server.domain: with `database.url`, the balancer in front of the copies has the certificate",
    );
    require(
        is_file || config.backup.s3_bucket.is_empty() || config.backup.follow.is_zero(),
        "backup.follow: with `database.url` there are no pages to ship; set it to 0 s",
    );
    require(
        is_log_filter(&config.log.level),
        "log.level: must be a level or a filter such as `info,yarrow::http=debug`",
    );
}

fn is_header_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
}

fn percentages(config: &Config) -> [(&'static str, u32); 2] {
    [
        ("suspicion.failure_share", config.suspicion.failure_share),
        ("alerts.disk_free_percent", config.alerts.disk_free_percent),
    ]
}

/// Names of files with keys or certificates. A value that is the content instead must not appear in messages.
fn key_files(config: &Config) -> [(&'static str, Option<&str>); 3] {
    [
        ("server.tls_certificate", config.server.tls_certificate.as_deref()),
        ("server.tls_key", config.server.tls_key.as_deref()),
        ("acme.root_certificate", config.acme.root_certificate.as_deref()),
    ]
}

/// Numbers with a minimum and a maximum. An unset number is valid.
fn ranges(config: &Config) -> [(&'static str, f64, RangeInclusive<f64>); 3] {
    [
        ("moderation.shadow_sample_rate", config.moderation.shadow_sample_rate, 0.0..=1.0),
        ("llm.interpretations_per_session", config.llm.interpretations_per_session.into(), 1.0..=50.0),
        ("llm.temperature", config.llm.temperature.unwrap_or(1.0), 0.0..=2.0),
    ]
}

/// URLs in use: those of selected providers, and those sent to clients.
fn addresses(config: &Config) -> Vec<(&'static str, Option<&str>)> {
    let webhook = config.alerts.webhook_url.as_ref().map(ExposeSecret::expose_secret);
    let mut addresses = vec![
        ("alerts.webhook_url", webhook),
        ("backup.s3_endpoint", config.backup.s3_endpoint.as_deref()),
        ("server.public_url", config.server.public_url.as_deref()),
        ("acme.directory", Some(&*config.acme.directory)),
        ("llm.fallback.base_url", config.llm_fallback.base_url.as_deref()),
    ];
    let sms = config.sms.orders().map_or_else(|_| config.sms.order(), |orders| orders.providers);
    if sms.contains(&SmsProvider::Tencent) {
        addresses.push(("sms.tencent.endpoint", Some(&config.sms_tencent.endpoint)));
    }
    if sms.contains(&SmsProvider::Aliyun) {
        addresses.push(("sms.endpoint", Some(&config.sms.endpoint)));
    }
    if config.moderation.provider == ModerationProvider::Aliyun {
        addresses.push(("moderation.endpoint", Some(&config.moderation.endpoint)));
        addresses.push(("moderation.backup_endpoint", config.moderation.backup_endpoint.as_deref()));
    }
    if config.llm.provider == LlmProvider::Openai {
        addresses.push(("llm.base_url", Some(&config.llm.base_url)));
    }
    addresses
}

/// Addresses to which the service appends a path.
fn base_addresses(config: &Config) -> [(&'static str, Option<&str>); 2] {
    let is_used = config.llm.provider == LlmProvider::Openai;
    [
        ("llm.base_url", is_used.then_some(&config.llm.base_url)),
        ("llm.fallback.base_url", config.llm_fallback.base_url.as_deref()),
    ]
}

/// Returns true for a name with at least one dot, as certificate authorities accept it. They reject IP addresses.
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

fn is_base_url(text: &str) -> bool {
    url::Url::parse(text).is_ok_and(|url| {
        url.query().is_none() && url.fragment().is_none() && url.username().is_empty() && url.password().is_none()
    })
}

/// Returns true for a level or a list of `target=level`. The library reads a mistyped level as the name of a target,
/// and then logs nothing else.
fn is_log_filter(text: &str) -> bool {
    let is_level = |text: &str| !text.is_empty() && text.parse::<tracing::level_filters::LevelFilter>().is_ok();
    text.split(',').all(|directive| match directive.split_once('=') {
        Some((target, level)) => !target.is_empty() && is_level(level),
        None => is_level(directive),
    })
}
