//! What the service is told and whom it talks to: configuration, clock, providers, the proxy before it.

use std::net::IpAddr;

use ipnet::IpNet;
use secrecy::ExposeSecret;

use super::{Check, Verdict};
use crate::{
    app::App,
    config::{EmailProvider, LlmProvider, PaymentGateway, SmsProvider},
    error::Result,
    ops::{
        access_log,
        backups::offsite,
        moderation::policy::{self, Service},
    },
    providers::{Failure, webhook::Webhook},
};

/// Requests that are looked at for who they say they come from.
const REQUESTS: u32 = 200;

pub(super) fn configuration(app: &App) -> Vec<Check> {
    const GROUP: &str = "configuration";
    let config = &app.config;
    let is_told = config.alerts.webhook_url.is_some() || !config.alerts.mail_to.is_empty();
    let mut checks = vec![
        Check::new(GROUP, "settings", Verdict::Pass, "all are valid"),
        Check::holds(
            GROUP,
            "public address",
            (config.server.public_url.is_some(), config.server.public_url.clone().unwrap_or_default()),
            (Verdict::Warn, "server.public_url is not set"),
        ),
        Check::holds(
            GROUP,
            "review accounts",
            (config.auth.review_accounts.is_empty(), "none"),
            (Verdict::Warn, format!("{} sign in with a fixed code", config.auth.review_accounts.len())),
        ),
        Check::holds(
            GROUP,
            "alerts",
            (is_told, "somebody is told"),
            (Verdict::Warn, "nobody is told: set alerts.webhook_url or alerts.mail_to"),
        ),
        Check::holds(
            GROUP,
            "metrics",
            (config.metrics.listen.is_none_or(|address| address.ip().is_loopback()), "not reachable from outside"),
            (Verdict::Warn, "metrics.listen is no loopback address: see to it that not everybody can reach it"),
        ),
    ];
    let drivers = [
        ("sms", config.sms.provider == SmsProvider::Console, "codes are printed and not sent"),
        ("email", config.email.provider == EmailProvider::Console, "messages are printed and not sent"),
        ("llm", config.llm.provider == LlmProvider::Builtin, "the offline interpreter answers"),
        ("payment", config.payment.gateway == PaymentGateway::Sandbox, "payments cost nothing"),
    ];
    checks.extend(drivers.map(|(name, is_for_development, meaning)| {
        let otherwise = (Verdict::Warn, format!("the driver for development: {meaning}"));
        Check::holds(GROUP, format!("{name} driver"), (!is_for_development, "a real one"), otherwise)
    }));
    checks
}

pub(super) fn clock(app: &App) -> Result<Vec<Check>> {
    const GROUP: &str = "clock";
    /// When this program did not exist yet.
    const BEFORE: i64 = 1_760_000_000_000;
    const TOLERANCE: i64 = 60_000;
    let now = app.clock.now();
    let newest = app.store.read(access_log::newest_in)?;
    let is_behind = newest.is_some_and(|newest| newest.0 > now.0 + TOLERANCE);
    Ok(vec![
        Check::holds(
            GROUP,
            "time",
            (now.0 > BEFORE, now.to_string()),
            (Verdict::Fail, format!("it is {now}, which cannot be: set the clock")),
        ),
        Check::holds(
            GROUP,
            "direction",
            (!is_behind, "goes forward"),
            (Verdict::Fail, "requests are on record from later than now: the clock was set back"),
        ),
    ])
}

pub(super) fn providers(app: &App) -> Vec<Check> {
    const GROUP: &str = "providers";
    let mut checks = vec![
        probed(GROUP, "sms", app.sms.name(), app.sms.probe()),
        probed(GROUP, "email", app.email.name(), app.email.probe()),
        moderation(GROUP, app),
        probed(GROUP, "payment", app.payments.gateway.name(), app.payments.gateway.query("yarrow_doctor").map(drop)),
    ];
    for (name, model) in ["llm", "llm fallback"].into_iter().zip(app.llm.all()) {
        checks.push(probed(GROUP, name, model.name(), model.probe()));
    }
    match offsite::bucket(&app.config) {
        Ok(None) => {}
        Ok(Some(bucket)) => checks.push(probed(GROUP, "backup bucket", "s3", bucket.probe())),
        Err(error) => checks.push(Check::new(GROUP, "backup bucket", Verdict::Fail, error.to_string())),
    }
    if let Some(url) = &app.config.alerts.webhook_url {
        let webhook = Webhook::new(url.expose_secret(), app.config.alerts.webhook_secret.as_ref());
        checks.push(probed(GROUP, "alerts", "webhook", webhook.probe()));
    }
    checks
}

/// A service that nobody switched to is probed as well: it is what one would switch to.
fn moderation(group: &'static str, app: &App) -> Check {
    let check = |verdict, detail: String| Check::new(group, "moderation", verdict, detail);
    let external = &app.moderation.external;
    let decides = policy::current(app).is_ok_and(|policy| policy.service == Service::External);
    match external.probe().map(|probe| probe.failure) {
        Some(None) => check(Verdict::Pass, format!("{} answers", external.name())),
        Some(Some(code)) => check(Verdict::Fail, format!("{}: {code}", external.name())),
        None if decides => check(Verdict::Fail, "an outside service is to decide, and none is configured".into()),
        None => check(Verdict::Pass, "the local word list decides".into()),
    }
}

fn probed(group: &'static str, name: &str, driver: &str, outcome: Result<(), Failure>) -> Check {
    match outcome {
        Ok(()) => Check::new(group, name, Verdict::Pass, format!("{driver} answers")),
        Err(failure) => Check::new(group, name, Verdict::Fail, failure.to_string()),
    }
}

pub(super) fn proxy(app: &App) -> Result<Vec<Check>> {
    const GROUP: &str = "proxy";
    let trusted = &app.config.server.trusted_proxies;
    let everybody = trusted.iter().any(|network| network.prefix_len() == 0);
    let mut checks = vec![Check::holds(
        GROUP,
        "trusted proxies",
        (!everybody, format!("{} networks", trusted.len())),
        (Verdict::Fail, "everybody is trusted, so that every client can pretend to be another: name the proxy"),
    )];
    let clients = app.store.read(|tx| access_log::recent_clients_in(tx, REQUESTS))?;
    let from_proxy = clients.iter().filter(|client| is_trusted(trusted, client)).count();
    if app.config.server.public_url.is_some() && !clients.is_empty() {
        checks.push(Check::holds(
            GROUP,
            "client addresses",
            (2 * from_proxy <= clients.len(), format!("of the last {} requests", clients.len())),
            (
                Verdict::Warn,
                format!(
                    "{from_proxy} of the last {} requests seem to come from the proxy itself: \
                     does it send X-Forwarded-For?",
                    clients.len()
                ),
            ),
        ));
    }
    Ok(checks)
}

fn is_trusted(trusted: &[IpNet], client: &str) -> bool {
    client.parse::<IpAddr>().is_ok_and(|client| trusted.iter().any(|network| network.contains(&client)))
}
