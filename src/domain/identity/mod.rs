//! Who somebody is: verification codes, tokens, users and what they say of themselves.

pub mod accounts;
pub mod codes;
pub mod email_rewards;
pub mod preferences;
pub mod profile;
pub mod tokens;
pub mod user_data;
pub mod users;
