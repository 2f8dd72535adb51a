//! Checks of the configuration, the clock, the providers and the reverse proxy.

use std::{net::IpAddr, path::Path, sync::Arc, time::Duration};

use ipnet::IpNet;
use secrecy::ExposeSecret;

use super::{CheckFact, Installation};
use crate::{
    config::{Config, EmailProvider, mask_url_secrets, proxy_variables},
    domain::{
        divination::{
            help::HelpTexts,
            prompts::{PromptTemplate, Prompts},
        },
        messaging::{mailer, push},
        moderation::{
            external_moderator::{ExternalModerator, MODERATION},
            policy::{self, Service},
        },
        money::{
            payments::channels::{self, GatewayClock},
            purchases,
        },
        operations::{
            alerts::{self, PROVIDER_DOWN},
            backups::{
                follow::{self, MachineFiles, TermHolder},
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
    types::{Fen, Timestamp, is_internal},
};

/// The newest requests whose client addresses are checked.
const REQUESTS: usize = 200;
const A_DAY: Duration = Duration::from_hours(24);
/// The questions about the delivery of a test notification.
const DELIVERY_QUESTIONS: u32 = 3;
/// The time before each.
const DELIVERY_WAIT: Duration = Duration::from_secs(1);

pub(super) fn configuration(config: &Config) -> Vec<CheckFact> {
    let is_mailed = !config.alerts.mail_to.is_empty() && config.email.provider != EmailProvider::Console;
    let mut checks = vec![
        CheckFact::SettingsValid {},
        match config.server.public_url.as_deref() {
            Some(url) => CheckFact::PublicAddress { url: mask_url_secrets(url) },
            None => CheckFact::PublicAddressMissing {},
        },
        match config.auth.review_accounts.len() {
            0 => CheckFact::NoReviewAccounts {},
            accounts => CheckFact::ReviewAccounts { accounts },
        },
        if config.alerts.webhook_url.is_some() || is_mailed {
            CheckFact::OperatorsNotified {}
        } else {
            CheckFact::NobodyNotified {}
        },
        if config.help.checked { CheckFact::HelpNumbersChecked {} } else { CheckFact::HelpNumbersUnchecked {} },
        if config.metrics.listen.is_none_or(|address| address.ip().is_loopback()) {
            CheckFact::MetricsPrivate {}
        } else {
            CheckFact::MetricsPublic {}
        },
    ];
    // Warns of each provider that is only meant for development.
    checks.extend(config.drivers().map(|(driver, is_for_development)| {
        let driver = driver.to_owned();
        if is_for_development {
            CheckFact::DevelopmentDriver { driver }
        } else {
            CheckFact::ProductionDriver { driver }
        }
    }));
    checks.extend(templates(config));
    checks
}

/// Reports which templates are the operator's.
fn templates(config: &Config) -> [CheckFact; 3] {
    let shown = |path: &Path| path.display().to_string();
    let prompts = Prompts::load(config).map(|prompts| {
        let own = |template: PromptTemplate<'_>| Some(format!("{} ({})", shown(template.file?), template.version));
        prompts.all().filter_map(own).collect()
    });
    let letters = mailer::letters(config).map(|letters| letters.files().map(shown).collect());
    let help = HelpTexts::load(config).map(|help| help.files().map(shown).collect());
    [("prompts", prompts), ("messages", letters), ("help texts", help)].map(|(templates, files)| {
        let (templates, files): (_, Result<Vec<_>, _>) = (templates.to_owned(), files);
        match files {
            Ok(files) if files.is_empty() => CheckFact::BuiltInTemplates { templates },
            Ok(files) => CheckFact::OwnTemplates { templates, files },
            Err(faults) => CheckFact::TemplatesFaulty { templates, faults },
        }
    })
}

pub(super) fn clock(installation: &Installation<'_>) -> Result<Vec<CheckFact>> {
    /// A time before the first version of this program.
    const TOO_EARLY: i64 = 1_760_000_000_000;
    const TOLERANCE: i64 = 60_000;
    let now = installation.clock.now();
    let mut checks =
        vec![if now.0 > TOO_EARLY { CheckFact::ClockTime { now } } else { CheckFact::ClockBehind { now } }];
    if let Some(services) = installation.services() {
        let latest = network_log::status(services.network_log)?.latest;
        let is_behind = latest.is_some_and(|latest| latest.0 > now.0 + TOLERANCE);
        checks.push(if is_behind { CheckFact::ClockSetBack {} } else { CheckFact::ClockForward {} });
    }
    Ok(checks)
}

/// Probes the providers. They are built from the configuration, so that this works without a database.
pub(super) fn providers(installation: &Installation<'_>) -> Vec<CheckFact> {
    let (config, clock) = (installation.config, &installation.clock);
    let silent: Announce = Arc::new(|_| ());
    let sms = factory::sms_sender(config, clock, &silent);
    let mut checks = vec![probed("sms", sms.name(), sms.probe())];
    checks.push(match factory::email_sender(config, clock, &silent) {
        Ok(email) => probed("email", email.name(), email.probe()),
        Err(error) => failing("email", error.describe()),
    });
    checks.push(moderation(installation));
    checks.extend(payment(installation));
    checks.extend(app_stores(installation));
    checks.extend(push_services(installation));
    match webhooks::endpoint(config) {
        Ok(None) => {}
        Ok(Some(endpoint)) => checks.push(probed("webhooks", "receiver", endpoint.probe())),
        Err(fault) => checks.push(failing("webhooks", fault)),
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
        Err(error) => checks.push(failing("backup bucket", error.to_string())),
    }
    checks.extend(providers_down(installation));
    let variables = proxy_variables();
    if !variables.is_empty() {
        checks.push(CheckFact::ProxyIgnored { variables });
    }
    if let Some(url) = &config.alerts.webhook_url {
        let webhook = Webhook::new(url.expose_secret(), config.alerts.webhook_secret.as_ref());
        checks.push(probed("alerts", "webhook", webhook.probe()));
    }
    checks
}

/// Reports who ships to the bucket, and what arrived last.
fn continuous_backup(installation: &Installation<'_>, bucket: &Bucket) -> CheckFact {
    let files = MachineFiles::new(installation.config.data_dir());
    if let Ok(Some(TermHolder { term, claim })) = files.superseded_by() {
        return CheckFact::Superseded { machine: claim.machine, term };
    }
    let last = Origin::at_hand(installation.config).and_then(|origin| follow::last_term(bucket, origin.key()));
    match last.and_then(|last| Ok((last, bucket.list_changes()?.pop()))) {
        Err(error) => CheckFact::BucketUnreadable { error: error.describe() },
        Ok((None, _)) => CheckFact::BucketUnclaimed {},
        Ok((Some(last), None)) => CheckFact::NothingShipped { term: last.term },
        Ok((Some(last), Some(newest))) => {
            let (term, newest) = (last.term, newest.at);
            match files.is_exclusive() {
                Ok(Some(false)) => CheckFact::ShippedUnfenced { term, newest },
                _ => CheckFact::Shipped { term, newest },
            }
        }
    }
}

/// Fails for each provider that the server reports as down. A probe does not see everything: an account without money
/// answers it.
fn providers_down(installation: &Installation<'_>) -> Vec<CheckFact> {
    let active = installation.services().map(|services| services.core.store.read(alerts::active_in));
    let active = active.and_then(Result::ok).unwrap_or_default();
    let down = active.into_iter().filter_map(|(rule, alert)| {
        let provider = rule.strip_prefix(PROVIDER_DOWN)?.to_owned();
        Some(CheckFact::ProviderDown { provider, since: alert.since(), alert: alert.content })
    });
    down.collect()
}

/// Probes a configured external moderator even if it does not decide, because an operator may switch to it.
fn moderation(installation: &Installation<'_>) -> CheckFact {
    let (config, clock) = (installation.config, installation.clock.clone());
    let moderator = factory::text_moderator(config, clock.clone());
    let external = ExternalModerator::new(moderator, clock, &config.moderation);
    let policy = installation.services().map(|services| services.core.store.read(policy::current_in));
    let decides = policy.is_some_and(|policy| policy.is_ok_and(|policy| policy.service == Service::External));
    match external.probe().map(|probe| probe.failure) {
        Some(None) => answering(MODERATION, external.name()),
        Some(Some(code)) => failing(MODERATION, format!("{}: {code}", external.name())),
        None if decides => CheckFact::NoModerator {},
        None => CheckFact::WordListDecides {},
    }
}

/// Probes the gateway of each channel with an order that does not exist. The sandbox needs the database.
fn payment(installation: &Installation<'_>) -> Vec<CheckFact> {
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
        Err(error) => failing("payment", error.describe()),
    };
    gateways.into_iter().map(check).collect()
}

/// Probes the configured app stores, each through all that purchases need of it.
fn app_stores(installation: &Installation<'_>) -> Vec<CheckFact> {
    let (config, clock) = (installation.config, &installation.clock);
    let wall_clock = || -> WallClock {
        let clock = clock.clone();
        Box::new(move || clock.now().0)
    };
    let apple = match purchases::app_store(config, wall_clock()) {
        Ok(store) => store.map(|store| {
            let environment = store.verifier.environments().first().copied().unwrap_or(AppleEnvironment::Production);
            match delivered_test(&store, environment) {
                Ok(Some(result)) if result != "SUCCESS" => CheckFact::TestNotificationLost { result },
                outcome => probed("app store", "apple", outcome.map(drop)),
            }
        }),
        Err(faults) => Some(failing("app store", faults.join("; "))),
    };
    let google = match purchases::google_play(config, wall_clock()) {
        Ok(store) => store.map(|store| {
            probed("google play", "google", store.voided_purchases(clock.now().minus(A_DAY).0, None).map(drop))
        }),
        Err(faults) => Some(failing("google play", faults.join("; "))),
    };
    apple.into_iter().chain(google).collect()
}

/// Probes the configured push services.
fn push_services(installation: &Installation<'_>) -> Vec<CheckFact> {
    let clock = installation.clock.clone();
    let now: Arc<dyn Fn() -> i64 + Send + Sync> = Arc::new(move || clock.now().0);
    match push::senders(installation.config, &now) {
        Ok(senders) => senders.iter().map(|sender| probed("push", sender.service().name(), sender.probe())).collect(),
        Err(faults) => vec![failing("push", faults.join("; "))],
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

fn probed(provider: &str, driver: &str, outcome: Result<(), Failure>) -> CheckFact {
    match outcome {
        Ok(()) => answering(provider, driver),
        Err(failure) => failing(provider, failure.to_string()),
    }
}

fn answering(provider: &str, driver: &str) -> CheckFact {
    CheckFact::ProviderAnswers { provider: provider.to_owned(), driver: driver.to_owned() }
}

fn failing(provider: &str, failure: String) -> CheckFact {
    CheckFact::ProviderFails { provider: provider.to_owned(), failure }
}

pub(super) fn proxy(installation: &Installation<'_>) -> Result<Vec<CheckFact>> {
    let trusted = &installation.config.server.trusted_proxies;
    let mut checks = vec![if trusted.iter().any(|network| network.prefix_len() == 0) {
        CheckFact::EveryoneTrusted {}
    } else {
        CheckFact::TrustedProxies { networks: trusted.len() }
    }];
    let Some(services) = installation.services() else { return Ok(checks) };
    let clients = network_log::recent_clients(services.network_log, REQUESTS)?;
    checks.push(forwarding(trusted, &services.core.store.read(forwarding::findings_in)?));
    let from_proxy = clients.iter().filter(|client| is_proxy(trusted, client)).count();
    let requests = clients.len();
    if installation.config.server.public_url.is_some() && requests > 0 {
        checks.push(if 2 * from_proxy <= requests {
            CheckFact::ClientAddresses { requests }
        } else {
            CheckFact::ProxyAddresses { from_proxy, requests }
        });
    }
    Ok(checks)
}

pub(super) fn network_log(installation: &Installation<'_>) -> Result<Vec<CheckFact>> {
    let Some(services) = installation.services() else { return Ok(Vec::new()) };
    let (log, max_size) = (network_log::status(services.network_log)?, installation.config.network_log.max_size.0);
    let (oldest, mebibytes, most) = (log.oldest, log.used_bytes >> 20, max_size >> 20);
    // Deletion keeps a full log within a batch of its maximum size.
    let is_full = log.used_bytes > max_size.saturating_sub((max_size / 20).max(1 << 20));
    let mut checks = vec![if is_full {
        CheckFact::LogFull { oldest, mebibytes, most }
    } else {
        CheckFact::LogSize { oldest, mebibytes, most }
    }];
    let damaged = network_log::damaged_file(installation.config);
    checks.extend(damaged.map(|file| CheckFact::LogDamaged { file: file.display().to_string() }));
    Ok(checks)
}

/// Reports the last proxy whose `X-Forwarded-For` was not used, unless it is trusted now.
fn forwarding(trusted: &[IpNet], findings: &[ForwardingFinding]) -> CheckFact {
    let is_current = |finding: &&ForwardingFinding| {
        finding.fault != ForwardingFault::UntrustedPeer || !is_trusted(trusted, finding.peer)
    };
    let Some(finding) = findings.iter().find(is_current) else { return CheckFact::NoProxyIgnored {} };
    let (peer, at) = (finding.peer, Timestamp(finding.at));
    match finding.fault {
        ForwardingFault::UntrustedPeer if is_internal(peer) => CheckFact::ProxyUntrusted { peer, at },
        ForwardingFault::UntrustedPeer => CheckFact::PeerUntrusted { peer, at },
        ForwardingFault::UnreadableHop => CheckFact::HopUnreadable { peer, at },
    }
}

fn is_trusted(trusted: &[IpNet], address: IpAddr) -> bool {
    trusted.iter().any(|network| network.contains(&address))
}

/// Returns true if a logged client address is that of a proxy and not of a client.
fn is_proxy(trusted: &[IpNet], client: &str) -> bool {
    client.parse().is_ok_and(|client| is_trusted(trusted, client) || is_internal(client))
}
