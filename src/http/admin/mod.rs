//! `/admin`: endpoints for administrators. One file for each second segment of the path.

pub mod administrators;
pub mod api_keys;
pub mod audit;
pub mod code_messages;
pub mod data_cleanup;
pub mod network_logs;
pub mod feedback;
pub mod logs;
pub mod figures;
pub mod health;
pub mod interpretation_ratings;
pub mod lists;
pub mod notifications;
pub mod payments;
pub mod products;
pub mod purchases;
pub mod sensitive_word_migration;
pub mod sensitive_words;
pub mod releases;
pub mod session;
pub mod violations;
pub mod webhooks;
pub mod user_data;
pub mod users;
