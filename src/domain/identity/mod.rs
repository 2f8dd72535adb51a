//! Users: verification codes, tokens, accounts, profiles and preferences.

pub mod accounts;
pub mod codes;
pub mod directory;
pub mod email_rewards;
pub mod identities;
pub mod identity_proofs;
pub mod preferences;
pub mod profile;
pub mod staff_acts;
pub mod staff_notes;
pub mod step_up;
pub mod suspensions;
pub mod tokens;
pub mod user_data;
pub mod users;
