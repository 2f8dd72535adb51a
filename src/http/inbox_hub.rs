//! The open notification streams, and the task that wakes them.
//!
//! A stream sleeps until the watcher finds a row for its user. So ten thousand idle streams cost memory and heartbeats,
//! but no queries besides the check of their tokens, a few hundred at a time.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU8, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::{
    sync::Notify,
    time::{MissedTickBehavior, interval},
};

use crate::{
    app::App,
    concurrency::{
        lock::lock_unpoisoned,
        semaphore::{KeyedPermit, KeyedSemaphore},
    },
    config::NotificationsConfig,
    domain::{
        identity::tokens,
        messaging::inbox_events::{self, ConcernedUsers},
    },
    error::{Code, Error, Result},
    types::{Secret, UserId},
};

/// The interval at which the watcher looks for new rows.
const WATCH_INTERVAL: Duration = Duration::from_millis(250);
/// Tokens that are checked at once, so that a pass over many streams does not occupy the database.
const TOKENS_AT_ONCE: usize = 500;
/// The time between two passes over all tokens if none was revoked. Tokens expire without a change of a row.
const TOKEN_PASS_INTERVAL: Duration = Duration::from_secs(10);
/// The time after which a client that has too many streams may try again.
const RETRY_AFTER: Duration = Duration::from_secs(30);

/// The reason for which a stream ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamEnd {
    /// Its token has ended.
    Unauthenticated,
    /// The service stops.
    Stopping,
}

/// The open streams by user.
pub struct InboxHub {
    listeners: Mutex<Listening>,
    permits: KeyedSemaphore<UserId>,
    max_per_user: u32,
}

#[derive(Default)]
struct Listening {
    by_user: HashMap<UserId, Vec<Arc<InboxListener>>>,
    is_closed: bool,
}

/// One open stream.
struct InboxListener {
    token: Option<Secret>,
    wake: Notify,
    end: AtomicU8,
}

/// A stream's place in the hub, given up on drop.
pub struct InboxSubscription {
    hub: Arc<InboxHub>,
    user: UserId,
    listener: Arc<InboxListener>,
    _permit: KeyedPermit<UserId>,
}

impl InboxHub {
    pub fn new(config: &NotificationsConfig) -> Self {
        Self {
            listeners: Mutex::default(),
            permits: KeyedSemaphore::new(config.streams),
            max_per_user: config.streams_per_user,
        }
    }

    /// Adds a stream of a user.
    ///
    /// # Errors
    /// `overloaded` if the user, or all users together, have too many, or the service stops.
    pub fn subscribe(self: &Arc<Self>, user: UserId, token: Option<Secret>) -> Result<InboxSubscription> {
        let too_many = || {
            Error::new(Code::Overloaded)
                .detail(("Too many notification streams are open.", "打开的通知流过多。"))
                .retry_after(RETRY_AFTER)
        };
        let permit = self.permits.try_acquire(user, self.max_per_user).ok_or_else(too_many)?;
        let listener = Arc::new(InboxListener { token, wake: Notify::new(), end: AtomicU8::new(0) });
        let mut listening = lock_unpoisoned(&self.listeners);
        if listening.is_closed {
            listener.finish(StreamEnd::Stopping);
        }
        listening.by_user.entry(user).or_default().push(Arc::clone(&listener));
        drop(listening);
        Ok(InboxSubscription { hub: Arc::clone(self), user, listener, _permit: permit })
    }

    /// Ends all streams, and those that begin later.
    pub fn close(&self) {
        lock_unpoisoned(&self.listeners).is_closed = true;
        for listener in self.all() {
            listener.finish(StreamEnd::Stopping);
        }
    }

    fn is_empty(&self) -> bool {
        lock_unpoisoned(&self.listeners).by_user.is_empty()
    }

    fn all(&self) -> Vec<Arc<InboxListener>> {
        lock_unpoisoned(&self.listeners).by_user.values().flatten().cloned().collect()
    }

    fn wake(&self, concerned: &ConcernedUsers) {
        let listening = lock_unpoisoned(&self.listeners);
        let wake = |listeners: &Vec<Arc<InboxListener>>| listeners.iter().for_each(|one| one.wake.notify_one());
        match concerned {
            ConcernedUsers::Everybody => listening.by_user.values().for_each(wake),
            ConcernedUsers::Some(users) => {
                users.iter().filter_map(|user| listening.by_user.get(user)).for_each(wake);
            }
        }
    }
}

impl InboxListener {
    fn finish(&self, end: StreamEnd) {
        let end = match end {
            StreamEnd::Unauthenticated => 1,
            StreamEnd::Stopping => 2,
        };
        self.end.store(end, Ordering::Release);
        self.wake.notify_one();
    }
}

impl InboxSubscription {
    /// Waits until the watcher wakes the stream.
    pub async fn woken(&self) {
        self.listener.wake.notified().await;
    }

    /// Returns the reason to end, if there is one.
    pub fn end(&self) -> Option<StreamEnd> {
        match self.listener.end.load(Ordering::Acquire) {
            0 => None,
            1 => Some(StreamEnd::Unauthenticated),
            _ => Some(StreamEnd::Stopping),
        }
    }
}

impl Drop for InboxSubscription {
    fn drop(&mut self) {
        let mut listening = lock_unpoisoned(&self.hub.listeners);
        if let Some(listeners) = listening.by_user.get_mut(&self.user) {
            listeners.retain(|other| !Arc::ptr_eq(other, &self.listener));
            if listeners.is_empty() {
                listening.by_user.remove(&self.user);
            }
        }
    }
}

/// Wakes the streams of users for whom there are new rows, and ends those whose tokens have ended. Never returns.
pub async fn watch(app: Arc<App>, hub: Arc<InboxHub>) {
    let mut ticks = interval(WATCH_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut mark, mut pass) = (None, TokenPass::new());
    loop {
        ticks.tick().await;
        if hub.is_empty() {
            // The first stream that opens looks for itself after the next tick.
            mark = None;
            continue;
        }
        match inbox_events::concerned(&app.core, mark) {
            Ok((users, newest)) => {
                hub.wake(&users);
                mark = Some(newest);
            }
            Err(error) => tracing::warn!(%error, "new notifications could not be looked for"),
        }
        pass = pass.go_on(&app, &hub).await;
    }
}

/// A pass over the tokens of all streams.
struct TokenPass {
    begun: Instant,
    /// The number of the tokens' last change when the pass began.
    change: Option<i64>,
    rest: Vec<Arc<InboxListener>>,
}

impl TokenPass {
    fn new() -> Self {
        Self { begun: Instant::now(), change: None, rest: Vec::new() }
    }

    /// Checks some tokens, and begins the next pass when it is due.
    async fn go_on(mut self, app: &Arc<App>, hub: &InboxHub) -> Self {
        if self.rest.is_empty() {
            let change = tokens::last_change(&app.core).ok();
            if change == self.change && self.begun.elapsed() < TOKEN_PASS_INTERVAL {
                return self;
            }
            self = Self { begun: Instant::now(), change, rest: hub.all() };
        }
        let some = self.rest.split_off(self.rest.len().saturating_sub(TOKENS_AT_ONCE));
        let app = Arc::clone(app);
        // Fails only while the runtime stops.
        let _ = tokio::task::spawn_blocking(move || end_revoked(&app, &some)).await;
        self
    }
}

fn end_revoked(app: &App, listeners: &[Arc<InboxListener>]) {
    for listener in listeners {
        let ended = |token: &Secret| tokens::has_ended(&app.core, &app.token_cache, token.reveal());
        let has_ended = listener.token.as_ref().map_or(Ok(false), ended);
        match has_ended {
            Ok(true) => listener.finish(StreamEnd::Unauthenticated),
            Ok(false) => {}
            // A slow disk must not end streams.
            Err(error) => tracing::debug!(%error, "the token of a stream could not be checked"),
        }
    }
}
