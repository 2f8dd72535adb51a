//! Checks of the configuration, the clock, the providers and the reverse proxy.

use std::{net::IpAddr, path::Path, sync::Arc, time::Duration};

use ipnet::IpNet;
use secrecy::ExposeSecret;

use super::{Check, Installation, Verdict};
use crate::{
    config::{Config, EmailProvider, mask_url_secrets, proxy_variables},
    domain::{
        divination::{
            help::HelpTexts,
            prompts::{PromptTemplate, Prompts},
        },
        messaging::{mailer, push},
        moderation::{
            external_moderator::ExternalModerator,
            policy::{self, Service},
        },
        money::{
            payments::channels::{self, GatewayClock},
            purchases,
        },
        operations::{
            alerts::{self, PROVIDER_DOWN},
            backups::{
                follow::{self, MachineFiles},
                offsite::{self, Bucket},
                origin::Origin,
            },
            forwarding::{self, ForwardingFault, ForwardingFinding},
            network_log, webhooks,
        },
    },
    error::Result,
    providers::{
        Failure, WallClock,
        factory::{self, Announce},
        payment::{
            OrderKey, PaymentGateway,
            apple::{AppStore, AppleEnvironment},
        },
        webhook::Webhook,
    },
    types::{Fen, Timestamp, is_internal, pluralize},
};

/// The newest requests whose client addresses are checked.
const REQUESTS: usize = 200;
const PROVIDERS: &str = "providers";
const A_DAY: Duration = Duration::from_hours(24);
/// The questions about the delivery of a test notification.
const DELIVERY_QUESTIONS: u32 = 3;
/// The time before each.
const DELIVERY_WAIT: Duration = Duration::from_secs(1);

pub(super) fn configuration(config: &Config) -> Vec<Check> {
    const GROUP: &str = "configuration";
    let public_url = config.server.public_url.as_deref().map(mask_url_secrets);
    let is_mailed = !config.alerts.mail_to.is_empty() && config.email.provider != EmailProvider::Console;
    let has_alert_channel = config.alerts.webhook_url.is_some() || is_mailed;
    let accounts =
        pluralize(config.auth.review_accounts.len(), "signs in with a fixed code", "sign in with a fixed code");
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
            (Verdict::Warn, accounts),
        ),
        Check::holds(
            GROUP,
            "alerts",
            (has_alert_channel, "operators are notified"),
            (Verdict::Warn, "nobody is notified: set alerts.webhook_url, or alerts.mail_to and a mail server"),
        ),
        Check::holds(
            GROUP,
            "help numbers",
            (config.help.checked, "are checked"),
            (
                Verdict::Warn,
                "nobody has checked the telephone numbers in the help texts: check those of your users' regions and set \
                 help.checked",
            ),
        ),
        Check::holds(
            GROUP,
            "metrics",
            (config.metrics.listen.is_none_or(|address| address.ip().is_loopback()), "not reachable from outside"),
            (Verdict::Warn, "metrics.listen is not a loopback address: make sure that a firewall protects it"),
        ),
    ];
    checks.extend(drivers(config));
    checks.extend(templates(config));
    checks
}

/// Reports which templates are the operator's.
fn templates(config: &Config) -> [Check; 3] {
    let files = |names: Vec<String>| if names.is_empty() { "built in".to_owned() } else { names.join(", ") };
    let shown = |path: &Path| path.display().to_string();
    let prompts = Prompts::load(config).map(|prompts| {
        let own = |template: PromptTemplate<'_>| Some(format!("{} ({})", shown(template.file?), template.version));
        files(prompts.all().filter_map(own).collect())
    });
    let letters = mailer::letters(config).map(|letters| files(letters.files().map(shown).collect()));
    let help = HelpTexts::load(config).map(|help| files(help.files().map(shown).collect()));
    [("prompts", prompts), ("messages", letters), ("help texts", help)].map(|(name, found)| match found {
        Ok(detail) => Check::new("configuration", name, Verdict::Pass, detail),
        Err(faults) => Check::new("configuration", name, Verdict::Fail, faults.join("; ")),
    })
}

/// Warns of each provider that is only meant for development.
fn drivers(config: &Config) -> [Check; 4] {
    config.drivers().map(|(name, is_for_development, meaning)| {
        let otherwise = (Verdict::Warn, format!("the driver for development: {meaning}"));
        Check::holds("configuration", format!("{name} driver"), (!is_for_development, "for production"), otherwise)
    })
}

pub(super) fn clock(installation: &Installation<'_>) -> Result<Vec<Check>> {
    const GROUP: &str = "clock";
    /// A time before the first version of this program.
    const TOO_EARLY: i64 = 1_760_000_000_000;
    const TOLERANCE: i64 = 60_000;
    let now = installation.clock.now();
    let mut checks = vec![Check::holds(
        GROUP,
        "time",
        (now.0 > TOO_EARLY, now.to_string()),
        (Verdict::Fail, format!("{now} is in the past: set the clock")),
    )];
    if let Some(services) = installation.services() {
        let latest = network_log::status(services.network_log)?.latest;
        let is_behind = latest.is_some_and(|latest| latest.0 > now.0 + TOLERANCE);
        checks.push(Check::holds(
            GROUP,
            "direction",
            (!is_behind, "goes forward"),
            (Verdict::Fail, "the network log has later requests: the clock was set back"),
        ));
    }
    Ok(checks)
}

/// Probes the providers. They are built from the configuration, so that this works without a database.
pub(super) fn providers(installation: &Installation<'_>) -> Vec<Check> {
    let (config, clock) = (installation.config, &installation.clock);
    let silent: Announce = Arc::new(|_| ());
    let sms = factory::sms_sender(config, clock, &silent);
    let mut checks = vec![probed("sms", sms.name(), sms.probe())];
    checks.push(match factory::email_sender(config, clock, &silent) {
        Ok(email) => probed("email", email.name(), email.probe()),
        Err(error) => Check::new(PROVIDERS, "email", Verdict::Fail, error.describe()),
    });
    checks.push(moderation(installation));
    checks.extend(payment(installation));
    checks.extend(app_stores(installation));
    checks.extend(push_services(installation));
    match webhooks::endpoint(config) {
        Ok(None) => {}
        Ok(Some(endpoint)) => checks.push(probed("webhooks", "receiver", endpoint.probe())),
        Err(fault) => checks.push(Check::new(PROVIDERS, "webhooks", Verdict::Fail, fault)),
    }
    for (name, model) in ["llm", "llm fallback"].into_iter().zip(factory::language_models(config).all()) {
        checks.push(probed(name, model.name(), model.probe()));
    }
    match offsite::bucket(config) {
        Ok(None) => {}
        Ok(Some(bucket)) => {
            checks.push(probed("backup bucket", "s3", bucket.probe()));
            if config.has_continuous_backup() {
                checks.push(continuous_backup(installation, &bucket));
            }
        }
        Err(error) => checks.push(Check::new(PROVIDERS, "backup bucket", Verdict::Fail, error.to_string())),
    }
    checks.extend(providers_down(installation));
    let proxies = proxy_variables();
    if !proxies.is_empty() {
        let detail = format!("not used: calls to providers are direct and ignore {}", proxies.join(" and "));
        checks.push(Check::new(PROVIDERS, "outgoing proxy", Verdict::Warn, detail));
    }
    if let Some(url) = &config.alerts.webhook_url {
        let webhook = Webhook::new(url.expose_secret(), config.alerts.webhook_secret.as_ref());
        checks.push(probed("alerts", "webhook", webhook.probe()));
    }
    checks
}

/// Reports who ships to the bucket, and what arrived last.
fn continuous_backup(installation: &Installation<'_>, bucket: &Bucket) -> Check {
    let check = |verdict, detail: String| Check::new("backups", "continuous", verdict, detail);
    let superseded = MachineFiles::new(installation.config.data_dir()).superseded_by();
    if let Ok(Some(by)) = superseded {
        let detail = format!("machine {} took over with term {}; this one stores nothing", by.claim.machine, by.term);
        return check(Verdict::Fail, format!("{detail}: run `yarrow backup take-over`, or switch this machine off"));
    }
    let last = Origin::at_hand(installation.config).and_then(|origin| follow::last_term(bucket, origin.key()));
    match last.and_then(|last| Ok((last, bucket.list_changes()?.pop()))) {
        Err(error) => check(Verdict::Fail, error.describe()),
        Ok((None, _)) => check(Verdict::Warn, "no server has claimed the bucket yet".to_owned()),
        Ok((Some(last), None)) => check(Verdict::Warn, format!("term {} has shipped nothing yet", last.term)),
        Ok((Some(last), Some(newest))) => {
            let fencing = match MachineFiles::new(installation.config.data_dir()).is_exclusive() {
                Ok(Some(false)) => "; the server does not know conditional requests: fencing has a gap of a second",
                _ => "",
            };
            let detail = format!("term {}, newest state of {}{fencing}", last.term, newest.at);
            check(if fencing.is_empty() { Verdict::Pass } else { Verdict::Warn }, detail)
        }
    }
}

/// Fails for each provider that the server reports as down. A probe does not see everything: an account without money
/// answers it.
fn providers_down(installation: &Installation<'_>) -> Vec<Check> {
    let active = installation.services().map(|services| services.core.store.read(alerts::active_in));
    let active = active.and_then(Result::ok).unwrap_or_default();
    let down = active.into_iter().filter_map(|(rule, alert)| {
        let name = rule.strip_prefix(PROVIDER_DOWN)?;
        let detail = format!("the server reports since {}: {}", alert.since(), alert.detail);
        Some(Check::new(PROVIDERS, format!("{name} calls"), Verdict::Fail, detail))
    });
    down.collect()
}

/// Probes a configured external moderator even if it does not decide, because an operator may switch to it.
fn moderation(installation: &Installation<'_>) -> Check {
    let check = |verdict, detail: String| Check::new(PROVIDERS, "moderation", verdict, detail);
    let (config, clock) = (installation.config, installation.clock.clone());
    let moderator = factory::text_moderator(config, clock.clone());
    let external = ExternalModerator::new(moderator, clock, &config.moderation);
    let policy = installation.services().map(|services| services.core.store.read(policy::current_in));
    let decides = policy.is_some_and(|policy| policy.is_ok_and(|policy| policy.service == Service::External));
    match external.probe().map(|probe| probe.failure) {
        Some(None) => check(Verdict::Pass, format!("{} answers", external.name())),
        Some(Some(code)) => check(Verdict::Fail, format!("{}: {code}", external.name())),
        None if decides => check(Verdict::Fail, "an external moderator is to decide, but none is configured".into()),
        None => check(Verdict::Pass, "the local word list decides".into()),
    }
}

/// Probes the gateway of each channel with an order that does not exist. The sandbox needs the database.
fn payment(installation: &Installation<'_>) -> Vec<Check> {
    let order = OrderKey { order_no: "yarrow_doctor", price: Fen::ZERO, provider_ref: Some("cs_none"), trade_no: None };
    let ask = |gateway: &dyn PaymentGateway| probed("payment", gateway.name(), gateway.query(order).map(drop));
    if let Some(services) = installation.services() {
        return services.payments.channels.all().map(|channel| ask(channel.gateway.as_ref())).collect();
    }
    let clock = installation.clock.clone();
    let clock: GatewayClock = Arc::new(move || clock.now().0);
    let gateways = channels::real_gateways(installation.config, &clock);
    let check = |gateway: Result<Arc<dyn PaymentGateway>>| match gateway {
        Ok(gateway) => ask(gateway.as_ref()),
        Err(error) => Check::new(PROVIDERS, "payment", Verdict::Fail, error.describe()),
    };
    gateways.into_iter().map(check).collect()
}

/// Probes the configured app stores, each through all that purchases need of it.
fn app_stores(installation: &Installation<'_>) -> Vec<Check> {
    let (config, clock) = (installation.config, &installation.clock);
    let wall_clock = || -> WallClock {
        let clock = clock.clone();
        Box::new(move || clock.now().0)
    };
    let faulty = |name, faults: Vec<String>| Check::new(PROVIDERS, name, Verdict::Fail, faults.join("; "));
    let apple = match purchases::app_store(config, wall_clock()) {
        Ok(store) => store.map(|store| {
            let environment = store.verifier.environments().first().copied().unwrap_or(AppleEnvironment::Production);
            match delivered_test(&store, environment) {
                Ok(Some(result)) if result != "SUCCESS" => Check::new(
                    PROVIDERS,
                    "app store",
                    Verdict::Warn,
                    format!("Apple could not deliver a test notification: {result}"),
                ),
                outcome => probed("app store", "apple", outcome.map(drop)),
            }
        }),
        Err(faults) => Some(faulty("app store", faults)),
    };
    let google = match purchases::google_play(config, wall_clock()) {
        Ok(store) => store.map(|store| {
            probed("google play", "google", store.voided_purchases(clock.now().minus(A_DAY).0, None).map(drop))
        }),
        Err(faults) => Some(faulty("google play", faults)),
    };
    apple.into_iter().chain(google).collect()
}

/// Probes the configured push services.
fn push_services(installation: &Installation<'_>) -> Vec<Check> {
    let clock = installation.clock.clone();
    let now: Arc<dyn Fn() -> i64 + Send + Sync> = Arc::new(move || clock.now().0);
    match push::senders(installation.config, &now) {
        Ok(senders) => senders.iter().map(|sender| probed("push", sender.service().name(), sender.probe())).collect(),
        Err(faults) => vec![Check::new(PROVIDERS, "push", Verdict::Fail, faults.join("; "))],
    }
}

/// Asks Apple for a test notification, and returns the result of its delivery if Apple tells it within seconds.
fn delivered_test(store: &AppStore, environment: AppleEnvironment) -> Result<Option<String>, Failure> {
    let token = store.request_test_notification(environment)?;
    for _ in 0..DELIVERY_QUESTIONS {
        std::thread::sleep(DELIVERY_WAIT);
        if let Some(result) = store.test_notification_result(environment, &token)? {
            return Ok(Some(result));
        }
    }
    Ok(None)
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
    let trusts_everybody = trusted.iter().any(|network| network.prefix_len() == 0);
    let mut checks = vec![Check::holds(
        GROUP,
        "trusted proxies",
        (!trusts_everybody, pluralize(trusted.len(), "network", "networks")),
        (Verdict::Fail, "every client is trusted and can fake its address: list only the proxy"),
    )];
    let Some(services) = installation.services() else { return Ok(checks) };
    let clients = network_log::recent_clients(services.network_log, REQUESTS)?;
    checks.push(forwarding(trusted, &services.core.store.read(forwarding::findings_in)?));
    let from_proxy = clients.iter().filter(|client| is_proxy(trusted, client)).count();
    if installation.config.server.public_url.is_some() && !clients.is_empty() {
        let count = clients.len();
        let detail = format!(
            "{from_proxy} of the last {count} requests seem to come from the proxy itself: does it send X-Forwarded-For?"
        );
        checks.push(Check::holds(
            GROUP,
            "client addresses",
            (2 * from_proxy <= count, format!("of the last {count} requests")),
            (Verdict::Warn, detail),
        ));
    }
    Ok(checks)
}

pub(super) fn network_log(installation: &Installation<'_>) -> Result<Vec<Check>> {
    const GROUP: &str = "network log";
    let Some(services) = installation.services() else { return Ok(Vec::new()) };
    let (log, max_size) = (network_log::status(services.network_log)?, installation.config.network_log.max_size.0);
    let oldest = log.oldest.map_or_else(|| "empty".to_owned(), |oldest| format!("since {oldest}"));
    let detail = format!("{oldest}, {} of {} MiB", log.used_bytes >> 20, max_size >> 20);
    // Deletion keeps a full log within a batch of its maximum size.
    let is_full = log.used_bytes > max_size.saturating_sub((max_size / 20).max(1 << 20));
    let full = format!("{detail}: the oldest entries are deleted before their retention ends");
    let mut checks = vec![Check::holds(GROUP, "size", (!is_full, detail), (Verdict::Warn, full))];
    if let Some(damaged) = network_log::damaged_file(installation.config) {
        let detail = format!("{} was damaged and a new log begun: examine it, then delete it", damaged.display());
        checks.push(Check::new(GROUP, "damaged file", Verdict::Warn, detail));
    }
    Ok(checks)
}

/// Reports the last proxy whose `X-Forwarded-For` was not used, unless it is trusted now.
fn forwarding(trusted: &[IpNet], findings: &[ForwardingFinding]) -> Check {
    let is_current = |finding: &&ForwardingFinding| {
        finding.fault != ForwardingFault::UntrustedPeer || !is_trusted(trusted, finding.peer)
    };
    let Some(finding) = findings.iter().find(is_current) else {
        return Check::new("proxy", "forwarding", Verdict::Pass, "no proxy is ignored");
    };
    let (peer, at) = (finding.peer, Timestamp(finding.at));
    let (verdict, detail) = match finding.fault {
        ForwardingFault::UntrustedPeer if is_internal(peer) => (
            Verdict::Fail,
            format!(
                "{peer} sent X-Forwarded-For at {at} and is not in server.trusted_proxies: its clients share one address \
                 and its limits. If it is your proxy or the bridge of its container, add it"
            ),
        ),
        ForwardingFault::UntrustedPeer => (
            Verdict::Warn,
            format!(
                "{peer} sent X-Forwarded-For at {at} and is not in server.trusted_proxies: a forged header, or a proxy \
                 whose clients share one address and its limits"
            ),
        ),
        ForwardingFault::UnreadableHop => (
            Verdict::Fail,
            format!(
                "the last entry of X-Forwarded-For that {peer} sent at {at} is not an address: its clients share one \
                 address and its limits"
            ),
        ),
    };
    Check::new("proxy", "forwarding", verdict, detail)
}

fn is_trusted(trusted: &[IpNet], address: IpAddr) -> bool {
    trusted.iter().any(|network| network.contains(&address))
}

/// Returns true if a logged client address is that of a proxy and not of a client.
fn is_proxy(trusted: &[IpNet], client: &str) -> bool {
    client.parse().is_ok_and(|client| is_trusted(trusted, client) || is_internal(client))
}
