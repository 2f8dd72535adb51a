//! Purchases in app stores. The store sells and names its price; this service verifies and credits.
//!
//! A purchase exists before this service hears of it, so it is bound to a user by an account token that the app passed
//! to the store. The store's id makes each purchase count once, whoever reports it: app, notification, history or
//! operator. What the store proves is checked outside of transactions; one transaction records and posts.
//!
//! The surprise: a refund may be known before its purchase. It is stored, so that the purchase is never credited.

pub mod accounts;
pub mod apple;
pub mod crediting;
pub mod google;
pub mod jobs;
pub mod messages;
pub mod purchase;
pub mod queries;
pub mod records;
pub mod report;
pub mod retention;
mod testers;

use std::{sync::Arc, time::Duration};

use secrecy::ExposeSecret;
use serde::{Deserialize, Serialize};

use crate::{
    concurrency::semaphore::Semaphore,
    config::{Config, configuration_error},
    core::Core,
    domain::operations::settings,
    error::{Code, Error, Result},
    providers::{
        WallClock,
        breaker::CircuitBreaker,
        payment::{
            apple::{AppStore, AppStoreSettings, AppleEnvironment},
            google::{GooglePlay, GooglePlaySettings},
        },
    },
    types::Timestamp,
};

use purchase::StorePurchase;

/// Notifications of one store that are processed at once. Each occupies a thread.
const EVENTS: u32 = 64;

/// The service of the app stores. A store without settings is off.
pub struct Purchases {
    pub core: Core,
    apple: Option<Arc<AppStore>>,
    google: Option<Arc<GooglePlay>>,
    breaker: Arc<CircuitBreaker>,
    /// Permits for calls that users wait for.
    calls: Semaphore,
    /// Permits for notifications of the stores, which anybody can send.
    pub apple_events: Semaphore,
    pub google_events: Semaphore,
    /// Permits for notifications of Google that wait for its keys.
    pub awaiting_keys: Semaphore,
}

/// A purchase as its user sees it, with the balance after it.
#[derive(Clone, Debug)]
pub struct PurchaseReceipt {
    pub purchase: StorePurchase,
    pub balance: i64,
}

impl Purchases {
    /// Builds the connections to the configured stores.
    ///
    /// # Errors
    /// `configuration` with all faults of their settings.
    pub fn open(core: Core) -> Result<Self> {
        let clock = || -> WallClock {
            let clock = core.clock.clone();
            Box::new(move || clock.now().0)
        };
        let (apple, google) = (app_store(&core.config, clock()), google_play(&core.config, clock()));
        let faults: Vec<String> =
            [apple.as_ref().err(), google.as_ref().err()].into_iter().flatten().flatten().cloned().collect();
        let (Ok(apple), Ok(google)) = (apple, google) else { return Err(configuration_error(&faults)) };
        let calls = Semaphore::new(core.config.payment.max_concurrent_calls);
        let [apple_events, google_events, awaiting_keys] = [EVENTS, EVENTS, EVENTS / 2].map(Semaphore::new);
        let breaker = Arc::new(CircuitBreaker::with_defaults("google play"));
        Ok(Self {
            core,
            apple: apple.map(Arc::new),
            google: google.map(Arc::new),
            breaker,
            calls,
            apple_events,
            google_events,
            awaiting_keys,
        })
    }

    /// Returns the App Store.
    ///
    /// # Errors
    /// `not_configured`.
    pub fn apple(&self) -> Result<&Arc<AppStore>> {
        self.apple.as_ref().ok_or_else(|| not_configured("payment.apple"))
    }

    /// Returns Google Play.
    ///
    /// # Errors
    /// `not_configured`.
    pub fn google(&self) -> Result<&Arc<GooglePlay>> {
        self.google.as_ref().ok_or_else(|| not_configured("payment.google"))
    }

    /// The circuit breaker of Google Play, if it is configured. Purchases in the App Store need no call.
    pub fn breaker(&self) -> Option<&Arc<CircuitBreaker>> {
        self.google.as_ref().map(|_| &self.breaker)
    }
}

fn not_configured(section: &str) -> Error {
    Error::new(Code::NotConfigured)
        .detail((format!("The operator has not set `{section}`."), format!("运营方尚未设置 `{section}`。")))
}

/// Builds the connection to the App Store, if it is configured.
///
/// # Errors
/// All faults of its settings.
pub fn app_store(config: &Config, clock: WallClock) -> Result<Option<AppStore>, Vec<String>> {
    let apple = &config.payment_apple;
    if apple.bundle_id.is_empty() {
        return Ok(None);
    }
    let mut faults = Vec::new();
    let mut environments = Vec::new();
    for name in &apple.environments {
        match AppleEnvironment::ALL.into_iter().find(|known| known.name().eq_ignore_ascii_case(name)) {
            Some(environment) => environments.push(environment),
            None => faults.push(format!("payment.apple.environments: `{name}` is neither production nor sandbox")),
        }
    }
    let settings = AppStoreSettings {
        bundle_id: apple.bundle_id.clone(),
        app_apple_id: apple.app_apple_id.and_then(|id| i64::try_from(id).ok()),
        environments,
        root: apple.root.clone(),
        issuer_id: apple.issuer_id.clone(),
        key_id: apple.key_id.clone(),
        private_key: apple.private_key.as_ref().map_or("", |key| key.expose_secret()).to_owned(),
        base_url: apple.base_url.clone(),
        sandbox_base_url: apple.sandbox_base_url.clone(),
        timeout: config.payment.call_timeout,
    };
    let store = AppStore::new(&settings, clock);
    faults.extend(store.as_ref().err().into_iter().flatten().map(|fault| format!("payment.apple.{fault}")));
    match store {
        Ok(store) if faults.is_empty() => Ok(Some(store)),
        _ => Err(faults),
    }
}

/// Builds the connection to Google Play, if it is configured.
///
/// # Errors
/// All faults of its settings.
pub fn google_play(config: &Config, clock: WallClock) -> Result<Option<GooglePlay>, Vec<String>> {
    let google = &config.payment_google;
    if google.package_name.is_empty() {
        return Ok(None);
    }
    let notify_url = || format!("{}/payment/notify/google", config.server.base_url().trim_end_matches('/'));
    let settings = GooglePlaySettings {
        package_name: google.package_name.clone(),
        service_account: google.service_account.as_ref().map_or("", |key| key.expose_secret()).to_owned(),
        base_url: google.base_url.clone(),
        token_url: google.token_url.clone(),
        keys_url: google.keys_url.clone(),
        push_audience: google.push_audience.clone().unwrap_or_else(notify_url),
        push_service_account: google.push_service_account.clone(),
        timeout: config.payment.call_timeout,
    };
    let faulty = |faults: Vec<_>| faults.iter().map(|fault| format!("payment.google.{fault}")).collect();
    GooglePlay::new(&settings, clock).map(Some).map_err(faulty)
}

/// The times of the last run and of the last one that read everything.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct ReadMark {
    at: i64,
    #[serde(default)]
    through: i64,
}

/// The times of a job that reads a store's list.
struct ReadSchedule {
    /// The setting that stores the mark.
    mark: &'static str,
    interval: Duration,
    /// The first run reads from so long ago, and no run reads from before.
    start: Duration,
    /// Each run begins so long before the last complete one.
    overlap: Duration,
}

/// Reads a store's list if it is due. `read` gets the times from and up to which it reads, and returns true if it
/// processed everything.
fn read_list_if_due(
    core: &Core,
    schedule: &ReadSchedule,
    read: impl FnOnce(Timestamp, Timestamp) -> Result<bool>,
) -> Result<()> {
    let (name, now) = (schedule.mark, core.clock.now());
    let mark: Option<ReadMark> = core.store.read(|tx| settings::find_json_in(tx, name))?;
    if mark.is_some_and(|mark| Timestamp(mark.at).is_within(schedule.interval, now)) {
        return Ok(());
    }
    let earliest = now.minus(schedule.start);
    let since = mark.map_or(earliest, |mark| Timestamp(mark.through).minus(schedule.overlap).max(earliest));
    let put = |mark: ReadMark| core.store.write(move |tx| settings::put_json_in(tx, name, &mark)).wait();
    // Marked first, so that a provider that fails is not asked every second.
    put(ReadMark { at: now.0, through: mark.map_or(earliest.0, |mark| mark.through) })?;
    if read(since, now)? {
        put(ReadMark { at: now.0, through: now.0 })?;
    }
    Ok(())
}

/// The delay before the next attempt of a call that failed: a minute at first, an hour at last.
fn retry_delay(waited: Duration) -> Duration {
    waited.clamp(Duration::from_mins(1), Duration::from_hours(1))
}
