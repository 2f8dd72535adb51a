//! Notifies the system's service manager, if there is one, of readiness, liveness and shutdown.

use sd_notify::NotifyState;

/// Reports readiness, and then liveness at the interval that the service manager requests.
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

/// Reports that the service is stopping.
pub fn stopping() {
    tell(NotifyState::Stopping);
}

fn tell(state: NotifyState<'_>) {
    if let Err(error) = sd_notify::notify(&[state]) {
        tracing::debug!(%error, "could not notify the service manager");
    }
}
