//! State that only HTTP needs: the limits on concurrent requests, uploads and large responses.

use std::sync::Arc;

use super::{
    held_bytes::{ChargedContent, Receiver},
    inbox_hub::InboxHub,
    live_interpretations::LiveInterpretations,
};
use crate::{
    app::App,
    concurrency::{
        byte_budget::ByteBudget,
        response_slots::PerUserResponseSlots,
        semaphore::{KeyedSemaphore, Semaphore},
    },
    types::UserId,
};

/// Long request bodies that may arrive at once. Users send up to 256 KiB each.
const LONG_BODIES: u32 = 512;

/// The application and the limits that all listeners share.
pub struct HttpState {
    pub app: Arc<App>,
    /// Requests that run at once. A request whose body has not arrived does not count.
    pub requests: Semaphore,
    /// Reports of administrators that run at once. Further ones wait, so that they never use up the connections to the
    /// database.
    pub reports: Arc<tokio::sync::Semaphore>,
    /// Long request bodies that are still arriving, by sender.
    pub long_bodies: KeyedSemaphore<String>,
    /// Large responses that are still being sent, one for each user.
    pub large_responses: PerUserResponseSlots<UserId, ChargedContent>,
    /// Interpretations of sessions that are running.
    pub live: Arc<LiveInterpretations>,
    /// Notification streams that are open.
    pub inbox: Arc<InboxHub>,
    /// Bytes of responses that are still being sent.
    pub unread: ByteBudget<Receiver>,
}

impl HttpState {
    pub fn new(app: Arc<App>) -> Self {
        let requests = Semaphore::new(app.core.config.limits.requests);
        let unread = ByteBudget::new(app.core.config.limits.unread_bytes.0);
        let reports = Arc::new(tokio::sync::Semaphore::new(app.core.config.database.reports as usize));
        let inbox = Arc::new(InboxHub::new(&app.core.config.notifications));
        Self {
            app,
            requests,
            reports,
            long_bodies: KeyedSemaphore::new(LONG_BODIES),
            large_responses: PerUserResponseSlots::default(),
            live: Arc::default(),
            inbox,
            unread,
        }
    }
}
