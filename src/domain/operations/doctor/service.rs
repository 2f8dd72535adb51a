//! What the service is told and whom it talks to: configuration, clock, providers, the proxy before it.

use std::{net::IpAddr, sync::Arc};

use ipnet::IpNet;
use secrecy::ExposeSecret;

use super::{Check, Installation, Verdict};
use crate::{
    config::{Config, EmailProvider, LlmProvider, PaymentGateway, SmsProvider, without_secrets},
    domain::{
        moderation::{
            external::External,
            policy::{self, Service},
        },
        money::payments::alipay_gateway,
        operations::{backups::offsite, network_log},
    },
    error::Result,
    providers::{
        Failure,
        factory::{self, Announce},
        payment::PaymentGateway as Gateway,
        webhook::Webhook,
    },
    types::counted,
};

/// Requests that are looked at for who they say they come from.
const REQUESTS: u32 = 200;
const PROVIDERS: &str = "providers";

pub(super) fn configuration(config: &Config) -> Vec<Check> {
    const GROUP: &str = "configuration";
    let public_url = config.server.public_url.as_deref().map(without_secrets);
    let is_mailed = !config.alerts.mail_to.is_empty() && config.email.provider != EmailProvider::Console;
    let is_told = config.alerts.webhook_url.is_some() || is_mailed;
    let mut checks = vec![
        Check::new(GROUP, "settings", Verdict::Pass, "all are valid"),
        Check::holds(
            GROUP,
            "public address",
            (public_url.is_some(), public_url.unwrap_or_default()),
            (Verdict::Warn, "server.public_url is not set"),
        ),
        Check::holds(
            GROUP,
            "review accounts",
            (config.auth.review_accounts.is_empty(), "none"),
            (
                Verdict::Warn,
                counted(config.auth.review_accounts.len(), "signs in with a fixed code", "sign in with a fixed code"),
            ),
        ),
        Check::holds(
            GROUP,
            "alerts",
            (is_told, "somebody is told"),
            (Verdict::Warn, "nobody is told: set alerts.webhook_url, or alerts.mail_to and a mail server"),
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

pub(super) fn clock(installation: &Installation<'_>) -> Result<Vec<Check>> {
    const GROUP: &str = "clock";
    /// When this program did not exist yet.
    const BEFORE: i64 = 1_760_000_000_000;
    const TOLERANCE: i64 = 60_000;
    let now = installation.clock.now();
    let mut checks = vec![Check::holds(
        GROUP,
        "time",
        (now.0 > BEFORE, now.to_string()),
        (Verdict::Fail, format!("it is {now}, which cannot be: set the clock")),
    )];
    if let Some(app) = installation.app {
        let latest = app.store.read(network_log::latest_in)?;
        let is_behind = latest.is_some_and(|latest| latest.0 > now.0 + TOLERANCE);
        checks.push(Check::holds(
            GROUP,
            "direction",
            (!is_behind, "goes forward"),
            (Verdict::Fail, "requests are on record from later than now: the clock was set back"),
        ));
    }
    Ok(checks)
}

/// The providers are built anew from the configuration, because asking them needs no database.
pub(super) fn providers(installation: &Installation<'_>) -> Vec<Check> {
    let (config, clock) = (installation.config, &installation.clock);
    let silent: Announce = Arc::new(|_| ());
    let sms = factory::sms_sender(config, clock.clone(), &silent);
    let mut checks = vec![probed("sms", sms.name(), sms.probe())];
    checks.push(match factory::email_sender(config, clock.clone(), &silent) {
        Ok(email) => probed("email", email.name(), email.probe()),
        Err(error) => Check::new(PROVIDERS, "email", Verdict::Fail, error.explained()),
    });
    checks.push(moderation(installation));
    checks.extend(payment(installation));
    for (name, model) in ["llm", "llm fallback"].into_iter().zip(factory::language_models(config).all()) {
        checks.push(probed(name, model.name(), model.probe()));
    }
    match offsite::bucket(config) {
        Ok(None) => {}
        Ok(Some(bucket)) => checks.push(probed("backup bucket", "s3", bucket.probe())),
        Err(error) => checks.push(Check::new(PROVIDERS, "backup bucket", Verdict::Fail, error.to_string())),
    }
    if let Some(url) = &config.alerts.webhook_url {
        let webhook = Webhook::new(url.expose_secret(), config.alerts.webhook_secret.as_ref());
        checks.push(probed("alerts", "webhook", webhook.probe()));
    }
    checks
}

/// A service that nobody switched to is probed as well: it is what one would switch to.
fn moderation(installation: &Installation<'_>) -> Check {
    let check = |verdict, detail: String| Check::new(PROVIDERS, "moderation", verdict, detail);
    let (config, clock) = (installation.config, installation.clock.clone());
    let moderator = factory::text_moderator(config, clock.clone());
    let external = External::new(moderator, clock, config.moderation.calls);
    let policy = installation.app.map(|app| policy::current(app));
    let decides = policy.is_some_and(|policy| policy.is_ok_and(|policy| policy.service == Service::External));
    match external.probe().map(|probe| probe.failure) {
        Some(None) => check(Verdict::Pass, format!("{} answers", external.name())),
        Some(Some(code)) => check(Verdict::Fail, format!("{}: {code}", external.name())),
        None if decides => check(Verdict::Fail, "an outside service is to decide, and none is configured".into()),
        None => check(Verdict::Pass, "the local word list decides".into()),
    }
}

/// The sandbox keeps its books in the database; without that it is not asked.
fn payment(installation: &Installation<'_>) -> Option<Check> {
    let ask = |gateway: &dyn Gateway| probed("payment", gateway.name(), gateway.query("yarrow_doctor").map(drop));
    match (installation.app, installation.config.payment.gateway) {
        (Some(app), _) => Some(ask(app.payments.gateway.as_ref())),
        (None, PaymentGateway::Sandbox) => None,
        (None, PaymentGateway::Alipay) => {
            let clock = installation.clock.clone();
            Some(match alipay_gateway(installation.config, Box::new(move || clock.now().0)) {
                Ok(gateway) => ask(&gateway),
                Err(error) => Check::new(PROVIDERS, "payment", Verdict::Fail, error.explained()),
            })
        }
    }
}

fn probed(name: &str, driver: &str, outcome: Result<(), Failure>) -> Check {
    match outcome {
        Ok(()) => Check::new(PROVIDERS, name, Verdict::Pass, format!("{driver} answers")),
        Err(failure) => Check::new(PROVIDERS, name, Verdict::Fail, failure.to_string()),
    }
}

pub(super) fn proxy(installation: &Installation<'_>) -> Result<Vec<Check>> {
    const GROUP: &str = "proxy";
    let trusted = &installation.config.server.trusted_proxies;
    let everybody = trusted.iter().any(|network| network.prefix_len() == 0);
    let mut checks = vec![Check::holds(
        GROUP,
        "trusted proxies",
        (!everybody, counted(trusted.len(), "network", "networks")),
        (Verdict::Fail, "everybody is trusted, so that every client can pretend to be another: name the proxy"),
    )];
    let Some(app) = installation.app else { return Ok(checks) };
    let clients = app.store.read(|tx| network_log::recent_clients_in(tx, REQUESTS))?;
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
