//! Users, sign-in, devices, profiles, preferences and account deletion.

mod admin_user_data;
mod code_messages;
mod identities;
mod old_apps;
mod personal_data;
mod staff;
mod v0_auth;
mod v0_user;
mod v1_account;
mod v1_account_deletion;
mod v1_auth;
mod v1_preferences;
