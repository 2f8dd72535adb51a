//! The application: core and services. The server and every command open it in the same way.

use std::{fs::File, sync::Arc, time::Duration};

use crate::{
    certificate,
    clock::Clock,
    config::{Config, ResolvedSetting, configuration_error},
    core::Core,
    domain::{
        divination::{help::HelpTexts, model_calls::ModelCalls, prompts::Prompts},
        identity::{
            accounts::{export::Exports, send_code::CodeSender},
            identity_proofs::IdentityProviders,
            tokens::{self, TokenCache},
        },
        messaging::{
            mailer::{self, Mailer},
            push::Push,
        },
        moderation::{Moderation, words},
        money::{payments::Payments, purchases::Purchases},
        operations::{
            admins::Administrators,
            alerts::Alerts,
            audit::InFlightAudits,
            backups::{Backups, follow::MachineFiles},
            clock_jump::ClockGuard,
            data_dir::{chown_new_files, describe_damage, ensure_initialized, ensure_server_key, open_store},
            database_copy::ensure_not_moved_in,
            figures::CountedCodes,
            forwarding::ForwardingMonitor,
            health::Health,
            integrity::IntegrityChecker,
            job_runs::JobBoard,
            network_log::NetworkLog,
            request_tallies::RequestTallies,
            server_key::{self, KeyMatch},
            server_log::LogBuffer,
            webhook_outbox,
            webhooks::Webhooks,
        },
    },
    error::{Error, Result},
    keys::{SANDBOX_KEY, ServerKey, load_or_create_key},
    providers::{
        breaker::CircuitBreaker,
        factory::{self, Announce},
        llm::models::GuardedModel,
        payment::sandbox::Sandbox,
    },
    store::{
        SchemaPolicy, Store, Tuning,
        files::{DATABASE, NETWORK_LOG},
        lock::{lock_alone, lock_directory, publish_address},
        restore,
    },
};

/// The pause between two steps of a long change. The other writes of this process are in the same queue.
const STEP_PAUSE: Duration = Duration::from_millis(5);
/// The same of a command beside a server, which looks for the lock of the file at intervals.
const STEP_PAUSE_BESIDE_SERVER: Duration = Duration::from_millis(40);

/// The purpose for which the application is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// The server. It holds the data directory's lock while it runs.
    Server,
    /// A command that creates the data directory if there is none.
    Initialize,
    /// A command that has just restored a database and migrates it.
    Restore,
    /// A command that needs an existing data directory. A server may run beside it.
    Attach,
}

impl OpenMode {
    /// Returns the policy. Only two modes migrate, because older versions of the program reject a migrated database.
    const fn policy(self) -> SchemaPolicy {
        match self {
            Self::Server | Self::Restore => SchemaPolicy::Migrate,
            Self::Initialize | Self::Attach => SchemaPolicy::Create,
        }
    }
}

/// Core and services.
pub struct App {
    pub core: Core,
    pub mailer: Arc<Mailer>,
    pub code_sender: CodeSender,
    pub token_cache: TokenCache,
    pub identities: IdentityProviders,
    pub exports: Exports,
    pub network_log: Arc<NetworkLog>,
    pub request_tallies: RequestTallies,
    /// The counts of codes that the figures contain already.
    pub counted_codes: CountedCodes,
    /// Events of this process's log that are not stored yet. Empty in commands.
    pub server_log: Arc<LogBuffer>,
    pub model_calls: ModelCalls,
    pub payments: Payments,
    pub purchases: Purchases,
    pub push: Push,
    pub webhooks: Webhooks,
    pub moderation: Arc<Moderation>,
    pub admins: Administrators,
    pub audits: Arc<InFlightAudits>,
    pub forwarding: ForwardingMonitor,
    pub integrity: Arc<IntegrityChecker>,
    pub clock_guard: Arc<ClockGuard>,
    pub backups: Backups,
    pub health: Arc<Health>,
    pub alerts: Alerts,
    /// Every setting with its origin, of a server. Empty in commands.
    pub settings: Vec<ResolvedSetting>,
    /// Declared last, so that it is released after everything that writes has stopped.
    lock: Option<File>,
}

impl App {
    /// Opens the data directory, and creates it if the mode may do that.
    ///
    /// # Errors
    /// `not_found` if there is none. `data_directory_unusable` if another server runs on it, if its schema is newer, or
    /// if it is older and the mode does not migrate. Storage errors, also for lost files.
    pub fn open(config: Config, mode: OpenMode, announce: &Announce) -> Result<Self> {
        if mode == OpenMode::Attach {
            ensure_initialized(&config)?;
        }
        let config = Arc::new(config);
        Self::open_data_dir(&config, mode, announce).map_err(|error| describe_damage(&config, error))
    }

    /// Keeps the origins of the settings, for people to look at.
    #[must_use]
    pub fn with_settings(self, settings: Vec<ResolvedSetting>) -> Self {
        Self { settings, ..self }
    }

    /// Uses the buffer that receives the events of the log.
    #[must_use]
    pub fn with_server_log(self, server_log: Arc<LogBuffer>) -> Self {
        Self { server_log, ..self }
    }

    fn open_data_dir(config: &Arc<Config>, mode: OpenMode, announce: &Announce) -> Result<Self> {
        let directory = config.data_dir();
        let lock = match mode {
            OpenMode::Server => Some(lock_alone(directory)?),
            _ => lock_directory(directory)?,
        };
        if restore::finish(directory, lock.is_some())? {
            tracing::warn!("finished an interrupted restore of a backup");
        }
        let [is_started, has_log] = [DATABASE, NETWORK_LOG].map(|name| directory.join(name).exists());
        let policy = if lock.is_some() { mode.policy() } else { SchemaPolicy::RequireCurrent };
        // A command that only looks creates no schema in a database whose name is mistyped.
        let is_look_at_server = mode == OpenMode::Attach && config.database.url.is_some();
        let policy_of_store = if is_look_at_server { SchemaPolicy::RequireCurrent } else { policy };
        let clock = Clock::default();
        let store = open_store(config, &tuning(config), clock.clone(), policy_of_store)?;
        store.read(ensure_not_moved_in)?;
        let keys = open_keys(config, &store, mode)?;
        // Rows are sealed under the recorded key only.
        if store.read(|tx| server_key::compare_in(tx, &keys))? != KeyMatch::Different {
            store.set_keys(keys.clone());
        }
        words::seed(&store)?;
        // A server stays readable and decides once it has asked the bucket.
        if mode == OpenMode::Attach && MachineFiles::new(directory).superseded_by()?.is_some() {
            store.set_superseded(true);
        }
        let is_beside_server = lock.is_none() && store.file().is_some();
        let core = Core {
            config: Arc::clone(config),
            clock,
            store,
            keys,
            phone_rules: Arc::new(config.phone_rules()),
            log_throttle: Arc::default(),
            step_turn: Arc::default(),
            step_pause: if is_beside_server { STEP_PAUSE_BESIDE_SERVER } else { STEP_PAUSE },
        };
        if is_started && !has_log {
            tracing::warn!("the network log is missing; a new one is created");
        }
        let network_log = Arc::new(NetworkLog::open(core.clone(), policy)?);
        if mode == OpenMode::Server {
            webhook_outbox::store_subscription(&core)?;
        }
        // A command holds the lock only while it opens, so that a server can start beside it.
        Self::compose(core, network_log, lock.filter(|_| mode == OpenMode::Server), announce)
    }

    /// Builds the services.
    fn compose(core: Core, network_log: Arc<NetworkLog>, lock: Option<File>, announce: &Announce) -> Result<Self> {
        let config = &core.config;
        let directory = config.data_dir();
        let sandbox_key =
            || load_or_create_key(&directory.join(SANDBOX_KEY), || Sandbox::generate_key().map_err(Error::internal));
        let payments = Payments::open(core.clone(), sandbox_key)?;
        let purchases = Purchases::open(core.clone())?;
        let push = Push::new(core.clone())?;
        let webhooks = Webhooks::new(core.clone())?;
        chown_new_files(directory)?;
        let letters = mailer::letters(config).map_err(|faults| configuration_error(&faults))?;
        let mailer = Arc::new(Mailer::new(factory::email_sender(config, &core.clock, announce)?, letters));
        let sms = factory::sms_sender(config, &core.clock, announce);
        let code_sender = CodeSender::new(core.clone(), sms, Arc::clone(&mailer));
        let moderation = Arc::new(Moderation::new(core.clone(), factory::text_moderator(config, core.clock.clone())));
        let prompts = Prompts::load(config).map_err(|faults| configuration_error(&faults))?;
        let help = HelpTexts::load(config).map_err(|faults| configuration_error(&faults))?;
        tokens::watch_changes(&core.store);
        let models = factory::language_models(config);
        let model_calls = ModelCalls::new(core.clone(), Arc::clone(&moderation), models, prompts, help);
        let integrity = Arc::new(IntegrityChecker::new(core.clone(), lock.is_some()));
        let clock_guard = Arc::new(ClockGuard::new(core.clone()));
        let health = Arc::new(Health {
            core: core.clone(),
            integrity: Arc::clone(&integrity),
            breakers: breakers(&code_sender, &payments, &purchases, &push, &moderation, &model_calls),
            served_certificate: Arc::new(certificate::ServedValidity::default()),
            jobs: Arc::new(JobBoard::new(core.clone())),
            follow: Arc::default(),
        });
        Ok(Self {
            token_cache: TokenCache::default(),
            identities: IdentityProviders::new(core.clone()),
            exports: Exports::new(core.clone(), Arc::clone(&network_log)),
            alerts: Alerts::new(core.clone(), Arc::clone(&health), Arc::clone(&mailer)),
            backups: Backups {
                core: core.clone(),
                integrity: Arc::clone(&integrity),
                clock_guard: Arc::clone(&clock_guard),
                follow: Arc::clone(&health.follow),
            },
            admins: Administrators::new(core.clone()),
            audits: Arc::new(InFlightAudits::new(core.clone())),
            network_log,
            request_tallies: RequestTallies::default(),
            counted_codes: CountedCodes::default(),
            server_log: Arc::default(),
            forwarding: ForwardingMonitor::new(core.clone()),
            mailer,
            code_sender,
            model_calls,
            payments,
            purchases,
            push,
            webhooks,
            moderation,
            integrity,
            clock_guard,
            health,
            settings: Vec::new(),
            lock,
            core,
        })
    }
}

impl App {
    /// Publishes the server's base URL, for `yarrow healthcheck`.
    pub fn publish_address(&self, url: &str) {
        if let Some(Err(error)) = self.lock.as_ref().map(|lock| publish_address(lock, url)) {
            tracing::warn!(%error, "the address could not be written to the lock file");
        }
    }
}

fn open_keys(config: &Config, store: &Store, mode: OpenMode) -> Result<ServerKey> {
    ensure_server_key(config, store)?;
    let keys = ServerKey::load(config.auth.secret_key.as_ref(), config.data_dir())?;
    if mode == OpenMode::Server {
        server_key::check_at_start(store, &keys)?;
    }
    Ok(keys)
}

/// Collects the circuit breakers of the configured providers.
fn breakers(
    code_sender: &CodeSender,
    payments: &Payments,
    purchases: &Purchases,
    push: &Push,
    moderation: &Moderation,
    model_calls: &ModelCalls,
) -> Vec<Arc<CircuitBreaker>> {
    let mut breakers = vec![Arc::clone(&code_sender.sms_breaker), Arc::clone(&code_sender.mailer.breaker)];
    breakers.extend(code_sender.sms.breakers());
    breakers.extend(payments.breakers().map(Arc::clone));
    breakers.extend(purchases.breaker().map(Arc::clone));
    breakers.extend(push.breakers().map(Arc::clone));
    breakers.extend(moderation.external.breaker().map(Arc::clone));
    breakers.extend(model_calls.models.all().map(|model: &GuardedModel| Arc::clone(model.breaker())));
    breakers
}

fn tuning(config: &Config) -> Tuning {
    Tuning {
        mmap_size: config.database.mmap_size.0,
        cache_kib: u32::try_from(config.database.cache.0 / 1024).unwrap_or(u32::MAX),
        // One for each worker, one for a nested read, and those for long reads and reports.
        readers: config.server.worker_threads() + 1 + config.database.long_reads + config.database.reports,
        queue: config.database.write_queue as usize,
        commit_size: config.database.commit_size as usize,
        slow: config.limits.slow_query,
    }
}
