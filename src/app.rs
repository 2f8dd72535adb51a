//! The application: configuration, store, providers and clock, opened alike by the server and by every command.

use std::{
    fs::{File, TryLockError},
    path::Path,
    sync::Arc,
    time::Duration,
};

use crate::{
    clock::Clock,
    config::Config,
    error::{Code, Error, Result},
    keys::{ServerKey, kept_key},
    ops::{
        access_log::Recorder,
        admins, alerts, backups, clock_jump, codes, integrity,
        model_calls::{Places, Unwritten},
        moderation::{Moderation, external::External, screen::Screen, shadow::Shadow},
        payment::Payments,
        server_key,
        slots::{OneEach, Slots},
        words,
    },
    providers::{
        breaker::Breaker,
        email::EmailSender,
        llm::models::{Guarded, Models},
        payment::sandbox::Sandbox,
        sms::SmsSender,
    },
    store::{
        self, Store, Tuning, Upkeep,
        files::DATABASE,
        restore::{self, KEYS, SERVER_KEY},
    },
    types::{PhoneRules, UserId},
    vendors::{self, Announce},
};

/// A vendor that takes its time must leave threads for everybody else.
const MESSAGES_AT_ONCE: u32 = 32;
/// How long a server waits for the lock of a command that opens, and how often it looks.
const OPENING: Duration = Duration::from_secs(2);
const LOCK_LOOK: Duration = Duration::from_millis(50);

/// The file in a data directory whose lock its server holds.
pub const LOCK: &str = "yarrow.lock";

/// Who opens the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The one server of a data directory: it holds the lock for as long as it runs.
    Server,
    /// A command that may come before the first start, and then makes the data directory as that would.
    Founder,
    /// A command that has just put a database in its place, and makes it one of today.
    Restorer,
    /// Any other command, which may run beside the server and needs an installation.
    Tool,
}

impl Role {
    /// A database that was migrated is taken by no older version any more, so nobody who only wants to look does that.
    const fn upkeep(self) -> Upkeep {
        match self {
            Self::Server | Self::Restorer => Upkeep::Migrate,
            Self::Founder | Self::Tool => Upkeep::Make,
        }
    }
}

pub struct App {
    pub config: Arc<Config>,
    pub clock: Clock,
    pub store: Store,
    pub phone_rules: PhoneRules,
    pub keys: ServerKey,
    /// Requests that run at once. One whose body has not arrived does not run yet.
    pub requests: Slots,
    pub sms: Box<dyn SmsSender>,
    pub sms_breaker: Breaker,
    /// Messages being handed to the provider at once.
    pub sms_sending: Slots,
    pub email: Box<dyn EmailSender>,
    pub email_breaker: Breaker,
    /// Messages being handed to the mail server at once.
    pub email_sending: Slots,
    /// The language models, each behind its breaker.
    pub llm: Models,
    /// Running model calls, and those that wait.
    pub calls: Places,
    /// What came of model calls and could not be written down yet.
    pub unwritten: Unwritten,
    pub payments: Payments,
    pub moderation: Moderation,
    /// Password hashes at once, each of which takes its megabytes.
    pub hashing: Slots,
    /// Whose large answer is being sent.
    pub large_answers: OneEach<UserId>,
    /// Exports being made, each of which is a long read. Half of those, so that others can be made beside them.
    pub exports: Slots,
    /// Whose export is being made or fetched.
    pub exporting: OneEach<UserId>,
    /// What was told of alerts.
    pub told: alerts::Memory,
    /// How much of the damage that was met in the database a check has explained.
    pub damage_explained: integrity::Watch,
    /// Whether the clock is far ahead.
    pub clock_watch: clock_jump::Watch,
    /// What came of verification codes.
    pub code_tally: Arc<codes::Tally>,
    /// Network log entries on their way to the store.
    pub access_log: Recorder,
    /// Held for its lock. Dropped last, when nothing writes any more.
    _lock: Option<File>,
}

impl App {
    /// Opens the data directory, making it if there is none and the role may do that.
    ///
    /// # Errors
    /// `not_found` when there is none and the role may not; `data_directory_unusable` when another server runs on it or
    /// its schema is newer, or older and the role may not migrate it; storage errors, when a part of it was lost too.
    pub fn open(config: Config, role: Role, announce: &Announce) -> Result<Self> {
        if role == Role::Tool {
            demand_installation(&config)?;
        }
        let config = Arc::new(config);
        Self::open_installation(&config, role, announce).map_err(|error| explain_damage(&config, error))
    }

    fn open_installation(config: &Arc<Config>, role: Role, announce: &Announce) -> Result<Self> {
        let directory = config.installation.data_dir.0.clone();
        let clock = Clock::default();
        let lock = match role {
            Role::Server => Some(lock_for_server(&directory)?),
            _ => lock_directory(&directory)?,
        };
        if restore::finish(&directory, lock.is_some())? {
            tracing::warn!("finished restoring a backup, which had been cut off");
        }
        let store = open_store(config, clock.clone(), lock.is_some(), role)?;
        demand_server_key(config, &store)?;
        let keys = ServerKey::of(config.auth.secret_key.as_ref(), &directory)?;
        if role == Role::Server {
            server_key::note_at_start(&store, &keys)?;
        }
        words::seed(&store)?;
        let sandbox_key =
            || kept_key(&directory.join("sandbox.key"), || Sandbox::generate_key().map_err(Error::internal));
        let payments = Payments::open(config, &store, clock.clone(), sandbox_key)?;
        leave_to_owner(&directory)?;
        Ok(Self {
            phone_rules: config.phone_rules(),
            sms: vendors::sms_sender(config, clock.clone(), announce),
            sms_breaker: Breaker::with_defaults("sms"),
            requests: Slots::new(config.limits.requests),
            sms_sending: Slots::new(MESSAGES_AT_ONCE),
            email: vendors::email_sender(config, clock.clone(), announce)?,
            email_breaker: Breaker::with_defaults("email"),
            email_sending: Slots::new(MESSAGES_AT_ONCE),
            llm: vendors::language_models(config),
            calls: Places::new(config.llm.calls, config.llm.calls_per_user, config.llm.queue),
            unwritten: Unwritten::default(),
            hashing: Slots::new(admins::HASHES_AT_ONCE),
            exports: Slots::new(config.database.long_reads.div_ceil(2)),
            large_answers: OneEach::default(),
            exporting: OneEach::default(),
            access_log: Recorder::default(),
            told: alerts::Memory::default(),
            damage_explained: integrity::Watch::default(),
            clock_watch: clock_jump::Watch::default(),
            code_tally: Arc::default(),
            payments,
            moderation: moderation(config, &store, &clock),
            // A command holds the lock only while it opens, so that a server can start beside it.
            _lock: lock.filter(|_| role == Role::Server),
            config: Arc::clone(config),
            clock,
            store,
            keys,
        })
    }
}

impl App {
    /// What stands before each provider.
    pub fn breakers(&self) -> Vec<&Breaker> {
        let others = [&self.sms_breaker, &self.email_breaker, self.payments.breaker()];
        others.into_iter().chain(self.llm.all().map(Guarded::breaker)).collect()
    }
}

/// Refuses a directory in which nobody has installed anything: most likely its name was mistyped.
///
/// # Errors
/// `not_found`.
pub fn demand_installation(config: &Config) -> Result<()> {
    let directory = &config.installation.data_dir.0;
    let mut parts = [DATABASE].into_iter().chain(KEYS).map(|name| directory.join(name).try_exists());
    // What may not be looked at is there, as far as is known here; whoever opens it says what is wrong.
    if parts.any(|is_there| is_there.unwrap_or(true)) || restore::is_pending(directory).unwrap_or(true) {
        return Ok(());
    }
    let way_out = newest_backup(config).map_or_else(
        || "`yarrow serve` makes one there".to_owned(),
        |newest| format!("There are backups: `yarrow restore {}` puts one there", newest.name),
    );
    let directory = directory.display();
    let detail = format!("There is no installation in {directory}. {way_out}; --data-dir names another directory.");
    Err(Error::new(Code::NotFound).detail(detail))
}

/// Gives what a first start as root has made to whom the directory belongs.
fn leave_to_owner(directory: &Path) -> Result<()> {
    let made = KEYS.into_iter().chain([DATABASE, "yarrow.db-wal", "yarrow.db-shm"]).map(|name| directory.join(name));
    for path in made.filter(|path| path.exists()) {
        store::files::leave_to_owner(&path).map_err(|error| store::files::failed_at(&path, error))?;
    }
    Ok(())
}

/// Refuses to go on under another key than the one that the database was filled under. A first start makes the key
/// before it seeds the words, so a database without them is one whose first start was cut off.
fn demand_server_key(config: &Config, store: &Store) -> Result<()> {
    let path = config.installation.data_dir.0.join(SERVER_KEY);
    if config.auth.secret_key.is_some() || !words::are_seeded(store)? || path.exists() {
        return Ok(());
    }
    let way_out = newest_backup(config).map_or_else(
        || "`yarrow restore FILE --keys` takes it from a backup".to_owned(),
        |newest| format!("`yarrow restore {} --keys` takes it from a backup", newest.name),
    );
    let detail = format!(
        "{} is missing, and what the database keeps under it would not be recognised under another. {way_out} and \
         leaves the database as it is. If auth.secret_key was set, set it again.",
        path.display()
    );
    Err(Error::new(Code::StorageFailed).detail(detail))
}

fn open_store(config: &Config, clock: Clock, is_locked: bool, role: Role) -> Result<Store> {
    let directory = &config.installation.data_dir.0;
    let path = directory.join(DATABASE);
    let is_ours = has_keys(directory);
    // A first start makes the file before the keys, so keys beside an empty file or none say that something was lost.
    if !path.exists() {
        let what = match () {
            () if is_ours => Some("is missing"),
            () if restore::was_cut_off(directory) => Some("is missing, because a restore was cut off"),
            // Whoever wants to begin anew can move them away.
            () if newest_backup(config).is_some() => Some("is missing, although there are backups"),
            () => None,
        };
        if let Some(what) = what {
            return Err(lost(config, &format!("{} {what}", path.display())));
        }
    }
    if is_ours && store::is_empty(&path) {
        return Err(damaged(config, &path, "it is empty"));
    }
    let upkeep = if is_locked { role.upkeep() } else { Upkeep::None };
    Store::open(&path, &tuning(config), clock, upkeep)
}

/// Says how to go on where the database that was opened is damaged. Another program's file is none of ours.
fn explain_damage(config: &Config, error: Error) -> Error {
    let directory = &config.installation.data_dir.0;
    let is_ours = has_keys(directory) || error.code == Code::StorageFailed;
    match &error.source {
        Some(source) if is_ours && store::is_damage(&error) => {
            damaged(config, &directory.join(DATABASE), &source.to_string()).caused_by(error)
        }
        _ => error,
    }
}

fn damaged(config: &Config, path: &Path, what: &str) -> Error {
    lost(config, &format!("{} is damaged ({what})", path.display()))
}

/// Whether keys of an installation lie in the directory.
fn has_keys(directory: &Path) -> bool {
    KEYS.iter().any(|key| directory.join(key).exists())
}

/// The backup that somebody is pointed to: the newest that was found sound, or else the newest. A directory of backups
/// that cannot be read has none to point to.
fn newest_backup(config: &Config) -> Option<backups::Backup> {
    let all = backups::list(config).ok()?;
    backups::newest_sound(&all, Clock::default().now()).or_else(|| all.first()).cloned()
}

/// Says what was lost, and what there is to put in its place.
fn lost(config: &Config, what: &str) -> Error {
    let way_out = match newest_backup(config) {
        Some(newest) => format!(
            "There is a backup of {}: `yarrow restore {}` puts it in its place and keeps what is there aside",
            newest.at, newest.name
        ),
        None => format!(
            "There is no backup in {}: see `yarrow restore --help` if there is one elsewhere",
            config.backup_directory().display()
        ),
    };
    Error::new(Code::StorageFailed).detail(format!("{what}. {way_out}."))
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

fn moderation(config: &Config, store: &Store, clock: &Clock) -> Moderation {
    let settings = &config.moderation;
    Moderation {
        screen: Screen::new(store.clone()),
        external: External::new(vendors::text_moderator(config, clock.clone()), clock.clone(), settings.calls),
        shadow: Shadow::new(settings.shadow_share),
    }
}

/// The lock of a data directory, which is made if there is none; nothing when a server holds it.
///
/// # Errors
/// `data_directory_unusable`.
pub fn lock_directory(directory: &Path) -> Result<Option<File>> {
    if !directory.is_dir() {
        store::files::make_private_directory(directory).map_err(|error| unusable(directory, &error.detail))?;
        // Its name must outlast the power like what will be in it. A parent that may be passed and not read cannot be
        // synced, and was not made by us.
        let parent = directory.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let _ = File::open(parent).and_then(|parent| parent.sync_all());
    }
    let opened = store::files::open_lock(&directory.join(LOCK));
    let file = opened.map_err(|error| unusable(directory, &error.to_string()))?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(unusable(directory, &error.to_string())),
    }
}

/// Waits a little for a command that has just begun: it holds the lock while it opens.
fn lock_for_server(directory: &Path) -> Result<File> {
    for _ in 0..OPENING.as_millis() / LOCK_LOOK.as_millis() {
        if let Some(lock) = lock_directory(directory)? {
            return Ok(lock);
        }
        std::thread::sleep(LOCK_LOOK);
    }
    lock_directory(directory)?.ok_or_else(|| in_use(directory))
}

fn unusable(directory: &Path, why: &str) -> Error {
    Error::new(Code::DataDirectoryUnusable).detail(format!("The data directory {}: {why}", directory.display()))
}

/// What is said of a directory whose lock a server holds.
pub fn in_use(directory: &Path) -> Error {
    unusable(directory, "another server is running on it.")
}
