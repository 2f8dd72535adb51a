//! The application: configuration, store, providers and clock, opened alike by the server and by every command.

use std::{fs::File, ops::Deref, sync::Arc};

use crate::{
    certificate::{self, Validity},
    clock::Clock,
    concurrency::{
        response_slots::PerUserResponseSlots,
        semaphore::{KeyedSemaphore, Semaphore},
    },
    config::Config,
    core::Core,
    data_dir::{chown_new_files, describe_damage, ensure_initialized, ensure_server_key, open_store},
    domain::{
        divination::model_calls::ModelCalls,
        identity::accounts::{export::Exports, send_code::CodeSender},
        messaging::mailer::Mailer,
        moderation::{Moderation, external::External, hourly::Hours, screen::Screen, shadow::Shadow, words},
        money::payments::Payments,
        operations::{admins, alerts, audit::UnderWay, clock_jump, integrity, network_log::Recorder, server_key},
    },
    error::{Error, Result},
    keys::{SANDBOX_KEY, ServerKey, kept_key},
    providers::{
        breaker::CircuitBreaker,
        factory::{self, Announce},
        llm::models::Guarded,
        payment::sandbox::Sandbox,
    },
    store::{
        SchemaPolicy, Tuning,
        lock::{lock_directory, lock_for_server},
        restore,
    },
    types::UserId,
};

/// Bodies on their way that hold more than a short one may. The longest that users send has 256 KiB.
const LONG_BODIES: u32 = 512;

/// Who opens the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// The one server of a data directory: it holds the lock for as long as it runs.
    Server,
    /// A command that may come before the first start, and then makes the data directory as that would.
    Initialize,
    /// A command that has just put a database in its place, and makes it one of today.
    Restore,
    /// Any other command, which may run beside the server and needs an installation.
    Attach,
}

impl OpenMode {
    /// A database that was migrated is taken by no older version any more, so nobody who only wants to look does that.
    const fn policy(self) -> SchemaPolicy {
        match self {
            Self::Server | Self::Restore => SchemaPolicy::Migrate,
            Self::Initialize | Self::Attach => SchemaPolicy::Create,
        }
    }
}

/// Core and services, composed. The server's entrances and commands work on one of these.
pub struct App {
    pub core: Core,
    /// Requests that run at once. One whose body has not arrived does not run yet.
    pub requests: Semaphore,
    /// Long bodies that have not arrived, by who sends them: whoever sends slowly must not make the service hold much.
    pub long_bodies: KeyedSemaphore<String>,
    pub mailer: Arc<Mailer>,
    pub code_sender: CodeSender,
    pub model_calls: ModelCalls,
    pub payments: Payments,
    pub moderation: Arc<Moderation>,
    /// Password hashes at once, each of which takes its megabytes.
    pub hashing: Semaphore,
    /// The large answers that are being sent.
    pub large_answers: PerUserResponseSlots<UserId>,
    pub exports: Exports,
    /// What was told of alerts.
    pub told: alerts::Memory,
    /// How much of the damage that was met in the database a check has explained.
    pub damage_explained: integrity::Watch,
    /// Whether the clock is far ahead.
    pub clock_watch: clock_jump::Watch,
    /// How long the certificate is good that is shown.
    pub certificate_shown: Arc<certificate::Shown>,
    /// What administrators have begun.
    pub acts: Arc<UnderWay>,
    /// Network log entries on their way to the store.
    pub access_log: Recorder,
    /// Held for its lock. Dropped last, when nothing writes any more.
    _lock: Option<File>,
}

impl Deref for App {
    type Target = Core;

    fn deref(&self) -> &Core {
        &self.core
    }
}

impl App {
    /// Opens the data directory, making it if there is none and the mode may do that.
    ///
    /// # Errors
    /// `not_found` when there is none and the mode may not; `data_directory_unusable` when another server runs on it or
    /// its schema is newer, or older and the mode may not migrate it; storage errors, when a part of it was lost too.
    pub fn open(config: Config, mode: OpenMode, announce: &Announce) -> Result<Self> {
        if mode == OpenMode::Attach {
            ensure_initialized(&config)?;
        }
        let config = Arc::new(config);
        Self::open_installation(&config, mode, announce).map_err(|error| describe_damage(&config, error))
    }

    fn open_installation(config: &Arc<Config>, mode: OpenMode, announce: &Announce) -> Result<Self> {
        let directory = config.installation.data_dir.0.clone();
        let clock = Clock::default();
        let lock = match mode {
            OpenMode::Server => Some(lock_for_server(&directory)?),
            _ => lock_directory(&directory)?,
        };
        if restore::finish(&directory, lock.is_some())? {
            tracing::warn!("finished restoring a backup, which had been cut off");
        }
        let policy = if lock.is_some() { mode.policy() } else { SchemaPolicy::RequireCurrent };
        let store = open_store(config, &tuning(config), clock.clone(), policy)?;
        ensure_server_key(config, &store)?;
        let keys = ServerKey::of(config.auth.secret_key.as_ref(), &directory)?;
        if mode == OpenMode::Server {
            server_key::note_at_start(&store, &keys)?;
        }
        words::seed(&store)?;
        let sandbox_key =
            || kept_key(&directory.join(SANDBOX_KEY), || Sandbox::generate_key().map_err(Error::internal));
        let core = Core { config: Arc::clone(config), clock, store, keys, phone_rules: Arc::new(config.phone_rules()) };
        let payments = Payments::open(core.clone(), sandbox_key)?;
        chown_new_files(&directory)?;
        let moderation = Arc::new(moderation(&core));
        let mailer = Arc::new(Mailer::new(factory::email_sender(config, core.clock.clone(), announce)?));
        let sms = factory::sms_sender(config, core.clock.clone(), announce);
        Ok(Self {
            requests: Semaphore::new(config.limits.requests),
            long_bodies: KeyedSemaphore::new(LONG_BODIES),
            code_sender: CodeSender::new(core.clone(), sms, Arc::clone(&mailer)),
            mailer,
            model_calls: ModelCalls::new(core.clone(), Arc::clone(&moderation), factory::language_models(config)),
            hashing: Semaphore::new(admins::HASHES_AT_ONCE),
            exports: Exports::new(core.clone()),
            large_answers: PerUserResponseSlots::default(),
            access_log: Recorder::default(),
            told: alerts::Memory::default(),
            damage_explained: integrity::Watch::default(),
            clock_watch: clock_jump::Watch::default(),
            certificate_shown: Arc::default(),
            acts: Arc::default(),
            payments,
            moderation,
            // A command holds the lock only while it opens, so that a server can start beside it.
            _lock: lock.filter(|_| mode == OpenMode::Server),
            core,
        })
    }

    /// How long the certificate is good that is shown; in a process that shows none, the one of the files.
    pub fn certificate_validity(&self) -> Option<Validity> {
        self.certificate_shown.validity().or_else(|| certificate::validity(&self.config).ok().flatten())
    }

    /// What stands before each provider that there is.
    pub fn breakers(&self) -> Vec<&CircuitBreaker> {
        let others = [&self.code_sender.sms_breaker, &self.mailer.breaker, self.payments.breaker()];
        let moderation = self.moderation.external.breaker();
        others.into_iter().chain(moderation).chain(self.model_calls.models.all().map(Guarded::breaker)).collect()
    }
}

fn tuning(config: &Config) -> Tuning {
    Tuning {
        mmap_size: config.database.mmap_size.0,
        cache_kib: u32::try_from(config.database.cache.0 / 1024).unwrap_or(u32::MAX),
        // One for each worker, one for what a worker reads inside a read, and those for long reads.
        readers: config.server.worker_threads() + 1 + config.database.long_reads,
        queue: config.database.write_queue as usize,
        commit_size: config.database.commit_size as usize,
        slow: config.limits.slow_query,
    }
}

fn moderation(core: &Core) -> Moderation {
    let settings = &core.config.moderation;
    let moderator = factory::text_moderator(&core.config, core.clock.clone());
    Moderation {
        core: core.clone(),
        screen: Screen::new(core.store.clone()),
        external: External::new(moderator, core.clock.clone(), settings.calls),
        hours: Hours::default(),
        shadow: Shadow::new(settings.shadow_share),
    }
}
