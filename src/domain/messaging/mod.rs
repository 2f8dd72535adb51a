//! Notifications to users, feedback from them, and releases of the app.

pub mod feedback;
pub mod inbox_events;
pub mod mailer;
pub mod notifications;
pub mod push;
pub mod push_queue;
pub mod releases;
pub mod user_notices;
