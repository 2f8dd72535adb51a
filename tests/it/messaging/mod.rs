//! Notifications, feedback and releases.

mod message_templates;
mod push;
mod v0_feedback;
mod v0_notifications;
mod v0_version;
mod v1_notification_stream;
mod v1_notifications;
