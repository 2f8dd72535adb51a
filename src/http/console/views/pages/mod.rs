//! The pages, each with its data.

pub mod rows;
pub mod sign_in;
pub mod overview;
pub mod search;
pub mod users;
pub mod missing_coins;
pub mod user;
pub mod orders;
pub mod purchases;
pub mod figures;
pub mod models;
pub mod moderation;
pub mod feedback;
pub mod messages;
pub mod health;
pub mod log;
pub mod bills;
pub mod bulk;
pub mod administrators;
pub mod settings;
pub mod cleanup;
