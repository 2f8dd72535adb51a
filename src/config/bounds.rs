//! Bounds that settings have by themselves, beyond what their kind says.

use std::time::Duration;

use super::{Bytes, Config};

/// What the shortest request that says something needs.
const SMALLEST: Bytes = Bytes(1024);

/// Demands them, in the words of `demand`.
pub(super) fn check(config: &Config, demand: &mut impl FnMut(bool, &str)) {
    for (name, percent) in percentages(config) {
        demand(percent <= 100, &format!("{name}: must be a percentage, from 0 to 100"));
    }
    for (name, time) in times(config) {
        demand(!time.is_zero(), &format!("{name}: must be longer than 0"));
    }
    for (name, count) in counts(config) {
        demand(count > 0, &format!("{name}: must be at least 1"));
    }
    for (name, size) in sizes(config) {
        demand(size.0 >= SMALLEST.0, &format!("{name}: must be at least 1 KiB"));
    }
}

fn percentages(config: &Config) -> [(&'static str, u32); 2] {
    [
        ("suspicion.failure_share", config.suspicion.failure_share),
        ("alerts.disk_free_percent", config.alerts.disk_free_percent),
    ]
}

/// What nothing could be done in, or nothing would outlast.
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

/// What there must be one of, or nobody is served.
fn counts(config: &Config) -> [(&'static str, u32); 32] {
    let Config { auth, moderation, llm, limits, .. } = config;
    [
        ("auth.code_tries", auth.code_tries),
        ("auth.tokens_per_user", auth.tokens_per_user),
        ("moderation.calls", moderation.calls),
        ("moderation.disagreements", moderation.disagreements),
        ("llm.max_tokens", llm.max_tokens),
        ("llm.calls", llm.calls),
        ("llm.calls_per_user", llm.calls_per_user),
        ("llm.breaker_faults", llm.breaker_faults),
        ("llm.chat_messages", llm.chat_messages),
        ("coins.consume", config.coins.consume),
        ("payment.calls", config.payment.calls),
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
        ("limits.interpretation_records", limits.interpretation_records),
        ("limits.page_size_max", limits.page_size_max),
        ("limits.connections", limits.connections),
        ("limits.connections_per_client", limits.connections_per_client),
        ("limits.requests", limits.requests),
        ("backup.keep_hourly", config.backup.keep_hourly),
        ("database.write_queue", config.database.write_queue),
        ("database.commit_size", config.database.commit_size),
        ("database.long_reads", config.database.long_reads),
    ]
}

/// What something must fit in, or nothing is taken.
fn sizes(config: &Config) -> [(&'static str, Bytes); 11] {
    let Config { limits, .. } = config;
    [
        ("llm.largest_answer", config.llm.largest_answer),
        ("limits.body", limits.body),
        ("limits.auth_body", limits.auth_body),
        ("limits.history_body", limits.history_body),
        ("limits.interpretation_body", limits.interpretation_body),
        ("limits.batch_body", limits.batch_body),
        ("limits.chat_body", limits.chat_body),
        ("limits.notify_body", limits.notify_body),
        ("limits.feedback_body", limits.feedback_body),
        ("limits.json_data", limits.json_data),
        ("limits.ai_result", limits.ai_result),
    ]
}
