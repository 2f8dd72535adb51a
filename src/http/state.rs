//! State that only HTTP needs: the limits on concurrent requests and on the memory that they hold.

use std::sync::Arc;

use super::{held_bytes::HeldPools, inbox_hub::InboxHub, live_interpretations::LiveInterpretations};
use crate::{app::App, concurrency::semaphore::Semaphore};

/// The application and the limits that all listeners share.
pub struct HttpState {
    pub app: Arc<App>,
    /// Requests that run at once. A request whose body has not arrived does not count.
    pub requests: Semaphore,
    /// Reports of administrators that run at once. Further ones wait, so that they never use up the connections to the
    /// database.
    pub reports: Arc<tokio::sync::Semaphore>,
    /// Interpretations of sessions that are running.
    pub live: Arc<LiveInterpretations>,
    /// Notification streams that are open.
    pub inbox: Arc<InboxHub>,
    /// The memory that requests and their responses hold.
    pub held: Arc<HeldPools>,
}

impl HttpState {
    pub fn new(app: Arc<App>) -> Self {
        let requests = Semaphore::new(app.core.config.limits.requests);
        let held = Arc::new(HeldPools::new(&app.core.config.limits));
        let reports = Arc::new(tokio::sync::Semaphore::new(app.core.config.database.reports as usize));
        let inbox = Arc::new(InboxHub::new(&app.core.config.notifications));
        Self { app, requests, reports, live: Arc::default(), inbox, held }
    }
}
