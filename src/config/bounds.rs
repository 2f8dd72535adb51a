//! The values that each setting accepts, beyond its type.

use std::{ops::RangeInclusive, time::Duration};

use secrecy::{ExposeSecret, SecretString};

use super::{Bytes, Config, LlmProvider, ModerationProvider, SmsProvider};
use crate::types::looks_like_key;

/// The size of the shortest meaningful request.
const SMALLEST: Bytes = Bytes(1024);

/// Headers with a meaning of their own.
const HEADERS_IN_USE: [&str; 7] =
    ["authorization", "cookie", "host", "content-type", "content-length", "x-forwarded-for", "x-request-id"];

/// The smallest network log, which holds some thousand requests.
const SMALLEST_LOG: Bytes = Bytes(1024 * 1024);

/// The minimum length of a secret.
const SHORTEST_KEY: usize = 32;

/// Calls `require` for each bound with the result of the check and the fault to report.
pub(super) fn check(config: &Config, require: &mut impl FnMut(bool, &str)) {
    for (name, percent) in percentages(config) {
        require(percent <= 100, &format!("{name}: must be a percentage, from 0 to 100"));
    }
    for (name, time) in times(config) {
        require(!time.is_zero(), &format!("{name}: must be longer than 0"));
    }
    for (name, count) in counts(config) {
        require(count > 0, &format!("{name}: must be at least 1"));
    }
    for (name, size) in sizes(config) {
        require(size.0 >= SMALLEST.0, &format!("{name}: must be at least 1 KiB"));
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
    for (name, path) in key_files(config) {
        let is_name = path.is_none_or(|path| !looks_like_key(path));
        require(is_name, &format!("{name}: must be the name of a file, not its content"));
    }
    for name in &config.server.hosts {
        require(is_domain(name), &format!("server.hosts: `{name}` is not a domain name in lower-case ASCII"));
    }
    for origin in &config.server.allowed_origins {
        let is_origin = origin == "null"
            || origin.split_once("://").is_some_and(|(_, host)| !host.is_empty() && !host.contains('/'));
        require(
            is_origin,
            &format!("server.allowed_origins: `{origin}` is not an origin, such as https://app.example.com"),
        );
    }
    let is_enough = config.network_log.max_size.0 >= SMALLEST_LOG.0;
    require(is_enough, "network_log.max_size: must be at least 1 MiB");
    require(config.retention.code_sends >= Duration::from_hours(24), "retention.code_sends: must be at least a day");
    let is_long = |key: &SecretString| key.expose_secret().len() >= SHORTEST_KEY;
    let key = config.auth.secret_key.as_ref();
    require(key.is_none_or(is_long), &format!("auth.secret_key: must be at least {SHORTEST_KEY} bytes long"));
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

/// Durations that must be positive.
fn times(config: &Config) -> [(&'static str, Duration); 23] {
    let Config { auth, moderation, llm, payment, admin, limits, .. } = config;
    [
        ("acme.retry_after", config.acme.retry_after),
        ("auth.code_lifetime", auth.code_lifetime),
        ("auth.email_code_lifetime", auth.email_code_lifetime),
        ("auth.token_lifetime", auth.token_lifetime),
        ("auth.sign_in_lifetime", auth.sign_in_lifetime),
        ("email.timeout", config.email.timeout),
        ("moderation.connect_timeout", moderation.connect_timeout),
        ("moderation.timeout", moderation.timeout),
        ("llm.connect_timeout", llm.connect_timeout),
        ("llm.first_byte_timeout", llm.first_byte_timeout),
        ("llm.idle_timeout", llm.idle_timeout),
        ("llm.total_timeout", llm.total_timeout),
        ("llm.heartbeat", llm.heartbeat),
        ("payment.order_lifetime", payment.order_lifetime),
        ("payment.call_timeout", payment.call_timeout),
        ("admin.session_lifetime", admin.session_lifetime),
        ("admin.session_idle", admin.session_idle),
        ("admin.attempts_window", admin.attempts_window),
        ("limits.notify_timeout", limits.notify_timeout),
        ("limits.header_timeout", limits.header_timeout),
        ("limits.idle_timeout", limits.idle_timeout),
        ("limits.body_timeout", limits.body_timeout),
        ("limits.write_timeout", limits.write_timeout),
    ]
}

/// Counts that must be at least one.
fn counts(config: &Config) -> [(&'static str, u32); 35] {
    let Config { auth, moderation, llm, limits, .. } = config;
    [
        ("auth.code_tries", auth.code_tries),
        ("auth.tokens_per_user", auth.tokens_per_user),
        ("moderation.max_concurrent_calls", moderation.max_concurrent_calls),
        ("moderation.disagreements", moderation.disagreements),
        ("llm.max_tokens", llm.max_tokens),
        ("llm.max_concurrent_calls", llm.max_concurrent_calls),
        ("llm.calls_per_user", llm.calls_per_user),
        ("llm.breaker_threshold", llm.breaker_threshold),
        ("llm.chat_messages", llm.chat_messages),
        ("coins.consume", config.coins.consume),
        ("payment.max_concurrent_calls", config.payment.max_concurrent_calls),
        ("notifications.per_user", config.notifications.per_user),
        ("admin.attempts", config.admin.attempts),
        ("limits.nickname", limits.nickname),
        ("limits.signature", limits.signature),
        ("limits.question", limits.question),
        ("limits.word", limits.word),
        ("limits.label", limits.label),
        ("limits.feedback", limits.feedback),
        ("limits.notification_title", limits.notification_title),
        ("limits.notification_text", limits.notification_text),
        ("limits.batch", limits.batch),
        ("limits.history_records", limits.history_records),
        ("limits.free_responses", limits.free_responses),
        ("limits.interpretation_records", limits.interpretation_records),
        ("limits.page_size", limits.page_size),
        ("limits.page_size_max", limits.page_size_max),
        ("limits.connections", limits.connections),
        ("limits.connections_per_client", limits.connections_per_client),
        ("limits.requests", limits.requests),
        ("backup.keep_hourly", config.backup.keep_hourly),
        ("database.write_queue", config.database.write_queue),
        ("database.commit_size", config.database.commit_size),
        ("database.long_reads", config.database.long_reads),
        ("database.reports", config.database.reports),
    ]
}

/// Sizes that must hold at least one request.
fn sizes(config: &Config) -> [(&'static str, Bytes); 15] {
    let Config { limits, .. } = config;
    [
        ("llm.max_response_bytes", config.llm.max_response_bytes),
        ("limits.body", limits.body),
        ("limits.auth_body", limits.auth_body),
        ("limits.history_body", limits.history_body),
        ("limits.interpretation_body", limits.interpretation_body),
        ("limits.batch_body", limits.batch_body),
        ("limits.chat_body", limits.chat_body),
        ("limits.notify_body", limits.notify_body),
        ("limits.feedback_body", limits.feedback_body),
        ("limits.unread_bytes", limits.unread_bytes),
        ("limits.unread_bytes_per_client", limits.unread_bytes_per_client),
        ("limits.unread_bytes_per_user", limits.unread_bytes_per_user),
        ("limits.json_data", limits.json_data),
        ("limits.ai_result", limits.ai_result),
        ("limits.history_size", limits.history_size),
    ]
}

/// Numbers with a minimum and a maximum. An unset number is valid.
fn ranges(config: &Config) -> [(&'static str, f64, RangeInclusive<f64>); 2] {
    [
        ("moderation.shadow_sample_rate", config.moderation.shadow_sample_rate, 0.0..=1.0),
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
    if config.sms.provider == SmsProvider::Aliyun {
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
