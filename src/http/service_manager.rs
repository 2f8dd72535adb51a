//! What the system's service manager is told, where one listens: that the service is ready, that it lives, that it
//! stops.

use sd_notify::NotifyState;

/// Says that every address is open, and from then on, if that is wanted, that the runtime still turns.
pub fn ready() {
    tell(NotifyState::Ready);
    let Some(limit) = sd_notify::watchdog_enabled() else { return };
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(limit / 2).await;
            tell(NotifyState::Watchdog);
        }
    });
}

/// Says that the service lets its last requests end.
pub fn stopping() {
    tell(NotifyState::Stopping);
}

fn tell(state: NotifyState<'_>) {
    if let Err(error) = sd_notify::notify(&[state]) {
        tracing::debug!(%error, "the service manager could not be told");
    }
}
