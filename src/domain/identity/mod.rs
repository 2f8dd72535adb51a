//! Users: verification codes, tokens, accounts, profiles and preferences.

pub mod accounts;
pub mod codes;
pub mod email_rewards;
pub mod preferences;
pub mod profile;
pub mod step_up;
pub mod tokens;
pub mod user_data;
pub mod users;
